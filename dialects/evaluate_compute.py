"""Evaluates `compute.map` and `compute.reduce` in NumPy.

A body is evaluated once over a whole tile of its index space: every value is an array that broadcasts over
the tile, with size 1 along the axes that it does not depend on, and an index stays a formula (`Affine`) as
long as it can, so that a plain read is a view. Tiles keep temporaries near 64 MB. A sum of products whose
factors depend on different axes is one `numpy.matmul`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs
import numpy as np

from ..ir.attributes import FloatType, IndexType, Type
from ..ir.core import Block, Operation, Value
from ..ir.dims import Dim
from . import scalar
from .compute import Map, Read, ReadIf, Reduce, signless

Array = np.ndarray[Any, Any]
Floats = Literal["declared", "f64"]
TILE_ELEMENTS = (64 << 20) // 32  # 64 MB at about four temporaries of 8 bytes


@attrs.frozen
class Affine:
    """An index value: `scale * (index of axis) + offset`; a constant where `axis` is None."""

    axis: int | None
    scale: int
    offset: int


@attrs.frozen
class Tile:
    """A box of an index space: a (start, stop) for each axis."""

    bounds: tuple[tuple[int, int], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(stop - start for start, stop in self.bounds)

    @property
    def slices(self) -> tuple[slice, ...]:
        return tuple(slice(*b) for b in self.bounds)


def tiles(sizes: Sequence[int], limit: int = TILE_ELEMENTS) -> Iterator[Tile]:
    """Boxes of at most `limit` elements that cover a space, in row-major order; none where a size is 0."""
    steps = []
    for size in reversed(sizes):
        step = max(1, min(size, limit))
        steps.append(step)
        limit //= step
    ranges = [range(0, size, step) for size, step in zip(sizes, reversed(steps))]
    for starts in itertools.product(*ranges):
        yield Tile(tuple((s, min(s + r.step, size)) for s, r, size in zip(starts, ranges, sizes)))


@attrs.define
class Context:
    """What evaluation depends on: the values of tensors and dim symbols, and how floats are held."""

    values: dict[Value, Array]
    symbols: Mapping[str, int]
    floats: Floats = "declared"

    def dtype(self, type: Type) -> np.dtype[Any]:
        """The dtype in which elements of `type` are held."""
        element = getattr(type, "element", type)
        if self.floats == "f64" and isinstance(element, FloatType):
            return np.dtype(np.float64)
        return scalar.dtype_of(element)

    def sizes(self, dims: Sequence[Dim]) -> tuple[int, ...]:
        return tuple(d.evaluate(self.symbols) for d in dims)


_CONVERSIONS: dict[str, Callable[[Array, Any], Array]] = {
    "arith.sitofp": scalar.sitofp,
    "arith.uitofp": scalar.uitofp,
}


def evaluate_scalar(op: Operation, context: Context, arrays: Sequence[Array]) -> Array:
    """A pure scalar operation on arrays; where floats are f64, casts among floats do nothing."""
    if op.op_name == "dim.value":
        return np.asarray(op.expression.evaluate(context.symbols), np.int64)  # type: ignore[attr-defined]
    if op.op_name == "arith.constant":
        return _constant(op, context)
    if context.floats == "f64":
        if op.op_name in ("arith.extf", "arith.truncf"):
            return arrays[0]
        if op.op_name in _CONVERSIONS:
            return _CONVERSIONS[op.op_name](arrays[0], np.float64)
    return scalar.evaluate(op, *arrays)


def _constant(op: Operation, context: Context) -> Array:
    value = op.get("value")
    array = scalar.array_of(value)
    if array is None:
        raise op.error(f"has a value that NumPy cannot hold: {value}")
    return array.astype(context.dtype(op.results[0].type)) if context.floats == "f64" else array


# ---------------------------------------------------------------- bodies


class BodyEvaluator:
    """Evaluates the operations of one body over one tile."""

    def __init__(self, context: Context, block: Block, tile: Tile | None) -> None:
        self.context = context
        self.tile = tile
        self.rank = len(tile.bounds) if tile is not None else 0
        self.values: dict[Value, Array | Affine] = {}
        if tile is not None:
            self.values.update((a, Affine(n, 1, 0)) for n, a in enumerate(block.arguments))

    def array(self, value: Value) -> Array:
        """A value as an array of the tile's rank (or a plain one, in a combiner)."""
        found = self.values[value] if value in self.values else self.context.values[value]
        if not isinstance(found, Affine):
            return found
        if found.axis is None:
            return np.full((1,) * self.rank, found.offset, np.int64)
        assert self.tile is not None
        start, stop = self.tile.bounds[found.axis]
        shape = [1] * self.rank
        shape[found.axis] = stop - start
        return (np.arange(start, stop, dtype=np.int64) * found.scale + found.offset).reshape(shape)

    def run(self, ops: Iterator[Operation] | Sequence[Operation]) -> None:
        for op in ops:
            if op.results:
                self.values[op.result] = self.evaluate(op)

    def evaluate(self, op: Operation) -> Array | Affine:
        if isinstance(op, (Read, ReadIf)):
            return self._read(op)
        if isinstance(op.result.type, IndexType):
            found = self._index(op)
            if found is not None:
                return found
        if op.op_name == "arith.select":
            condition = self.array(op.operands[0])
            if condition.size == 1:
                chosen = op.operands[1 if condition.all() else 2]
                return self.values[chosen] if chosen in self.values else self.array(chosen)
        result = evaluate_scalar(op, self.context, [self.array(v) for v in op.operands])
        return result if result.ndim or not self.rank else result.reshape((1,) * self.rank)

    def _index(self, op: Operation) -> Affine | None:
        """Index arithmetic that stays a formula."""
        if op.op_name == "dim.value" or op.op_name == "arith.constant":
            return Affine(None, 0, int(evaluate_scalar(op, self.context, ())))
        known = [self.values.get(v) for v in op.operands]
        if len(known) != 2 or not all(isinstance(k, Affine) for k in known):
            return None
        a, b = known
        assert isinstance(a, Affine) and isinstance(b, Affine)
        if op.op_name == "arith.muli":
            a, b = (b, a) if a.axis is None else (a, b)
            return Affine(a.axis, a.scale * b.offset, a.offset * b.offset) if b.axis is None and b.offset else None
        sign = {"arith.addi": 1, "arith.subi": -1}.get(op.op_name)
        if sign is None or (a.axis is not None and b.axis is not None):
            return None
        axis, scale = (a.axis, a.scale) if b.axis is None else (b.axis, sign * b.scale)
        return Affine(axis, scale, a.offset + sign * b.offset)

    # -- reads

    def _read(self, op: Read | ReadIf) -> Array:
        source = _signless(self.context.values[op.source])
        if isinstance(op, ReadIf):
            return self._guarded(op, source)
        known = [self.values.get(v) for v in op.indices]
        axes = [k.axis for k in known if isinstance(k, Affine) and k.axis is not None]
        if all(isinstance(k, Affine) for k in known) and len(set(axes)) == len(axes):
            return self._view(op, source, known)  # type: ignore[arg-type]
        indices = [self.array(v) for v in op.indices]
        for axis, index in enumerate(indices):
            if index.size and not 0 <= index.min() <= index.max() < source.shape[axis]:
                raise op.error(f"reads outside axis {axis} of a tensor of shape {source.shape}")
        return source[tuple(indices)]

    def _view(self, op: Operation, source: Array, indices: Sequence[Affine]) -> Array:
        assert self.tile is not None
        cuts = [self._cut(op, i, axis, source.shape[axis]) for axis, i in enumerate(indices)]
        axes = [i.axis for i in indices if i.axis is not None]
        view = source[tuple(cuts)].transpose(np.argsort(axes, kind="stable") if axes else [])
        at = dict(zip(sorted(axes), view.shape))
        return view.reshape([at.get(n, 1) for n in range(self.rank)])

    def _cut(self, op: Operation, index: Affine, axis: int, size: int) -> int | slice:
        """The elements that a formula takes of an axis."""
        assert self.tile is not None
        start, stop = (0, 1) if index.axis is None else self.tile.bounds[index.axis]
        if start == stop:
            return slice(0, 0)
        first, last = (index.scale * n + index.offset for n in (start, stop - 1))
        if not (0 <= first < size and 0 <= last < size):
            raise op.error(f"reads from {first} to {last} on axis {axis}, which has {size} elements")
        if index.axis is None:
            return first
        beyond = last + (1 if index.scale > 0 else -1)
        return slice(first, beyond if beyond >= 0 else None, index.scale)

    def _guarded(self, op: ReadIf, source: Array) -> Array:
        condition = self.array(op.condition)
        indices = [self.array(v) for v in op.indices]
        if source.size == 0 or not condition.any():
            return np.zeros((1,) * self.rank, source.dtype)
        inside = [np.clip(i, 0, n - 1) for i, n in zip(indices, source.shape)]
        if any(np.any(condition & (i != c)) for i, c in zip(indices, inside)):
            raise op.error(f"reads outside a tensor of shape {source.shape} where its condition holds")
        return np.where(condition, source[tuple(inside)] if inside else source, np.zeros((), source.dtype))


