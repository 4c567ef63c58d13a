"""Mixed precision: what is cast, what is not, and the fault that the project was born from."""

import numpy as np
import pytest

from stepwell.dialects import func, nd, nn
from stepwell.dialects.evaluate import evaluate_function
from stepwell.dialects.operator import Operator
from stepwell.ir.attributes import TensorType, bf16, f16, f32, f64, i32
from stepwell.ir.builder import Builder
from stepwell.ir.diagnostics import IRError
from stepwell.ir.parser import parse_module
from stepwell.ir.passes import PASSES, PassManager
from stepwell.ir.registry import OPERATIONS
from stepwell.lowering.amp import Amp

RANDOM = np.random.default_rng(0)


class Scope:
    """A stand-in for a module of one function."""

    def __init__(self, function):
        self.function = function

    def walk(self):
        return self.function.walk()


def tensor(*shape, element=f32):
    return TensorType(shape, element)


def function(types, write, symbols=("m", "n", "k")):
    """A function of what `write(builder, *arguments)` returns."""
    made = func.FuncOp.make("f", types, [], symbols=symbols, names=["x", "w", "b"])
    builder = Builder(made.body)
    values = write(builder, *made.arguments)
    values = list(values) if isinstance(values, tuple) else [values]
    builder.create(func.ReturnOp, values)
    from stepwell.ir.attributes import FunctionType

    made.set("function_type", FunctionType(tuple(types), tuple(v.type for v in values)))
    return made


def lowered(made, **options):
    before = made.type
    Amp(**options).run(Scope(made))
    for op in made.walk():
        op.verify_op()
    assert made.type is before
    return made


def names(made):
    return [op.op_name for op in made.body.ops]


def elements(made, name):
    return [(op.operands[0].type.element, op.results[0].type.element) for op in made.body.ops if op.op_name == name]


def norm(b, x, w, bias):
    return b.create(nn.LayerNorm, x, [w, bias]).result


@pytest.mark.parametrize("rows", [(1024, 1024), (1023, 1023), (1, 1), ("n", 1024), ("n", 1023), ("n", 1)])
@pytest.mark.parametrize("mean", [0, 1000])
def test_the_fault_this_began_with(rows, mean):
    """Statistics in f32, signature unchanged, error at most 1.5 times that of one rounding to f16."""
    declared, n = rows
    types = [tensor("m", declared), tensor(declared), tensor(declared)]
    made = lowered(function(types, norm, ["m", "n"] if declared == "n" else ["m"]))
    assert elements(made, "nn.layer_norm") == [(f16, f16)]
    x, w, b = ((RANDOM.standard_normal(s) + c).astype(np.float32) for s, c in (((64, n), mean), (n, 1), (n, 0)))
    [y] = evaluate_function(made, [x, w, b])
    assert y.dtype == np.float32
    x, w, b = (v.astype(np.float16).astype(np.float64) for v in (x, w, b))
    centered = x - x.mean(-1, keepdims=True)
    exact = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * w + b
    assert np.abs(y - exact).max() <= 1.5 * np.abs(exact.astype(np.float16) - exact).max()


def test_casts_are_shared():
    def write(b, x, w, _):
        return b.create(nn.Softmax, x).result, b.create(nn.Softmax, x, axis=0).result

    made = lowered(function([tensor("m", "n"), tensor("n"), tensor("n")], write))
    assert names(made) == ["nd.cast", "nn.softmax", "nd.cast", "nn.softmax", "nd.cast", "func.return"]
    assert [op.axis for op in made.body.ops if op.op_name == "nn.softmax"] == [-1, 0]


def test_low_values_are_passed_on_without_casts():
    def write(b, x, w, bias):
        y = b.create(nn.Matmul, x, w).result
        y = b.create(nd.Add, y, y).result  # follows
        y = b.create(nd.Mul, y, b.create(nd.Constant, value=0.125, dtype=f32).result).result  # a constant follows too
        return b.create(nd.Add, y, bias).result  # bias is wide: stays wide

    made = lowered(function([tensor("m", "k"), tensor("k", "n"), tensor("n")], write))
    casts = elements(made, "nd.cast")
    assert casts == [(f32, f16), (f32, f16), (f16, f32)]
    assert elements(made, "nn.matmul") == [(f16, f16)]
    assert elements(made, "nd.add") == [(f16, f16), (f32, f32)]
    assert elements(made, "nd.mul") == [(f16, f16)]


def test_what_stays():
    def write(b, x, w, bias):
        y = b.create(nd.Exp, x).result
        z = b.create(nd.Cast, x, dtype=f16).result
        i = b.create(nd.Cast, x, dtype=i32).result
        return (
            y,
            z,
            b.create(nd.Add, i, i).result,
            b.create(nd.Add, x, x).result,
            b.create(nn.Softmax, w).result,
        )

    types = [tensor("m", "n"), tensor("n", element=f64), tensor("n")]
    made = function(types, write)
    before = names(made)
    assert names(lowered(made)) == before


