"""The verifier: each fault is found, placed and named."""

import pytest

from stepwell.ir.attributes import i32
from stepwell.ir.core import Block, Operation, Region
from stepwell.ir.definition import AnyType, Int, String, attribute, operand, region, result, successor
from stepwell.ir.diagnostics import IRError
from stepwell.ir.dominance import immediate_dominators
from stepwell.ir.parser import parse_module
from stepwell.ir.registry import (
    Dialect,
    Graph,
    IsolatedFromAbove,
    NoTerminator,
    SameOperandsAndResultType,
    SymbolTable,
    Terminator,
)
from stepwell.ir.verifier import verify, verify_all

demo = Dialect("verify_demo", "Operations of this test.")


@demo.op
class Scope(Operation):
    """A region with dominance, isolated from above."""

    name = "verify_demo.scope"
    traits = (IsolatedFromAbove, SymbolTable)
    inside = region()


@demo.op
class Open(Operation):
    """A region with dominance that sees what is around it."""

    name = "verify_demo.open"
    inside = region()


@demo.op
class Net(Operation):
    """A region without order."""

    name = "verify_demo.net"
    traits = (Graph, NoTerminator)
    inside = region()


@demo.op
class End(Operation):
    """A terminator."""

    name = "verify_demo.end"
    traits = (Terminator,)
    to = successor(variadic=True)


@demo.op
class Def(Operation):
    """A value."""

    name = "verify_demo.def"
    sym_name = attribute(String, optional=True)
    y = result(AnyType)


@demo.op
class Pair(Operation):
    """Two operands and a result of one type."""

    name = "verify_demo.pair"
    traits = (SameOperandsAndResultType,)
    a = operand(AnyType)
    b = operand(AnyType)
    number = attribute(Int)
    y = result(AnyType)
    check_inferred = True

    def infer_types(self) -> list[object]:
        return [self.operands[0].type]


def faults(text: str) -> list[str]:
    found = verify_all(parse_module(text, "f"))
    return [f"{d.place.line if d.place else 0}: {d.message}" for d in found]


DEF = '%d = "verify_demo.def"() : () -> i32'


def scope(*lines: str, op: str = "scope") -> str:
    return "\n".join([f'"verify_demo.{op}"() ({{', *lines, "}) : () -> ()"])


def test_legal() -> None:
    verify(parse_module(scope(DEF, '"verify_demo.end"() : () -> ()')))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            scope(DEF),
            "2: the body of 'verify_demo.scope' does not end in 'verify_demo.end': block with no terminator, "
            "has %d = verify_demo.def : () -> i32",
        ),
        (scope("^a:"), "1: 'verify_demo.scope' op: empty block: expect at least a terminator"),
        (
            scope('"verify_demo.end"() : () -> ()', DEF, '"verify_demo.end"() : () -> ()'),
            "2: 'verify_demo.end' op must be the last operation in the parent block",
        ),
        (
            scope("^a:", '"verify_demo.end"()[^a] : () -> ()'),
            "1: entry block of region may not have predecessors",
        ),
        (
            DEF
            + "\n"
            + scope(
                '%e = "verify_demo.pair"(%d, %d) <{number = 1}> : (i32, i32) -> i32',
                '"verify_demo.end"() : () -> ()',
            ),
            "3: 'verify_demo.pair' op using value defined outside the region",
        ),
        (
            scope(
                '%e = "verify_demo.pair"(%d, %d) <{number = 1}> : (i32, i32) -> i32',
                DEF,
                '"verify_demo.end"() : () -> ()',
            ),
            "2: operand #0 does not dominate this use",
        ),
        ('"verify_demo.scope"() : () -> ()', "1: 'verify_demo.scope' op requires 1 region, but has 0"),
        (
            '%e = "verify_demo.pair"() <{number = 1}> : () -> i32',
            "1: 'verify_demo.pair' op expects 2 operands, but has 0",
        ),
        (
            f'{DEF}\n%e = "verify_demo.pair"(%d, %d) : (i32, i32) -> i32',
            "2: 'verify_demo.pair' op requires attribute 'number'",
        ),
        (
            f'{DEF}\n%e = "verify_demo.pair"(%d, %d) <{{number = "x"}}> : (i32, i32) -> i32',
            "2: 'verify_demo.pair' op attribute 'number' failed to satisfy constraint: an integer",
        ),
        (
            f'{DEF}\n%e = "verify_demo.pair"(%d, %d) <{{number = 1}}> : (i32, i32) -> f32',
            "2: 'verify_demo.pair' op requires the same type for all operands and results, but has "
            "'i32' and 'f32'",
        ),
        (
            scope(
                *[f'%{n} = "verify_demo.def"() <{{sym_name = "s"}}> : () -> i32' for n in "ab"],
                '"verify_demo.end"() : () -> ()',
            ),
            "3: redefinition of symbol named 's'",
        ),
    ],
)
def test_fault(text: str, fault: str) -> None:
    assert fault in faults(text)


