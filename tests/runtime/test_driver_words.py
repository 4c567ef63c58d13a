"""What the driver says: of the code of extensions, of near names, in --help; numbers as tensors."""

import json

import pytest

from stepwell.runtime.driver import main

LINE = """func.func @f<n>(%x: tensor<[n], f32>) -> tensor<[n], f32> {{
  %y = {} %x : (tensor<[n], f32>) -> tensor<[n], f32>
  func.return %y : tensor<[n], f32>
}}
"""

EXTENSION = '''import attrs
from stepwell.dialects import nd
from stepwell.dialects.operator import Operator
from stepwell.ir.definition import FloatTensor, operand, result
from stepwell.ir.passes import Pass
from stepwell.ir.registry import Dialect
from stepwell.lowering.variants import variant

@attrs.define
class Raises(Pass):
    """Raises."""
    name = "words-raises"

    def run(self, module):
        for op in module.walk():
            if isinstance(op, nd.Exp):
                {}["nothing"]  # in the pass

@attrs.define
class Erases(Pass):
    """Erases what is used."""
    name = "words-erases"

    def run(self, module):
        for op in [op for op in module.walk() if isinstance(op, nd.Exp)]:
            op.erase()  # while used

words = Dialect("words", "Operators of a test.")

class Unary(Operator):
    x = operand(FloatTensor)
    y = result(FloatTensor)
    precision = "low"

    def infer_types(self):
        return [self.x.type]

    def define(self, x):
        return x + 1

@words.op
class Define(Unary):
    """Its definition is wrong."""
    name = "words.define"

    def define(self, x):
        return x / nothing  # no such name

@words.op
class Infer(Unary):
    """Its shape rule is wrong."""
    name = "words.infer"

    def infer_types(self):
        return [self.x.type.dims[7]]  # no such axis

@words.op
class Scheduled(Unary):
    """Its variant is wrong."""
    name = "words.scheduled"

@variant("words_schedule", target="cpu", operators=("words.scheduled",), dtypes=("f32",), rank=1000)
def words_schedule(arm):
    """Raises."""
    return arm.nothing  # no such field
'''


def run(capsys, *argv):
    status = main([str(a) for a in argv])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def extension(tmp_path):
    path = tmp_path / "words.py"
    path.write_text(EXTENSION)
    return path


@pytest.mark.parametrize(
    ("op", "argv", "line", "says"),
    [
        ("nd.exp", ["opt", "--pipeline", "words-raises"], '{}["nothing"]  # in the pass', "KeyError: 'nothing'"),
        ("nd.exp", ["opt", "--pipeline", "words-erases"], "op.erase()  # while used",
         "ValueError: cannot erase 'nd.exp': a result is used by 'func.return'"),
        ("words.define", ["run", "--target", "cpu"], "return x / nothing  # no such name", "NameError: name 'nothing'"),
        ("words.infer", ["opt"], "return [self.x.type.dims[7]]  # no such axis", "IndexError: tuple index out of range"),
        ("words.scheduled", ["run", "--target", "cpu"], "return arm.nothing  # no such field", "AttributeError: "),
    ],
)  # fmt: skip
def test_a_fault_of_an_extension_is_shown_in_it(capsys, extension, tmp_path, op, argv, line, says):
    path = tmp_path / "f.mlir"
    path.write_text(LINE.format(op))
    status, _, err = run(capsys, argv[0], path, *argv[1:], "--load", extension)
    number = next(n for n, text in enumerate(EXTENSION.splitlines(), 1) if line in text)
    assert status == 1 and "internal error" not in err and "report" not in err and "Traceback" not in err
    assert f"{extension}:{number}" in err and says in err
    assert f"{path}:2:8: " in err and f"%y = {op} %x" in err, "the operation"
    if f"{extension}:{number}:" in err:  # it is the place of the error, else it is in its text
        assert line in err


def test_a_file_that_cannot_be_loaded_is_shown(capsys, tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("a = 1\nb = a / 0\n")
    status, _, err = run(capsys, "ops", "nd.exp", "--load", path)
    assert status == 1 and err.startswith(f"{path}:2:1: error: --load {path}: ZeroDivisionError") and "b = a / 0" in err


def test_a_fault_of_an_extension_as_json(capsys, extension, tmp_path):
    path = tmp_path / "f.mlir"
    path.write_text(LINE.format("nd.exp"))
    argv = ["opt", path, "--pipeline", "words-raises", "--load", extension, "--diagnostics", "json"]
    status, _, err = run(capsys, *argv)
    found = json.loads(err)
    assert status == 1 and found["file"] == str(extension)
    assert found["notes"][0]["file"] == str(path) and found["notes"][0]["line"] == 2
    assert any("words-raises" in n["message"] for n in found["notes"])


def test_a_fault_of_ours_stays_one(capsys, monkeypatch, tmp_path):
    from stepwell.runtime import op_pages

    monkeypatch.setattr(op_pages, "list_operations", lambda: [].pop())
    monkeypatch.setitem(op_pages.list_operations.__globals__, "__name__", "stepwell.runtime.test")
    status, _, err = run(capsys, "ops")
    assert status == 1 and "internal error: IndexError" in err and "please report it" in err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["opt", "f.mlir", "--lower", "gpu"], "did you mean cuda?"),
        (["opt", "f.mlir", "--lower", "cdua"], "did you mean cuda?"),
        (["run", "f.mlir", "--target", "emulat"], "did you mean emulate?"),
        (["opt", "f.mlir", "--pipline", "cse"], "did you mean --pipeline?"),
        (["run", "f.mlir", "--amp", "zzz"], None),
        (["run", "f.mlir", "--seed", "x"], None),
    ],
)
def test_near_choices_and_options(capsys, argv, says):
    status, _, err = run(capsys, *argv)
    assert status == 1 and (says in err if says else "did you mean" not in err)
    assert err.count("did you mean") <= 1


def test_what_is_not_near_is_not_suggested(capsys):
    for name in ("foo", "zzz"):
        status, _, err = run(capsys, "ops", name)
        assert status == 1 and f"'{name}'" in err and "did you mean" not in err


def test_help_says_what_is_easily_missed(capsys):
    for command in ("run", "emit"):
        text = " ".join(run(capsys, command, "--help")[1].split())
        assert "m=1,2 and n=3,4 run (1, 3) and (2, 4)" in text
        assert "a number (of a tensor: of all its elements)" in text
    assert "default: cuda" in text


@pytest.mark.parametrize(("given", "shown"), [("2", "2 2 2"), ("-0.5", "-0.5 -0.5 -0.5"), ("nan", "nan nan nan")])
def test_a_number_fills_a_tensor(capsys, tmp_path, given, shown):
    path = tmp_path / "f.mlir"
    path.write_text("func.func @f<n>(%x: tensor<[n], f32>) -> tensor<[n], f32> {\n"
                    "  func.return %x : tensor<[n], f32>\n}\n")  # fmt: skip
    argv = ["run", path, "--arg", f"x={given}", "--target", "cpu", "--dim", "n=3"]
    assert f"float32[3] {shown}" in run(capsys, *argv)[1]


def test_a_number_that_the_elements_do_not_hold(capsys, tmp_path):
    path = tmp_path / "f.mlir"
    path.write_text("func.func @f<n>(%x: tensor<[n], i8>) -> tensor<[n], i8> {\n  func.return %x : tensor<[n], i8>\n}\n")
    for given in ("300", "1.5"):
        status, _, err = run(capsys, "run", path, "--arg", f"x={given}", "--target", "cpu")
        assert status == 1 and f"{path}:1:17: error: argument %x is" in err
