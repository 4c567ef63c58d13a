"""Nothing that a text declares is passed over: names of attributes, values and types that mean nothing are errors."""

import math
from collections.abc import Callable

import numpy as np
import pytest

import stepwell
from stepwell.dialects import func, load_all, nd
from stepwell.dialects.evaluate import evaluate_function
from stepwell.dialects.scalar import constant, rounded
from stepwell.ir.attributes import bf16, f8E4M3FN, f16, f32, i1, i8, ui8, ui64
from stepwell.ir.definition import build
from stepwell.ir.diagnostics import IRError
from stepwell.ir.floats import FLOAT_FORMATS, largest_float
from stepwell.ir.parser import parse_module
from stepwell.ir.printer import print_operation
from stepwell.ir.verifier import verify

load_all()


def verified(text: str) -> func.FuncOp:
    module = parse_module(text, "f.mlir")
    verify(module)
    return next(op for op in module.body.ops if isinstance(op, func.FuncOp))


def unary(op: str, type: str = "tensor<4xf32>", result: str = "") -> str:
    result = result or type
    return f"func.func @f(%x: {type}) -> {result} {{\n  %y = {op} : ({type}) -> {result}\n  return %y : {result}\n}}"


def created(op: str, type: str) -> str:
    return f"func.func @f() -> {type} {{\n  %y = {op} : () -> {type}\n  return %y : {type}\n}}"


def refused(text: str, *parts: str, check: Callable[[str], object] = verified) -> str:
    """The message with which `text` is refused; it has `parts`."""
    with pytest.raises(IRError) as caught:
        check(text)
    message = str(caught.value)
    assert all(part in message for part in parts), message
    return message


# ---------------------------------------------------------------- names of attributes


@pytest.mark.parametrize(("op", "said"), [
    ("nd.softplus %x {bta = 2.0}", "'nd.softplus' op has no attribute 'bta'; did you mean 'beta'?"),
    ("nn.softmax %x {axes = 0}", "did you mean 'axis'?"),
    ("nn.layer_norm %x {epsilon = 0.1}", "did you mean 'eps'?"),
    ("nd.cast %x {dtyp = f32}", "'nd.cast' op has no attribute 'dtyp'; did you mean 'dtype'?"),
    ("nd.relu %x {zzz}", "has no attribute 'zzz'; it takes variant"),
    ("nd.reshape %x {shape = [4], variant = \"generic_cpu\"}", "has no attribute 'variant'"),
    ("nd.relu %x {variant = 3}", "variant = 3 : i64, but a variant is named by a string"),
    ('"nd.relu"(%x) <{foo = 1}>', "has no attribute 'foo'"),
    ('"nd.relu"(%x) {foo = 1}', "has no attribute 'foo'"),
])  # fmt: skip
def test_an_attribute_that_an_operator_does_not_have(op: str, said: str) -> None:
    message = refused(unary(op), said)
    assert "f.mlir:2:8: error: " in message and "^" in message


def test_a_misspelt_attribute_at_the_other_levels() -> None:
    refused("func.func @f<n>(%x: tensor<[n], f32>) -> index {\n  %n = dim.value [n] {doc = 1} : index\n  return %n : index\n}",
            "'dim.value' op has no attribute 'doc'")  # fmt: skip
    refused('loop.kernel @k() attributes {target = "cpu", index_bit = 32} {\n}', "did you mean 'index_bits'?")
    refused("func.func @f() {\n  %a = rt.empty {aligned} : tensor<4xf32>\n  return\n}", "no attribute 'aligned'")


def test_attributes_with_a_prefix_and_those_of_mlir_stay() -> None:
    text = """func.func @f(%x: tensor<4xf32> {note}) -> tensor<4xf32> attributes {anything = 1} {
      %c = arith.constant {tag = 3} 1 : i32
      %y = nd.relu %x {my.tag = 1, variant = "generic_cpu"} : (tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }"""
    printed = print_operation(verified(text).parent_op)
    assert all(part in printed for part in ("note", "anything", "tag = 3", "my.tag = 1", "generic_cpu"))


