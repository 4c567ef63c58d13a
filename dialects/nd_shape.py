"""`nd`: creation, shape and movement. All `follow` in mixed precision: they round nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..ir.attributes import FloatAttr, FloatType, IntegerType, TensorType, Type, ui64
from ..ir.core import Value
from ..ir.definition import AnyTensor, Int, Ints, Number, TypeAttribute, attribute, operand, result
from ..ir.dim_algebra import make, monomial_over
from ..ir.dims import Dim, ceildiv, dim_max, dim_min, product
from ..ir.floats import largest_float
from . import expression as e
from .expression import ONE, ZERO, Scalar, Tensor, dim_value
from .nd_base import nd
from .operator import DimList, Operator, Requirement, equal_requirement
from .scalar import rounded

# ---------------------------------------------------------------- creation


class Creation(Operator):
    """No operand. The result type is the one declared, or made of `shape` (rank 0 where absent) and
    `dtype`."""

    __slots__ = ()
    shape = attribute(DimList, optional=True)
    dtype = attribute(TypeAttribute, optional=True)
    y = result(AnyTensor)

    def default_element(self) -> Type:
        raise self.error("needs a dtype")

    @property
    def type(self) -> TensorType:
        if self.results:
            return self.results[0].type  # type: ignore[return-value]
        return TensorType(tuple(self.dims_attribute("shape")), self.dtype or self.default_element())

    def infer_types(self) -> list[Type]:
        """The type, with the dims of `shape` where it is given: what is declared must agree with the attributes."""
        shape, type = self.dims_attribute("shape"), self.type
        if any(d.is_constant and d.value < 0 for d in shape):
            raise self.error(f"has shape = {self.get('shape')}, but a dim is not negative")
        if self.dtype not in (None, type.element):
            self._disagree("dtype", type)
        if self.shape is None:
            return [type]
        if len(shape) != type.rank:
            self._disagree("shape", type)
        return [TensorType(tuple(shape), type.element)]

    def _disagree(self, name: str, type: TensorType) -> None:
        raise self.error(
            f"has {name} = {self.get(name)}, but {self.value_name(self.results[0])} is declared as '{type}'; "
            f"leave {name} out, or make them agree"
        )


@nd.op
class Constant(Creation):
    """One number, `value`, in every element."""

    __slots__ = ()
    name = "nd.constant"
    value = attribute(Number)

    def default_element(self) -> Type:
        return self.get("value").type  # type: ignore[no-any-return]

    def infer_types(self) -> list[Type]:
        element = self.type.element
        if isinstance(element, FloatType):
            self._check_float(element)
        elif isinstance(element, IntegerType):
            self._check_integer(element)
        return super().infer_types()

    def _check_float(self, element: FloatType) -> None:
        """Only an infinity gives an infinity, and only NaN gives NaN."""
        given, held = self.value, rounded(self.value, element)
        if math.isinf(held) != (given in (math.inf, -math.inf)) or math.isnan(held) != (given != given):
            endless = FloatAttr.of(math.inf, element)
            fix = f"; infinity is {endless}" if math.isinf(endless.value) else ""
            raise self.error(
                f"has value = {self.get('value')}, which '{element}' does not hold: its largest is "
                f"{largest_float(element.name):.8g}{fix}"
            )

    def _check_integer(self, element: IntegerType) -> None:
        """A literal of the type: signless ones take the signed and the unsigned reading."""
        if isinstance(self.get("value"), FloatAttr):
            raise self.error(f"has the float {self.value}, but elements of '{element}'")
        low, high = element.range()
        if not low <= self.value <= high:
            large = element is ui64 and self.get("value").type is not ui64
            fix = "; a literal from 2**63 up needs its type, 'value = ... : ui64'" if large else ""
            raise self.error(
                f"has value = {self.get('value')}, which '{element}' does not hold: it goes from {low} to {high}{fix}"
            )

    def define(self) -> Tensor:
        element = self.type.element
        value = rounded(self.value, element) if isinstance(element, FloatType) else self.value
        return e.broadcast_to(e.constant(value, element), self.type.dims)


@nd.op
class Iota(Creation):
    """0, 1, 2... along `axis`, the same along others."""

    __slots__ = ()
    name = "nd.iota"
    axis = attribute(Int, default=0)

    def infer_types(self) -> list[Type]:
        self.normal_axis(self.axis, self.type.rank)
        return super().infer_types()

    def define(self) -> Tensor:
        axis, element = self.normal_axis(self.axis, self.type.rank), self.type.element
        return e.from_function(self.type.dims, lambda *at: e.cast(at[axis], element))


# ---------------------------------------------------------------- shape


class Movement(Operator):
    """One operand whose elements move; the result has its element type."""

    __slots__ = ()
    x = operand(AnyTensor)
    y = result(AnyTensor)

    def result_shape(self) -> Sequence[Dim]:
        raise NotImplementedError

    def infer_types(self) -> list[Type]:
        return [TensorType(tuple(self.result_shape()), self.x.type.element)]


@nd.op
class Broadcast(Movement):
    """x repeated to `shape`, aligned at the right: each dim of x is that of the shape, or 1."""

    __slots__ = ()
    name = "nd.broadcast"
    shape = attribute(DimList)

    def result_shape(self) -> Sequence[Dim]:
        shape, dims = self.dims_attribute("shape"), self.x.type.dims
        if len(shape) < len(dims):
            raise self.error(f"cannot broadcast '{self.x.type}' to rank {len(shape)}")
        return shape

    def shape_requirements(self) -> Iterable[Requirement]:
        shape, dims = self.dims_attribute("shape"), self.x.type.dims
        for axis, (d, r) in enumerate(zip(dims, shape[len(shape) - len(dims) :])):
            if d is not r and d is not ONE:
                message = f"cannot broadcast axis {axis} of {self.value_name(self.x)}: {d} to {r}"
                yield Requirement.any_of([d.eq(r)] if d.is_constant else [d.eq(r), d.eq(1)], message)

    def define(self, x: Tensor) -> Tensor:
        return e.broadcast_to(x, self.dims_attribute("shape"))


@nd.op
class Transpose(Movement):
    """Axis n of the result is axis `permutation[n]` of x; reversed where absent."""

    __slots__ = ()
    name = "nd.transpose"
    permutation = attribute(Ints, optional=True)

    @property
    def order(self) -> list[int]:
        """The permutation, from 0 up."""
        rank = self.x.type.rank
        if self.permutation is None:
            return list(range(rank))[::-1]
        order = [self.normal_axis(a, rank, "permutation axis") for a in self.permutation]
        if sorted(order) != list(range(rank)):
            raise self.error(f"has {list(self.permutation)}, which is no permutation of the {rank} axes")
        return order

    def result_shape(self) -> Sequence[Dim]:
        return [self.x.type.dims[a] for a in self.order]

    def define(self, x: Tensor) -> Tensor:
        order = self.order
        return Tensor(
            [x.shape[a] for a in order],
            x.type,
            lambda *at: x.at(*(at[order.index(n)] for n in range(x.rank))),
        )


@nd.op
class Reshape(Movement):
    """x in row-major order under another `shape`; one dim may be -1, the exact quotient of the sizes."""

    __slots__ = ()
    name = "nd.reshape"
    discardable = ()  # a view: no variant implements it
    shape = attribute(DimList)

    def result_shape(self) -> Sequence[Dim]:
        shape, total = self.dims_attribute("shape"), product(self.x.type.dims)
        free = [n for n, d in enumerate(shape) if d.is_constant and d.value == -1]
        if len(free) > 1 or any(d.is_constant and d.value < -1 for d in shape):
            raise self.error(f"has shape {shape}: dims are not negative, and one may be -1")
        if free:
            others = product(d for n, d in enumerate(shape) if n != free[0])
            if others is ZERO:
                raise self.error(f"cannot tell -1 in shape {shape}, which has a 0")
            shape[free[0]] = exact_quotient(total, others)
        return shape

    def shape_requirements(self) -> Iterable[Requirement]:
        before, after = product(self.x.type.dims), product(self.result_shape())
        if before is not after:
            given = ", ".join(map(str, self.dims_attribute("shape")))
            yield Requirement(
                before.eq(after),
                f"cannot reshape {self.value_name(self.x)} of '{self.x.type}', {before} elements, "
                f"to [{given}], {after}",
            )

    def define(self, x: Tensor) -> Tensor:
        return reshaped(x, self.result_shape())


def exact_quotient(total: Dim, others: Dim) -> Dim:
    """total / others: term by term where `others` is one term that divides all, else rounded down."""
    if len(others.terms) == 1:
        by, m = others.terms[0]
        over = [(c // by, monomial_over(n, m)) for c, n in total.terms if c % by == 0]
        if len(over) == len(total.terms) and all(n is not None for _, n in over):
            return make({n: c for c, n in over if n is not None})
    return total // others


Group = tuple[list[int], list[int]]


def reshape_groups(source: Sequence[Dim], target: Sequence[Dim]) -> list[Group]:
    """Axes of source and target in groups of equal product, as small as can be proved."""
    groups: list[Group] = []
    s = t = 0
    while s < len(source) or t < len(target):
        left, right = s, t
        s, t = _group_end(source, target, s, t)
        groups.append((list(range(left, s)), list(range(right, t))))
    return groups


def _group_end(source: Sequence[Dim], target: Sequence[Dim], s: int, t: int) -> tuple[int, int]:
    """The least ends of a group that starts at s and t; all that is left where no product is proved equal."""
    for length in range(1, len(source) - s + len(target) - t):
        for a in range(max(0, length - len(target) + t), min(length, len(source) - s) + 1):
            b = length - a
            if e.equal_dims(product(source[s : s + a]), product(target[t : t + b])):
                return s + a, t + b
    return len(source), len(target)


def reshaped(x: Tensor, shape: Sequence[Dim]) -> Tensor:
    """x under another shape with the same number of elements."""
    groups = reshape_groups(x.shape, shape)

    def at(*indices: Scalar) -> Scalar:
        found: list[Scalar] = []
        for source, target in groups:
            if len(source) == len(target) == 1:
                found.append(indices[target[0]])
            else:
                flat = e.flat_index([indices[n] for n in target], [shape[n] for n in target])
                found += unflatten(flat, [x.shape[n] for n in source])
        return x.at(*found)

    return Tensor(shape, x.type, at)


def unflatten(flat: Scalar, shape: Sequence[Dim]) -> list[Scalar]:
    """The indices into `shape` at a row-major position."""
    found: list[Scalar] = []
    for n, d in reversed(list(enumerate(shape))):
        if d is ONE:
            found.append(dim_value(0))
        elif all(other is ONE for other in shape[:n]):
            found.append(flat)
            flat = dim_value(0)
        else:
            found.append(e.index_remainder(flat, d))
            flat = e.index_quotient(flat, d)
    return found[::-1]


# ---------------------------------------------------------------- slice, concat


@nd.op
class Slice(Movement):
    """x[start:limit:step] on every axis, as Python's: bounds are clamped, steps are ints other than 0 and may
    be negative. An int below 0 counts from the end; a symbolic bound is a position, clamped but never
    wrapped."""

    __slots__ = ()
    name = "nd.slice"
    starts = attribute(DimList)
    limits = attribute(DimList)
    steps = attribute(Ints, optional=True, doc="1 where absent")

    @property
    def ranges(self) -> list[tuple[Dim, Dim, int]]:
        """(start, size, step) of each axis, with start in bounds."""
        dims = self.x.type.dims
        starts, limits = self.dims_attribute("starts"), self.dims_attribute("limits")
        steps = [1] * len(dims) if self.steps is None else list(self.steps)
        if not len(starts) == len(limits) == len(steps) == len(dims):
            raise self.error(f"needs {len(dims)} starts, limits and steps for '{self.x.type}'")
        if 0 in steps:
            raise self.error("has a step of 0")
        return [slice_range(*four) for four in zip(starts, limits, steps, dims)]

    def result_shape(self) -> Sequence[Dim]:
        return [size for _, size, _ in self.ranges]

    def shape_requirements(self) -> Iterable[Requirement]:
        return ()  # ranges are clamped: no read needs a check

    def define(self, x: Tensor) -> Tensor:
        ranges = self.ranges
        shape = [size for _, size, _ in ranges]
        return Tensor(shape, x.type, lambda *at: x.at(*(_moved(i, s, k) for i, (s, _, k) in zip(at, ranges))))


def slice_range(start: Dim, limit: Dim, step: int, d: Dim) -> tuple[Dim, Dim, int]:
    """(first position, size, step) of `start:limit:step` along an axis of size `d`."""
    low, high = (ZERO, d) if step > 0 else (ZERO - 1, d - 1)
    start, limit = (_clamped(bound, low, high, d) for bound in (start, limit))
    span = limit - start if step > 0 else start - limit
    return start, ceildiv(dim_max(span, 0), abs(step)), step


def _clamped(bound: Dim, low: Dim, high: Dim, d: Dim) -> Dim:
    if bound.is_constant and bound.value < 0:
        bound = bound + d
    return dim_min(dim_max(bound, low), high)


def _moved(i: Scalar, start: Dim, step: int) -> Scalar:
    scaled = i if step == 1 else i * step
    return scaled if start is ZERO else scaled + dim_value(start)


@nd.op
class Concat(Operator):
    """Tensors of one element type and rank one after the other along `axis`; empty ones add nothing."""

    __slots__ = ()
    name = "nd.concat"
    inputs = operand(AnyTensor, variadic=True)
    axis = attribute(Int, default=0)
    y = result(AnyTensor)

    def infer_types(self) -> list[Type]:
        if not self.inputs:
            raise self.error("needs an operand")
        element, first = self.same_element(self.inputs), self.inputs[0]
        for value in self.inputs:
            if value.type.rank != first.type.rank:
                raise self.error(f"needs operands of one rank, but has '{first.type}' and '{value.type}'")
        axis = self.normal_axis(self.axis, first.type.rank)
        dims = list(first.type.dims)
        dims[axis] = sum((v.type.dims[axis] for v in self.inputs), ZERO)
        return [TensorType(tuple(dims), element)]

    def shape_requirements(self) -> Iterable[Requirement]:
        first: Value = self.inputs[0]
        for value in self.inputs[1:]:
            for n in range(first.type.rank):  # type: ignore[attr-defined]
                if n != self.axis % first.type.rank:  # type: ignore[attr-defined]
                    yield from equal_requirement(self, first, n, value, n, "concat needs equal sizes off its axis")

    def define(self, inputs: list[Tensor]) -> Tensor:
        axis = self.normal_axis(self.axis, inputs[0].rank)
        shape = list(inputs[0].shape)
        shape[axis] = sum((t.shape[axis] for t in inputs), ZERO)
        return e.from_function(shape, lambda *at: _joined(inputs, axis, at))


def _joined(inputs: Sequence[Tensor], axis: int, at: Sequence[Scalar]) -> Scalar:
    """The element of the input that `at[axis]` falls into; every read is guarded, for inputs may be empty."""
    found: Scalar | None = None
    offset = ZERO
    for t in inputs:
        j, end = at[axis], offset + t.shape[axis]
        inside = j < end if offset is ZERO else (j >= offset) & (j < end)
        i = j if offset is ZERO else j - offset
        element = t.at_if(inside, *at[:axis], i, *at[axis + 1 :])
        found = element if found is None else e.where(inside, element, found)
        offset = end
    assert found is not None
    return found
