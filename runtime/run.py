"""`stepwell run`: compile once, run at each size, compare, time, save."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.diagnostics import IRError
from . import api, inputs
from .check import compare


def run(options: argparse.Namespace) -> int:
    """The command; exit status 1 where a comparison failed, 2 where nothing could be compared."""
    from .commands import check_output, read_module
    from .driver import setup

    check_output(options.save)
    setup(options)
    module = read_module(options.file)
    entry = api.entry_of(module, options.entry)
    sizes = inputs.size_list(options.dim, entry)
    if options.check and api.is_lowered(module):
        raise IRError("--check compares with the definitions of operators, which a lowered file does not hold; "
                      "run its source file")  # fmt: skip
    with Progress() as progress:
        function = api.compile(
            module, options.target, entry=entry.sym_name, amp=options.amp, arch=options.arch, progress=progress
        )
    print(_header(function, entry.sym_name))
    status = 0
    results: list[np.ndarray] = []
    for given in sizes:
        arrays = inputs.make(options.arg, function.signature, entry, given, options.seed)
        results, outcome = _one(function, arrays, options)
        status = max(status, outcome)
    if options.check and function.used_target != function.target:
        print("nothing was compared: the reference ran in place of the target", file=sys.stderr)
        status = max(status, 2)
    _save(options.save, results)
    return status


def _header(function: api.Function, entry: str) -> str:
    stats = function.stats
    kernels = f", {stats.kernels} kernels" if stats.kernels else ""
    return f"@{entry} for {function.used_target}: compiled {stats.compilations} time{kernels} in {stats.seconds:.2f} s"


def _one(function: api.Function, arrays: Sequence[Any], options: argparse.Namespace) -> tuple[list[Any], int]:
    """Run at one size; the results on the host and the exit status."""
    before = function.stats.compilations
    moved = [inputs.to_device(a, function) for a in arrays]
    symbols = function.bind(*moved)
    made = function(*moved)
    results = [inputs.to_host(r) for r in (made if isinstance(made, tuple) else () if made is None else (made,))]
    sizes = ", ".join(f"{s} = {v}" for s, v in symbols.items())
    print(f"{sizes or 'static'}: {', '.join(map(_summary, results))}")
    assert function.stats.compilations == before
    status = 0
    if options.check and function.used_target == function.target:
        for number, comparison in enumerate(compare(function, arrays, symbols, results)):
            print(f"  result {number}: {comparison}")
            status = max(status, 0 if comparison.holds else 1)
    if options.bench:
        print(f"  {_bench(function, moved)}")
    return results, status


def _summary(array: np.ndarray) -> str:
    text = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
    flat = array.reshape(-1)
    if not flat.size:
        return f"{text} empty"
    if flat.size == 1:
        return f"{text} {flat[0]}"
    shown = " ".join(f"{float(v):.4g}" if flat.dtype.kind not in "iub" else str(v) for v in flat[:4])
    return f"{text} {shown}{' ...' if flat.size > 4 else ''}"


def _bench(function: api.Function, arrays: Sequence[Any], budget: float = 1.0) -> str:
    """Median time of a call, inputs and results on the device."""
    synchronize = _synchronizer(function)
    times: list[float] = []
    started = time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - started < budget and len(times) < 1000):
        begin = time.perf_counter()
        function(*arrays)
        synchronize()
        times.append(time.perf_counter() - begin)
    middle = sorted(times)[len(times) // 2]
    return f"{middle * 1e6:.1f} us a call (median of {len(times)}, host time included)"


def _synchronizer(function: api.Function) -> Any:
    if function.used_target != "cuda":
        return lambda: None
    import cupy

    return cupy.cuda.get_current_stream().synchronize


def _save(path: str | None, results: list[np.ndarray]) -> None:
    if path is None:
        return
    plain = [r.astype(np.float32) if r.dtype.kind == "V" or r.dtype.name not in np.sctypeDict else r for r in results]
    from .commands import write_file

    named: dict[str, Any] = {f"result{n}": r for n, r in enumerate(plain)}
    write_file(path, lambda file: np.savez(file, **named))


class Progress:
    """A bar on stderr while kernels compile; silent where stderr is not a terminal."""

    def __enter__(self) -> Progress:
        self.bar: Any = None
        return self

    def __call__(self, what: str, done: int, total: int) -> None:
        if not sys.stderr.isatty():
            return
        if self.bar is None:
            from tqdm import tqdm

            self.bar = tqdm(total=total, desc="compiling", unit="kernel", leave=False)
        self.bar.set_postfix_str(what[:30])
        self.bar.update(done - self.bar.n)

    def __exit__(self, *exc: object) -> None:
        if self.bar is not None:
            self.bar.close()

