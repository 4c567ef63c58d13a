"""Matrix product on CUDA: tiles in shared memory, a block of accumulators a thread, any dtype.

Products are accumulated in the type that the definition accumulates in (f32 for half types, i32 for int8).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from ...dialects import arith, loop, math
from ...ir.attributes import FloatType, VectorType
from ...ir.core import Value
from ...ir.dims import Dim, as_dim, ceildiv, dim_min, product
from ..emit import Emitter, FlatPoint, Point
from ..fused import Arm, KernelMaker
from ..sources import known, row_major
from .matmul import Product, factor, innermost, product_form

BLOCKS = 1 << 20
PAD = 4  # elements after each row of a tile in shared memory: neighbours along the depth fall into other banks


@attrs.frozen
class Tile:
    """Rows, columns and depth of a block's tile, and rows and columns of a thread's part of it."""

    m: int = 64
    n: int = 64
    k: int = 16
    thread_m: int = 4
    thread_n: int = 4

    def __attrs_post_init__(self) -> None:
        """Threads share a tile and its parts evenly, and parts begin where vectors of `PAD` elements may."""
        for width, part in ((self.m, self.thread_m), (self.n, self.thread_n)):
            assert width % part == 0 and width % PAD == 0, f"{part} of {width} elements a thread"
            assert part % min(part, PAD) == 0 and PAD % min(part, PAD) == 0, f"parts of {part} are not aligned"
            assert self.k * width % self.threads == 0, f"{self.threads} threads cannot fill {self.k} by {width}"

    @property
    def threads(self) -> int:
        return self.m // self.thread_m * (self.n // self.thread_n)


def matmul_cuda(arm: Arm, tile: Tile) -> None:
    """One kernel: each block takes tiles of the result."""
    found = product_form(arm.fused)
    assert isinstance(found, Product)
    m, n, k = found.sizes
    tiles = ceildiv(m, as_dim(tile.m)) * ceildiv(n, as_dim(tile.n)) * product(found.batch)
    doc = f"{', '.join(op.op_name for op in arm.fused.operators)}: [{m}, {k}] by [{k}, {n}]"
    with arm.kernel([found.result], block=tile.threads, grid=[dim_min(tiles, as_dim(BLOCKS))], doc=doc) as maker:
        MatmulKernel(maker, found, tile).build()


class MatmulKernel:
    """Builds the body of the kernel."""

    def __init__(self, k: KernelMaker, found: Product, tile: Tile) -> None:
        self.k, self.emit, self.found, self.tile = k, k.emitter, found, tile
        self.m, self.n, self.depth = found.sizes
        self.type = found.reduce.result.tensor.element
        self.batch_arguments = found.reduce.body.arguments[:-3]
        self.i, self.j, self.kk = found.reduce.body.arguments[-3:]

    def build(self) -> None:
        emit, tile = self.emit, self.tile
        self.thread = emit.where("thread_x", "thread")
        columns = emit.number(tile.n // tile.thread_n)
        part, within = (emit.create(op, self.thread, columns) for op in (arith.DivUI, arith.RemUI))
        self.row0 = emit.named("row0", emit.mul(part, emit.number(tile.thread_m)))
        self.column0 = emit.named("column0", emit.mul(within, emit.number(tile.thread_n)))
        self.left = emit.shared(self.type, tile.k * (tile.m + PAD), "left_tile")
        self.right = emit.shared(self.type, tile.k * (tile.n + PAD), "right_tile")
        space = (*self.found.batch, ceildiv(self.m, as_dim(tile.m)), ceildiv(self.n, as_dim(tile.n)))
        with emit.loop(0, emit.dim(product(space)), hint="tile", binding="block", doc="tiles of the result") as at:
            indices = FlatPoint(emit, at, space, emit.builder.block).indices
            self.batch = indices[:-2]
            self.m0 = emit.named("m0", emit.mul(indices[-2], emit.number(tile.m)))
            self.n0 = emit.named("n0", emit.mul(indices[-1], emit.number(tile.n)))
            self._tile()

    def _tile(self) -> None:
        emit, tile = self.emit, self.tile
        size = tile.thread_m * tile.thread_n
        self.sums = emit.register(self.type, size, "sums")
        with emit.loop(0, size, hint="s", binding="unroll") as s:
            emit.store(emit.zero(self.type), self.sums, s)
        with emit.loop(0, emit.dim(self.depth), tile.k, hint="k0", doc=f"along {self.depth}") as k0:
            self._fill(self.left, tile.m, self.found.left, self.m0, self.m, k0, self.i)
            self._fill(self.right, tile.n, self.found.right, self.n0, self.n, k0, self.j)
            emit.builder.create(loop.Barrier)
            with emit.loop(0, tile.k, hint="k", binding="unroll") as k:
                self._multiply(k)
            emit.builder.create(loop.Barrier)
        self._store()

    def _fill(
        self, shared: Value, width: int, value: Value, at0: Value, extent: Dim, k0: Value, axis: Value
    ) -> None:
        """Load a tile of one factor, [depth, width]; outside of the matrix it is zero. Neighbouring threads go
        along the axis on which memory is contiguous."""
        emit, tile = self.emit, self.tile
        along_depth = self.kk in innermost(value)
        step = tile.threads
        with emit.loop(0, tile.k * width // step, hint="part", binding="unroll", doc="fill a tile") as part:
            flat = emit.add(self.thread, emit.mul(part, emit.number(step)))
            inner = emit.number(tile.k if along_depth else width)
            low, high = emit.create(arith.RemUI, flat, inner), emit.create(arith.DivUI, flat, inner)
            k, x = (low, high) if along_depth else (high, low)
            row, depth = emit.add(at0, x), emit.add(k0, k)
            inside = emit.both(emit.less(row, emit.dim(extent)), emit.less(depth, emit.dim(self.depth)))
            place = emit.add(emit.mul(k, emit.number(width + PAD)), x)
            kept = emit.register(self.type, hint="element")
            emit.store(emit.zero(self.type), kept, 0)
            with emit.when(inside):
                indices: dict[Value, Value] = dict(zip(self.batch_arguments, self.batch, strict=True))
                indices |= {axis: row, self.kk: depth}
                emit.store(factor(emit, self.found, value, indices), kept, 0)
            emit.store(emit.load(kept, 0), shared, place)

    def _multiply(self, k: Value) -> None:
        emit, tile = self.emit, self.tile
        left = self._part(self.left, k, tile.m, self.row0, tile.thread_m, "left")
        right = self._part(self.right, k, tile.n, self.column0, tile.thread_n, "right")
        with self._cells() as (i, j):
            place = emit.add(emit.mul(i, emit.number(tile.thread_n)), j)
            total = multiply_add(emit, emit.load(left, i), emit.load(right, j), emit.load(self.sums, place))
            emit.store(total, self.sums, place)

    @contextmanager
    def _cells(self, doc: str | None = None) -> Iterator[tuple[Value, Value]]:
        """Loops over the rows and columns of this thread's part of the tile."""
        emit, tile = self.emit, self.tile
        with (
            emit.loop(0, tile.thread_m, hint="i", binding="unroll", doc=doc) as i,
            emit.loop(0, tile.thread_n, hint="j", binding="unroll") as j,
        ):
            yield i, j

    def _part(self, shared: Value, k: Value, width: int, start: Value, count: int, hint: str) -> Value:
        """This thread's `count` elements of a row of a tile, in registers."""
        emit = self.emit
        registers = emit.register(self.type, count, hint)
        at = emit.add(emit.mul(k, emit.number(width + PAD)), start)
        step = min(PAD, 16 // loop.byte_width(self.type))  # rows of a tile begin at multiples of PAD
        for first in range(0, count, step):
            together = min(step, count - first)
            part = emit.load(shared, emit.add(at, emit.number(first)), together, together > 1)
            emit.store(part, registers, first, together > 1)
        return registers

    def _store(self) -> None:
        emit, tile = self.emit, self.tile
        with self._cells("write the result") as (i, j):
            row = emit.add(emit.add(self.m0, self.row0), i)
            column = emit.add(emit.add(self.n0, self.column0), j)
            inside = emit.both(emit.less(row, emit.dim(self.m)), emit.less(column, emit.dim(self.n)))
            with emit.when(inside):
                place = emit.add(emit.mul(i, emit.number(tile.thread_n)), j)
                store_result(self.k, self.found, (*self.batch, row, column), emit.load(self.sums, place))


def multiply_add(emit: Emitter, a: Value, b: Value, c: Value) -> Value:
    """a * b + c; for floats rounded once."""
    if isinstance(c.type.element if isinstance(c.type, VectorType) else c.type, FloatType):
        return emit.create(math.Fma, a, b, c)
    return emit.create(arith.AddI, emit.create(arith.MulI, a, b), c)


def store_result(k: KernelMaker, found: Product, indices: tuple[Value, ...], total: Value) -> None:
    """Write the result at `indices`, where the reduction gave `total`."""
    emit = k.emitter
    point = Point(indices, found.result.tensor.dims)
    scalar = total
    if found.result is not found.reduce.result:
        emit.sources[found.reduce.result] = known(total)
        scalar = emit.define(found.result, point)
    if isinstance(total.type, VectorType):
        scalar = emit.as_vector(scalar, total.type.shape[0])
    k.store(found.result, scalar, emit.offset(indices, row_major(found.result.tensor.dims)))
