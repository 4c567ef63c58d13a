"""Times the examples on a GPU beside PyTorch eager and a copy of the same traffic, all in one process.

    python tests/benchmarks/examples_gpu.py [--json OUT.json] [--markdown OUT.md]

Device time: each function is captured once as a CUDA graph and replayed; the L2 cache is flushed before each
replay; median of 15. `copy` is a device-to-device copy that moves as many bytes (read plus written) as the
operands and results of the function have; `fraction` is copy time over ours.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path

import cupy
import numpy as np
import torch
import torch.nn.functional as F

import stepwell

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
FLUSH = cupy.empty(256 << 20, np.uint8)

SIZES = {
    "layer_norm": [dict(m=8192, n=4096), dict(m=16384, n=1023), dict(m=2048, n=32768), dict(m=65536, n=128), dict(m=3, n=7), dict(m=1, n=4096)],
    "softmax": [dict(m=8192, n=4096), dict(m=16384, n=1023), dict(m=2048, n=32768), dict(m=65536, n=128), dict(m=3, n=7), dict(m=1, n=4096)],
    "broadcast_add": [dict(a=8192, b=4096, c=8192, d=4096), dict(a=8192, b=4096, c=1, d=4096), dict(a=4095, b=1, c=1, d=4095), dict(a=1, b=1, c=1, d=1)],
    "mlp": [dict(b=512, i=1024, h=4096, o=1024), dict(b=333, i=1000, h=777, o=501), dict(b=1, i=1024, h=4096, o=1024), dict(b=7, i=1, h=1, o=1)],
    "attention": [dict(b=4, h=8, s=512, t=512, d=64), dict(b=2, h=3, s=333, t=217, d=40), dict(b=1, h=1, s=1, t=1000, d=64), dict(b=1, h=1, s=1, t=1, d=1)],
    "transformer_block": [dict(b=16, s=512), dict(b=2, s=333), dict(b=1, s=17), dict(b=1, s=1)],
    "digits": [dict(b=360), dict(b=7), dict(b=1), dict(b=8191)],
}  # fmt: skip


def eager(name, a):
    """The same function in PyTorch."""
    if name == "layer_norm":
        return F.layer_norm(a["x"], a["w"].shape, a["w"], a["b"], 1e-5)
    if name == "softmax":
        return torch.softmax(a["x"], -1)
    if name == "broadcast_add":
        return a["x"] + a["y"]
    if name == "mlp":
        return F.gelu(a["x"] @ a["w1"] + a["b1"]) @ a["w2"] + a["b2"]
    if name == "attention":
        return torch.softmax(a["q"] @ a["k"].transpose(-1, -2) * a["scale"], -1) @ a["v"]
    if name == "digits":
        h = F.relu(F.relu(a["x"] @ a["w1"] + a["b1"]) @ a["w2"] + a["b2"])
        return (h @ a["w3"] + a["b3"]).argmax(-1)
    return transformer(a)


def transformer(a):
    x = a["x"]
    b, s, e = x.shape
    n = F.layer_norm(x, (e,), a["g1"], a["c1"], 1e-5)
    q, k, v = ((n @ a[w]).reshape(b, s, 4, 16).transpose(1, 2) for w in ("wq", "wk", "wv"))
    p = torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1)
    r = x + (p @ v).transpose(1, 2).reshape(b, s, e) @ a["wo"]
    n = F.layer_norm(r, (e,), a["g2"], a["c2"], 1e-5)
    return r + F.gelu(n @ a["w1"] + a["b1"]) @ a["w2"] + a["b2"]


def capture_cupy(fn):
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(3):
            fn()
        stream.synchronize()
        stream.begin_capture()
        fn()
        graph = stream.end_capture()
    return lambda: graph.launch(stream), stream


def capture_torch(fn):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            fn()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        fn()
    external = cupy.cuda.ExternalStream(side.cuda_stream)

    def replay():
        with torch.cuda.stream(side):
            graph.replay()

    return replay, external


def device_times(candidates, repeats=15):
    """Median device time in us of each (replay, stream), interleaved."""
    times = {name: [] for name in candidates}
    for _ in range(repeats + 2):
        for name, (replay, stream) in candidates.items():
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            with stream:
                FLUSH.fill(1)
                begin.record(stream)
                replay()
                end.record(stream)
            end.synchronize()
            times[name].append(cupy.cuda.get_elapsed_time(begin, end) * 1e3)
    return {name: statistics.median(t[2:]) for name, t in times.items()}


def row(name, function, sizes):
    arguments = {}
    for p in function.signature.parameters:
        shape = tuple(d.evaluate(sizes) for d in p.type.dims)
        arguments[p.name] = torch.randn(shape, device="cuda")
    arrays = [cupy.from_dlpack(t) for t in arguments.values()]
    result = function(*arrays)
    traffic = sum(a.nbytes for a in arrays) + result.nbytes
    half = max(traffic // 2, 16) // 16 * 16
    half -= half % 65536 if half > 1 << 20 else 0  # a copy of an odd size is slower than the memory is
    source, target = cupy.empty(half, np.uint8), cupy.empty(half, np.uint8)
    timed = device_times({
        "stepwell": capture_cupy(lambda: function(*arrays)),
        "eager": capture_torch(lambda: eager(name, arguments)),
        "copy": capture_cupy(lambda: cupy.copyto(target, source)),
    })  # fmt: skip
    wanted = eager(name, {k: v.double() for k, v in arguments.items()})
    got = torch.from_dlpack(function(*arrays))
    error = float((got.double() - wanted.double()).norm() / wanted.double().norm().clamp(min=1e-30))
    return {"example": name, "sizes": sizes, "error": error, "traffic": traffic, **timed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    commit = os.environ.get("STEPWELL_COMMIT") or asked.stdout.strip()
    rows = []
    for name in options.names or SIZES:
        function = stepwell.compile(EXAMPLES / f"{name}.mlir", target="cuda")
        print(f"{name}: {function.stats.kernels} kernels compiled in {function.stats.seconds:.2f} s", flush=True)
        for sizes in SIZES[name]:
            rows.append(row(name, function, sizes))
            r = rows[-1]
            print(f"  {sizes}: {r['stepwell']:.1f} us, eager {r['eager']:.1f}, copy {r['copy']:.1f}, error {r['error']:.1e}", flush=True)
    device = torch.cuda.get_device_name()
    lines = [f"{device}, commit {commit or 'unknown'}, f32, torch {torch.__version__}", "",
             "| example | sizes | stepwell us | torch eager us | copy us | fraction of copy speed | relative error |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    for r in rows:
        sizes = " ".join(f"{k}={v}" for k, v in r["sizes"].items())
        lines.append(f"| {r['example']} | {sizes} | {r['stepwell']:.1f} | {r['eager']:.1f} | {r['copy']:.1f} "
                     f"| {r['copy'] / r['stepwell']:.2f} | {r['error']:.1e} |")  # fmt: skip
    print("\n".join(lines))
    if options.markdown:
        Path(options.markdown).write_text("\n".join(lines) + "\n")
    if options.json:
        Path(options.json).write_text(json.dumps({"device": device, "commit": commit, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
