"""The `nn` dialect: operators of neural networks. Each takes f16 to f64; statistics are held in f32 or wider.

Precision: all `low_accumulate`: low operands and results, wide inside. Softmax and the norms scale each row
by its own statistics, so that their results stay in the range of f16."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..ir.attributes import FloatType, IntegerType, TensorType, Type, i1, i32
from ..ir.definition import (
    AnyTensor,
    Bool,
    Float,
    FloatTensor,
    Int,
    TypeAttribute,
    attribute,
    operand,
    result,
)
from ..ir.dims import Dim
from ..ir.registry import Dialect
from . import expression as e
from .expression import Scalar, Tensor
from .expression_scalar import wide
from .nd_base import NumberTensor
from .operator import Operator, Requirement, broadcast_requirements, equal_requirement
from .scalar import rounded

nn = Dialect("nn", "Operators of neural networks.")
operator = nn.op


@nn.op
class Softmax(Operator):
    """exp(x - max(x)) / sum(exp(x - max(x))) along `axis`. A row that is all -inf gives NaN, as PyTorch
    does."""

    __slots__ = ()
    name = "nn.softmax"
    x = operand(FloatTensor)
    axis = attribute(Int, default=-1)
    y = result(FloatTensor)
    precision = "low_accumulate"

    def infer_types(self) -> list[Type]:
        self.normal_axis(self.axis, self.x.type.rank)
        return [self.x.type]

    def define(self, x: Tensor) -> Tensor:
        exponential = e.materialize(e.exp(x - e.reduce_max(x, [self.axis], keepdims=True)))
        return exponential / e.reduce_sum(exponential, [self.axis], keepdims=True)


class Norm(Operator):
    """x normalised over its last axes, times a weight and plus a bias of the shape of those axes."""

    __slots__ = ()
    precision = "low_accumulate"
    eps: float

    @property
    def normalized(self) -> list[int]:
        """The axes that are normalised, from 0 up."""
        raise NotImplementedError

    def infer_types(self) -> list[Type]:
        eps = rounded(self.eps, wide(self.operands[0].type.element))  # type: ignore[attr-defined]
        self.refuse_number("eps", 0 <= eps < math.inf, "finite and not negative")
        self.same_element(self.operands)
        for value in self.operands[1:]:
            if value.type.rank != len(self.normalized):  # type: ignore[attr-defined]
                raise self.error(f"needs {self.value_name(value)} of rank {len(self.normalized)}, not '{value.type}'")
        return [self.operands[0].type]

    def shape_requirements(self) -> Iterable[Requirement]:
        x = self.operands[0]
        for value in self.operands[1:]:
            for n, axis in enumerate(self.normalized):
                yield from equal_requirement(self, x, axis, value, n, "needs the sizes of the normalised axes")


@nn.op
class LayerNorm(Norm):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last `normalized_rank` axes (Ba et al. 2016). The
    variance is the mean of (x - mean)^2, in a second pass. `affine` is empty, a weight, or a weight and a
    bias."""

    __slots__ = ()
    name = "nn.layer_norm"
    x = operand(FloatTensor)
    affine = operand(FloatTensor, variadic=True, doc="weight, bias: of the shape of the last axes")
    eps = attribute(Float, default=1e-5)
    normalized_rank = attribute(Int, default=1)
    y = result(FloatTensor)

    @property
    def normalized(self) -> list[int]:
        rank = self.x.type.rank
        if not 1 <= self.normalized_rank <= rank:
            raise self.error(f"has normalized_rank {self.normalized_rank}, but the range allowed is 1 to {rank}")
        return list(range(rank - self.normalized_rank, rank))

    def infer_types(self) -> list[Type]:
        if len(self.affine) > 2:
            raise self.error(f"takes a weight and a bias, not {len(self.affine)} operands after x")
        return super().infer_types()

    def define(self, x: Tensor, affine: list[Tensor]) -> Tensor:
        axes = self.normalized
        centered = e.named("centered", x - e.named("mean", e.reduce_mean(x, axes, keepdims=True)))
        variance = e.reduce_mean(centered * centered, axes, keepdims=True)
        y = centered * e.named("scale", e.rsqrt(variance + self.eps))
        y = y * affine[0] if affine else y
        return y + affine[1] if len(affine) > 1 else y


