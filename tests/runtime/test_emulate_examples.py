"""Every example on the emulator, checked, against its definition; and the program that one call becomes."""

import re
import shutil
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stepwell
from stepwell.dialects import load_all
from stepwell.lowering.cuda.printer import print_module_source
from stepwell.lowering.emulate.printer import print_emulated
from stepwell.runtime import api, emulate
from stepwell.runtime.driver import main

pytestmark = pytest.mark.skipif(emulate.compiler() is None, reason="no C++ compiler")
load_all()
EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
SIZES = {
    "layer_norm": ["m=5,1,3", "n=33,1,1031"],
    "softmax": ["m=5,1,3", "n=33,1,1031"],
    "broadcast_add": ["a=6,1,7", "b=6,7,1", "c=6,7,1", "d=6,7,7"],
    "mlp": ["b=1,7,33", "i=1,33,17", "h=1,65,31", "o=1,5,67"],
    "attention": ["b=1,2,1", "h=1,3,1", "s=1,17,65", "t=1,33,64", "d=1,5,33"],
    "transformer_block": ["b=1,1,2", "s=5,1,17"],
    "digits": ["b=1,7,33"],
}


@pytest.mark.parametrize("amp", [None, "f16", "bf16"])
@pytest.mark.parametrize("name", SIZES)
def test_examples(name: str, amp: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    dims = [word for size in SIZES[name] for word in ("--dim", size)]
    low = ["--amp", amp] if amp and name != "digits" else []  # an argmax may change with the precision
    status = main(["run", str(EXAMPLES / f"{name}.mlir"), "--target", "emulate", "--check", *dims, *low])
    out = capsys.readouterr()
    assert status == 0, out.out + out.err
    assert out.out.count("agrees") == 3


def test_the_text_is_what_emit_prints() -> None:
    module = api.load_source(EXAMPLES / "transformer_block.mlir")
    kernels = api.kernels_of(api.lower(module, "cuda"))
    emitted, emulated = print_module_source(kernels), print_emulated(kernels)
    assert emitted[emitted.index("SW_KERNEL(", emitted.index('extern "C"') + 60):] in emulated.source


def test_plain_and_checked_builds_agree_bit_for_bit() -> None:
    x = emulate.EmulatedArrays(True).empty((3, 77), np.dtype(np.float32)).view(np.ndarray)
    x[...] = np.random.default_rng(0).standard_normal(x.shape)
    source = (EXAMPLES / "softmax.mlir").read_text()
    checked, plain = (stepwell.compile(source, target=t)(x) for t in ("emulate", "emulate-plain"))
    assert checked.tobytes() == plain.tobytes()


def test_strided_inputs_and_given_results() -> None:
    f = stepwell.compile((EXAMPLES / "softmax.mlir").read_text(), target="emulate")
    base = np.random.default_rng(1).standard_normal((9, 40)).astype(np.float32)
    for x in (base[:, ::2], base[::-1, 3:], base.T, np.broadcast_to(base[:1], (4, 40))):
        out = np.full(x.shape, np.nan, np.float32)
        assert f(x, out=out) is out
        e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
        np.testing.assert_allclose(out, e / e.sum(-1, keepdims=True), rtol=1e-6)


def test_bfloat16_and_float16() -> None:
    for name, dtype in (("bf16", ml_dtypes.bfloat16), ("f16", np.float16)):
        f = stepwell.compile((EXAMPLES / "softmax.mlir").read_text().replace("f32", name), target="emulate")
        x = np.random.default_rng(2).standard_normal((5, 130)).astype(dtype)
        np.testing.assert_allclose(f(x).astype(np.float64).sum(-1), 1, atol=2e-2)


# ---------------------------------------------------------------- the program


def emitted(folder: Path, *options: str) -> int:
    return main(["emit", str(EXAMPLES / "softmax.mlir"), "--emulate", str(folder), *options])


def built(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    sources = sorted(p.name for p in folder.glob("*.cpp"))
    command = emulate.compiler()
    assert command is not None
    subprocess.run([*command, *flags, *sources, "-o", "emulated", "-pthread"], cwd=folder, check=True)
    return subprocess.run(["./emulated"], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("flags", [[], ["-DSW_EMU_PLAIN"], ["-DSW_EMU_UCONTEXT"]], ids=str)
def test_a_call_becomes_a_program(flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "program"
    assert emitted(folder, "--dim", "m=3", "--dim", "n=37") == 0
    assert "wrote" in capsys.readouterr().out
    made = built(folder, *flags)
    assert made.returncode == 0 and ": 0 faults" in made.stdout, made.stdout + made.stderr
    found = np.fromfile(folder / "result0.bin", np.float32).reshape(3, 37)
    saved = tmp_path / "out.npz"
    assert main(["run", str(EXAMPLES / "softmax.mlir"), "--target", "cpu", "--dim", "m=3", "--dim", "n=37", "--save",
                 str(saved)]) == 0  # fmt: skip
    np.testing.assert_allclose(found, np.load(saved)["result0"], rtol=1e-6)


def test_a_fault_stands_in_the_program_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The barriers are taken out of a lowered file whose rows are shared by the warps of a block."""
    low, folder = tmp_path / "low.mlir", tmp_path / "program"
    assert main(["opt", str(EXAMPLES / "softmax.mlir"), "--lower", "cuda", "-o", str(low)]) == 0
    low.write_text(re.sub(r"\n +loop.barrier\n", "\n", low.read_text()))
    status = main(["emit", str(low), "--emulate", str(folder), "--dim", "m=2", "--dim", "n=2049"])
    err = capsys.readouterr().err
    assert status == 1 and "a race" in err and "low.mlir:" in err
    made = built(folder)
    assert made.returncode == 1 and "race: " in made.stderr and "low.mlir:" in made.stderr


def test_elements_that_nothing_wrote_fail_the_program_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The loop over rows of a lowered file begins at 1."""
    low, folder = tmp_path / "low.mlir", tmp_path / "program"
    text = """module {
  loop.kernel @k(%x: !loop.buffer<f32, global, const>, %y: !loop.buffer<f32, global>, %n: index) attributes
      {block = [32, 1, 1], grid = #stepwell.dims<[1, 1, 1]>, symbols = ["n"], target = "cuda"} {
    %c1 = arith.constant 1 : index
    loop.for %c1, %n, %c1 {binding = "global"} : (index, index, index) -> () {
    ^bb0(%i: index):
      %v = loop.load %x[%i] : !loop.buffer<f32, global, const> -> f32
      loop.store %v, %y[%i] : f32, !loop.buffer<f32, global>
    }
  }
  func.func @f<n>(%x: tensor<[n], f32>) -> tensor<[n], f32> {
    %y = rt.empty : tensor<[n], f32>
    rt.launch @k(%x, %y) {sizes = #stepwell.dims<[n]>} : tensor<[n], f32>, tensor<[n], f32>
    func.return %y : tensor<[n], f32>
  }
}"""
    low.write_text(text)
    assert main(["emit", str(low), "--emulate", str(folder), "--dim", "n=40"]) == 1
    assert "result 0: 1 of 40 elements were never written, first [0]" in capsys.readouterr().err
    made = built(folder)
    assert made.returncode == 1 and "1 of them never written" in made.stdout


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept").write_text("mine")
    assert emitted(tmp_path) == 1
    assert "exists and is not an empty folder" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]


@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb")
def test_gdb_stops_in_a_thread(tmp_path: Path) -> None:
    folder = tmp_path / "program"
    assert emitted(folder, "--dim", "m=2", "--dim", "n=9") == 0
    built(folder, "-g")
    text = (folder / "main.cpp").read_text()
    stop = text[text.index("break ") :].split("\n")[0]
    steps = ["-ex", stop, "-ex", "run", "-ex", "next", "-ex", "print sw_emu_self->linear"]
    made = subprocess.run(["gdb", "-batch", *steps, "./emulated"], cwd=folder, capture_output=True, text=True, check=False)
    assert "kernels.cpp:" in made.stdout and "$1 = 3" in made.stdout, made.stdout + made.stderr


def test_without_a_compiler_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(emulate, "compiler", lambda: None)
    status = main(["run", str(EXAMPLES / "softmax.mlir"), "--target", "emulate"])
    assert status == 2 and "install g++" in capsys.readouterr().err
