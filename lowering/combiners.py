"""What a reduction's combiner is: one operation or several, in which order it may be applied, what chunks gain."""

from __future__ import annotations

from ..dialects import arith, compute
from ..ir.dims import Dim

CHUNK = 256  # additions that follow each other before a sum goes one level out; see Emitter.chunked
ORDERED = "its combiner is not associative and commutative"
_NAMES = {"addf": "sum", "addi": "sum", "mulf": "prod", "muli": "prod", "maximumf": "max", "minimumf": "min"}


def combiner_name(op: compute.Reduce) -> str:
    """What a reduction is called in printed code: after the one operation of its combiner."""
    kind = simple_combiner(op)
    return _NAMES.get(kind or "", "acc")


def simple_combiner(op: compute.Reduce) -> str | None:
    """`addf` where the combiner is that one `arith` operation on its two arguments, else None."""
    ops = list(op.combiner.ops)
    if len(ops) != 2 or {*ops[0].operands} != {*op.combiner.arguments} or ops[1].operands != ops[0].results:
        return None
    dialect, _, kind = ops[0].op_name.partition(".")
    return kind if dialect == "arith" else None


def in_any_order(op: compute.Reduce) -> bool:
    """Whether threads and lanes may share a reduction, each taking some of its elements."""
    return bool(op.associative and op.commutative)


def chunk_levels(op: compute.Reduce, count: Dim) -> int:
    """How many levels of chunks a reduction of `count` steps is worth.

    Only sums gain: the error of a product is the same in any order, and the others do not round."""
    adds = any(isinstance(inner, arith.AddF) for inner in op.combiner.ops)
    if not adds or not op.associative or (count.is_constant and count.value <= CHUNK):
        return 0
    return 1 if count.is_constant and count.value <= CHUNK**2 else 2
