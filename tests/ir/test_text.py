"""Text in and out: tokens, scopes, formats, errors, depth."""

import contextlib
import gc
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ir import syntax
from stepwell.ir.attributes import FloatAttr, OpaqueLoc, TensorType, f16, f32, i32
from stepwell.ir.core import Operation
from stepwell.ir.definition import (
    AnyAttr,
    AnyType,
    Bool,
    Dims,
    Float,
    Int,
    String,
    SymbolRef,
    TypeAttribute,
    Unit,
    attribute,
    operand,
    region,
    result,
    successor,
)
from stepwell.ir.diagnostics import IRError
from stepwell.ir.parser import parse_attribute, parse_module, parse_type
from stepwell.ir.printer import print_operation
from stepwell.ir.registry import Dialect, NoTerminator
from stepwell.ir.verifier import verify_all

demo = Dialect("text_demo", "Operations of this test.")


@demo.op
class Everything(Operation):
    """Every kind of field in one format."""

    name = "text_demo.everything"
    x = operand(AnyType)
    many = operand(AnyType, variadic=True)
    maybe = operand(AnyType, optional=True)
    axis = attribute(Int, default=-1)
    eps = attribute(Float, optional=True)
    flag = attribute(Bool, default=False)
    label = attribute(String, optional=True)
    callee = attribute(SymbolRef, optional=True)
    kind = attribute(TypeAttribute, optional=True)
    extents = attribute(Dims, optional=True)
    fast = attribute(Unit, optional=True)
    other = attribute(AnyAttr, optional=True)
    y = result(AnyType)
    assembly = (
        "$x (`,` `many` `(` $many^ `)`)? (`maybe` $maybe^)? (`axis` `=` $axis^)? (`eps` $eps^)? "
        "(`flag` $flag^)? ($label^)? ($callee^)? (`kind` $kind^)? ($extents^)? (`fast` $fast^)? "
        "(`other` $other^)? attr-dict "
        "`:` type($x) (`many` type($many)^)? (`maybe` type($maybe)^)? `->` type($y)"
    )


@demo.op
class Plain(Operation):
    """No format: the default one."""

    name = "text_demo.plain"
    traits = (NoTerminator,)
    xs = operand(AnyType, variadic=True)
    note = attribute(String, default="none")
    ys = result(AnyType, variadic=True)
    body_ = region(variadic=True)


@demo.op
class Jump(Operation):
    """Successors in a format."""

    name = "text_demo.jump"
    to = successor(variadic=True)
    assembly = "$to attr-dict"


def round_trip(text: str, **options: Any) -> Operation:
    module = parse_module(text, allow_unregistered=True, **options)
    for generic in (False, True):
        printed = print_operation(module, generic)
        assert print_operation(parse_module(printed, allow_unregistered=True), generic) == printed
        assert print_operation(parse_module(printed, allow_unregistered=True)) == print_operation(module)
    return module


def errors(text: str, **options: Any) -> list[str]:
    with pytest.raises(IRError) as caught:
        parse_module(text, "f", **{"allow_unregistered": True, **options})
    return [d.render() for d in caught.value.diagnostics]


# -- formats


@pytest.mark.parametrize(
    "tail",
    [
        "",
        ", many(%x, %x)",
        " maybe %x",
        " axis = 3",
        " axis = 3 : i32",
        " eps 1.500000e+00",
        " flag true",
        ' "s"',
        " @f",
        " kind f32",
        " [m, 4*n, ?]",
        " fast",
        " other [1 : i32]",
        ' other "s" {extra = 1 : i32}',
    ],
)
def test_format(tail: str) -> None:
    types = " many i32, i32" if "many" in tail else " maybe i32" if "maybe" in tail else ""
    line = f"%y = text_demo.everything %x{tail} : i32{types} -> f32"
    module = round_trip('%x = "t.a"() : () -> i32\n' + line)
    assert line in print_operation(module)


def test_default_format_and_regions() -> None:
    module = round_trip("""
      %0 = text_demo.plain : () -> i32
      text_demo.plain
      text_demo.plain {note = "other"}
      %1:2 = text_demo.plain %0, %0 : (i32, i32) -> (i32, f32) { text_demo.plain }, {
      ^bb0(%a: i32):
        text_demo.plain %a, %0 : (i32, i32) -> ()
      }
      text_demo.plain %1#1 : (f32) -> ()
    """)
    assert not verify_all(module)


