"""simplify-loops: what does not change in a loop leaves it; loops that run never or once go."""

from __future__ import annotations

import attrs

from ..dialects import arith, loop
from ..ir.builder import Builder
from ..ir.core import Operation, Value
from ..ir.effects import is_pure
from ..ir.passes import Pass

# Integer division may trap where a loop that never runs protected it.
STAYS = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.ceildivsi", "arith.ceildivui",
         "arith.floordivsi")  # fmt: skip


@attrs.define
class SimplifyLoops(Pass):
    """Move pure operations out of loops in which their operands do not change, outermost first; remove loops with
    constant bounds that run never, and put the body of one that runs once in its place."""

    name = "simplify-loops"

    def run(self, module: Operation) -> None:
        for kernel in [op for op in module.walk() if isinstance(op, loop.Kernel)]:
            for made in [op for op in kernel.walk() if isinstance(op, loop.For)]:
                erased = not made.operands  # with the loop around it
                if not erased and not _trivial(made):
                    _hoist(made)


def _number(value: Value) -> int | None:
    op = value.defining_op
    return op.value_of("value") if isinstance(op, arith.Constant) else None


def _trivial(op: loop.For) -> bool:
    """Remove a loop that runs never, inline one that runs once; whether it was either."""
    lo, hi, step = _number(op.lo), _number(op.hi), _number(op.step)
    if lo is None or hi is None or step is None or op.binding not in loop.SERIAL or lo + step < hi:
        return False
    if lo < hi:
        op.index.replace_all_uses_with(op.lo)
        builder = Builder(before=op)
        for inner in op.body.ops:
            inner.detach()
            builder.insert(inner)
    op.erase()
    return True


def _hoist(op: loop.For) -> None:
    inside: set[Value] = set()
    nested = [inner for inner in op.walk() if inner is not op]
    for inner in (op, *nested):
        inside.update(a for region in inner.regions for block in region.blocks for a in block.arguments)
        inside.update(inner.results if inner is not op else ())
    builder = Builder(before=op)
    for inner in nested:
        if inner.op_name in STAYS or not is_pure(inner) or not inside.isdisjoint(inner.operands):
            continue
        inner.detach()
        builder.insert(inner)
        inside.difference_update(inner.results)