def test_graph_regions_have_no_order() -> None:
    use = '%e = "verify_demo.pair"(%d, %d) <{number = 1}> : (i32, i32) -> i32'
    assert faults(scope(use, DEF, op="net")) == []
    nested = scope(use, '"verify_demo.end"() : () -> ()', op="open")
    assert faults(scope(nested, DEF, op="net")) == []


def test_values_of_one_region_are_not_seen_by_the_next() -> None:
    inner = scope(DEF, '"verify_demo.end"() : () -> ()', op="open")
    module = parse_module(inner + "\n" + scope('"verify_demo.end"() : () -> ()', op="open"))
    first, second = module.body.ops
    value = first.body.first.results[0]  # type: ignore[union-attr]
    second.body.insert_before(type(first)([value], regions=[Region([Block()])]), second.body.first)
    assert any("using value defined outside" in d.message for d in verify_all(module))


def branches(*edges: str) -> Region:
    """A region of blocks named by letters; "ab ac" are branches of block a."""
    names = sorted({letter for edge in edges for letter in edge})
    blocks = {name: Block() for name in names}
    for name, block in blocks.items():
        block.append(End(successors=[blocks[e[1]] for e in edges if e[0] == name]))
    return Region(blocks.values())


def test_dominators() -> None:
    region_ = branches("ab", "ac", "bd", "cd", "de", "ed", "fe")
    a, _b, _c, d, e, f = region_.blocks
    found = immediate_dominators(a)
    assert found[d] is a and found[e] is d and f not in found


def test_dominance_over_blocks() -> None:
    text = """"verify_demo.scope"() ({
      "verify_demo.end"()[^l, ^r] : () -> ()
    ^l:
      %d = "verify_demo.def"() : () -> i32
      "verify_demo.end"()[^below, ^join] : () -> ()
    ^r:
      "verify_demo.end"()[^join] : () -> ()
    ^below:
      %e = "verify_demo.pair"(%d, %d) <{number = 1}> : (i32, i32) -> i32
      "verify_demo.end"() : () -> ()
    ^join:
      %f = "verify_demo.pair"(%d, %e) <{number = 1}> : (i32, i32) -> i32
      "verify_demo.end"() : () -> ()
    ^never:
      %g = "verify_demo.pair"(%d, %e) <{number = 1}> : (i32, i32) -> i32
      "verify_demo.end"() : () -> ()
    }) : () -> ()"""
    assert faults(text) == [
        "12: operand #0 does not dominate this use",
        "12: operand #1 does not dominate this use",
    ]


def test_all_faults_are_reported_and_raised_together() -> None:
    module = parse_module(scope(DEF) + "\n" + scope(DEF))
    with pytest.raises(IRError) as caught:
        verify(module)
    assert len(caught.value.diagnostics) == 2


def test_each_class_and_types_are_checked_once_but_every_operation_counts() -> None:
    module = parse_module("\n".join(f'%{n} = "verify_demo.def"() : () -> i32' for n in "abc"))
    assert verify_all(module) == []
    assert [op.results[0].type for op in module.body.ops] == [i32] * 3