def test_defaults_are_elided_in_custom_form_only() -> None:
    module = parse_module('text_demo.plain {note = "none"}')
    assert "note" not in print_operation(module)
    assert 'note = "none"' in print_operation(module, generic=True)


def test_successors() -> None:
    module = round_trip(
        '"t.r"() ({\n  text_demo.jump ^bb1, ^bb0\n^bb0:\n  "t.x"() : () -> ()\n^bb1:\n}) : () -> ()'
    )
    assert "text_demo.jump ^bb2, ^bb1" in print_operation(module)


# -- types, attributes, locations


@pytest.mark.parametrize(
    "text",
    [
        "tensor<[m, 4*n], f16>",
        "tensor<4x?xf32>",
        "tensor<*xf32>",
        'tensor<?xf32, "enc">',
        "vector<4x[8]xf32>",
        "memref<2x?xf32, strided<[4, 1], offset: ?>, 3>",
        "memref<*xi8>",
        "complex<f32>",
        "tuple<>",
        "tuple<i32, none>",
        "(i32, f32) -> ()",
        "() -> (() -> i32)",
        '!t.x<a -> b, [">"]>',
        "f128",
        "si8",
        "i0",
    ],
)
def test_type(text: str) -> None:
    assert str(parse_type(text)) == text


def test_symbolic_type_travels_as_encoding() -> None:
    assert parse_type("tensor<?x4xf16, #stepwell.dims<[m, 4]>>") is TensorType(["m", 4], f16)
    with pytest.raises(IRError, match="does not agree"):
        parse_type("tensor<?x5xf16, #stepwell.dims<[m, 4]>>")


@pytest.mark.parametrize(
    "text",
    [
        "1 : i32",
        "-1 : si8",
        "true",
        "1.500000e+00 : f32",
        "0x7FC00001 : f32",
        "-0.000000e+00 : f64",
        "unit",
        '"a\\0A"',
        '@a::@"b c"',
        "[]",
        "{a = 1 : i32, b}",
        "array<i32>",
        "array<i1: true, false>",
        "dense<> : tensor<0xi32>",
        "dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>",
        "dense<1.500000e+00> : vector<4xf32>",
        "affine_map<(d0) -> (d0 * 2)>",
        "#t.x<1 + 2>",
        "#stepwell.dims<[m, ?]>",
        '#stepwell.facts<"n mod 8 == 0", "n <= 9">',
        "tensor<[m], f32>",
        "() -> i32",
        "dense<[(1.000000e+00,2.000000e+00), (3.000000e+00,4.000000e+00)]> : tensor<2xcomplex<f32>>",
        "sparse<[[0, 0]], 1.0> : tensor<3x4xf32>",
        "dense_resource<x> : tensor<4xf32>",
    ],
)
def test_attribute(text: str) -> None:
    assert str(parse_attribute(text)) == text


def test_dense_long_and_short_agree() -> None:
    numbers = [f"{i}.5" for i in range(100)]
    long = parse_attribute(f"dense<[{', '.join(numbers)}]> : tensor<100xf32>")
    assert long.values[:2] == tuple(FloatAttr.of(v, f32).bits for v in (0.5, 1.5))  # type: ignore[attr-defined]
    assert parse_attribute(str(long)) is long
    with pytest.raises(IRError, match="does not match type"):
        parse_attribute(f"dense<[{', '.join(map(str, range(100)))}]> : tensor<99xi32>")
    with pytest.raises(IRError, match="out of range"):
        parse_attribute(f"dense<[{', '.join(map(str, range(300)))}]> : tensor<300xi8>")


def test_signless_integers_have_one_form() -> None:
    assert parse_attribute("255 : i8") is parse_attribute("-1 : i8")
    assert parse_attribute("-1 : i1") is parse_attribute("true")


def test_aliases_and_locations() -> None:
    module = round_trip(
        '#m = [1]\n!t = i32\n"t.a"() {a = #m, b = #t.x<#m>} : () -> !t loc(#l)\n#l = loc("z":9:8)'
    )
    op = module.body.first
    assert op is not None and str(op.location) == '"z":9:8' and op.results == op.results
    assert "#t.x<[1 : i64]>" in str(op)
    fused = parse_module('"t.a"() : () -> () loc(fused["x", "f.py":1:2])', allow_unregistered=True).body.first
    assert fused is not None and isinstance(fused.location, OpaqueLoc)
    assert print_operation(fused, locations=True).endswith('loc(fused["x", "f.py":1:2])')


