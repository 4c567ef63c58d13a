"""Messages that name what is in the file: missing commas and types, near names, where a value is declared."""

import pytest

from stepwell.dialects import load_all
from stepwell.ir.diagnostics import IRError
from stepwell.ir.parser import parse_module
from stepwell.ir.printer import print_operation
from stepwell.ir.verifier import verify

HEAD = "func.func @f<m, n>(%x: tensor<[m, n], f32>, %w: tensor<[n], f32>) -> tensor<[m, n], f32> {\n  "
TYPES = "(tensor<[m, n], f32>, tensor<[n], f32>) -> tensor<[m, n], f32>"


@pytest.fixture(scope="module", autouse=True)
def dialects():
    load_all()


def first(body, ret="\n  func.return %x : tensor<[m, n], f32>\n}"):
    """The first diagnostic of a function: `line:column: message`, and its notes likewise."""
    with pytest.raises(IRError) as caught:
        verify(parse_module(HEAD + body + ret, "messages.mlir"))
    found = caught.value.diagnostics[0]
    return [f"{d.place.line}:{d.place.column}: {d.message}" for d in (found, *found.notes)]


NORM = "%y = nn.layer_norm %x, %w, %w {{eps = {}}} : (tensor<[m, n], f32>, tensor<[n], f32>, tensor<[n], f32>) -> tensor<[m, n], f32>"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (f"%y = nd.add %x %w : {TYPES}", "2:17: expected ',' between operands"),
        ("%y = nd.add %x, %w", "2:21: expected ':' and the types, as in ': (operand types) -> result type'"),
        ("%y = nd.constant {value = 1.0}", "2:33: expected ':' and the types"),
        (NORM.format("1e-5"), "2:41: expected '}' in attribute dictionary (a float needs a point: write 1.0e-5, not 1e-5)"),
        (NORM.format("-12E3"), "(a float needs a point: write -12.0E3, not -12E3)"),
        ("%c = arith.constant 1e-5 : f32", "2:24: unexpected 'e' in 'arith.constant' (a float needs a point: write 1.0e-5"),
        (NORM.format("1"), "a float; '1' is an integer, write 1.0"),
        (f"%y = nd.add %x, %ww : {TYPES}", "2:19: use of undeclared SSA value name '%ww'; did you mean '%w'?"),
        (f"%y = nd.add %x, %other : {TYPES}", "2:19: use of undeclared SSA value name '%other'"),
        ("%c = arith.constant true\n  %y = arith.extui %cc : i1 to i32",
         "3:20: use of undeclared SSA value name '%cc'; did you mean '%c'?"),
    ],
)  # fmt: skip
def test_the_text_is_wrong(body, says):
    found = first(body)[0]
    assert says in found
    if "%other" in body:
        assert "did you mean" not in found


def test_a_name_in_a_nested_region_is_near_one_outside():
    body = "%c = arith.constant true\n  loop.if %c : (i1) -> () {\n  %d = arith.extui %cc : i1 to i32\n  }"
    assert "'%cc'" in first(body)[0] and "did you mean '%c'?" in first(body)[0]


@pytest.mark.parametrize(
    ("type", "note"),
    [
        ("tensor<[m, m], f32>", "1:20: '%x' is declared here: dim 1 is 'n', not 'm'"),
        ("tensor<[n, m], f32>", "1:20: '%x' is declared here: dim 0 is 'm', not 'n', dim 1 is 'n', not 'm'"),
        ("tensor<[m, n], f16>", "1:20: '%x' is declared here: its elements are f32, not f16"),
        ("tensor<?x5xf32>", "1:20: '%x' is declared here: dim 0 is 'm', not '?', dim 1 is 'n', not '5'"),
        ("tensor<[m], f32>", "1:20: '%x' is declared here: its rank is 2, not 1"),
        ("f32", "1:20: '%x' is declared here: its type is 'tensor<[m, n], f32>'"),
    ],
)
def test_a_use_of_another_type_shows_the_declaration(type, note):
    error, *notes = first(f"%y = nd.exp %x : ({type}) -> tensor<[m, n], f32>")
    assert error.startswith(f"2:15: use of value '%x' expects different type than prior uses: '{type}'")
    assert notes == [note]


def test_of_a_result_and_of_a_value_used_before():
    result = "%y = nd.exp %w : (tensor<[n], f32>) -> tensor<[n], f32>\n  "
    use = "%z = nd.exp %y : (tensor<[m], f32>) -> tensor<[m], f32>"
    assert first(result + use)[1:] == ["2:8: '%y' is declared here: dim 0 is 'n', not 'm'"]
    text = '"t.a"(%q) : (i32) -> ()\n"t.b"(%q) : (i64) -> ()'
    with pytest.raises(IRError) as caught:
        parse_module(text, allow_unregistered=True)
    found = next(d for d in caught.value.diagnostics if "expects different type" in d.message)
    assert [n.message for n in found.notes] == ["'%q' is first used here: its type is 'i32'"]


def test_a_function_that_does_not_return():
    found = first(f"%y = nd.add %x, %w : {TYPES}", "\n}")[0]
    assert found == f"2:8: @f does not end in 'func.return': block with no terminator, has %y = nd.add %x, %w : {TYPES}"


def test_arguments_have_places():
    text = 'func.func @f(%a: i32,\n  %b: i32 loc("g":7:8)) {\n  cf.br ^bb1(%a : i32)\n^bb1(%c: i32):\n  return\n}'
    function = parse_module(text, "places.mlir").body.first
    entry, other = function.region.blocks
    assert [str(a.location) for a in (*entry.arguments, *other.arguments)] == [
        str(parse_module(f'module {{}} loc("{f}":{n}:{c})', "t").location)
        for f, n, c in (("places.mlir", 1, 14), ("g", 7, 8), ("places.mlir", 4, 6))
    ]
    assert str(function.clone().arguments[0].location) == str(function.arguments[0].location)
    printed = print_operation(function, locations=True)
    again = parse_module(printed, "again.mlir").body.first
    assert print_operation(again, locations=True) == printed


def test_an_empty_dictionary_before_a_colon():
    with pytest.raises(IRError, match=r"'loop.if' op requires at least 1 region, but has 0"):
        verify(parse_module("func.func @f(%x: i1) {\n  loop.if %x {} : (i1) -> ()\n  return\n}"))
    for braces in ("{}", "{}, {}"):
        made = parse_module(f"func.func @f(%x: i1) {{\n  loop.if %x {'{}'} : (i1) -> () {braces}\n  return\n}}")
        verify(made)
        assert parse_module(str(made)).body.first is not None
    plain = parse_module("func.func @f(%x: tensor<[2], f32>) {\n  %y = nd.exp %x {} : (tensor<[2], f32>) -> tensor<[2], f32>\n  return\n}")
    verify(plain)
    assert "{}" not in str(plain)
