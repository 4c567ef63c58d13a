"""Matrix product on the CPU: a tile of accumulators in vector registers.

With many rows, a panel of the right factor is packed first, so that the tiles read it in order. With few, where the
right factor is contiguous along columns, vectors run along columns; where both factors are contiguous along the depth
(a transposed right operand), vectors run along the depth and are summed at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial

from ...dialects import loop
from ...ir.attributes import FloatType, TensorType, Type
from ...ir.core import Value
from ...ir.dims import as_dim, product
from ..emit import FlatPoint, NotVectorisable, Scope
from ..fused import Arm, KernelMaker
from .generic import generic
from .matmul import Product, factor, product_form
from .matmul_cuda import multiply_add, store_result

ROWS = 6  # rows of a tile; with 2 vectors of columns this fills the vector registers
LANES = 16


def matmul_cpu_packed(arm: Arm) -> None:
    """One kernel; each panel of columns of the right factor is packed into a buffer of its own."""
    found = product_form(arm.fused)
    assert isinstance(found, Product)
    element = found.reduce.result.tensor.element
    panel = TensorType((found.sizes[2], as_dim(2 * lanes_of(element))), element)
    _first(arm, found, (partial(_by_columns, pack=_pack_vectors), partial(_by_columns, pack=_pack_elements)), panel)


def matmul_cpu(arm: Arm) -> None:
    """One kernel; the generic schedule where neither factor is contiguous along a common axis."""
    found = product_form(arm.fused)
    assert isinstance(found, Product)
    _first(arm, found, (_by_columns, _by_depth))


def lanes_of(element: Type) -> int:
    """How many elements make a vector."""
    return LANES * 32 // getattr(element, "width", 32)


def _first(
    arm: Arm, found: Product, builds: Sequence[Callable[[Tiles], None]], scratch: TensorType | None = None
) -> None:
    """The first of `builds` that the definition allows, else the generic schedule."""
    m, n, k = found.sizes
    doc = f"{', '.join(op.op_name for op in arm.fused.operators)}: [{m}, {k}] by [{k}, {n}]"
    for build in builds:
        try:
            with arm.kernel([found.result], doc=doc, scratch=scratch) as maker:
                build(Tiles(maker, found))
            return
        except NotVectorisable:
            continue
    generic(arm)


class Tiles:
    """What both forms share: the loops over batch, rows and columns."""

    def __init__(self, k: KernelMaker, found: Product) -> None:
        self.k, self.emit, self.found = k, k.emitter, found
        self.m, self.n, self.depth = found.sizes
        self.type = found.reduce.result.tensor.element
        self.lanes = lanes_of(self.type)
        self.packed = 0  # columns of the packed panel; 0 where there is none
        arguments = found.reduce.body.arguments
        self.batch_arguments, (self.i, self.j, self.kk) = arguments[:-3], arguments[-3:]

    def over_batch(self) -> Scope:
        total = product(self.found.batch)
        self.matrices = self.emit.loop(
            0, self.emit.dim(total), hint="batch", binding="block", doc=f"over {total} matrices")
        return self.matrices

    @cached_property
    def batch(self) -> tuple[Value, ...]:
        """The indices of the matrices that are multiplied."""
        if not self.found.batch:
            return ()
        return FlatPoint(self.emit, self.matrices.value, self.found.batch, self.matrices.block).indices

    def indices(self, axis: Value, at: Value, k: Value) -> dict[Value, Value]:
        """Arguments of the product's body for a factor at (axis, k)."""
        return {**dict(zip(self.batch_arguments, self.batch, strict=True)), axis: at, self.kk: k}

    def left(self, i: Value, k: Value) -> Value:
        return factor(self.emit, self.found, self.found.left, self.indices(self.i, i, k))

    def right(self, j: Value, k: Value) -> Value:
        return factor(self.emit, self.found, self.found.right, self.indices(self.j, j, k))

    def in_panel(self, k: Value, vector: int) -> Value:
        """Where vector number `vector` of row `k` of the packed panel begins."""
        emit = self.emit
        return emit.add(emit.mul(k, emit.number(self.packed)), emit.number(vector * self.lanes))

    def result(self, i: Value, j: Value) -> tuple[Value, ...]:
        """Indices of an element of the result."""
        return (*self.batch, i, j)

    @property
    def panel(self) -> Value:
        """The buffer of the packed panel."""
        assert self.k.scratch is not None
        return self.k.scratch


Pack = Callable[["Tiles", Value, int], None]