def _signless(array: Array) -> Array:
    return array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array


def _declared(array: Array, type: Type, context: Context) -> Array:
    """The array of a result: unsigned elements get their sign back."""
    return array.view(context.dtype(type))


# ---------------------------------------------------------------- map


def evaluate_map(op: Map, context: Context) -> list[Array]:
    """The results of a map."""
    sizes = context.sizes(op.shape)
    types = [r.type.element for r in op.results]  # type: ignore[attr-defined]
    out = [np.empty(sizes, context.dtype(signless(t))) for t in types]
    for tile in tiles(sizes):
        body = BodyEvaluator(context, op.body, tile)
        body.run(op.body.ops)
        for array, value in zip(out, op.body.terminator.operands):
            array[tile.slices] = body.array(value)
    return [_declared(a, t, context) for a, t in zip(out, types)]


# ---------------------------------------------------------------- reduce

_UFUNCS: dict[str, np.ufunc] = {
    "arith.addf": np.add, "arith.addi": np.add, "arith.mulf": np.multiply, "arith.muli": np.multiply,
    "arith.maximumf": np.maximum, "arith.maxsi": np.maximum,
    "arith.minimumf": np.minimum, "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
}  # fmt: skip


def known_combiner(op: Reduce) -> str | None:
    """The name of the only operation of a combiner of its two arguments."""
    first = op.combiner.first
    if first is None or first.next is not op.combiner.last or len(op.results) != 1:
        return None
    alone = set(first.operands) == set(op.combiner.arguments) and op.combiner.terminator.operands == first.results
    return first.op_name if alone else None


