"""The greedy driver, rules as tables, and what happens when patterns misbehave."""

import pytest

from stepwell.dialects import arith, builtin, cf, func, memref, scf  # noqa: F401
from stepwell.ir.attributes import IntegerAttr, i32, i64
from stepwell.ir.builder import Builder
from stepwell.ir.core import Block
from stepwell.ir.diagnostics import IRError
from stepwell.ir.parser import parse_module
from stepwell.ir.rewriter import (
    Pattern,
    PatternRewriter,
    constant_of,
    fingerprint,
    make_constant,
    pattern,
    rewrite_greedily,
)  # fmt: skip
from stepwell.ir.rules import Const, Var, call, rules
from stepwell.ir.verifier import verify

HEAD = "func.func @f(%a: i32, %b: i32) -> i32 {\n"


def function(body):
    return parse_module(f"{HEAD}{body}\n}}", allow_unregistered=True)


def text(module):
    return [line.strip() for line in str(module).splitlines()[2:-2]]


def find(module, name):
    return next(op for op in module.walk() if op.op_name == name)


# ---------------------------------------------------------------- builder


def test_builder_places():
    block = Block([i32, i32])
    x, y = block.arguments
    b = Builder(block)
    last = b.create(arith.MulI, x, y)
    first = Builder(before=last).create(arith.AddI, x, y)
    middle = Builder(after=first).create(arith.SubI, x, y)
    with b.at(Builder(before=first)):
        start = b.create(arith.XOrI, x, y)
    end = b.create(arith.OrI, x, y)
    assert list(block.ops) == [start, first, middle, last, end]
    assert Builder.at_start(block).create(arith.AndI, x, y) is block.first


def test_builder_without_a_place():
    with pytest.raises(ValueError, match="needs a block or an operation"):
        Builder()
    with pytest.raises(ValueError, match="is in no block"):
        Builder(before=arith.constant(1, i32))


def test_built_operations_know_their_line():
    op = Builder(Block()).create(arith.Constant, value=IntegerAttr(1, i32))
    assert op.location.file == __file__


# ---------------------------------------------------------------- tables

x, y = Var("x"), Var("y")
add, sub, mul = call(arith.AddI), call(arith.SubI), call(arith.MulI)


def number(value):
    return Const(str(value), lambda a: a.value == value, lambda type: IntegerAttr(value, type))


def test_a_table():
    table = rules((add(x, number(0)), x), (sub(x, x), number(0)), (mul(x, number(2)), add(x, x)))
    module = function("""
      %z = arith.constant 0 : i32
      %two = arith.constant 2 : i32
      %0 = arith.addi %z, %a : i32
      %1 = arith.muli %0, %two : i32
      %2 = arith.subi %b, %b : i32
      %3 = "t.use"(%1, %2) : (i32, i32) -> i32
      return %3 : i32""")
    assert rewrite_greedily(module, table)
    assert [op.op_name for op in module.walk()][2:] == [
        "arith.constant",
        "arith.addi",
        "t.use",
        "func.return",
    ]
    assert text(module)[1].endswith("arith.addi %a, %a : i32")
    assert text(module)[0].endswith("arith.constant 0 : i32")
    verify(module)


def test_a_condition_and_attributes():
    cmp = call(arith.CmpI)
    swapped = arith.CmpI.code("sgt")
    table = rules(
        (cmp(x, y), cmp(y, x, predicate=swapped), lambda m: m.op.relation == "slt"),
    )
    module = parse_module("""
    func.func @f(%a: i32, %b: i32) -> i1 {
      %0 = arith.cmpi slt, %a, %b : i32
      return %0 : i1
    }""")
    assert rewrite_greedily(module, table)
    assert "arith.cmpi sgt, %b, %a : i32" in str(module)


def test_a_rule_that_would_change_the_type_does_not_apply():
    trunc = call(arith.TruncI)
    extend = call(arith.ExtSI)
    table = rules((trunc(extend(x)), x))
    module = parse_module("""
    func.func @f(%a: i8) -> i16 {
      %0 = arith.extsi %a : i8 to i32
      %1 = arith.trunci %0 : i32 to i16
      return %1 : i16
    }""")
    before = str(module)
    assert not rewrite_greedily(module, table)
    assert str(module) == before


