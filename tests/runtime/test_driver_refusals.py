"""The command line on bad input: one clear error, status 1, no half-written file, never an internal error."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from stepwell.runtime.driver import main

SOFTMAX = Path(__file__).resolve().parents[2] / "docs" / "examples" / "softmax.mlir"


def run(capsys, *argv):
    status = main([str(a) for a in argv])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err and "internal error" not in captured.err, captured.err
    return status, captured.out, captured.err


@pytest.fixture
def file(tmp_path):
    def write(text, name="f.mlir"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def function(where="", dim="n"):
    t = "tensor<[n], f32>"
    return (f"// where it begins\nfunc.func @f<n>(%x: tensor<[{dim}], f32>, %n: index {{dim = n}}, %z: {t}) -> {t} {where} {{\n"
            f"  %y = nd.exp %z : ({t}) -> {t}\n  func.return %y : {t}\n}}\n")  # fmt: skip


# ---------------------------------------------------------------- facts


@pytest.mark.parametrize("command", [["run", "--target", "cpu"], ["run", "--target", "reference"], ["opt"], ["emit"]])
@pytest.mark.parametrize(
    "facts, says",
    [
        ("n < 0", "the fact 'n < 0' of @f holds for no sizes"),
        ("n == n+1", "the fact 'n == n + 1' of @f"),
        ("2*n == 7", "the fact '2*n == 7' of @f"),
        ("n mod 4 == 0, n >= 5, n <= 3", "the facts of @f contradict each other: no sizes satisfy '5 <= n' and 'n <= 3'"),
    ],
)
def test_facts_that_contradict_each_other(capsys, file, command, facts, says):
    path = file(function(f"where {facts}"))
    status, out, err = run(capsys, command[0], path, *command[1:])
    column = path.read_text().splitlines()[1].index("where") + 1
    assert status == 1 and not out and f"f.mlir:2:{column}: error: {says}" in err and len(err.splitlines()) == 3


def test_contradicting_facts_in_generic_form_and_in_a_function_without_operators(capsys, file):
    generic = file('"builtin.module"() ({\n  "func.func"() <{function_type = () -> (), sym_name = "f"}> ({\n'
                   '    "func.return"() : () -> ()\n  }) {stepwell.facts = #stepwell.facts<"n < 0">, stepwell.symbols = ["n"]} '
                   ": () -> ()\n}) : () -> ()\n")  # fmt: skip
    status, _, err = run(capsys, "opt", generic)
    assert status == 1 and "f.mlir:4:7: error: the fact 'n < 0'" in err


def test_facts_that_no_size_is_found_for(capsys, file):
    status, _, err = run(capsys, "run", file(function("where n*n == 2")), "--target", "cpu")
    assert status == 1 and "f.mlir:2:" in err and "it needs n*n == 2" in err and "--dim n=N" in err


def test_sizes_are_searched_for_under_all_facts(capsys, file):
    t = "tensor<[c], f32>"
    path = file(f"func.func @f<a, b, c>(%x: tensor<[a], f32>, %y: tensor<[b], f32>, %z: {t}, %u: tensor<[bcast(a, b)], f32>,"
                f" %v: tensor<[c - 8], f32>) -> {t} where a <= b, b < c, c <= 9 {{\n  func.return %z : {t}\n}}")  # fmt: skip
    status, out, _ = run(capsys, "run", path, "--target", "cpu")
    assert status == 0 and "a = 7, b = 7, c = 8" in out
    status, out, _ = run(capsys, "run", path, "--target", "cpu", "--dim", "a=3", "--dim", "c=9")
    assert status == 0 and "a = 3, b = 3, c = 9" in out
    status, _, err = run(capsys, "run", path, "--target", "cpu", "--dim", "a=2", "--dim", "b=3", "--dim", "c=8")
    assert status == 1 and "%u axis 0, 'bcast(a, b)', has no size (a = 2, b = 3)" in err
    status, _, err = run(capsys, "run", path, "--target", "cpu", "--dim", "c=0")
    assert status == 1 and "no size was found for a, b" in err and "c = 0" in err


def test_an_axis_that_would_be_negative(capsys, file):
    path = file(function(dim="n - 9"))
    assert "n = 9" in run(capsys, "run", path, "--target", "cpu")[1]
    status, _, err = run(capsys, "run", path, "--target", "cpu", "--dim", "n=3")
    assert status == 1 and "%x axis 0, 'n - 9', would be -6 (n = 3)" in err


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    "argv, says",
    [
        (["--seed", "-1"], "'-1' is no seed"),
        (["--seed", "x"], "'x' is no seed"),
        (["--dim", "n=99999999999999"], "would take 4.974 PiB (5599999999999944 bytes), but"),
        (["--dim", "n=3000000", "--dim", "m=3000000"], "its arguments and results would take"),
        (["--dim", "n=3", "--dim", "n=4"], "'n' is given twice"),
        (["--dim", "nn=3"], "has no dim 'nn' (it has m, n); did you mean 'n'?"),
        (["--dim", "n"], "is not a number"),
        (["--dim", "n=1e3"], "'1e3' is not a number"),
        (["--dim", "n=-4"], "a size cannot be -4"),
        (["--arch", "hopper"], "'hopper' is no GPU architecture"),
        (["--target", "gpu"], "invalid choice: 'gpu'"),
        (["--amp", "f8"], "invalid choice: 'f8'"),
        (["--arg", "x"], "write --arg x=randn"),
        (["--arg", "x=randn", "--arg", "x=ones"], "%x is given twice"),
        (["--load", str(SOFTMAX)], "an extension is a Python file"),
        (["--load", "no_such_module"], "No module named 'no_such_module'"),
        (["--save", "/nope/x.npz"], "error: /nope/x.npz: cannot be written: there is no folder /nope"),
        (["--save", "/"], "is a folder"),
    ],
)
def test_options(capsys, argv, says):
    status, out, err = run(capsys, "run", SOFTMAX, "--target", "cpu", *argv)
    assert status == 1 and says in err and "float32" not in out


def test_a_size_of_0_is_one(capsys):
    status, out, _ = run(capsys, "run", SOFTMAX, "--target", "cpu", "--dim", "n=0", "--check")
    assert status == 0 and "empty" in out


@pytest.mark.parametrize("command", [["run", "--save"], ["opt", "-o"], ["emit", "-o"]])
def test_files_that_cannot_be_written(capsys, tmp_path, command):
    status, out, err = run(capsys, command[0], SOFTMAX, command[1], tmp_path)
    assert status == 1 and f"error: {tmp_path}: is a folder" in err and not out
    status, out, err = run(capsys, command[0], SOFTMAX, command[1], tmp_path / "no" / "file")
    assert status == 1 and f"error: {tmp_path / 'no' / 'file'}: cannot be written" in err and not out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [["run", "--save"], ["opt", "-o"], ["emit", "-o"]])
def test_a_disk_that_is_full(capsys, tmp_path, monkeypatch, command):
    def full(*given):
        raise OSError(errno.ENOSPC, "No space left on device", given[0])

    monkeypatch.setattr("stepwell.runtime.commands.os.replace", full)
    status, _, err = run(capsys, command[0], SOFTMAX, command[1], tmp_path / "made")
    assert status == 1 and f"error: {tmp_path / 'made'}: No space left on device" in err
    assert not list(tmp_path.iterdir())


def test_a_pipe_or_device_is_written_not_replaced(capsys, tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    assert run(capsys, "opt", SOFTMAX, "-o", pipe)[0] == 0
    reader.join(10)
    assert pipe.is_fifo() and "nn.softmax" in read[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(capsys, tmp_path):
    tmp_path.chmod(0o500)
    status, _, err = run(capsys, "run", SOFTMAX, "--save", tmp_path / "x.npz")
    assert status == 1 and f"{tmp_path}/x.npz: cannot be written: permission denied" in err


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    "content, says",
    [
        (SOFTMAX.read_text().encode("utf-16"), "f.mlir:1:1: error: the file is UTF-16"),
        (SOFTMAX.read_text().encode("utf-16-le"), "f.mlir:1:2: error: a byte 0: the file is no text in UTF-8"),
        (b"PK\3\4\n\0\0", "f.mlir:2:1: error: a byte 0"),
    ],
)
@pytest.mark.parametrize("command", ["run", "opt", "emit"])
def test_files_that_are_no_text(capsys, file, content, says, command):
    status, _, err = run(capsys, command, file(content))
    assert status == 1 and says in err and len(err.splitlines()) == 1


def test_a_byte_order_mark(capsys, file):
    status, out, _ = run(capsys, "opt", file(b"\xef\xbb\xbf" + SOFTMAX.read_bytes()))
    assert status == 0 and out == run(capsys, "opt", SOFTMAX)[1]
    status, out, _ = run(capsys, "run", file(b"\xef\xbb\xbffunc.func @f() {\n  func.return\n}"), "--target", "cpu")
    assert status == 0


NUMBERS = "func.func @f<n>(%x: tensor<[n], f32>, %n: index {dim = n}, %t: tensor<[], ui8>, %b: i1, %s: f32) -> tensor<[n], f32> {\n  func.return %x : tensor<[n], f32>\n}\n"


@pytest.mark.parametrize(
    "spec, says",
    [
        ("t=300", "argument %t is 300, which 'ui8' does not hold"),
        ("t=1.5", "argument %t is a float"),
        ("s=1e39", "which 'f32' does not hold"),
        ("s=1e400", "expected randn"),
        ("n=zeros", "%n is the dim 'n'"),
        ("n=-1", "would be -1"),
        ("x={bad.npy}", "cannot be read as a NumPy file: it holds Python objects, or is none"),
        ("x={cut.npz}:a", "cannot be read as a NumPy file"),
        ("x={bits.npz}:a", "cannot be read"),
        ("s={two.npy}", "argument %s is a ndarray"),
    ],
)
def test_arguments(capsys, file, tmp_path, spec, says):
    np.savez_compressed(tmp_path / "whole.npz", a=np.arange(1000, dtype=np.float32))
    data = (tmp_path / "whole.npz").read_bytes()
    file(data[:200], "cut.npz"), file(data[:100] + bytes(100) + data[200:], "bits.npz"), file("hello", "bad.npy")
    np.save(tmp_path / "two.npy", np.ones(2, np.float32))
    spec = spec.replace("{", f"{tmp_path}/").replace("}", "")
    status, _, err = run(capsys, "run", file(NUMBERS), "--target", "cpu", "--arg", spec)
    assert status == 1 and says in err


@pytest.mark.parametrize("spec", ["t=255", "b=1", "s=inf", "t=zeros", "s=zeros", "n=0x1e", "n={int.npy}"])
def test_arguments_that_are_taken(capsys, file, tmp_path, spec):
    np.save(tmp_path / "int.npy", np.array(3))
    spec = spec.replace("{", f"{tmp_path}/").replace("}", "")
    for seed in range(3):
        assert run(capsys, "run", file(NUMBERS), "--target", "cpu", "--seed", seed, "--arg", spec)[0] == 0


@pytest.mark.filterwarnings("error")
def test_check_of_infinities_warns_of_nothing(capsys, file, tmp_path):
    a, b = "tensor<[n], f32>", "tensor<[n], f64>"
    path = file(f"func.func @f<n>(%x: {a}, %d: {b}) -> ({a}, {b}) {{\n  %y = nd.log %x : ({a}) -> {a}\n"
                f"  %z = nd.mul %d, %d : ({b}, {b}) -> {b}\n  func.return %y, %z : {a}, {b}\n}}")  # fmt: skip
    np.savez(tmp_path / "in.npz", x=np.array([0, -1, np.inf, np.nan, 1e38], np.float32),
             d=np.array([1e200, -1e153, 1e-200, np.nan, np.inf]))  # fmt: skip
    status, out, err = run(capsys, "run", path, "--check", "--target", "cpu",
                           "--arg", f"x={tmp_path}/in.npz:x", "--arg", f"d={tmp_path}/in.npz:d")  # fmt: skip
    assert status == 0 and out.count("agrees") == 2 and not err


def test_results_that_are_numbers(capsys, file, tmp_path):
    path = file("func.func @f<n>(%x: tensor<[n], f32>) -> (index, tensor<[n], f32>) {\n"
                "  %k = dim.value [n] : index\n  func.return %k, %x : index, tensor<[n], f32>\n}")  # fmt: skip
    for target in ("cpu", "reference", "emulate"):
        status, _, _ = run(capsys, "run", path, "--target", target, "--check", "--save", tmp_path / "o.npz")
        assert status == 0 and np.load(tmp_path / "o.npz")["result0"] == 7


# ---------------------------------------------------------------- streams


def driver(*argv, **options):
    return subprocess.run([sys.executable, "-m", "stepwell.runtime.driver", *map(str, argv)], stderr=subprocess.PIPE,
                          text=True, timeout=60, check=False, **options)  # fmt: skip


def test_a_reader_that_leaves(tmp_path):
    read, write = os.pipe()
    os.close(read)
    made = driver("opt", SOFTMAX, stdout=write)
    os.close(write)
    assert made.returncode == 1 and made.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_output():
    with open("/dev/full", "w") as full:
        made = driver("opt", SOFTMAX, stdout=full)
    assert made.returncode == 1 and made.stderr == "error: standard output: No space left on device\n"


def test_closed_streams():
    made = driver("opt", SOFTMAX, preexec_fn=lambda: os.close(1))
    assert made.returncode == 1 and "standard output: it is closed" in made.stderr
    made = driver("opt", "-", preexec_fn=lambda: os.close(0), stdout=subprocess.PIPE)
    assert made.returncode == 1 and "standard input: it is closed" in made.stderr


def test_interrupted(capsys, monkeypatch):
    from stepwell.runtime import api

    def interrupt(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "compile", interrupt)
    status, _, err = run(capsys, "run", SOFTMAX)
    assert status == 130 and err == "interrupted\n"


def test_generated_inputs_are_aligned():
    """Else the variant that runs would hang on where NumPy found room."""
    from stepwell.runtime import api, inputs

    entry = api.entry_of(api.load_source(SOFTMAX))
    for m in range(1, 20):
        [x] = inputs.make([], api.Signature.of(entry), entry, {"m": m, "n": 9}, 0)
        assert x.__array_interface__["data"][0] % 64 == 0
