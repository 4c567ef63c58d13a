"""Functions: signatures with dim symbols and facts, and what is wrong with them."""

import pytest

from stepwell.dialects import arith, builtin, dim, func  # noqa: F401
from stepwell.dialects.func import FuncOp
from stepwell.ir.attributes import TensorType, f32, index
from stepwell.ir.builder import Builder
from stepwell.ir.diagnostics import IRError
from stepwell.ir.dims import parse_relation
from stepwell.ir.facts import Truth
from stepwell.ir.parser import parse_module
from stepwell.ir.printer import print_module
from stepwell.ir.verifier import verify

SIGNATURE = """func.func @f<m, n>(%x: tensor<[m, 4*n], f32>, %k: index {dim = m}) -> (tensor<[m], f32> {t.a}) \
where n mod 8 == 0, n <= 65536 attributes {t.b = 1 : i32} {
  %0 = "t.use"(%x) : (tensor<[m, 4*n], f32>) -> tensor<[m], f32>
  return %0 : tensor<[m], f32>
}"""


def checked(text):
    module = parse_module(text, allow_unregistered=True)
    verify(module)
    return module.body.first


def test_reading():
    f = checked(SIGNATURE)
    assert f.symbols == ("m", "n") and [a.hint for a in f.arguments] == ["x", "k"]
    assert f.facts.prove(parse_relation("n mod 4 == 0")) is Truth.YES
    assert f.argument_dim(1) == "m" and f.argument_dim(0) is None
    assert list(f.result_attributes(0)) == ["t.a"] and f.value_of("t.b") == 1
    assert not f.is_declaration


@pytest.mark.parametrize("generic", [False, True])
def test_text_comes_back(generic):
    module = parse_module(SIGNATURE, allow_unregistered=True)
    text = print_module(module, generic=generic)
    assert print_module(parse_module(text, allow_unregistered=True), generic=generic) == text
    if not generic:
        assert SIGNATURE.splitlines()[0].removesuffix(" {") in text


def test_making():
    x = TensorType(("m", 3), f32)
    f = FuncOp.make(
        "g", [x, index], [x], symbols=["m"], names=["x", "m"], dims={1: "m"}, visibility="private"
    )
    Builder(f.body).create(func.ReturnOp, [f.arguments[0]])
    verify(f)
    assert (
        "func.func private @g<m>(%x: tensor<[m, 3], f32>, %m: index {dim = m}) -> tensor<[m, 3], f32>"
        in str(f)
    )
    declaration = FuncOp.make("h", [f32], [], visibility="private", declaration=True)
    verify(declaration)
    assert str(declaration) == "func.func private @h(f32)"


@pytest.mark.parametrize("name", ["int", "while", "_x", "struct", "m_1"])
def test_words_of_c_are_symbols(name):
    f = checked(f"func.func @f<{name}>(%x: tensor<[{name}], f32>) {{\n return\n}}")
    assert f.symbols == (name,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@f<m>(%x: tensor<[m, q], f32>) {\n return\n}", "unknown symbol 'q' in type 'tensor<[m, q], f32>'; declare it: @f<m, q>"),
        ("@f(%x: tensor<[b, 2*a], f32>) {\n return\n}", "declare it: @f<a, b>"),
        ("@f<m>(%x: tensor<[m], f32>) where q <= 3 {\n return\n}", "unknown symbol 'q' in fact 'q <= 3'; declare it: @f<m, q>"),
        ("@f<m>(%x: index {dim = q}) {\n return\n}", "unknown symbol 'q' in argument #0"),
        ("@f<m>(%x: i32 {dim = m}) {\n return\n}", "argument #0 is the dim 'm' and must be index, but is 'i32'"),
        ("@f<m, m>(%x: tensor<[m], f32>) {\n return\n}", "declares symbol 'm' twice"),
        ("@f(f32)", "symbol declaration cannot have public visibility"),
        ("@f() -> i32 {\n return\n}", "has 0 operands, but enclosing function (@f) returns 1"),
        ("@f(%a: i64) -> i32 {\n return %a : i64\n}",
         "type of return operand 0 ('i64') doesn't match function result type ('i32') in function @f"),
        ("@f() {\n call @nope() : () -> ()\n return\n}", "'nope' does not reference a valid function"),
        ("@f() {\n call @f() : () -> i32\n return\n}", "incorrect number of results for callee"),
        ("@f(%a: i32) {\n call @f(%a, %a) : (i32, i32) -> ()\n return\n}", "incorrect number of operands for callee"),
        ("@f<m>(%a: tensor<[m], f32>) {\n call @f(%a) : (tensor<[m], f32>) -> ()\n return\n}", "which has dim symbols <m>"),
    ],
)  # fmt: skip
def test_errors(text, message):
    with pytest.raises(IRError) as caught:
        checked(f"func.func {text}")
    assert message in str(caught.value)


def test_entry_block_and_signature():
    f = FuncOp.make("f", [f32], [])
    Builder(f.body).create(func.ReturnOp, [])
    f.body.add_argument(f32)
    with pytest.raises(IRError, match="entry block must have 1 arguments to match function signature"):
        verify(f)


def test_dims_as_values():
    text = """func.func @f<m>(%x: tensor<[m, 3], f32>) -> index {
  %0 = dim.value [4*m + 1] : index
  %1 = dim.of %x, 0 : index
  dim.assert {message = "too long", relation = #stepwell.facts<m mod 2 == 0>}
  return %0 : index
}"""
    f = checked(text)
    assert str(f.body.first.expression) == "4*m + 1"
    assert "dim.of %x, 0 : index" in str(f) and "dim.value [4*m + 1] : index" in str(f)
    with pytest.raises(IRError, match="axis 2 is not one of the 2 axes"):
        checked(text.replace("%x, 0", "%x, 2"))
