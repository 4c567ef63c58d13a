"""Row form: definitions whose reductions all run over the last axis of one index space.

Norms, softmax and reductions along the last axis have it, with whatever is fused to them.
"""

from __future__ import annotations

import attrs

from ...dialects import compute
from ...ir.core import Operation, Value
from ...ir.dims import Dim
from ..combiners import ORDERED, in_any_order
from ..fused import Fused, enclosing
from ..sources import same_shape


@attrs.define(eq=False)
class Rows:
    """`shape` counts the rows, `length` is the extent of a row.

    `stages` are what is computed for a row, in order: reductions, row tensors that are kept because several
    later stages read them, and the results. A row tensor has shape + (length,), a row scalar shape (+ 1s).
    `streams` are the inputs that are read along the row: True when they have a row each, so that all of
    these begin at the same phase of alignment; False when all rows read the same (weights)."""

    shape: tuple[Dim, ...]
    length: Dim
    stages: list[Value]
    streams: dict[Value, bool]

    def is_row(self, value: Value) -> bool:
        """Whether a computed value has an element for each position of a row."""
        return len(value.tensor.shape) == len(self.shape) + 1 and value.tensor.shape[-1] is self.length


def _one(dim: Dim) -> bool:
    return dim.is_constant and dim.value == 1


def row_form(fused: Fused) -> Rows | str:
    """The row form of a definition, or why it has none."""
    if not fused.reductions:
        return "it has no reduction"
    first = fused.reductions[0]
    if len(first.extents) != 1:
        return "a reduction runs over several axes"
    rows = Rows(first.shape, first.extents[0], [], {})
    for op in fused.block.ops:
        problem = _check(fused, rows, op)
        if problem:
            return problem
    rows.stages = [v for op in fused.block.ops for v in op.results if _is_stage(fused, rows, v)]
    for op in fused.block.ops:
        _find_streams(fused, rows, op)
    return rows


def _check(fused: Fused, rows: Rows, op: Operation) -> str | None:
    assert isinstance(op, (compute.Map, compute.Reduce))
    extra = op.shape[len(rows.shape) :]
    if not same_shape(op.shape[: len(rows.shape)], rows.shape) or len(op.shape) > len(rows.shape) + 1:
        return f"it computes [{', '.join(map(str, op.shape))}], which is not by rows"
    if isinstance(op, compute.Reduce):
        if extra or not same_shape(op.extents, (rows.length,)):
            return "its reductions run over different axes"
        if not in_any_order(op):
            return ORDERED
    elif extra and not (_one(extra[0]) or extra[0] is rows.length):
        return f"it computes rows of {extra[0]} and of {rows.length}"
    for read in compute.reads(op):
        if read.source not in fused.inputs and not _in_row(rows, op, read):
            return "a value is read in another row than the one it belongs to"
    return None


def _in_row(rows: Rows, op: compute.Map | compute.Reduce, read: compute.Read | compute.ReadIf) -> bool:
    """Whether a computed value is read in the reader's own row, at its own position."""
    rank = len(rows.shape)
    if isinstance(read, compute.ReadIf) or [*read.indices[:rank]] != [*op.body.arguments[:rank]]:
        return False
    if rows.is_row(read.source):
        return read.indices[-1] in op.body.arguments[rank:]
    return True  # a row scalar; a last axis of extent 1 has only one index


def _is_stage(fused: Fused, rows: Rows, value: Value) -> bool:
    if value in fused.outputs or isinstance(value.defining_op, compute.Reduce):
        return True
    return rows.is_row(value) and len({enclosing(r) for r in fused.readers(value)}) > 1 and is_costly(value)


def is_costly(value: Value) -> bool:
    """Whether an element is worth keeping instead of computing it again: it calls a function, or divides."""
    op = value.defining_op
    return isinstance(op, compute.Map) and any(
        inner.op_name.startswith("math.") or inner.op_name == "arith.divf" for inner in op.body.ops
    )


def _find_streams(fused: Fused, rows: Rows, op: Operation) -> None:
    assert isinstance(op, (compute.Map, compute.Reduce))
    rank, arguments = len(rows.shape), op.body.arguments
    along = arguments[rank] if len(arguments) > rank else None
    for read in compute.reads(op):
        source = read.source
        if source not in fused.inputs or isinstance(read, compute.ReadIf) or not source.tensor.shape or along is None:
            continue
        if read.indices[-1] is not along or source.tensor.shape[-1] is not rows.length:
            continue
        if source.tensor.rank == 1:
            rows.streams.setdefault(source, False)
        elif [*read.indices] == [*arguments] and same_shape(source.tensor.shape, (*rows.shape, rows.length)):
            rows.streams[source] = True