def evaluate_reduce(op: Reduce, context: Context) -> list[Array]:
    """The results of a reduction."""
    sizes = context.sizes(op.space)
    types = [r.type.element for r in op.results]  # type: ignore[attr-defined]
    factors = _factors(op)
    if factors is not None:
        return [_contract(op, context, sizes, factors)]
    parallel = op.parallel_rank
    out = [np.full(sizes[:parallel], i, context.dtype(signless(t))) for i, t in zip(op.identities, types)]
    for tile in tiles(sizes):
        body = BodyEvaluator(context, op.body, tile)
        body.run(op.body.ops)
        values = [np.broadcast_to(body.array(v), tile.sizes) for v in op.body.terminator.operands]
        cut = tile.slices[:parallel]
        found = _combine(op, context, [a[cut] for a in out], _reduce_tile(op, context, values))
        for array, value in zip(out, found):
            array[cut] = value
    return [_declared(a, t, context) for a, t in zip(out, types)]


def _reduce_tile(op: Reduce, context: Context, values: list[Array]) -> list[Array]:
    """The reduction of whole arrays over all axes from the parallel rank on, none of which is empty."""
    axes = tuple(range(op.parallel_rank, values[0].ndim))
    ufunc = _UFUNCS.get(known_combiner(op) or "")
    if ufunc is not None and (values[0].dtype.kind != "b" or ufunc.__name__.startswith("bitwise")):
        with np.errstate(all="ignore"):
            return [ufunc.reduce(values[0], axis=axes, dtype=values[0].dtype) if axes else values[0]]
    flat = [v.reshape((*v.shape[: op.parallel_rank], -1)) for v in values]
    return _fold(op, context, flat) if op.associative else _fold_in_order(op, context, flat)


def _fold(op: Reduce, context: Context, values: list[Array]) -> list[Array]:
    """Neighbours combined until one is left, which needs no commutativity."""
    while (count := values[0].shape[-1]) > 1:
        pairs = _combine(op, context, [v[..., : count - 1 : 2] for v in values], [v[..., 1::2] for v in values])
        rest = [v[..., count - 1 :] for v in values] if count % 2 else None
        values = pairs if rest is None else [np.concatenate(p, -1) for p in zip(pairs, rest)]
    return [v[..., 0] for v in values]


def _fold_in_order(op: Reduce, context: Context, values: list[Array]) -> list[Array]:
    found = [v[..., 0] for v in values]
    for n in range(1, values[0].shape[-1]):
        found = _combine(op, context, found, [v[..., n] for v in values])
    return found