def test_replacements_inherit_the_place():
    module = function("  %two = arith.constant 2 : i32\n  %0 = arith.muli %a, %two : i32\n  return %0 : i32")
    place = find(module, "arith.muli").location
    rewrite_greedily(module, rules((mul(x, number(2)), add(x, x))))
    assert find(module, "arith.addi").location is place


# ---------------------------------------------------------------- changes that must be refused


def test_replacing_is_checked_before_anything_changes():
    """Corpus D28."""
    module = function("  %0 = arith.addi %a, %b : i32\n  %1 = arith.extsi %0 : i32 to i64\n  return %0 : i32")
    rewriter = PatternRewriter()
    op, wide = find(module, "arith.addi"), find(module, "arith.extsi")
    before = str(module)
    op.results[0].replace_all_uses_with(op.results[0])
    rewriter.replace(op, op)
    assert str(module) == before and not rewriter.changed
    with pytest.raises(ValueError, match=r"'arith.addi' with 1 results by 2 values"):
        rewriter.replace(op, [op.operands[0]] * 2)
    with pytest.raises(ValueError, match=r"result #0 of 'arith.addi' of type 'i32' by a value of 'i64'"):
        rewriter.replace(op, wide)
    with pytest.raises(ValueError, match=r"cannot erase 'arith.addi': a result is used by"):
        rewriter.erase(op)
    assert str(module) == before


def test_constants_of_another_type_are_none():
    """Corpus D30."""
    op = arith.Constant((), (i64,), {"value": IntegerAttr(1, i32)})
    assert constant_of(op.result) is None
    assert make_constant(IntegerAttr(1, i32), i64, None) is None
    with pytest.raises(IRError, match="same type"):
        verify(op)


# ---------------------------------------------------------------- ending


@pattern(arith.AddI)
def swap(op, rewriter):
    rewriter.set_operands(op, op.operands[::-1])
    return True


@pattern(arith.AddI)
def to_subtraction(op, rewriter):
    rewriter.replace(op, rewriter.create(arith.SubI, *op.operands))
    return True


@pattern(arith.SubI)
def to_addition(op, rewriter):
    rewriter.replace(op, rewriter.create(arith.AddI, *op.operands))
    return True


@pattern(arith.AddI)
def grow(op, rewriter):
    inner = rewriter.create(arith.AddI, *op.operands)
    rewriter.replace(op, rewriter.create(arith.AddI, inner.result, op.operands[1]))
    return True


SUM = "  %0 = arith.addi %a, %b : i32\n  return %0 : i32"


def test_two_patterns_that_undo_each_other_are_named():
    with pytest.raises(IRError, match="undo each other") as caught:
        rewrite_greedily(function(SUM), [to_addition, to_subtraction])
    message = str(caught.value)
    assert "to_addition" in message and "to_subtraction" in message
    assert message.count(f"{__file__}:") >= 2


def test_a_pattern_that_undoes_itself_is_named():
    with pytest.raises(IRError, match=r"swap \(.*\) undoes itself"):
        rewrite_greedily(function(SUM), [swap])


def test_growth_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr("stepwell.ir.rewrite_watch.MARGIN", 4)
    with pytest.raises(IRError, match=r"did not end after .* rewrites") as caught:
        rewrite_greedily(function(SUM), [grow])
    assert "grow" in str(caught.value)


def test_rules_that_undo_each_other_show_their_lines():
    table = rules((add(x, y), sub(x, y)), (sub(x, y), add(x, y)))
    with pytest.raises(IRError, match=r"arith.addi\(x, y\) -> arith.subi\(x, y\)"):
        rewrite_greedily(function(SUM), table)


def test_operations_on_their_own_result():
    """Corpus D15 and D16."""
    module = parse_module("""
    %c0 = arith.constant 0 : index
    %0 = arith.addi %0, %c0 : index
    %1 = arith.negf %1 : f32
    %2 = arith.bitcast %2 : i32 to i32
    %3 = arith.bitcast %4 : i32 to i32
    %4 = arith.bitcast %3 : i32 to i32""")
    bits = call(arith.Bitcast)
    rewrite_greedily(module, rules((add(x, number(0)), x), (bits(x), x)))
    for op in module.walk():
        for value in op.operands:
            assert value.uses[op] == op.operands.count(value)


def test_a_long_chain_does_not_recurse():
    lines = ["  %v0 = arith.addi %a, %b : i32"]
    lines += [f"  %v{n} = arith.addi %v{n - 1}, %z : i32" for n in range(1, 20_000)]
    module = function("  %z = arith.constant 0 : i32\n" + "\n".join(lines) + "\n  return %v19999 : i32")
    rewrite_greedily(module, rules((add(x, number(0)), x)))
    assert len(list(module.walk())) == 4


