"""Definitions become scalar code: the element of a tensor at a point, inlined into a kernel.

A schedule says which tensors live in buffers (or are computed in some other way) by naming their *sources*.
`Emitter.element` follows a definition down to these: a map is inlined, a reduction becomes a loop on the spot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import attrs

from ..dialects import arith, compute, dim, loop
from ..ir.attributes import Attribute, FloatAttr, FloatType, IntegerAttr, Type, VectorType, i64, index
from ..ir.builder import Builder
from ..ir.core import Block, Operation, OpResult, Value
from ..ir.dims import Dim, as_dim, product
from .c_scalars import INTEGER_PREDICATES
from .combiners import CHUNK, chunk_levels, combiner_name


class NotVectorisable(Exception):
    """The definition cannot be computed for several neighbours at once; the schedule takes single elements."""


class Point:
    """A position in the index space `shape`: one index value an axis, and where known the flat position."""

    def __init__(self, indices: Sequence[Value], shape: Sequence[Dim] = (), flat: Value | None = None) -> None:
        self._indices: tuple[Value, ...] | None = tuple(indices)
        self.shape, self.flat = tuple(shape), flat

    @property
    def indices(self) -> tuple[Value, ...]:
        assert self._indices is not None
        return self._indices

    @property
    def key(self) -> tuple[object, ...]:
        return self.indices


class FlatPoint(Point):
    """A point known by its flat position; index values are computed, at the start of `block`, when asked for."""

    def __init__(self, emitter: Emitter, flat: Value, shape: Sequence[Dim], block: Block) -> None:
        super().__init__((), shape, flat)
        self._indices, self.emitter, self.block = None, emitter, block

    @property
    def indices(self) -> tuple[Value, ...]:
        if self._indices is None:
            assert self.flat is not None
            builder = self.emitter.at(Builder.at_start(self.block))
            self._indices = self.emitter.split(builder, self.flat, self.shape)
        return self._indices

    @property
    def key(self) -> tuple[object, ...]:
        return (self.flat, "flat")


Source = Callable[["Emitter", Point], Value]


@attrs.define(eq=False)
class Lanes:
    """Vector mode: `width` neighbours along the axis whose index is `base`, computed at once."""

    base: Value
    width: int


class Emitter:
    """Writes loop IR into a kernel at `builder`. `sources` maps tensors to how their elements are obtained."""

    def __init__(self, kernel: loop.Kernel, sources: dict[Value, Source]) -> None:
        self.kernel, self.sources = kernel, sources
        self.builder = self.at(Builder(kernel.body))
        self.scalars: dict[Value, Value] = {}  # scalar arguments of the function -> of the kernel
        self.lanes: Lanes | None = None
        self.varying: set[Value] = set()  # index values that depend on the lane
        self._memo: dict[Block, dict[object, tuple[Value, ...]]] = {}
        self._constants: dict[object, Value] = {}

    # -- small things

    def at(self, builder: Builder) -> Builder:
        """`builder`, giving what it creates the place of the kernel in the source."""
        builder.location = self.kernel.location
        return builder

    def entry(self) -> Builder:
        """At the start of the kernel."""
        return self.at(Builder.at_start(self.kernel.body))

    def create(self, cls: type[Operation], *operands: Value, **attributes: Any) -> Value:
        return self.builder.create(cls, *operands, **attributes).result

    def named(self, hint: str, value: Value) -> Value:
        """`value`, called `hint` in printed code where it has no name yet."""
        value.hint = value.hint or hint
        return value

    def where(self, which: str, hint: str) -> Value:
        """The position of this thread: `thread_x`, `lane`, `warp`, ..."""
        return self.named(hint, self.create(loop.Id, which=which))

    def constant(self, attribute: Attribute) -> Value:
        """A constant, at the kernel's entry, made once."""
        return self._at_entry(attribute, lambda b: b.create(arith.Constant, value=attribute).result)

    def number(self, value: int) -> Value:
        return self.constant(IntegerAttr(value, index))

    def dim(self, expression: Dim | int) -> Value:
        """The value of a dim expression, as an index."""
        made = as_dim(expression)
        if made.is_constant:
            return self.number(made.value)
        return self._at_entry(made, lambda b: b.create(dim.ValueOp, value=made).result)

    def _at_entry(self, key: object, make: Callable[[Builder], Value]) -> Value:
        if key not in self._constants:
            self._constants[key] = make(self.entry())
        return self._constants[key]

    def add(self, a: Value, b: Value) -> Value:
        if self._is_number(a, 0):
            return b
        return a if self._is_number(b, 0) else self.create(arith.AddI, a, b)

    def mul(self, a: Value, b: Value) -> Value:
        if self._is_number(a, 1):
            return b
        return a if self._is_number(b, 1) else self.create(arith.MulI, a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return a if self._is_number(b, 0) else self.create(arith.SubI, a, b)

    def equal(self, a: Value, b: Value) -> Value:
        return self._compare("eq", a, b)

    def less(self, a: Value, b: Value) -> Value:
        return self._compare("slt", a, b)

    def at_least(self, a: Value, b: Value) -> Value:
        return self._compare("sge", a, b)

    def _compare(self, predicate: str, a: Value, b: Value) -> Value:
        return self.create(arith.CmpI, a, b, predicate=IntegerAttr(INTEGER_PREDICATES.index(predicate), i64))

    def both(self, a: Value, b: Value) -> Value:
        return self.create(arith.AndI, a, b)

    def _is_number(self, value: Value, number: int) -> bool:
        op = value.defining_op
        return isinstance(op, arith.Constant) and op.get("value") is IntegerAttr(number, index)

    def loop(
        self, lo: Value | int, hi: Value | int, step: Value | int = 1, *, hint: str = "i", binding: str = "serial",
        doc: str | None = None,
    ) -> Scope:  # fmt: skip
        """A loop whose body the builder moves into: `with emitter.loop(0, n) as i: ...`."""
        lo, hi, step = (self.number(v) if isinstance(v, int) else v for v in (lo, hi, step))
        made = self.builder.insert(loop.For.make(
            lo, hi, step, hint=hint, binding=binding, doc=doc, location=self.kernel.location))
        return Scope(self, made.body, made.index)

    def when(self, condition: Value, reason: str | None = None) -> Scope:
        made = self.builder.insert(loop.If.make(condition, reason=reason, location=self.kernel.location))
        return Scope(self, made.body, condition)

    def register(self, element: Type, size: int = 1, hint: str = "acc") -> Value:
        return self.builder.insert(loop.Alloc.make(element, "register", size, hint)).result

    def shared(self, element: Type, size: int, hint: str) -> Value:
        """Shared memory; allocated at the kernel's entry."""
        made = loop.Alloc.make(element, "shared", size, hint)
        return self.entry().insert(made).result

    def load(self, buffer: Value, at: Value | int, width: int = 1, aligned: bool = False) -> Value:
        at = self.number(at) if isinstance(at, int) else at
        return self.create(loop.Load, buffer, at, width=width, aligned=aligned)

    def store(self, value: Value, buffer: Value, at: Value | int, aligned: bool = False) -> None:
        at = self.number(at) if isinstance(at, int) else at
        self.builder.create(loop.Store, value, buffer, at, aligned=aligned)

    def offset(self, indices: Sequence[Value], strides: Sequence[Dim | Value]) -> Value:
        """The sum of index times stride."""
        total = self.number(0)
        for position, stride in zip(indices, strides, strict=True):
            stride = stride if isinstance(stride, Value) else self.dim(stride)
            total = self.add(total, self.mul(position, stride))
        return total

    def split(self, builder: Builder, flat: Value, shape: Sequence[Dim]) -> tuple[Value, ...]:
        """The index on each axis of a flat row-major position."""
        saved, self.builder = self.builder, builder
        found: list[Value] = []
        rest = flat
        for axis in range(len(shape) - 1, -1, -1):
            extent = self.dim(shape[axis])
            if axis == 0:
                found.append(rest)
            elif shape[axis].is_constant and shape[axis].value == 1:
                found.append(self.number(0))
            else:
                found.append(self.create(arith.RemUI, rest, extent))
                rest = self.create(arith.DivUI, rest, extent)
        self.builder = saved
        return tuple(reversed(found))

    # -- elements

    def define(self, value: Value, point: Point) -> Value:
        """The element of `value` from its definition, though it may have a source."""
        op = value.defining_op
        assert isinstance(value, OpResult) and isinstance(op, (compute.Map, compute.Reduce))
        made = self.reduce(op, point) if isinstance(op, compute.Reduce) else self.inline(op, point)
        return made[value.index]

    def element(self, tensor: Value, point: Point) -> Value:
        """The element of `tensor` at `point`: a scalar, or in vector mode a vector where it depends on the lane."""
        key = (tensor, *point.key)
        found = self.remembered(key)
        if found is not None:
            return found[0]
        if tensor in self.sources:
            return self.sources[tensor](self, point)
        op = tensor.defining_op
        if isinstance(op, compute.Map):
            made = self.inline(op, point)
        elif isinstance(op, compute.Reduce):
            made = self.reduce(op, point)
        else:
            raise TypeError(f"no source for {tensor!r}")
        for result, scalar in zip(op.results, made, strict=True):
            self.remember((result, *point.key), (scalar,))
        return made[tensor.index]  # type: ignore[attr-defined]

    def remember(self, key: object, values: tuple[Value, ...]) -> None:
        self._memo.setdefault(self.builder.block, {})[key] = values

    def remembered(self, key: object) -> tuple[Value, ...] | None:
        """What was computed for `key` in this block or one around it."""
        block: Block | None = self.builder.block
        while block is not None:
            found = self._memo.get(block, {}).get(key)
            if found is not None:
                return found
            op = block.parent_op
            block = op.parent if op is not None and op is not self.kernel else None
        return None

    def inline(self, op: compute.Map | compute.Reduce, point: Point) -> list[Value]:
        """The scalars that the body of `op` yields at `point`."""
        arguments = op.body.arguments
        mapping: dict[Value, Value] = {}
        if any(not _reads_in_order(user, arguments) for a in arguments for user in a.uses):
            mapping.update(zip(arguments, point.indices, strict=True))
        return self.block(op.body, mapping, point)

    def block(self, block: Block, mapping: dict[Value, Value], point: Point | None = None) -> list[Value]:
        """Copy the scalar operations of a region's block; the values that it yields."""
        for op in block.ops:
            if isinstance(op, compute.Yield):
                return [self._mapped(v, mapping) for v in op.operands]
            self.step(op, mapping, block, point)
        raise ValueError("a region without a yield")

    def step(self, op: Operation, mapping: dict[Value, Value], block: Block, point: Point | None = None) -> None:
        """Copy one scalar operation of a region; `mapping` has its operands and gains its results."""
        if isinstance(op, (compute.Read, compute.ReadIf)):
            mapping[op.result] = self._read(op, mapping, block, point)
        elif isinstance(op, dim.ValueOp):
            mapping[op.result] = self.dim(op.expression)
        elif isinstance(op, arith.Constant):
            mapping[op.result] = self.constant(op.get("value"))
        else:
            self._copy(op, mapping)

    def _mapped(self, value: Value, mapping: dict[Value, Value]) -> Value:
        found = mapping.get(value)
        return found if found is not None else self.scalars[value]

    def _read(
        self, op: compute.Read | compute.ReadIf, mapping: dict[Value, Value], block: Block, point: Point | None
    ) -> Value:
        if point is not None and _reads_in_order(op, block.arguments):
            at = point
        else:
            at = Point([self._mapped(v, mapping) for v in op.indices])
        if isinstance(op, compute.Read):
            return self.element(op.source, at)
        condition = self._mapped(op.condition, mapping)
        if self.lanes is not None:
            raise NotVectorisable
        kept = self.register(op.result.type, hint="part")
        self.store(self.zero(op.result.type), kept, 0)
        with self.when(condition):
            self.store(self.element(op.source, at), kept, 0)
        return self.load(kept, 0)

    def zero(self, type: Type) -> Value:
        return self.constant(zero_of(type))

    def _copy(self, op: Operation, mapping: dict[Value, Value]) -> None:
        operands = [self._mapped(v, mapping) for v in op.operands]
        types = [r.type for r in op.results]
        if any(v in self.varying for v in operands):
            if any(t is not index for t in types):
                raise NotVectorisable
        elif any(isinstance(v.type, VectorType) for v in operands):
            width = next(v.type.shape[0] for v in operands if isinstance(v.type, VectorType))
            operands = [v if isinstance(v.type, VectorType) else self.splat(v, width) for v in operands]
            types = [VectorType((width,), t) for t in types]
        made = type(op)(operands, types, op.properties, op.attributes, location=op.location)
        self.builder.insert(made)
        for old, new in zip(op.results, made.results, strict=True):
            new.hint = old.hint
            mapping[old] = new
        if any(v in self.varying for v in operands):
            self.varying.update(made.results)

    def splat(self, value: Value, width: int) -> Value:
        if value.type is index:
            raise NotVectorisable
        return self.create(loop.Splat, value, width=width)

    def as_vector(self, value: Value, width: int) -> Value:
        """`value` itself where it is a vector already, or for `width` 1."""
        return value if width == 1 or isinstance(value.type, VectorType) else self.splat(value, width)

    @contextmanager
    def vectors(self, base: Value, width: int) -> Iterator[None]:
        """Vector mode inside `with`: `width` neighbours from index `base` on; nothing for `width` 1."""
        if width > 1:
            self.lanes, self.varying = Lanes(base, width), {base}
        try:
            yield
        finally:
            self.lanes, self.varying = None, set()

    def by_vectors(self, extent: Dim, width: int, hint: str, body: Callable[[Value, int], None]) -> None:
        """Loops over `extent`, by whole vectors and then the rest: `body` gets the index and 1 or `width`."""
        whole = self.named("whole", self.dim(extent // width * width)) if width > 1 else self.number(0)
        if width > 1:
            doc = f"over {extent}, {width} at a time"
            with self.loop(0, whole, width, hint=hint, doc=doc) as i, self.vectors(i, width):
                body(i, width)
        with self.loop(whole, self.dim(extent), hint=hint, doc="the rest" if width > 1 else None) as i:
            body(i, 1)

    # -- reductions

    def reduce(self, op: compute.Reduce, point: Point) -> list[Value]:
        """A reduction at one point of its result, as a loop here."""
        if self.lanes is not None:
            raise NotVectorisable
        accumulators = self.accumulators(op)
        self._reduce_axes(op, accumulators, list(point.indices), list(op.extents))
        return [self.load(a, 0) for a in accumulators]

    def identities(self, op: compute.Reduce, width: int = 1) -> list[Value]:
        """The identities of the combiner, one a value; `width` > 1: vectors of them."""
        scalars = [self.constant(init) for init in op.get("inits").elements]
        return scalars if width == 1 else [self.splat(s, width) for s in scalars]

    def accumulators(self, op: compute.Reduce, width: int = 1, hint: str | None = None) -> list[Value]:
        """Registers that hold the identities of `op`, one a value."""
        made = []
        for value, result in zip(self.identities(op, width), op.results, strict=True):
            register = self.register(value.type, 1, hint or result.hint or combiner_name(op))
            self.store(value, register, 0)
            made.append(register)
        return made

    @contextmanager
    def partials(self, op: compute.Reduce, into: list[Value]) -> Iterator[list[Value]]:
        """Registers of their own for what is reduced inside `with`; at its end they are combined into `into`."""
        made = self.accumulators(op, hint="part")
        yield made
        self.accumulate(op, into, [self.load(p, 0) for p in made])

    def _reduce_axes(self, op: compute.Reduce, into: list[Value], indices: list[Value], extents: list[Dim]) -> None:
        if not extents:
            self.accumulate(op, into, self.inline(op, Point(indices)))
            return
        extent, *rest = extents
        own = bool(rest) and chunk_levels(op, product(extents)) > 0  # else all that is left makes one short chain

        def body(i: Value, into: list[Value]) -> None:
            with self.partials(op, into) if own else nullcontext(into) as registers:
                self._reduce_axes(op, registers, [*indices, i], rest)

        hint = op.body.arguments[len(indices)].hint or "k"
        self.chunked(op, into, extent, body, hint)

    def chunked(
        self, op: compute.Reduce, into: list[Value], extent: Dim, body: Callable[[Value, list[Value]], None], hint: str
    ) -> None:  # fmt: skip
        """A loop over `extent` whose `body(i, registers)` accumulates into registers.

        Sums are blocked: CHUNK elements go to registers of their own, these to the registers of CHUNK chunks, so that
        the error grows with the longest chain of additions, not with the extent. See N. Higham, 'The accuracy of
        floating point summation', SIAM J. Sci. Comput. 14 (1993)."""

        def loops(levels: int, lo: Value, hi: Value, into: list[Value]) -> None:
            if not levels:
                with self.loop(lo, hi, hint=hint, doc=f"reduce over {extent}") as i:
                    body(i, into)
                return
            size = CHUNK**levels
            with self.loop(lo, hi, size, hint=f"{hint}_chunk", doc=f"chunks of {size}") as start:
                end = self.create(arith.MinSI, self.add(start, self.number(size)), hi)
                with self.partials(op, into) as registers:
                    loops(levels - 1, start, self.named("end", end), registers)

        loops(chunk_levels(op, extent), self.number(0), self.dim(extent), into)

    def accumulate(self, op: compute.Reduce, accumulators: Sequence[Value], values: Iterable[Value]) -> None:
        """accumulators = combiner(accumulators, values)."""
        old = [self.load(a, 0) for a in accumulators]
        for register, new in zip(accumulators, self.combine(op, old, list(values)), strict=True):
            self.store(new, register, 0)

    def combine(self, op: compute.Reduce, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        return self.block(op.combiner, dict(zip(op.combiner.arguments, [*left, *right], strict=True)))


class Scope:
    """Inside it the builder writes into `block`."""

    def __init__(self, emitter: Emitter, block: Block, value: Value) -> None:
        self.emitter, self.block, self.value = emitter, block, value

    def __enter__(self) -> Value:
        self.saved, self.emitter.builder = self.emitter.builder, self.emitter.at(Builder(self.block))
        return self.value

    def __exit__(self, *exc: object) -> None:
        self.emitter.builder = self.saved


def _reads_in_order(op: Operation, arguments: Sequence[Value]) -> bool:
    """Whether `op` reads a tensor at exactly the region's own indices."""
    return isinstance(op, compute.Read) and [*op.indices] == [*arguments]


def zero_of(type: Type) -> Attribute:
    """The constant 0."""
    return FloatAttr.of(0.0, type) if isinstance(type, FloatType) else IntegerAttr(0, type)
