"""Rows on CUDA: a warp or a block takes a row, 16 bytes a load, reductions by shuffles.

Up to `capacity` elements of a row are held in registers, so that it is read once; longer rows are read again
by each stage, from the L2 cache. A row whose length is not a multiple of the vector starts at another phase of
alignment than the one before: it is peeled, the few elements before the first and after the last whole vector
are taken by single threads (head by threads 0.., tail by threads 16..).
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ...dialects import arith, compute, loop
from ...ir.attributes import Type
from ...ir.core import Value
from ...ir.dims import as_dim, ceildiv, dim_min, product
from ..combiners import combiner_name
from ..emit import Emitter, FlatPoint, Point, Scope, Source
from ..fused import Arm, KernelMaker
from ..sources import known
from .rows import Rows, row_form

BLOCKS = 1 << 20  # blocks of a launch at most; the rest of the rows are taken in strides
WARP = 32


@attrs.frozen
class RowShape:
    """How a row is spread: `threads` a row, `chunks` vectors a thread held in registers (0: not held)."""

    threads: int
    chunks: int
    rows_per_block: int = 1


def vector_width(arm: Arm, rows: Rows) -> int:
    """Elements of 16 bytes of the narrowest tensor along the row, at most 64 bytes of the widest."""
    tensors = [*rows.streams, *[v for v in rows.stages if v in arm.fused.outputs and rows.is_row(v)]]
    sizes = [loop.byte_width(v.tensor.element) for v in tensors] or [16]
    return max(1, min(16 // min(sizes), 64 // max(sizes)))


def capacity(shape: RowShape, width: int) -> int:
    """The longest row that is held in registers."""
    return shape.threads * shape.chunks * width


def rows_cuda(arm: Arm, shape: RowShape, peeled: bool) -> None:
    """One kernel for the whole definition. `peeled` where the row length may not be a multiple of the vector."""
    rows = row_form(arm.fused)
    assert isinstance(rows, Rows)
    written = [v for v in rows.stages if v in arm.fused.outputs]
    blocks = ceildiv(product(rows.shape), as_dim(shape.rows_per_block))
    name = ", ".join(op.op_name for op in arm.fused.operators)
    who = "a warp a row" if shape.threads == WARP else f"{shape.threads} threads a row"
    with arm.kernel(
        written, block=shape.threads * shape.rows_per_block, grid=[dim_min(blocks, as_dim(BLOCKS))],
        doc=f"{name}: rows of {rows.length}, {who}",
    ) as k:  # fmt: skip
        RowKernel(k, rows, shape, vector_width(arm, rows), peeled).build()


class RowKernel:
    """Builds the body of one row kernel."""

    lane: Value  # of this thread in its warp, or the thread where a block takes the row
    # Of the row at hand: its number, place and indices, where it and its whole vectors begin, and how many these are.
    row_number: Value
    row: Point
    indices: tuple[Value, ...]
    base: Value
    head: Value
    vectors: Value

    def __init__(self, k: KernelMaker, rows: Rows, shape: RowShape, width: int, peeled: bool) -> None:
        self.k, self.emit, self.rows, self.shape = k, k.emitter, rows, shape
        self.width, self.peeled = width, peeled and width > 1
        self.kept: dict[Value, Value] = {}  # tensor along the row -> registers
        self.slot: Value | None = None
        self.position: Value | None = None
        self.edge: Value | None = None  # the element at the ends of the row that is this thread's, or the length

    def build(self) -> None:
        emit, total = self.emit, product(self.rows.shape)
        per_block = self.shape.rows_per_block
        self.lane = emit.where("lane", "lane") if self.shape.threads == WARP else emit.where("thread_x", "thread")
        count = emit.dim(ceildiv(total, as_dim(per_block)))
        hint = "row" if per_block == 1 else "group"
        doc = f"over {total} rows" + (f", {per_block} a block" if per_block > 1 else "")
        with emit.loop(0, count, hint=hint, binding="block", doc=doc) as group:
            if per_block == 1:
                self._row(group)
                if self.shape.threads > WARP:
                    emit.builder.create(loop.Barrier)  # shared partials are free again
                return
            row = emit.named("row", emit.add(emit.mul(group, emit.number(per_block)), emit.where("warp", "warp")))
            with emit.when(emit.less(row, emit.dim(total))):
                self._row(row)

    def _row(self, row: Value) -> None:
        emit = self.emit
        self.row_number = row
        self.row = FlatPoint(emit, row, self.rows.shape, emit.builder.block)
        self.indices = self.row.indices if self.rows.shape else ()
        self.base = emit.named("row_start", emit.mul(row, emit.dim(self.rows.length)))
        self._ends()
        for value in self.rows.stages:
            self._fetch([s for s in self._streams_of(value) if s not in self.kept])
            self._stage(value)
        self.kept.clear()

    def _ends(self) -> None:
        """Where the whole vectors of this row begin, and how many there are."""
        emit, width = self.emit, self.width
        if not self.peeled:
            self.head = emit.number(0)
            self.vectors = emit.named("vectors", emit.dim(self.rows.length // width))
            return
        length, w = emit.dim(self.rows.length), emit.number(width)
        phase = emit.create(arith.RemUI, self.base, w)
        head = emit.create(arith.RemUI, emit.sub(w, phase), w)
        self.head = emit.named("head", emit.create(arith.MinSI, head, length))
        self.vectors = emit.named("vectors", emit.create(arith.DivUI, emit.sub(length, self.head), w))
        tail_start = emit.add(self.head, emit.mul(self.vectors, w))
        in_head = emit.less(self.lane, self.head)
        tail = emit.add(tail_start, emit.sub(self.lane, emit.number(16)))
        in_tail = emit.both(emit.at_least(self.lane, emit.number(16)), emit.less(tail, length))
        outside = emit.create(arith.Select, in_tail, tail, length)
        self.edge = emit.named("edge", emit.create(arith.Select, in_head, self.lane, outside))

    # -- elements of a row

    def _each(self, chunk_start: Callable[[Value, Value], None] | None, body: Callable[[], None],
              chunk_end: Callable[[Value, Value], None] | None = None) -> None:  # fmt: skip
        """Run `body` for each element of the row that belongs to this thread: `self.position` is the element,
        `self.slot` its place in the registers. `chunk_start` and `chunk_end` get a vector's position and slot."""
        emit, width = self.emit, self.width

        def chunk(number: Value, slot: Value) -> None:
            start = emit.named("at", emit.add(self.head, emit.mul(number, emit.number(width))))
            if chunk_start is not None:
                chunk_start(start, slot)
            with emit.loop(0, width, hint="e", binding="unroll") as e:
                self.position, self.slot = emit.add(start, e), emit.named("slot", emit.add(slot, e))
                body()
            if chunk_end is not None:
                chunk_end(start, slot)

        if self.shape.chunks:
            with emit.loop(0, self.shape.chunks, hint="c", binding="unroll", doc="vectors of this thread") as c:
                number = emit.named("vector", emit.add(emit.mul(c, emit.number(self.shape.threads)), self.lane))
                with emit.when(emit.less(number, self.vectors)):
                    chunk(number, emit.named("first", emit.mul(c, emit.number(width))))
        else:
            binding = "lane" if self.shape.threads == WARP else "thread"
            with emit.loop(0, self.vectors, hint="c", binding=binding, doc="vectors of the row") as c:
                chunk(c, emit.number(0))
        if self.edge is not None:
            with self._at_edge(self.edge):
                self.position, self.slot = self.edge, emit.number(self._edge_slot())
                body()

    def _at_edge(self, edge: Value) -> Scope:
        """For the threads that take an element at the ends of the row."""
        return self.emit.when(self.emit.less(edge, self.emit.dim(self.rows.length)), "ends of the row")

    def _edge_slot(self) -> int:
        return max(self.shape.chunks, 1) * self.width

    def _streams_of(self, value: Value) -> list[Value]:
        """The inputs along the row that computing `value` reads, and that vectors can load."""
        leaves = self.k.arm.leaves([value])
        found = [v for v in leaves if v in self.rows.streams and v not in self.k.arm.strided]
        return [v for v in found if self.rows.streams[v] or not self.peeled]

    def _fetch(self, tensors: list[Value]) -> None:
        """Load inputs into registers. Rows that are not held are loaded by each stage, a vector at a time."""
        for tensor in tensors:
            self._keep(tensor, tensor.tensor.element)
        if self.shape.chunks and tensors:
            self._each(self._load_vectors(tensors), lambda: None)
            if self.edge is not None:
                with self._at_edge(self.edge):
                    self._load_edges(tensors, self.edge)

    def _keep(self, tensor: Value, element: Type) -> None:
        size = self._edge_slot() + (1 if self.peeled else 0)
        registers = self.emit.register(loop.signless(element), size, f"{tensor.hint or 'row'}_kept")
        self.kept[tensor] = registers
        below = self.emit.sources.get(tensor)
        self.emit.sources[tensor] = self._from_registers(tensor, registers, below)

    def _from_registers(self, tensor: Value, registers: Value, below: Source | None) -> Source:
        """Registers at the current position of this row; any other element comes from where it came before."""
        rank = tensor.tensor.rank

        def source(emit: Emitter, point: Point) -> Value:
            assert self.position is not None
            own = [*self.indices[: rank - 1], self.position]  # weights have no row
            if [*point.indices] != own:
                assert below is not None
                return below(emit, point)
            assert self.slot is not None
            return emit.load(registers, self.slot)

        return source

    def _load_vectors(self, tensors: list[Value]) -> Callable[[Value, Value], None]:
        def load(start: Value, slot: Value) -> None:
            for tensor in tensors:
                self.emit.store(self._load(tensor, start, self.width), self.kept[tensor], slot, True)

        return load

    def _load_edges(self, tensors: list[Value], edge: Value) -> None:
        for tensor in tensors:
            self.emit.store(self._load(tensor, edge), self.kept[tensor], self._edge_slot())

    def _load(self, tensor: Value, position: Value, width: int = 1) -> Value:
        """Elements of an input along the row, from `position` on."""
        buffer = self.k.kernel.body.arguments[self.k.reads.index(tensor)]
        at = self.emit.add(self.base, position) if self.rows.streams[tensor] else position
        return self.emit.load(buffer, at, width, width > 1)

    # -- stages

    def _stage(self, value: Value) -> None:
        op, emit = value.defining_op, self.emit
        if isinstance(op, compute.Reduce):
            if value.index == 0:  # type: ignore[attr-defined]
                self._reduce(op)
            self._store_scalar(value, emit.element(value, self.row))
        elif self.rows.is_row(value):
            self._row_tensor(value)
        else:
            extra = [emit.number(0)] * (value.tensor.rank - len(self.rows.shape))
            scalar = emit.define(value, Point([*self.indices, *extra]))
            emit.sources[value] = known(scalar)
            self._store_scalar(value, scalar)

    def _store_scalar(self, value: Value, scalar: Value) -> None:
        if value in self.k.outputs:
            with self.emit.when(self.emit.equal(self.lane, self.emit.number(0)), "elected"):
                self.k.store(value, scalar, self.row_number)

    def _kept_streams(self, value: Value) -> list[Value]:
        return [s for s in self._streams_of(value) if s in self.kept]

    def _refetch(self, value: Value) -> Callable[[Value, Value], None] | None:
        """What a stage loads for each vector when rows are not held."""
        streams = self._kept_streams(value)
        return None if self.shape.chunks or not streams else self._load_vectors(streams)

    def _in_edges(self, value: Value, body: Callable[[], None]) -> Callable[[], None]:
        """`body`; before it the ends of a row that is not held are loaded."""
        if self.shape.chunks:
            return body

        def run() -> None:
            if self.edge is not None and self.position is self.edge:
                self._load_edges(self._kept_streams(value), self.edge)
            body()

        return run

    def _point(self) -> Point:
        assert self.position is not None
        return Point([*self.indices, self.position])

    def _reduce(self, op: compute.Reduce) -> None:
        emit = self.emit
        accumulators = emit.accumulators(op)

        def body() -> None:
            emit.accumulate(op, accumulators, emit.inline(op, self._point()))

        self._each(self._refetch(op.results[0]), self._in_edges(op.results[0], body))
        values = self._across([emit.load(a, 0) for a in accumulators], op)
        for result, scalar in zip(op.results, values, strict=True):
            scalar.hint = result.hint or f"row_{combiner_name(op)}"
            emit.sources[result] = known(scalar)

    def _across(self, values: list[Value], op: compute.Reduce) -> list[Value]:
        """Combine the partials of all threads of the row; each thread gets the result."""
        emit = self.emit
        distance = WARP // 2
        while distance:
            others = [emit.create(loop.Shuffle, v, emit.number(distance), kind="xor") for v in values]
            for other in others:
                other.hint = "other"
            values = emit.combine(op, values, others)
            distance //= 2
        return values if self.shape.threads == WARP else self._across_warps(values, op)

    def _across_warps(self, values: list[Value], op: compute.Reduce) -> list[Value]:
        emit, warps = self.emit, self.shape.threads // WARP
        warp, lane = emit.where("warp", "warp"), emit.where("lane", "lane")
        name = combiner_name(op)
        parts = [emit.shared(v.type, warps, f"{r.hint or name}_parts") for v, r in zip(values, op.results, strict=True)]
        with emit.when(emit.equal(lane, emit.number(0)), "elected"):
            for value, part in zip(values, parts, strict=True):
                emit.store(value, part, warp)
        emit.builder.create(loop.Barrier)
        accumulators = emit.accumulators(op)
        with emit.loop(0, warps, hint="w", binding="unroll", doc="the warps' partials, in order") as w:
            emit.accumulate(op, accumulators, [emit.load(part, w) for part in parts])
        return [emit.load(a, 0) for a in accumulators]

    def _row_tensor(self, value: Value) -> None:
        """Compute a tensor along the row: kept in registers where later stages read it, stored where it is a
        result."""
        emit = self.emit
        written = value in self.k.outputs
        held = bool(self.shape.chunks) and any(value in _inputs(v) for v in self.rows.stages if v is not value)
        if not written and not held:
            return  # rows that are not held compute it again where it is read
        if held:
            self._keep(value, value.tensor.element)
        vector = emit.register(loop.signless(value.tensor.element), self.width, "out") if written else None

        def body() -> None:
            assert self.slot is not None and self.position is not None
            element = emit.define(value, self._point())
            if held:
                emit.store(element, self.kept[value], self.slot)
            if vector is not None and self.position is self.edge:
                self.k.store(value, element, emit.add(self.base, self.position))
            elif vector is not None:
                emit.store(element, vector, self._in_vector())

        def flush(start: Value, slot: Value) -> None:
            if vector is not None:
                whole = emit.load(vector, 0, self.width, True)
                self.k.store(value, whole, emit.add(self.base, start), True)

        self._each(self._refetch(value), self._in_edges(value, body), flush)

    def _in_vector(self) -> Value:
        """The place of the current element in its vector: the index of the innermost, unrolled loop."""
        op = self.emit.builder.block.parent_op
        assert isinstance(op, loop.For)
        return op.index


def _inputs(value: Value) -> tuple[Value, ...]:
    op = value.defining_op
    return op.operands if op is not None else ()