def test_location_of_an_operation_is_its_name() -> None:
    op = parse_module('\n  %x = "t.a"() : () -> i32', "f", allow_unregistered=True).body.first
    assert op is not None and str(op.location) == '"f":2:8'


# -- scopes


def test_names_are_kept_and_made_unique() -> None:
    text = """
      %x = "t.a"() : () -> i32
      "t.r"() ({
        %y = "t.b"(%x) : (i32) -> i32
      }, {
        %y = "t.b"(%x) : (i32) -> i32
      }) : () -> ()
      "builtin.module"() ({
        %x = "t.b"() : () -> i32
      }) : () -> ()
    """
    printed = print_operation(round_trip(text))
    assert printed.count("%y = ") == 2 and printed.count("%x = ") == 2


def test_forward_references() -> None:
    round_trip("""
      "t.r"() ({
        "t.u"(%a#1, %b) : (i32, f32) -> ()
        %a:2, %b = "t.d"() : () -> (i32, i32, f32)
      }) : () -> ()
    """)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '%a = "t.a"() : () -> i32\n%a = "t.a"() : () -> i32',
            "f:2:1: error: redefinition of SSA value '%a'",
        ),
        ('"t.u"(%a#2) : (i32) -> ()\n%a:2 = "t.a"() : () -> (i32, i32)', "f:1:7: error: use of undeclared"),
        (
            '%a:2 = "t.a"() : () -> (i32, i32)\n"t.u"(%a#2) : (i32) -> ()',
            "f:2:7: error: reference to invalid result",
        ),
        (
            '"t.r"() ({\n"t.b"()[^x] : () -> ()\n}) : () -> ()',
            "f:2:9: error: reference to an undefined block '^x'",
        ),
        ('%a = "t.a"() : () -> ()', "f:1:1: error: cannot name an operation with no results"),
        ('"t.a"() {a = #x} : () -> ()', "f:1:14: error: undefined symbol alias id 'x'"),
        ("#a = [#a]", "f:1:1: error: alias '#a' is defined by itself"),
        ('"t.a"() {a = 1e5 : f32} : () -> ()', "f:1:15: error: expected '}' in attribute dictionary"),
        ("text_demo.everythin %x : i32", "is unknown (did you mean 'text_demo.everything'?)"),
        ('"text_demo.x"() : () -> ()', "unregistered operation 'text_demo.x'"),
        ('"t.a"() {a = [} : () -> ()', "attribute value"),
        ('"t.a"() : (i32 -> ()', "'(' is never closed"),
        ('"t.a"() {a = "x', "'{' is never closed"),
        ('"t.a"() : () -> ()\0', "unexpected character '\\x00'"),
        ('"t.r"() ({', "but found the end of the text"),
        ("}", "expected an operation or the end, but found '}'"),
    ],
)
def test_error(text: str, message: str) -> None:
    assert message in errors(text)[0]


def test_unregistered_operations_need_consent() -> None:
    assert "unregistered dialect" in errors('"t.a"() : () -> ()', allow_unregistered=False)[0]


def test_all_errors_of_a_file_in_one_run() -> None:
    found = errors("""
      %a = "t.a"() : () -> (i32
      %b = "t.b"(%a) {x = 1 : i32 : (i32) -> i32
      "t.r"() ({
        text_demo.everything %b, : i32
        "t.c"(%nope) : (i32) -> ()
      }) : () -> ()
      %d = "t.d"(%b) : (i32) -> i3x
    """)
    assert [e.split(":")[1] for e in found] == ["2", "3", "5", "6", "8"]
    assert len(errors("%a = \n%b = ", recover=False)) == 1


def test_error_shows_the_line_and_a_caret() -> None:
    assert errors('"t.a"(%x) : (i32) -> ()')[0].splitlines()[1:] == ['  "t.a"(%x) : (i32) -> ()', "        ^"]


# -- depth and size