def _combine(op: Reduce, context: Context, left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
    combiner = BodyEvaluator(context, op.combiner, None)
    combiner.values.update(zip(op.combiner.arguments, [*left, *right]))
    combiner.run(op.combiner.ops)
    return [np.broadcast_to(combiner.array(v), left[0].shape) for v in op.combiner.terminator.operands]


# ---------------------------------------------------------------- contractions


def _factors(op: Reduce) -> tuple[Value, Value] | None:
    """The two factors of a sum of products, where each depends on a parallel axis that the other does not."""
    if known_combiner(op) not in ("arith.addf", "arith.addi"):
        return None
    product = op.body.terminator.operands[0].defining_op
    if product is None or product.op_name not in ("arith.mulf", "arith.muli"):
        return None
    a, b = product.operands
    on = depends_on(op.body)
    parallel = set(range(op.parallel_rank))
    own = (on.get(a, set()) - on.get(b, set())) & parallel, (on.get(b, set()) - on.get(a, set())) & parallel
    return (a, b) if all(own) else None


def depends_on(block: Block) -> dict[Value, set[int]]:
    """The index axes that each value of a body depends on."""
    found: dict[Value, set[int]] = {a: {n} for n, a in enumerate(block.arguments)}
    for op in block.ops:
        axes = set().union(*(found.get(v, set()) for v in op.operands))
        found.update((r, axes) for r in op.results)
    return found


def _contract(op: Reduce, context: Context, sizes: tuple[int, ...], factors: tuple[Value, Value]) -> Array:
    product = op.body.terminator.operands[0].defining_op
    out = np.empty(sizes[: op.parallel_rank], context.dtype(op.result.type))
    for tile in _contraction_tiles(op, sizes, factors):
        body = BodyEvaluator(context, op.body, tile)
        body.run([o for o in op.body.ops if o is not product])
        out[tile.slices[: op.parallel_rank]] = contract(
            body.array(factors[0]), body.array(factors[1]), tile.sizes, op.parallel_rank
        )
    return out


def _contraction_tiles(op: Reduce, sizes: tuple[int, ...], factors: tuple[Value, Value]) -> Iterator[Tile]:
    """Tiles over the first axis, all of the others, so that neither factor is much above the budget."""
    if 0 in sizes[: op.parallel_rank]:
        return
    on = depends_on(op.body)
    largest = max(int(np.prod([sizes[n] for n in on.get(f, ())], dtype=float)) for f in factors)
    step = max(1, sizes[0] * TILE_ELEMENTS // max(largest, 1))
    for start in range(0, sizes[0], step):
        yield Tile(((start, min(start + step, sizes[0])), *((0, size) for size in sizes[1:])))


def contract(a: Array, b: Array, sizes: tuple[int, ...], parallel: int) -> Array:
    """The sum over axes from `parallel` on of a * b, two arrays that broadcast over `sizes`, by one
    matmul."""
    axes = range(len(sizes))
    reduced = [n for n in axes if n >= parallel]
    if any(max(a.shape[n], b.shape[n]) != sizes[n] or a.shape[n] != b.shape[n] for n in reduced):
        a, b = (np.broadcast_to(f, [sizes[n] if n in reduced else f.shape[n] for n in axes]) for f in (a, b))
    batch = [n for n in axes[:parallel] if a.shape[n] == b.shape[n]]
    rows = [n for n in axes[:parallel] if a.shape[n] != b.shape[n] and b.shape[n] == 1]
    columns = [n for n in axes[:parallel] if a.shape[n] != b.shape[n] and a.shape[n] == 1]
    left = _as_matrix(a, batch, rows, reduced, columns)
    right = _as_matrix(b, batch, reduced, columns, rows)
    with np.errstate(all="ignore"):
        found = np.matmul(left, right)
    order = [*batch, *rows, *columns]
    found = found.reshape([max(a.shape[n], b.shape[n]) if sizes[n] else 0 for n in order])
    return np.broadcast_to(found.transpose(np.argsort(order, kind="stable")), sizes[:parallel])


def _as_matrix(x: Array, batch: list[int], first: list[int], second: list[int], absent: list[int]) -> Array:
    """x as (batch..., first, second); `absent` axes are of size 1."""
    moved = x.transpose([*batch, *first, *second, *absent])
    shape = [x.shape[n] for n in batch]
    count = [int(np.prod([x.shape[n] for n in axes], dtype=np.int64)) for axes in (first, second)]
    return moved.reshape([*shape, *count])