def test_many_rewrites_that_do_end():
    """More rewrites than the margin, none of them seen before."""
    module = function(
        "  %v0 = arith.addi %a, %b : i32\n"
        + "\n".join(f"  %v{n} = arith.addi %v{n - 1}, %a : i32" for n in range(1, 300))
        + "\n  return %v299 : i32"
    )
    count = 0

    @pattern(arith.AddI)
    def spin(op, rewriter):
        nonlocal count
        if op.get("n") is not None and op.value_of("n") >= 20:
            return False
        op.set("n", (op.value_of("n") or 0) + 1)
        rewriter.modified(op)
        count += 1
        return True

    rewrite_greedily(module, [spin])
    assert count == 6000


# ---------------------------------------------------------------- strict mode


class Silent(Pattern):
    """Changes the IR and denies it."""

    root = arith.AddI

    def match_and_rewrite(self, op, rewriter):
        op.operands = op.operands[::-1]
        return False


class Boastful(Pattern):
    """Claims a change."""

    root = arith.AddI

    def match_and_rewrite(self, op, rewriter):
        return True


class Breaking(Pattern):
    """Leaves a value that does not dominate its use."""

    root = arith.AddI

    def match_and_rewrite(self, op, rewriter):
        later = Builder(after=op).create(arith.SubI, *op.operands)
        rewriter.set_operands(op, (later.result, op.operands[1]))
        return True


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (Silent(), "changed the IR but says that it did not"),
        (Boastful(), "says that it changed the IR but did not"),
        (Breaking(), "left illegal IR"),
    ],
)
def test_strict_mode(made, message):
    with pytest.raises(IRError, match=message) as caught:
        rewrite_greedily(function(SUM), [made], strict=True)
    assert type(made).__name__ in str(caught.value)


def test_fingerprints():
    one, two = function(SUM), function(SUM.replace("%0", "%other"))
    assert fingerprint(one) == fingerprint(two)
    rewrite_greedily(two, [to_subtraction])
    assert fingerprint(one) != fingerprint(two)


def test_dead_operations_go_and_effects_stay():
    module = parse_module("""
    func.func @f(%m: memref<2xi32>, %i: index, %v: i32, %c: i1) {
      %unused = memref.load %m[%i] : memref<2xi32>
      %fresh = memref.alloc() : memref<2xi32>
      memref.store %v, %m[%i] : memref<2xi32>
      scf.if %c {
        memref.store %v, %m[%i] : memref<2xi32>
      }
      %r = scf.if %c -> (i32) {
        scf.yield %v : i32
      } else {
        scf.yield %v : i32
      }
      "t.unknown"(%v) : (i32) -> ()
      return
    }""", allow_unregistered=True)  # fmt: skip
    rewrite_greedily(module)
    names = [op.op_name for op in module.walk()]
    assert names[2:] == ["memref.store", "scf.if", "memref.store", "scf.yield", "t.unknown", "func.return"]


def test_operations_inside_erased_ones_are_not_visited():
    module = parse_module("""
    func.func @f(%c: i1, %v: i32) {
      scf.if %c {
        %0 = arith.addi %v, %v : i32
        %1 = arith.muli %0, %0 : i32
        scf.if %c {
          %2 = arith.muli %1, %0 : i32
        }
      }
      return
    ^dead(%x: i32):
      %r = scf.if %c -> (i32) {
        %3 = arith.addi %x, %x : i32
        scf.yield %3 : i32
      } else {
        scf.yield %x : i32
      }
      cf.br ^dead(%r : i32)
    }""")
    visited = []

    class Erase(Pattern):
        """Erases the outer condition, and looks at everything else."""

        def match_and_rewrite(self, op, rewriter):
            visited.append(op)
            assert op.operands or op.op_name in ("func.func", "func.return", "scf.yield")
            if isinstance(op, scf.IfOp) and not op.results:
                rewriter.erase(op)
                return True
            if isinstance(op, func.FuncOp) and len(op.region.blocks) > 1:
                rewriter.erase_blocks(op.region.blocks[1:])
                return True
            return False

    rewrite_greedily(module, [Erase()], fold=False)
    assert [op.op_name for op in module.walk()][2:] == ["func.return"]