@pytest.mark.parametrize(
    "text",
    [
        '"t.r"() ({\n' * 10_000 + "}) : () -> ()\n" * 10_000,
        "module {\n" * 10_000 + "}\n" * 10_000,
        '"t.a"() {a = ' + "[" * 10_000 + "]" * 10_000 + "} : () -> ()",
        '"t.a"() : () -> ' + "tuple<" * 10_000 + ">" * 10_000,
        "".join(f"#a{i} = [{f'#a{i - 1}' if i else 1}]\n" for i in range(5_000))
        + '"t.a"() {a = #a4999} : () -> ()',
        '%0 = "t.a"() : () -> i32\n'
        + "".join(f'%{i} = "t.b"(%{i - 1}) : (i32) -> i32\n' for i in range(1, 20_000)),
    ],
)
def test_depth(text: str) -> None:
    module = parse_module(text, allow_unregistered=True)
    assert not verify_all(module)
    printed = print_operation(module)
    assert print_operation(parse_module(printed, allow_unregistered=True)) == printed
    assert sum(1 for _ in module.clone().walk()) == sum(1 for _ in module.walk())


@pytest.mark.parametrize(
    "text",
    [
        '"t.r"() ({\n' * 10_000,
        "(" * 50_000,
        "foo.bar " + "(" * 50_000,
        '"t.a"() : ' + "(" * 50_000 + ")" * 50_000,
        "{" * 50_000,
        '"' * 50_001,
        '"t.a"() : () -> tensor<' * 5_000,
        '"t.a"() {a = ' + "9" * 50_000 + "} : () -> ()",
        '"t.a"() : () -> tensor<[' + "(" * 10_000 + "m" + ")" * 10_000 + "], f32>",
        "".join(f"#a{i} = [#a{i - 1}]\n" for i in range(2_000, 0, -1))
        + '#a0 = 1\n"t.a"() {a = #a2000} : () -> ()',
    ],
)
def test_nothing_but_diagnostics(text: str) -> None:
    assert errors(text)


SEEDS = [
    '%0:2 = "t.a"(%x) <{a = 1 : i32}> ({\n^bb0(%a: i32):\n}) {b = "x"} : (i32) -> (i32, f32) loc("f":1:2)\n',
    "module {\n%y = text_demo.everything %x axis = 3 [m] {k = dense<1> : tensor<2xi32>} : i32 -> f32\n}",
]
PIECES = st.sampled_from(
    ['"', "{", "}", "(", ")", "<", ">", "[", "]", "%x", "^b", "@", "#", "!", "->", "\0", "\n", "//", "é", "="]
)


@given(
    st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 160), st.integers(0, 6), PIECES), max_size=5)
)
def test_mutated_texts_give_diagnostics(text: str, edits: list[tuple[int, int, str]]) -> None:
    for at, length, piece in edits:
        text = text[:at] + piece + text[at + length :]
    with contextlib.suppress(IRError):
        print_operation(parse_module(text, allow_unregistered=True))


def test_collector_is_as_before() -> None:
    big = '"t.a"() : () -> ()\n' * 5_000
    parse_module(big, allow_unregistered=True)
    assert gc.isenabled()


def test_equal_dictionaries_are_shared() -> None:
    module = parse_module('"t.a"() {a = 1 : i32} : () -> ()\n' * 2, allow_unregistered=True)
    first, second = module.body.ops
    assert first.attributes is second.attributes


def test_shipped_tables_are_of_this_grammar() -> None:
    here = Path(syntax.__file__)
    made = syntax.build_tables(here.with_name("grammar.lark").read_text(encoding="utf-8"))
    assert (
        json.loads(here.with_name("grammar.json").read_text(encoding="utf-8"))["grammar"] == made["grammar"]
    )


def test_result_types_of_values() -> None:
    op = parse_module('%a:2 = "t.a"() : () -> (i32, f32)', allow_unregistered=True).body.first
    assert op is not None and [r.type for r in op.results] == [i32, f32]


@pytest.mark.parametrize("hint", ["日本", "\\", "a b", "", "0x", "7", "x\n", "%y", "a#1"])
def test_a_hint_that_no_name_can_have_is_printed_as_one_that_can(hint: str) -> None:
    module = parse_module('%x = "t.a"() : () -> i32\n%z = "t.b"() : () -> i32\n"t.c"(%x, %z) : (i32, i32) -> ()',
                          allow_unregistered=True)  # fmt: skip
    next(iter(module.body.ops)).results[0].hint = hint
    text = print_operation(module)
    assert print_operation(parse_module(text, allow_unregistered=True)) == text