def test_constants_that_overflow_stay_wide():
    def write(b, x, w, bias):
        y = b.create(nn.Matmul, x, w).result
        masked = b.create(nd.Constant, value=-1e9, dtype=f32).result
        return b.create(nd.Add, y, masked).result

    made = function([tensor("m", "k"), tensor("k", "n"), tensor("n")], write)
    assert elements(lowered(made), "nd.add") == [(f32, f32)]
    made = function([tensor("m", "k"), tensor("k", "n"), tensor("n")], write)
    assert elements(lowered(made, dtype=bf16), "nd.add") == [(bf16, bf16)]


def test_attributes_are_kept():
    def write(b, x, w, bias):
        y = b.create(nn.Matmul, x, w, transpose_b=True).result
        return b.create(nd.Softplus, y, beta=3.0, threshold=7.0).result

    made = lowered(function([tensor("m", "k"), tensor("n", "k"), tensor("n")], write))
    ops = {op.op_name: op for op in made.body.ops}
    assert ops["nn.matmul"].transpose_b is True
    assert (ops["nd.softplus"].beta, ops["nd.softplus"].threshold) == (3.0, 7.0)


def test_exact_casts_fold_and_others_do_not():
    def write(b, x, w, bias):
        return b.create(nn.Softmax, b.create(nd.Cast, x, dtype=f32).result).result

    half = [tensor("m", "n", element=f16), tensor("n"), tensor("n")]
    made = lowered(function(half, write))
    soft = next(op for op in made.body.ops if op.op_name == "nn.softmax")
    assert soft.operands[0] is made.arguments[0]
    assert "nd.cast" in names(made)  # the explicit one stays
    made = lowered(function(half, write), dtype=bf16)
    soft = next(op for op in made.body.ops if op.op_name == "nn.softmax")
    assert soft.operands[0].type.element is bf16
    assert soft.operands[0].defining_op.operands[0].type.element is f32


def test_keep():
    def write(b, x, w, bias):
        return b.create(nn.Softmax, x).result

    types = [tensor("m", "n"), tensor("n"), tensor("n")]
    for name in ("softmax", "nn.softmax"):
        assert names(lowered(function(types, write), keep=(name,))) == ["nn.softmax", "func.return"]
    with pytest.raises(IRError, match="no operator is named 'sofmax'"):
        Amp(keep=("sofmax",)).run(Scope(function(types, write)))
    with pytest.raises(IRError, match="dtype is f16 or bf16, not f64"):
        Amp(dtype=f64).run(Scope(function(types, write)))


def test_registered_as_a_pass():
    assert PASSES["amp"] is Amp
    module = parse_module(
        "func.func @f<n>(%x: tensor<[n], f32>) -> tensor<[n], f32> {\n"
        "  %y = nn.softmax %x : (tensor<[n], f32>) -> tensor<[n], f32>\n  func.return %y : tensor<[n], f32>\n}"
    )
    PassManager.parse("amp{dtype=bf16 keep=exp}").run(module)
    assert "tensor<[n], bf16>" in str(module)
    with pytest.raises(IRError, match="unknown option 'dtyp'"):
        PassManager.parse("amp{dtyp=f16}")
    assert str(Amp(dtype=bf16, keep=("exp",))) == "amp{dtype=bf16 keep=exp}"


def test_b23_mixed_operands_agree_under_amp():
    def write(b, x, w, bias):
        return b.create(nn.Matmul, b.create(nd.Cast, x, dtype=f32).result, w).result

    made = lowered(function([tensor("m", "k", element=f16), tensor("k", "n"), tensor("n")], write))
    matmul = next(op for op in made.body.ops if op.op_name == "nn.matmul")
    assert {v.type.element for v in matmul.operands} == {f16}


BOUND = 8  # ulps of f16 of the largest value: operands and result round once each, and the rules bound the slope
UNARY = [cls for cls in OPERATIONS.values() if issubclass(cls, nd.Neg.__base__)]
LOW = [cls for cls in UNARY if cls.precision == "low"]


@pytest.mark.parametrize("cls", LOW, ids=lambda c: c.name)
def test_low_operators_stay_near_f64(cls):
    made = lowered(function([tensor("n")], lambda b, x: b.create(cls, x).result, ["n"]))
    assert elements(made, cls.name) == [(f16, f16)]
    x = np.abs(4 * RANDOM.standard_normal(1000)).astype(np.float32)
    [y], [exact] = (evaluate_function(made, [x], floats=f) for f in ("declared", "f64"))
    assert np.abs(y - exact).max() <= BOUND * 2.0**-11 * np.abs(exact).max()


def test_every_operator_has_a_rule():
    rules = {cls.precision for cls in OPERATIONS.values() if issubclass(cls, Operator)}
    assert rules <= {"low", "low_accumulate", "keep", "follow"}