def test_the_attributes_of_functions_that_are_ours() -> None:
    refused('func.func @f() attributes {stepwell.symbol = ["n"]} {\n  return\n}', "did you mean 'stepwell.symbols'?")
    refused('func.func @f() attributes {stepwell.facts = "n == 1"} {\n  return\n}', "must be a list of facts")
    refused('func.func @f(%k: index {stepwell.dmi = "n"}) {\n  return\n}', "argument #0", "did you mean 'stepwell.dim'?")
    refused("func.func @f(%k: index {stepwell.dim = 3}) {\n  return\n}", "argument #0", "must be a string")


def test_variants_that_contradict_each_other() -> None:
    text = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %a = nd.exp %x {variant = "generic_cpu"} : (tensor<4xf32>) -> tensor<4xf32>
      %y = nd.relu %a {variant = "VARIANT"} : (tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }"""
    with pytest.raises(IRError, match="'nd.relu' op asks for variant 'elements_cpu', but 'nd.exp' at .*'generic_cpu'"):
        stepwell.compile(text.replace("VARIANT", "elements_cpu"), target="cpu")
    stepwell.compile(text.replace("VARIANT", "generic_cpu"), target="cpu")


# ---------------------------------------------------------------- values of constants


@pytest.mark.parametrize(("value", "type", "said"), [
    ("10", "i1", "value = 10 : i64, which 'i1' does not hold: it goes from -1 to 1"),
    ("300", "i8", "it goes from -128 to 255"),
    ("-129", "i8", "does not hold"),
    ("-1", "ui8", "it goes from 0 to 255"),
    ("256", "ui8", "does not hold"),
    ("-1", "ui64", "'value = ... : ui64'"),
    ("1.0", "i32", "has the float 1.0"),
    ("70000", "f16", "its largest is 65504; infinity is 0x7C00 : f16"),
    ("-65520", "f16", "'f16' does not hold"),
    ("500", "f8E4M3FN", "its largest is 448"),
    ("0x7FF0000000000000 : f64", "f8E4M3FN", "'f8E4M3FN' does not hold"),
    ("1.0e300", "f32", "infinity is 0x7F800000 : f32"),
    ("1" + "0" * 400 + " : i2048", "f64", "'f64' does not hold"),
])  # fmt: skip
def test_a_value_that_the_elements_do_not_hold(value: str, type: str, said: str) -> None:
    refused(created(f"nd.constant {{value = {value}}}", f"tensor<2x{type}>"), said, "f.mlir:2:8", "'nd.constant' op")


@pytest.mark.parametrize(("value", "type", "held"), [
    ("255", "i8", -1), ("-128", "i8", -128), ("true", "i1", True), ("0", "i1", False), ("255", "ui8", 255),
    ("18446744073709551615 : ui64", "ui64", 2**64 - 1), ("65504", "f16", 65504.0), ("0x7C00 : f16", "f16", math.inf),
    ("0x7F800000 : f32", "f16", math.inf), ("0xFFF0000000000000 : f64", "bf16", -math.inf), ("16777217", "f32", 2.0**24),
])  # fmt: skip
def test_a_value_that_the_elements_hold(value: str, type: str, held: object) -> None:
    [made] = evaluate_function(verified(created(f"nd.constant {{value = {value}}}", f"tensor<2x{type}>")), [])
    assert made.tolist() == [held, held]


def test_nan_is_a_value_of_every_float() -> None:
    for type in FLOAT_FORMATS:
        [made] = evaluate_function(verified(created("nd.constant {value = 0x7FC00000 : f32}", f"tensor<{type}>")), [])
        assert np.isnan(made.astype(np.float64))


def test_the_value_rounds_once() -> None:
    """1 + 2**-11 + 2**-30 is a tie of f16 once it is rounded to f32."""
    value = 1 + 2.0**-11 + 2.0**-30
    [made] = evaluate_function(verified(created(f"nd.constant {{value = {value!r}}}", "tensor<f16>")), [])
    assert made == 1 + 2.0**-10


@pytest.mark.parametrize("op", ["nd.constant {value = 1, ATTR}", "nd.iota {ATTR}"])
@pytest.mark.parametrize(("attribute", "said"), [
    ("dtype = i32", "has dtype = i32, but %y is declared as 'tensor<2xf32>'"),
    ("shape = [2, 1]", "has shape = [2 : i64, 1 : i64], but %y is declared as 'tensor<2xf32>'"),
    ("shape = [3]", "axis 0 of %y is declared as 2, but is 3"),
    ("shape = [-1]", "a dim is not negative"),
])  # fmt: skip
def test_creation_that_contradicts_its_declared_type(op: str, attribute: str, said: str) -> None:
    refused(created(op.replace("ATTR", attribute), "tensor<2xf32>"), said)


def test_creation_that_agrees_with_its_declared_type() -> None:
    text = created("nd.iota {shape = [2], dtype = f32}", "tensor<2xf32>")
    assert evaluate_function(verified(text), [])[0].tolist() == [0, 1]


def test_a_symbolic_shape_is_checked_when_it_runs() -> None:
    text = """func.func @f<m, n>(%x: tensor<[m, n], f32>) -> tensor<[n], f32> {
      %y = nd.iota {shape = #stepwell.dims<[m]>} : () -> tensor<[n], f32>
      return %y : tensor<[n], f32>
    }"""
    f = stepwell.compile(text, target="cpu")
    assert f(np.ones((3, 3), np.float32)).tolist() == [0, 1, 2]
    with pytest.raises(IRError, match="axis 0 of %y is declared as n, but is m"):
        f(np.ones((2, 3), np.float32))


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize(("op", "said"), [
    ("nd.softplus %x {beta = 0.0}", "has beta = 0.000000e+00 : f64, but it must be finite and not 0"),
    ("nd.softplus %x {beta = 0}", "has beta = 0 : i64"),
    ("nd.softplus %x {beta = 1.0e-60}", "finite and not 0 in 'f32'"),
    ("nd.softplus %x {beta = 0x7FC00000 : f32}", "must be finite"),
    ("nd.softplus %x {beta = 0x7F800000 : f32}", "must be finite"),
    ("nd.softplus %x {threshold = 0x7FC00000 : f32}", "has threshold = 0x7FC00000 : f32, but it must be a number, not NaN"),
    ("nn.layer_norm %x {eps = -1.0e-5}", "has eps = -1.000000e-05 : f64, but it must be finite and not negative"),
    ("nn.rms_norm %x {eps = 0x7FC00000 : f32}", "must be finite"),
    ("nn.rms_norm %x {eps = 0x7F800000 : f32}", "must be finite"),
])  # fmt: skip
def test_a_parameter_without_a_meaning(op: str, said: str) -> None:
    refused(unary(op), said, "f.mlir:2:8")


@pytest.mark.parametrize("op", [
    "nd.softplus %x {beta = -1.0}", "nd.softplus %x {threshold = 0x7F800000 : f32}", "nn.rms_norm %x {eps = 0.0}",
    "nd.clamp %x {min = 2.0, max = 1.0}", "nd.clamp %x {min = 0x7FC00000 : f32}",
])  # fmt: skip
def test_a_parameter_with_a_meaning(op: str) -> None:
    verified(unary(op))


def test_where_the_bounds_of_clamp_cross_the_upper_one_wins() -> None:
    [y] = evaluate_function(verified(unary("nd.clamp %x {min = 2.0, max = 1.0}")), [np.array([0, 1, 2, 3], np.float32)])
    assert y.tolist() == [1, 1, 1, 1]


def test_softplus_of_a_negative_beta() -> None:
    [y] = evaluate_function(verified(unary("nd.softplus %x {beta = -2.0}")), [np.full(4, 0.5, np.float32)])
    np.testing.assert_allclose(y, -math.log1p(math.exp(-1)) / 2, rtol=1e-6)


# ---------------------------------------------------------------- element types

UNSUPPORTED = ["i7", "i4", "i128", "si8", "si32", "tf32", "f80", "f128", "complex<f32>"]


@pytest.mark.parametrize("type", [*UNSUPPORTED, "index"])
def test_operators_refuse_element_types(type: str) -> None:
    said = f"'{type}' is not supported; use one of i1, i8, "
    refused(unary("nd.transpose %x", f"tensor<4x{type}>"), "cannot work on %x", said, "f.mlir:2:8")
    refused(unary(f"nd.cast %x {{dtype = {type}}}", result=f"tensor<4x{type}>"), "cannot work on %y", said, "f.mlir:2:8")
    refused(created("nd.constant {value = 1}", f"tensor<4x{type}>"), "cannot work on %y", said)


@pytest.mark.parametrize("type", UNSUPPORTED)
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_functions_refuse_types_when_they_are_compiled(type: str, target: str) -> None:
    def check(text: str) -> object:
        return stepwell.compile(text, target=target)

    for argument in (f"tensor<4x{type}>", type):
        text = f"func.func @f(%x: f32, %t: {argument}) -> {argument} {{\n  return %t : {argument}\n}}"
        refused(text, f"%t of @f is '{argument}': '{type}' is not supported", check=check)
        assert type in print_operation(verified(text).parent_op)  # the text itself is legal


def test_definitions_and_kernels_refuse_element_types() -> None:
    region = '({\n^bb0(%i: index):\n  %a = "compute.read"(%x, %i) : (tensor<4xi7>, index) -> i7\n' \
             '  "compute.yield"(%a) : (i7) -> ()\n})'  # fmt: skip
    refused(unary(f'"compute.map"(%x) {region}', "tensor<4xi7>"), "%x of type 'tensor<4xi7>'", "'i7' is not supported")
    refused('loop.kernel @k(%x: !loop.buffer<i7, global>) attributes {target = "cpu"} {\n}', "argument 0 of type")
    refused('loop.kernel @k() attributes {target = "cpu"} {\n  %a = loop.alloc : !loop.buffer<i128, register, 4>\n}',
            "'i128' is not supported")  # fmt: skip
    refused("func.func @f() {\n  %a = rt.empty : tensor<4xsi8>\n  return\n}", "'si8' is not supported")


def test_other_dialects_pass_types_through() -> None:
    text = """func.func @f(%x: tensor<4xi7>, %y: si8, %z: complex<f32>, %w: tensor<2xf80>) -> tensor<4xi7> {
      %a = arith.addi %x, %x : tensor<4xi7>
      return %a : tensor<4xi7>
    }"""
    assert "arith.addi %x, %x : tensor<4xi7>" in print_operation(verified(text).parent_op)


# ---------------------------------------------------------------- numbers


def test_the_largest_floats() -> None:
    assert [largest_float(n) for n in ("f16", "f8E4M3FN", "f8E5M2")] == [65504, 448, 57344]
    assert largest_float("f32") == float(np.finfo(np.float32).max) and largest_float("f64") == np.finfo(np.float64).max


def test_rounding_of_a_number() -> None:
    assert rounded(70000, f16) == math.inf and math.isnan(rounded(-500, f8E4M3FN)) and rounded(-(10**400), f32) == -math.inf
    assert rounded(1e-60, f32) == 0 and rounded(3, bf16) == 3 and rounded(1e-60, i8) == 1e-60


@pytest.mark.filterwarnings("error")
def test_infinities_and_nan_give_no_warnings() -> None:
    large = np.array([1e300, np.inf, np.nan, 70000.0])
    for type in ("f16", "bf16", "f32"):
        for floats in ("declared", "f64"):
            text = f"func.func @f(%x: tensor<4x{type}>) -> tensor<4x{type}> {{\n  return %x : tensor<4x{type}>\n}}"
            evaluate_function(verified(text), [large], floats=floats)
    for type in (f16, f32, bf16, f8E4M3FN):
        constant(np.float64(1e300), type)


def test_dense_constants_are_f64_where_floats_are() -> None:
    type = "tensor<2xf32>"
    text = f"func.func @f() -> {type} {{\n  %y = arith.constant dense<[0.1, 1.0]> : {type}\n  return %y : {type}\n}}"
    assert evaluate_function(verified(text), [], floats="f64")[0].dtype == np.float64


def test_built_operators_are_checked_as_parsed_ones() -> None:
    with pytest.raises(IRError, match="'ui8' does not hold"):
        build(nd.Constant, value=-1, dtype=ui8)
    with pytest.raises(IRError, match="'i1' does not hold"):
        build(nd.Constant, value=2, dtype=i1)
    assert build(nd.Constant, value=7, dtype=ui64).type.element is ui64
