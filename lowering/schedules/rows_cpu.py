"""Rows on the CPU: one row after the other, its elements in vectors, each reduction in a vector of partials."""

from __future__ import annotations

from ...dialects import compute, loop
from ...ir.core import Value
from ...ir.dims import product
from ..combiners import CHUNK, chunk_levels, simple_combiner
from ..emit import Emitter, FlatPoint, NotVectorisable, Point
from ..fused import Arm, KernelMaker
from ..sources import known
from .generic import lanes_for
from .rows import Rows, row_form


def rows_cpu(arm: Arm) -> None:
    """One kernel for the whole definition."""
    rows = row_form(arm.fused)
    assert isinstance(rows, Rows)
    written = [v for v in rows.stages if v in arm.fused.outputs]
    width = min(lanes_for(arm, v) for v in rows.stages)
    doc = f"{', '.join(op.op_name for op in arm.fused.operators)}: rows of {rows.length}"
    try:
        with arm.kernel(written, doc=doc) as k:
            _kernel(k, rows, width)
    except NotVectorisable:  # the definition uses the index itself
        with arm.kernel(written, doc=doc) as k:
            _kernel(k, rows, 1)


def _kernel(k: KernelMaker, rows: Rows, width: int) -> None:
    emit = k.emitter
    total = product(rows.shape)
    with emit.loop(0, emit.dim(total), hint="row", binding="block", doc=f"over {total} rows") as row:
        point = FlatPoint(emit, row, rows.shape, emit.builder.block)
        base = emit.mul(row, emit.dim(rows.length))
        for value in rows.stages:
            _stage(k, rows, value, point, base, width)


def _stage(k: KernelMaker, rows: Rows, value: Value, row: Point, base: Value, width: int) -> None:
    op, emit = value.defining_op, k.emitter
    written = value in k.outputs
    if isinstance(op, compute.Reduce):
        if value.index == 0:  # type: ignore[attr-defined]
            _reduce(emit, op, rows, row, width)
        scalar = emit.element(value, row)
    elif rows.is_row(value):
        if written:
            _row(k, rows, value, row, base, width)
        return
    else:
        extra = [emit.number(0)] * (value.tensor.rank - len(rows.shape))
        scalar = emit.define(value, Point([*row.indices, *extra]))
        emit.sources[value] = known(scalar)
    if written:
        assert row.flat is not None
        k.store(value, scalar, row.flat)


def _reduce(emit: Emitter, op: compute.Reduce, rows: Rows, row: Point, width: int) -> None:
    """Partials in vectors, then the lanes, then the rest of the row."""
    hint = op.body.arguments[-1].hint or "j"

    def step(j: Value, into: list[Value]) -> None:
        emit.accumulate(op, into, emit.inline(op, Point([*row.indices, j])))

    if width == 1:
        accumulators = emit.accumulators(op)
        emit.chunked(op, accumulators, rows.length, step, hint)
    else:
        partials = _in_vectors(emit, op, rows, row, width, hint)
        accumulators = emit.accumulators(op)
        _across_lanes(emit, op, accumulators, partials, width)
        whole = emit.dim(rows.length // width * width)
        with emit.loop(whole, emit.dim(rows.length), hint=hint, doc="the rest") as j:
            step(j, accumulators)
    for result, register in zip(op.results, accumulators, strict=True):
        emit.sources[result] = known(emit.load(register, 0))


def _in_vectors(emit: Emitter, op: compute.Reduce, rows: Rows, row: Point, width: int, hint: str) -> list[Value]:
    """What the whole vectors of a row give: vectors of partials, to be combined across lanes."""
    whole = emit.named("whole", emit.dim(rows.length // width * width))
    levels = [emit.accumulators(op, width)]  # outermost first
    levels += [emit.accumulators(op, width, "part") for _ in range(chunk_levels(op, rows.length // width))]
    doc = f"reduce over {rows.length}, {width} at a time"
    with emit.loop(0, whole, width, hint=hint, doc=doc) as j, emit.vectors(j, width):
        values = emit.inline(op, Point([*row.indices, j]))
        emit.accumulate(op, levels[-1], [emit.as_vector(v, width) for v in values])
        _carry(emit, op, levels, j, width, width * CHUNK)
    while len(levels) > 1:
        inner = levels.pop()
        emit.accumulate(op, levels[-1], [emit.load(p, 0) for p in inner])
    return [emit.load(p, 0) for p in levels[0]]


def _carry(emit: Emitter, op: compute.Reduce, levels: list[list[Value]], j: Value, width: int, size: int) -> None:
    """At the end of a chunk of `size` its sums go one level out, as Emitter.chunked has it. A test instead of loops
    around the loop, which would take longer than a short row does."""
    if len(levels) == 1:
        return
    *_, outer, inner = levels
    place = emit.both(j, emit.number(size - 1))
    last = emit.equal(place, emit.number(size - width))
    with emit.when(last, f"a chunk of {size} ends"):
        emit.accumulate(op, outer, [emit.load(p, 0) for p in inner])
        for register, identity in zip(inner, emit.identities(op, width), strict=True):
            emit.store(identity, register, 0)
        _carry(emit, op, levels[:-1], j, width, size * CHUNK)


def _across_lanes(
    emit: Emitter, op: compute.Reduce, accumulators: list[Value], partials: list[Value], width: int
) -> None:
    """Combine the lanes of the partials: halving where the printers know the combiner, else one after the other."""
    kind = simple_combiner(op)
    if kind in loop.COMBINERS:
        emit.accumulate(op, accumulators, [emit.create(loop.ReduceVector, p, kind=kind) for p in partials])
        return
    for lane in range(width):
        emit.accumulate(op, accumulators, [emit.create(loop.Extract, p, lane=lane) for p in partials])


def _row(k: KernelMaker, rows: Rows, value: Value, row: Point, base: Value, width: int) -> None:
    emit, op = k.emitter, value.defining_op
    assert isinstance(op, compute.Map)

    def body(j: Value, lanes: int) -> None:
        element = emit.define(value, Point([*row.indices, j]))
        k.store(value, emit.as_vector(element, lanes), emit.add(base, j))

    emit.by_vectors(rows.length, width, op.body.arguments[-1].hint or "j", body)
