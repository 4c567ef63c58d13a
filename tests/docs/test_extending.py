"""The code of docs/extending.md runs as it is printed there."""

import importlib
import re
import sys
from pathlib import Path

import mlir_runner
import numpy as np
import pytest

import stepwell
from stepwell.runtime.driver import main

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "extending.md").read_text()
FILES = {m[1]: m[2] for m in re.finditer(r"^```python\n# (\w+\.py)\n(.*?)^```", GUIDE, re.S | re.M)}
(RUN_FILE,) = re.findall(r"^```mlir\n(.*?)^```", GUIDE, re.S | re.M)
TEXT = """func.func @f<n>(%x: tensor<[n], f32>) -> tensor<[n], f32> {
  %c = nd.constant {value = 2.0} : () -> tensor<[], f32>
  %y = nd.mul %x, %c : (tensor<[n], f32>, tensor<[], f32>) -> tensor<[n], f32>
  func.return %y : tensor<[n], f32>
}
"""
SWISH = """func.func @f<n>(%x: tensor<[n], f32>) -> tensor<[n], f32> {
  %y = my.swish %x {beta = 2.0ATTRIBUTES} : (tensor<[n], f32>) -> tensor<[n], f32>
  func.return %y : tensor<[n], f32>
}
"""
TWO = """func.func @f<m, n, k>(%x: tensor<[m, n], f32>, %q: tensor<[m, k], f32>) -> tensor<[m, RESULT], f32> {
  %y = OP %x, %q : (tensor<[m, n], f32>, tensor<[m, k], f32>) -> tensor<[m, RESULT], f32>
  func.return %y : tensor<[m, RESULT], f32>
}
"""
GATED = TWO.replace("OP", "act.gated_norm").replace("RESULT", "n")
SCORES = TWO.replace("OP", "act.scores").replace("RESULT", "m")


@pytest.fixture
def folder(tmp_path):
    for name, code in FILES.items():
        (tmp_path / name).write_text(code)
    return tmp_path


@pytest.fixture
def run(folder, capsys):
    """Runs a command on a text with files loaded; gives status, output and errors."""

    def call(command, text, *arguments, load=()):
        (folder / "f.mlir").write_text(text)
        loads = [word for name in load for word in ("--load", str(folder / name))]
        status = main([command, str(folder / "f.mlir"), *loads, *arguments])
        return status, *capsys.readouterr()

    return call


def test_the_pass(run):
    pipeline = "double-by-adding{factor=2.0},canonicalize"
    status, out, _ = run("opt", TEXT, "--pipeline", pipeline, load=["double.py"])
    assert status == 0 and "nd.add %x, %x" in out and "nd.mul" not in out and "nd.constant" not in out


def test_the_run_line(folder):
    (folder / "halve.mlir").write_text(RUN_FILE)
    mlir_runner.run_file(folder / "halve.mlir")
    with pytest.raises(mlir_runner.RunFailure):
        (folder / "halve.mlir").write_text(RUN_FILE.replace("nd.div %x", "nd.add %x"))
        mlir_runner.run_file(folder / "halve.mlir")


def test_the_operator(run):
    text = SWISH.replace("ATTRIBUTES", "")
    status, out, _ = run("run", text, "--check", "--target", "cpu", load=["swish.py"])
    assert status == 0 and "agrees" in out


def test_the_variant(run):
    forced = SWISH.replace("ATTRIBUTES", ', variant = "my_flat"')
    load = ["swish.py", "flat.py"]
    status, out, _ = run("run", forced, "--dim", "n=0,7,5000", "--check", "--target", "cpu", load=load)
    assert status == 0 and out.count("agrees") >= 2
    status, out, _ = run("emit", forced, "--target", "cpu", load=load)
    assert status == 0 and "// mine: flat\n" in out
    status, out, _ = run("emit", SWISH.replace("ATTRIBUTES", ""), "--target", "cpu", load=load)
    assert status == 0 and "// mine: flat\n" in out
    status, _, err = run("emit", forced.replace("f32", "f16"), "--target", "cpu", load=load)
    assert status == 1 and "it accepts f32, f64 only" in err


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize(("sizes", "fits"), [("4,4", True), ("4,1", True), ("4,8", False), ("8,4", False)])
def test_two_operands_that_must_fit(run, target, sizes, fits):
    n, k = sizes.split(",")
    dims = ["--dim", "m=3", "--dim", f"n={n}", "--dim", f"k={k}"]
    status, out, err = run("run", GATED, *dims, "--check", "--target", target, load=["gated.py"])
    assert (status, "agrees" in out) == (0 if fits else 1, fits)
    assert fits or ("cannot broadcast" in err and "of %q is k" in err and "of %x is n" in err)
    status, _, err = run("run", SCORES, *dims, "--check", "--target", target, load=["gated.py"])
    assert status == (0 if n == k else 1)
    assert n == k or "rows must be equally long" in err


@pytest.mark.parametrize("text", [GATED, SCORES])
def test_two_operands_that_cannot_fit(run, text):
    for symbol, size in (("m", 2), ("n", 4), ("k", 8)):
        text = re.sub(rf"(?<=[\[ ]){symbol}(?=[,\]])", str(size), text)
    text = re.sub("<m, n, k>|<2, 4, k>|<m, 4, k>|<m, 4, 8>", "", text)
    status, _, err = run("opt", text, load=["gated.py"])
    assert status == 1 and "is 4" in err and "is 8" in err and "internal" not in err


def test_facts_that_decide(run):
    known = GATED.replace("f32> {", "f32> where n == k {")
    status, out, _ = run("opt", known, "--pipeline", "assert-shapes", load=["gated.py"])
    assert status == 0 and "dim.assert" not in out
    status, out, _ = run("opt", GATED, "--pipeline", "assert-shapes", load=["gated.py"])
    assert status == 0 and out.count("dim.assert") == 1


def test_files_that_import_each_other(run, folder):
    (folder / "more.py").write_text("from stepwell_loaded_swish import Swish\nassert Swish.name == 'my.swish'\n")
    assert run("opt", TEXT, load=["swish.py", "more.py"])[0] == 0


def test_import_before_compile(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    (folder / "own_swish.py").write_text((folder / "swish.py").read_text().replace('"my', '"own'))
    try:
        importlib.import_module("own_swish")
        f = stepwell.compile(SWISH.replace("ATTRIBUTES", "").replace("my.swish", "own.swish"), target="cpu")
        x = np.linspace(-2, 2, 9, dtype=np.float32)
        np.testing.assert_allclose(f(x), x / (1 + np.exp(-2 * x)), rtol=1e-5)
    finally:
        sys.modules.pop("own_swish", None)
