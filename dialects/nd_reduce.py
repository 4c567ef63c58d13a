"""`nd`: reductions over axes.

`axes` counts from the end where negative; without it all axes are reduced. `keepdims` leaves them as 1.
Floats accumulate in the wider of their type and f32 and round once; integers accumulate in their result type.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.attributes import FloatType, IntegerType, TensorType, Type, i64, ui64
from ..ir.definition import (
    AnyTensor,
    Bool,
    Int,
    IntegerTensor,
    Ints,
    TypeAttribute,
    attribute,
    operand,
    result,
)
from . import expression as e
from .expression import ONE, Tensor
from .expression_scalar import wide
from .nd_base import NumberTensor, OrderedTensor, nd
from .operator import Operator, Requirement


class Reduction(Operator):
    """One operand reduced over `axes`."""

    __slots__ = ()
    x = operand(OrderedTensor)
    axes = attribute(Ints, optional=True, doc="the axes reduced; all where absent")
    keepdims = attribute(Bool, default=False)
    y = result(AnyTensor)

    @property
    def reduced(self) -> list[int]:
        """The axes reduced, from 0 up."""
        return self.normal_axes(self.axes, self.x.type.rank)

    def element(self) -> Type:
        """The element type of the result."""
        return self.x.type.element  # type: ignore[no-any-return]

    def infer_types(self) -> list[Type]:
        axes, dims = self.reduced, self.x.type.dims
        kept = [ONE if n in axes else d for n, d in enumerate(dims) if self.keepdims or n not in axes]
        return [TensorType(tuple(kept), self.element())]

    def refuse_empty(self) -> None:
        """An error where a reduced axis is known to be empty."""
        for n in self.reduced:
            if self.x.type.dims[n] is e.ZERO:
                raise self.error(f"has no value over axis {n} of {self.value_name(self.x)}, which is empty")


class Accumulation(Reduction):
    """A reduction whose result, and accumulator, may be given another element type by `dtype`."""

    __slots__ = ()
    x = operand(IntegerTensor | NumberTensor)
    dtype = attribute(TypeAttribute, optional=True)

    def element(self) -> Type:
        return self.dtype or widened(self.x.type.element)

    def infer_types(self) -> list[Type]:
        source, target = self.x.type.element, self.element()
        if isinstance(source, FloatType) and not isinstance(target, FloatType):
            raise self.error(f"cannot accumulate '{source}' in '{target}'; use nd.cast")
        return super().infer_types()

    def accumulated(self, x: Tensor) -> Tensor:
        """x in the type that accumulates."""
        target = wide(self.element())
        narrower = isinstance(x.type, FloatType) and x.type.width > getattr(target, "width", 0)
        return x if narrower else e.cast(x, target)  # type: ignore[no-any-return]


def widened(type: Type) -> Type:
    """i64 or ui64 for narrower integers."""
    if not isinstance(type, IntegerType):
        return type
    return ui64 if type.signedness == "u" else i64


@nd.op
class Sum(Accumulation):
    """The sum; 0 over nothing. Of integers in i64 (ui64) unless `dtype` is given.

    Precision `keep`: a sum of f16 can leave its range, as 1000 values of 100 do."""

    __slots__ = ()
    name = "nd.sum"
    precision = "keep"

    def define(self, x: Tensor) -> Tensor:
        return e.reduce_sum(self.accumulated(x), self.reduced, self.keepdims)


@nd.op
class Prod(Accumulation):
    """The product; 1 over nothing. Of integers in i64 (ui64) unless `dtype` is given. Precision as for
    sum."""

    __slots__ = ()
    name = "nd.prod"
    precision = "keep"

    def define(self, x: Tensor) -> Tensor:
        return e.reduce_prod(self.accumulated(x), self.reduced, self.keepdims)


@nd.op
class Mean(Accumulation):
    """The sum over the count; NaN over nothing. Of integers only with a float `dtype`."""

    __slots__ = ()
    name = "nd.mean"
    precision = "low_accumulate"

    def infer_types(self) -> list[Type]:
        if not isinstance(self.element(), FloatType):
            raise self.error(f"is of floats, not of '{self.x.type.element}': give dtype, or use nd.cast first")
        return super().infer_types()

    def define(self, x: Tensor) -> Tensor:
        return e.reduce_mean(self.accumulated(x), self.reduced, self.keepdims)


@nd.op
class Max(Reduction):
    """The greatest element; NaN where one is NaN. Over a static 0 an error, over a dynamic one -inf or the
    least integer."""

    __slots__ = ()
    name = "nd.max"
    precision = "low_accumulate"

    def infer_types(self) -> list[Type]:
        self.refuse_empty()
        return super().infer_types()

    def define(self, x: Tensor) -> Tensor:
        return e.reduce_max(x, self.reduced, self.keepdims)


@nd.op
class Min(Reduction):
    """The least element; NaN where one is NaN. Over a static 0 an error, over a dynamic one inf or the
    greatest integer."""

    __slots__ = ()
    name = "nd.min"
    precision = "low_accumulate"

    def infer_types(self) -> list[Type]:
        self.refuse_empty()
        return super().infer_types()

    def define(self, x: Tensor) -> Tensor:
        return e.reduce_min(x, self.reduced, self.keepdims)


@nd.op
class Argmax(Reduction):
    """The index (i64) of the first greatest element along `axis`, or row-major over all axes where absent;
    the first NaN where there is one, as NumPy. The axis must not be empty."""

    __slots__ = ()
    name = "nd.argmax"
    axes = None
    axis = attribute(Int, optional=True)

    @property
    def reduced(self) -> list[int]:
        return self.normal_axes(None if self.axis is None else [self.axis], self.x.type.rank)

    def element(self) -> Type:
        return i64

    def infer_types(self) -> list[Type]:
        self.refuse_empty()
        return super().infer_types()

    def shape_requirements(self) -> Iterable[Requirement]:
        for n in self.reduced:
            d = self.x.type.dims[n]
            yield Requirement(d.ge(1), f"argmax over axis {n} of {self.value_name(self.x)} needs it not to be empty")

    def define(self, x: Tensor) -> Tensor:
        return e.reduce_argmax(x, self.reduced, self.keepdims)[1]
