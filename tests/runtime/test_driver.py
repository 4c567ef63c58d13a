"""The command line: what it prints, its exit status, and that bad input is one screen without a traceback."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import stepwell
from stepwell.runtime.driver import main

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
ALL = ["layer_norm", "softmax", "broadcast_add", "mlp", "attention", "transformer_block", "digits"]


def run(capsys, *argv):
    status = main([str(a) for a in argv])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err and "internal error" not in captured.err, captured.err
    return status, captured.out, captured.err


@pytest.mark.parametrize("name", ALL)
def test_examples_agree_with_their_definitions(capsys, name):
    status, out, _ = run(capsys, "run", EXAMPLES / f"{name}.mlir", "--target", "cpu", "--check")
    assert status == 0 and "agrees" in out


def test_transformer_block_serves_a_list_of_sizes(capsys):
    path = EXAMPLES / "transformer_block.mlir"
    status, out, _ = run(capsys, "run", path, "--dim", "b=2", "--dim", "s=17,1,128,333", "--check", "--target", "cpu")
    assert status == 0 and "compiled 1 time" in out and out.count("agrees") == 4


def test_lists_of_equal_length_go_together(capsys):
    path = EXAMPLES / "softmax.mlir"
    status, out, _ = run(capsys, "run", path, "--dim", "m=2,3", "--dim", "n=5,6", "--target", "cpu")
    assert status == 0 and "float32[2, 5]" in out and "float32[3, 6]" in out
    status, _, err = run(capsys, "run", path, "--dim", "m=2,3", "--dim", "n=5,6,7")
    assert status == 1 and "m has 2, n has 3" in err


def test_a_dim_not_given_is_the_smallest_legal_from_7(capsys, tmp_path):
    text = (EXAMPLES / "softmax.mlir").read_text().replace("f32> {", "f32> where n % 8 == 0, m <= 4 {")
    path = tmp_path / "s.mlir"
    path.write_text(text)
    status, out, _ = run(capsys, "run", path, "--target", "cpu")
    assert status == 0 and "n = 8 (not given)" in out and "m = 4 (not given)" in out


def test_digits_from_npz(capsys, tmp_path):
    data = EXAMPLES / "digits.npz"
    names = ["w1", "b1", "w2", "b2", "w3", "b3"]
    arguments = [word for n in names for word in ("--arg", f"{n}={data}:{n}")]
    out = tmp_path / "out.npz"
    status, _, _ = run(capsys, "run", EXAMPLES / "digits.mlir", "--arg", f"x={data}:images", *arguments,
                       "--save", out, "--target", "cpu", "--check")  # fmt: skip
    assert status == 0
    found = np.load(out)["result0"]
    assert np.mean(found == np.load(data)["labels"]) >= 0.95


LINE = "func.func @f<n>(%x: tensor<[n], f32>) -> tensor<[n], f32> {{\n  {}\n  func.return %y : tensor<[n], f32>\n}}\n"


@pytest.mark.parametrize(
    "text, says",
    [
        (LINE.format("%y = nd.expp %x : (tensor<[n], f32>) -> tensor<[n], f32>"), "nd.exp"),
        (LINE.format("%y = nd.exp %z : (tensor<[n], f32>) -> tensor<[n], f32>"), "2:15"),
        (LINE.format("%y = nd.exp %x : (tensor<[n], f32>) -> tensor<[n], f16>"), "prior uses"),
        (LINE.format("%y = nd.exp %x : (tensor<[n], f32> -> tensor<[n], f32>"), "2:"),
        (LINE.replace("<n>", "<m>", 1).format("%y = nd.exp %x : (tensor<[n], f32>) -> tensor<[n], f32>"), "'n'"),
        ("", "no function to run"),
        ("func.func @f(", "1:"),
        ("\x00\xff", "1:1"),
    ],
)
def test_bad_files(capsys, tmp_path, text, says):
    path = tmp_path / "bad.mlir"
    path.write_bytes(text.encode("latin-1"))
    status, _, err = run(capsys, "run", path)
    assert status == 1 and says in err and len(err.splitlines()) < 40


def test_missing_file(capsys):
    status, _, err = run(capsys, "run", "nothing.mlir")
    assert status == 1 and "nothing.mlir" in err and "No such file" in err


@pytest.mark.parametrize(
    "argv, says",
    [
        (["run", "{softmax}", "--dim", "q=3"], "no dim 'q'"),
        (["run", "{softmax}", "--dim", "n=x"], "'x' is not a number"),
        (["run", "{softmax}", "--dim", "n=-1"], "cannot be -1"),
        (["run", "{softmax}", "--arg", "xx=randn"], "did you mean 'x'"),
        (["run", "{softmax}", "--arg", "x=what"], "expected randn"),
        (["run", "{softmax}", "--arg", "x=no.npy"], "No such file"),
        (["run", "{softmax}", "--chek"], "did you mean --check"),
        (["run", "{softmax}", "--entry", "softmx"], "did you mean 'softmax'"),
        (["opt", "{softmax}", "--pipeline", "canonicalise"], "did you mean 'canonicalize'"),
        (["opt", "{softmax}", "--pipeline", "amp{dtyp=f16}"], "did you mean 'dtype'"),
        (["opt", "{softmax}", "--pipeline", "amp{dtype=f99}"], "f99"),
        (["emit", "{softmax}", "--kernel", "nope"], "no kernel 'nope'"),
        (["ops", "nn.softmx"], "did you mean 'nn.softmax'"),
        (["run", "{softmax}", "--load", "/nonexistent.py"], "nonexistent"),
    ],
)
def test_bad_command_lines(capsys, argv, says):
    path = str(EXAMPLES / "softmax.mlir")
    status, _, err = run(capsys, *[a.replace("{softmax}", path) for a in argv])
    assert status == 1 and says in err


def test_diagnostics_as_json(capsys, tmp_path):
    path = tmp_path / "bad.mlir"
    path.write_text(LINE.format("%y = nd.exp %z : (tensor<[n], f32>) -> tensor<[n], f32>"))
    status, _, err = run(capsys, "run", path, "--diagnostics", "json")
    first = json.loads(err.splitlines()[0])
    assert status == 1 and first["line"] == 2 and first["severity"] == "error"


def test_lowered_file_is_bit_equal(capsys, tmp_path):
    source, low = EXAMPLES / "transformer_block.mlir", tmp_path / "low.mlir"
    assert main(["opt", str(source), "--lower", "cpu", "-o", str(low)]) == 0
    saved = []
    for path in (source, low):
        out = tmp_path / f"{path.stem}.npz"
        status, _, _ = run(capsys, "run", path, "--dim", "b=2", "--dim", "s=19", "--target", "cpu", "--save", out)
        assert status == 0
        saved.append(np.load(out)["result0"])
    assert saved[0].tobytes() == saved[1].tobytes()
    status, _, err = run(capsys, "run", low, "--target", "cpu", "--check")
    assert status == 1 and "source file" in err


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("target", ["cuda", "cpu"])
def test_emit_prints_source_that_names_the_dims(capsys, name, target):
    symbols = stepwell.compile(EXAMPLES / f"{name}.mlir", target="reference").executor.symbols
    status, out, _ = run(capsys, "emit", EXAMPLES / f"{name}.mlir", "--target", target)
    assert status == 0 and not re.search(r"\[[^]]*\((int|long long)\)", out), "a subscript has a cast"
    for symbol in symbols:  # a size of a kernel has the name that it has in the file
        assert re.search(rf"\b(int|long long) {symbol}[,)]", out) and re.search(rf"\[[^]]*\b{symbol}\b", out), symbol


def test_opt_round_trips_and_generic_form(capsys, tmp_path):
    status, out, _ = run(capsys, "opt", EXAMPLES / "mlp.mlir")
    again = tmp_path / "again.mlir"
    again.write_text(out)
    assert status == 0 and run(capsys, "opt", again)[1] == out
    status, generic, _ = run(capsys, "opt", EXAMPLES / "mlp.mlir", "--print-generic")
    assert '"nn.matmul"(' in generic and "#stepwell.dims<[b, h]>" in generic
    again.write_text(generic)
    assert run(capsys, "opt", again)[1] == out


def test_print_ir_after_all_and_timing(capsys):
    status, _, err = run(capsys, "opt", EXAMPLES / "softmax.mlir", "--pipeline", "canonicalize,cse",
                         "--print-ir-after-all", "--timing")  # fmt: skip
    assert status == 0 and "after canonicalize" in err and "seconds" in err


def test_ops_lists_and_shows(capsys):
    status, out, _ = run(capsys, "ops")
    assert status == 0 and "nn.softmax" in out and "loop.for" in out
    status, out, _ = run(capsys, "ops", "nn.softmax")
    assert "precision" in out and "definition" in out
    status, out, _ = run(capsys, "ops", "--precision")
    assert "nn.matmul" in out


def test_output_file_is_whole_or_absent(capsys, tmp_path):
    out = tmp_path / "out.mlir"
    status, _, _ = run(capsys, "opt", EXAMPLES / "softmax.mlir", "--pipeline", "nonsense", "-o", out)
    assert status == 1 and not out.exists()


@pytest.mark.parametrize("argv", [[], ["--help"], ["run", "--help"], ["opt", "--help"], ["emit", "--help"], ["ops", "--help"]])
def test_help(capsys, argv):
    status = main(argv)
    captured = capsys.readouterr()
    assert status == (1 if not argv else 0) and "stepwell" in captured.out + captured.err


def test_opt_main_is_opt(capsys):
    from stepwell.runtime.driver import opt_main

    assert opt_main([str(EXAMPLES / "softmax.mlir")]) == 0
    assert "nn.softmax" in capsys.readouterr().out


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("rt.launch @softmax_softmax_rows_cpu", "rt.launch @nope", "'@nope' is not a kernel of this module"),
        ("sizes = #stepwell.dims<[m, n]>", "sizes = #stepwell.dims<[m]>", "takes 2 and"),
        ("sizes = #stepwell.dims<[m, n]>", "sizes = #stepwell.dims<[m, q]>", "uses symbol 'q'"),
        ("[{contiguous = array<i64: 0>}, {}]", "[{contiguous = array<i64: 9>}, {}]", "guard on operand 9"),
        ("[{contiguous = array<i64: 0>}, {}]", "[3, {}]", "it may hold 'facts'"),
        ("[{contiguous = array<i64: 0>}, {}]", "[{}, {contiguous = array<i64: 0>}]", "must end with an arm"),
        ("strides = array<i64: 0>", "strides = array<i64: 7>", "names the strides of operands [7]"),
    ],
)
def test_a_lowered_file_that_was_edited(capsys, tmp_path, old, new, says):
    low = tmp_path / "low.mlir"
    assert main(["opt", str(EXAMPLES / "softmax.mlir"), "--lower", "cpu", "-o", str(low)]) == 0
    text = low.read_text()
    assert old in text
    low.write_text(text.replace(old, new))
    status, _, err = run(capsys, "run", low, "--target", "cpu")
    assert status == 1 and says in err


def test_errors_of_the_verifier_and_of_a_call_show_the_line(capsys, tmp_path):
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @g(%x: tensor<[4], f32>, %z: tensor<[3], f32>) -> tensor<[4], f32> {\n"
                    "  %y = nd.add %x, %z : (tensor<[4], f32>, tensor<[3], f32>) -> tensor<[4], f32>\n"
                    "  func.return %y : tensor<[4], f32>\n}\n")  # fmt: skip
    status, _, err = run(capsys, "run", path)
    assert status == 1 and "axis 0 of %x is 4, axis 0 of %z is 3" in err
    assert "\n    %y = nd.add %x, %z" in err and err.splitlines()[2].strip() == "^"
    status, _, err = run(capsys, "run", EXAMPLES / "broadcast_add.mlir", "--dim", "a=6", "--dim", "c=7", "--target", "cpu")
    assert status == 1 and "(a = 6, b = 7, c = 7, d = 7)" in err and "^" in err


EXTENSION = '''
import dataclasses
from stepwell.dialects import expression as e
from stepwell.dialects.operator import Operator
from stepwell.ir.definition import Float, FloatTensor, attribute, operand, result
from stepwell.ir.registry import Dialect

@dataclasses.dataclass
class Settings:  # dataclasses want their module in sys.modules
    slope: float = 1.0

mine = Dialect("mine", "Operators of a test.")

@mine.op
class Swish(Operator):
    """x * sigmoid(beta * x)."""
    name = "mine.swish"
    x = operand(FloatTensor)
    beta = attribute(Float, default=Settings().slope)
    y = result(FloatTensor)
    precision = "low"

    def infer_types(self):
        return [self.x.type]

    def define(self, x):
        return x / (1 + e.exp(-self.beta * x))
'''


def test_an_operator_of_ones_own(capsys, tmp_path):
    (tmp_path / "mine.py").write_text(EXTENSION)
    path = tmp_path / "f.mlir"
    path.write_text(LINE.format("%y = mine.swish %x {beta = 2.0} : (tensor<[n], f32>) -> tensor<[n], f32>"))
    status, out, _ = run(capsys, "run", path, "--load", tmp_path / "mine.py", "--check", "--target", "cpu")
    assert status == 0 and "agrees" in out
    (tmp_path / "broken.py").write_text("1 / 0\n")
    status, _, err = run(capsys, "run", path, "--load", tmp_path / "broken.py")
    assert status == 1 and "ZeroDivisionError" in err