@nn.op
class RmsNorm(Norm):
    """x / sqrt(mean(x^2) + eps) * weight over the last axis (Zhang and Sennrich 2019)."""

    __slots__ = ()
    name = "nn.rms_norm"
    x = operand(FloatTensor)
    weight = operand(FloatTensor, optional=True)
    eps = attribute(Float, default=1e-6)
    y = result(FloatTensor)

    @property
    def normalized(self) -> list[int]:
        return [self.normal_axis(-1, self.x.type.rank)]

    def define(self, x: Tensor, weight: Tensor | None) -> Tensor:
        y = x * e.named("scale", e.rsqrt(e.reduce_mean(x * x, [-1], keepdims=True) + self.eps))
        return y if weight is None else y * weight


@nn.op
class Matmul(Operator):
    """The matrix product over the last two axes, batch axes broadcast; an operand of rank 1 is a row on the
    left and a column on the right, and its axis is not in the result, as NumPy's. `transpose_a` and
    `transpose_b` swap the last two axes of an operand. 8-bit integers give i32; others keep their type and
    wrap. Floats accumulate in f32 or f64 and round once, to `dtype` where given."""

    __slots__ = ()
    name = "nn.matmul"
    a = operand(NumberTensor)
    b = operand(NumberTensor)
    transpose_a = attribute(Bool, default=False)
    transpose_b = attribute(Bool, default=False)
    dtype = attribute(TypeAttribute, optional=True)
    y = result(AnyTensor)
    precision = "low_accumulate"

    def infer_types(self) -> list[Type]:
        self.same_element([self.a, self.b])
        for value, transposed in ((self.a, self.transpose_a), (self.b, self.transpose_b)):
            if value.type.rank < (2 if transposed else 1):
                raise self.error(f"cannot multiply {self.value_name(value)} of '{value.type}': its rank is too low")
        return [TensorType((*self.batch, *self.rows, *self.columns), self.element())]

    def element(self) -> Type:
        """The element type of the result."""
        source = self.a.type.element
        if self.dtype is not None:
            if isinstance(source, FloatType) is not isinstance(self.dtype, FloatType) or self.dtype is i1:
                raise self.error(f"of '{source}' cannot give '{self.dtype}'")
            return self.dtype  # type: ignore[no-any-return]
        return i32 if isinstance(source, IntegerType) and source.width == 8 else source

    @property
    def batch(self) -> tuple[Dim, ...]:
        return self.broadcast([self.a, self.b], [v.type.dims[:-2] for v in (self.a, self.b)])

    @property
    def rows(self) -> tuple[Dim, ...]:
        """The row dim of the result, none for a left operand of rank 1."""
        dims = self.a.type.dims
        return () if len(dims) == 1 else (dims[-1 if self.transpose_a else -2],)

    @property
    def columns(self) -> tuple[Dim, ...]:
        dims = self.b.type.dims
        return () if len(dims) == 1 else (dims[-2 if self.transpose_b else -1],)

    @property
    def inner(self) -> tuple[int, int]:
        """The axes of a and b that are summed over."""
        a, b = self.a.type.rank, self.b.type.rank
        return (a - 2 if self.transpose_a else a - 1), (b - 1 if self.transpose_b or b == 1 else b - 2)

    def shape_requirements(self) -> Iterable[Requirement]:
        yield from equal_requirement(self, self.a, self.inner[0], self.b, self.inner[1], "cannot multiply")
        yield from broadcast_requirements(self, [self.a, self.b], [v.type.dims[:-2] for v in (self.a, self.b)])

    def define(self, a: Tensor, b: Tensor) -> Tensor:
        batch, rows, columns = self.batch, self.rows, self.columns
        accumulator = wide(self.element())
        if not isinstance(accumulator, FloatType) or a.type.width < accumulator.width:  # type: ignore[attr-defined]
            a, b = e.cast(a, accumulator), e.cast(b, accumulator)

        def point(*at: Scalar) -> Scalar:
            i, j, k = at[len(batch) : -1][: len(rows)], at[len(batch) + len(rows) : -1], at[-1]
            left, right = (k, *i) if self.transpose_a else (*i, k), (*j, k) if self.transpose_b else (k, *j)
            return a.at(*_batch(a, batch, at), *left) * b.at(*_batch(b, batch, at), *right)  # type: ignore[no-any-return]

        return e.contract((*batch, *rows, *columns), [a.shape[self.inner[0]]], point)


def _batch(t: Tensor, batch: Sequence[Dim], at: Sequence[Scalar]) -> list[Scalar]:
    """Indices of the batch axes of an operand, for a point of the result."""
    own = t.shape[:-2]
    skip = len(batch) - len(own)
    return [e.broadcast_index(d, r, i) for d, r, i in zip(own, batch[skip:], at[skip:])]