def _by_columns(t: Tiles, pack: Pack | None = None) -> None:
    emit, lanes = t.emit, t.lanes
    with t.over_batch():
        start = emit.number(0)
        for vectors_wide in (2, 1, 0):
            width = vectors_wide * lanes or 1
            end = emit.dim(t.n // width * width)
            with emit.loop(start, end, width, hint="j", doc=f"{width} columns of {t.n}") as j:
                t.packed = width if pack is not None else 0
                if pack is not None:
                    pack(t, j, vectors_wide)
                _rows_of_tiles(t, j, vectors_wide)
            start = end


def _pack_vectors(t: Tiles, j: Value, vectors_wide: int) -> None:
    """Copy the columns from `j` on of the right factor into the panel, row after row."""
    emit = t.emit
    with emit.loop(0, emit.dim(t.depth), hint="k", doc="pack the right factor") as k:
        for c in range(max(vectors_wide, 1)):
            column = emit.add(j, emit.number(c * t.lanes))
            emit.store(_along(t, column, vectors_wide, partial(t.right, column, k)), t.panel, t.in_panel(k, c))


def _pack_elements(t: Tiles, j: Value, vectors_wide: int) -> None:
    """As `_pack_vectors`, where the right factor is not contiguous along columns."""
    emit, width = t.emit, vectors_wide * t.lanes or 1
    with emit.loop(0, width, hint="c", doc="pack the right factor") as c:
        column = emit.add(j, c)
        with emit.loop(0, emit.dim(t.depth), hint="k") as k:
            at = emit.add(emit.mul(k, emit.number(width)), c)
            emit.store(t.right(column, k), t.panel, at)


def _rows_of_tiles(t: Tiles, j: Value, vectors_wide: int) -> None:
    emit = t.emit
    whole = emit.named("whole", emit.dim(t.m // ROWS * ROWS))
    with emit.loop(0, whole, ROWS, hint="i", doc=f"{ROWS} rows of {t.m}") as i:
        _column_tile(t, i, j, ROWS, vectors_wide)
    with emit.loop(whole, emit.dim(t.m), hint="i", doc="the rest") as i:
        _column_tile(t, i, j, 1, vectors_wide)


def _column_tile(t: Tiles, i: Value, j: Value, rows: int, vectors_wide: int) -> None:
    """`rows` by `vectors_wide` vectors (or one column when 0) of the result at (i, j)."""
    emit = t.emit
    columns = [emit.add(j, emit.number(v * t.lanes)) for v in range(max(vectors_wide, 1))]
    lines = [emit.add(i, emit.number(r)) for r in range(rows)]
    zero = emit.zero(t.type)
    lanes = t.lanes if vectors_wide else 1
    start = emit.as_vector(zero, lanes)
    sums = {(r, c): emit.register(start.type, 1, "sum") for r in range(rows) for c in range(len(columns))}
    for register in sums.values():
        emit.store(start, register, 0)
    with emit.loop(0, emit.dim(t.depth), hint="k", doc=f"along {t.depth}") as k:
        if t.packed:
            rights = [emit.load(t.panel, t.in_panel(k, c), lanes) for c in range(len(columns))]
        else:
            rights = [_along(t, c, vectors_wide, partial(t.right, c, k)) for c in columns]
        for r, line in enumerate(lines):
            left = emit.as_vector(t.left(line, k), lanes)
            for c, right in enumerate(rights):
                emit.store(multiply_add(emit, left, right, emit.load(sums[r, c], 0)), sums[r, c], 0)
    for r, line in enumerate(lines):
        for c, column in enumerate(columns):
            total, place = emit.load(sums[r, c], 0), t.result(line, column)
            with emit.vectors(column, lanes):
                store_result(t.k, t.found, place, total)


def _along(t: Tiles, base: Value, vectors_wide: int, make: Callable[[], Value]) -> Value:
    """`make()` in vector mode along the axis whose index is `base`."""
    lanes = t.lanes if vectors_wide else 1
    with t.emit.vectors(base, lanes):
        made = make()
    return t.emit.as_vector(made, lanes)


def _by_depth(t: Tiles) -> None:
    emit, size = t.emit, 4
    if not isinstance(t.type, FloatType):
        raise NotVectorisable
    with t.over_batch():
        starts = emit.number(0)
        for rows in (size, 1):
            end = emit.dim(t.m // as_dim(rows) * rows)
            with emit.loop(starts, end, rows, hint="i", doc=f"{rows} rows of {t.m}") as i:
                column_start = emit.number(0)
                for columns in (size, 1):
                    column_end = emit.dim(t.n // as_dim(columns) * columns)
                    with emit.loop(column_start, column_end, columns, hint="j", doc=f"{columns} columns") as j:
                        _depth_tile(t, i, j, rows, columns)
                    column_start = column_end
            starts = end


def _depth_tile(t: Tiles, i: Value, j: Value, rows: int, columns: int) -> None:
    emit, lanes = t.emit, t.lanes
    lines = [emit.add(i, emit.number(r)) for r in range(rows)]
    across = [emit.add(j, emit.number(c)) for c in range(columns)]
    zero = emit.zero(t.type)
    cells = [(r, c) for r in range(rows) for c in range(columns)]
    partials = {cell: emit.register(emit.splat(zero, lanes).type, 1, "partial") for cell in cells}
    for register in partials.values():
        emit.store(emit.splat(zero, lanes), register, 0)
    whole = emit.named("whole", emit.dim(t.depth // lanes * lanes))
    with emit.loop(0, whole, lanes, hint="k", doc=f"along {t.depth}, {lanes} at a time") as k:
        rights = [_along(t, k, 1, partial(t.right, c, k)) for c in across]
        for r, line in enumerate(lines):
            left = _along(t, k, 1, partial(t.left, line, k))
            for c, right in enumerate(rights):
                old = emit.load(partials[r, c], 0)
                emit.store(multiply_add(emit, left, right, old), partials[r, c], 0)
    sums = {cell: emit.register(t.type, 1, "sum") for cell in cells}
    for cell in cells:
        emit.store(emit.create(loop.ReduceVector, emit.load(partials[cell], 0), kind="addf"), sums[cell], 0)
    with emit.loop(whole, emit.dim(t.depth), hint="k", doc="the rest") as k:
        for r, c in cells:
            product_now = multiply_add(emit, t.left(lines[r], k), t.right(across[c], k), emit.load(sums[r, c], 0))
            emit.store(product_now, sums[r, c], 0)
    for r, c in cells:
        store_result(t.k, t.found, t.result(lines[r], across[c]), emit.load(sums[r, c], 0))
