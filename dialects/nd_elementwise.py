"""`nd`: elementwise operators. Operands broadcast as NumPy's do and have one element type.

Precision: arithmetic and choice `follow` their operands. Activations whose slope is bounded are `low`. Those
whose results leave the range of f16 for operands well inside it, or that lose what f16 rounds off
(exponentials, logarithms, powers, reciprocals), are `keep`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from ..ir.attributes import FloatType, IntegerAttr, Type, i1
from ..ir.core import Value
from ..ir.definition import (
    AnyTensor,
    BoolTensor,
    Constraint,
    FloatTensor,
    IntegerTensor,
    Number,
    TypeAttribute,
    attribute,
    one_of,
    operand,
    result,
)  # fmt: skip
from . import expression as e
from .expression import Tensor, where
from .expression_scalar import wide
from .nd_base import Elementwise, NumberTensor, OrderedTensor, SignedTensor, nd
from .operator import Precision
from .scalar import rounded

# ---------------------------------------------------------------- one operand


class Unary(Elementwise):
    """One operand; the result has its type."""

    __slots__ = ()
    function: ClassVar[Callable[[Any], Tensor]]
    x = operand(FloatTensor)
    y = result(AnyTensor)

    def define(self, x: Tensor) -> Tensor:
        return type(self).function(x)


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def unary(
    name: str, function: Callable[[Any], Tensor], doc: str, precision: Precision = "follow",
    accepts: Constraint = FloatTensor,
) -> type[Unary]:  # fmt: skip
    """Register `nd.name`, defined by a function of traced tensors."""
    fields = {
        "__slots__": (), "__doc__": doc, "__module__": __name__, "name": f"nd.{name}", "precision": precision,
        "function": staticmethod(function), "x": operand(accepts),
    }  # fmt: skip
    return nd.op(type(_class_name(name), (Unary,), fields))


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), which neither overflows to NaN nor needs a case."""
    return 1 / (1 + e.exp(-x))


def _sign(x: Any) -> Any:
    return where(x > 0, 1, where(x < 0, -1, x))


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + e.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + e.erf(x * math.sqrt(0.5)))


Neg = unary("neg", e.neg, "-x; integers wrap.", accepts=NumberTensor)
Abs = unary("abs", e.abs, "|x|; the least integer stays itself.", accepts=NumberTensor)
Sign = unary("sign", _sign, "-1, 0 or 1; zeros and NaN stay.", accepts=NumberTensor)
Square = unary("square", lambda x: x * x, "x * x.", "keep", NumberTensor)
Relu = unary("relu", lambda x: e.maximum(x, 0), "max(x, 0); NaN stays.", accepts=NumberTensor)
Exp = unary("exp", e.exp, "e to the power x.", "keep")
Exp2 = unary("exp2", e.exp2, "2 to the power x.", "keep")
Expm1 = unary("expm1", e.expm1, "exp(x) - 1, accurate near 0.", "keep")
Log = unary("log", e.log, "The natural logarithm; NaN below 0.", "keep")
Log2 = unary("log2", e.log2, "The logarithm to base 2.", "keep")
Log1p = unary("log1p", e.log1p, "log(1 + x), accurate near 0.", "keep")
Sqrt = unary("sqrt", e.sqrt, "The square root; NaN below 0.", "low")
Rsqrt = unary("rsqrt", e.rsqrt, "1 / sqrt(x).", "keep")
Reciprocal = unary("reciprocal", lambda x: 1 / x, "1 / x.", "keep")
Tanh = unary("tanh", e.tanh, "The hyperbolic tangent.", "low")
Sigmoid = unary("sigmoid", sigmoid, "1 / (1 + exp(-x)).", "low")
Silu = unary("silu", lambda x: x / (1 + e.exp(-x)), "x * sigmoid(x).", "low")
Erf = unary("erf", e.erf, "The error function.", "low")
Sin = unary("sin", e.sin, "Sine; x in radians.")
Cos = unary("cos", e.cos, "Cosine; x in radians.")
Floor = unary("floor", e.floor, "The greatest whole number not above x.")
Ceil = unary("ceil", e.ceil, "The least whole number not below x.")
Round = unary("round", e.round_even, "The nearest whole number, ties to even.")


@nd.op
class Gelu(Unary):
    """x * Phi(x), Phi the normal distribution function: by erf, or with `approximate = "tanh"` as
    0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016)."""

    __slots__ = ()
    name = "nd.gelu"
    precision = "low"
    approximate = attribute(one_of("none", "tanh"), default="none")

    def define(self, x: Tensor) -> Tensor:
        return _gelu_tanh(x) if self.approximate == "tanh" else _gelu(x)


@nd.op
class Softplus(Unary):
    """log(1 + exp(beta x)) / beta; x itself where beta x > threshold, as PyTorch."""

    __slots__ = ()
    name = "nd.softplus"
    precision = "low"
    beta = attribute(Number, default=1.0, doc="finite and not 0")
    threshold = attribute(Number, default=20.0, doc="no NaN")

    def infer_types(self) -> list[Type]:
        type = wide(self.x.type.element)
        beta, threshold = rounded(self.beta, type), rounded(self.threshold, type)
        self.refuse_number("beta", math.isfinite(beta) and beta != 0, f"finite and not 0 in '{type}'")
        self.refuse_number("threshold", not math.isnan(threshold), "a number, not NaN")
        return super().infer_types()

    def define(self, x: Tensor) -> Tensor:
        scaled = x * self.beta
        return where(scaled > self.threshold, x, e.log1p(e.exp(scaled)) / self.beta)


@nd.op
class LogicalNot(Unary):
    """x == 0, as i1."""

    __slots__ = ()
    name = "nd.logical_not"
    x = operand(AnyTensor)
    y = result(BoolTensor)

    def element(self) -> Type:
        return i1

    def define(self, x: Tensor) -> Tensor:
        return e.equal(x, 0)


@nd.op
class Clamp(Unary):
    """min(max(x, min), max): NaN stays, and the upper bound wins where they cross. Either may be left out."""

    __slots__ = ()
    name = "nd.clamp"
    x = operand(NumberTensor)
    min = attribute(Number, optional=True)
    max = attribute(Number, optional=True)

    def infer_types(self) -> list[Type]:
        for name in ("min", "max"):
            bound, element = self.get(name), self.x.type.element
            if bound is not None and not isinstance(element, FloatType):
                low, high = element.range()
                if not isinstance(bound, IntegerAttr) or not low <= bound.value <= high:
                    raise self.error(f"has bound {name} = {bound}, which is not a value of '{element}'")
        return super().infer_types()

    def define(self, x: Tensor) -> Tensor:
        x = x if self.min is None else e.maximum(x, self.min)
        return x if self.max is None else e.minimum(x, self.max)


@nd.op
class Cast(Unary):
    """x as `dtype`. To a float: rounded once, to nearest even; overflow is infinity (NaN in f8E4M3FN). Float
    to integer: towards zero, saturated, NaN gives 0. Integer to integer: modulo 2**width. To i1: x != 0."""

    __slots__ = ()
    name = "nd.cast"
    x = operand(AnyTensor)
    dtype = attribute(TypeAttribute)

    def element(self) -> Type:
        return self.dtype  # type: ignore[no-any-return]

    def define(self, x: Tensor) -> Tensor:
        return e.cast(x, self.dtype)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- two operands


class Binary(Elementwise):
    """Two operands of one element type, broadcast."""

    __slots__ = ()
    function: ClassVar[Callable[[Any, Any], Tensor]]
    lhs = operand(NumberTensor)
    rhs = operand(NumberTensor)
    y = result(AnyTensor)

    def define(self, lhs: Tensor, rhs: Tensor) -> Tensor:
        return type(self).function(lhs, rhs)


def binary(
    name: str, function: Callable[[Any, Any], Tensor], doc: str, precision: Precision = "follow",
    accepts: Constraint = NumberTensor,
) -> type[Binary]:  # fmt: skip
    """Register `nd.name`, defined by a function of two traced tensors."""
    fields = {
        "__slots__": (), "__doc__": doc, "__module__": __name__, "name": f"nd.{name}", "precision": precision,
        "function": staticmethod(function), "lhs": operand(accepts), "rhs": operand(accepts),
    }  # fmt: skip
    return nd.op(type(_class_name(name), (Binary,), fields))


def _opposed(r: Any, b: Any) -> Any:
    """Whether a remainder is not 0 and has the other sign than the divisor."""
    return e.ne(r, 0) & ((r < 0) ^ (b < 0))


def _remainder(a: Any, b: Any) -> Any:
    """a - b * floor(a / b), exactly: C's remainder moved to the sign of b (as CPython's float_rem)."""
    r = e.trunc_remainder(a, b)
    moved = where(_opposed(r, b), r + b, r)
    return where(e.equal(r, 0), e.copysign(r, b), moved) if isinstance(r.type, FloatType) else moved


def _floor_div(a: Any, b: Any) -> Any:
    """floor(a / b); of floats the floor of the exact quotient, by the exact remainder (CPython's
    float_divmod)."""
    if not isinstance(a.type, FloatType):
        return e.floor_quotient(a, b)
    r = e.trunc_remainder(a, b)
    q = (a - r) / b
    q = where(_opposed(r, b), q - 1, q)
    whole = e.floor(q)
    whole = where(q - whole > 0.5, whole + 1, whole)
    return where(e.equal(b, 0), a / b, where(e.equal(q, 0), e.copysign(q, a / b), whole))


Add = binary("add", e.add, "x + y; integers wrap.")
Sub = binary("sub", e.sub, "x - y; integers wrap.")
Mul = binary("mul", e.mul, "x * y; integers wrap.")
Maximum = binary("maximum", e.maximum, "The greater; NaN where one is NaN.", accepts=OrderedTensor)
Minimum = binary("minimum", e.minimum, "The lesser; NaN where one is NaN.", accepts=OrderedTensor)
Pow = binary("pow", e.power, "x to the power y; of integers as math.ipowi.", "keep", SignedTensor)
And = binary("and", e.bit_and, "Bitwise and; logical for i1.", accepts=IntegerTensor)
Or = binary("or", e.bit_or, "Bitwise or; logical for i1.", accepts=IntegerTensor)
Xor = binary("xor", e.bit_xor, "Bitwise exclusive or; logical for i1.", accepts=IntegerTensor)
FloorDiv = binary(
    "floor_div", e.lifted(_floor_div), "floor(x / y): -7 by 2 is -4. An integer by 0 is 0, a float as x / y."
)
Remainder = binary(
    "remainder",
    e.lifted(_remainder),
    "x - y * floor(x / y), with the sign of y. An integer by 0 gives 0, a float NaN.",
)


@nd.op
class Div(Binary):
    """x / y, rounded once; of floats only."""

    __slots__ = ()
    name = "nd.div"
    function = staticmethod(e.div)

    def element(self) -> Type:
        type = super().element()
        if not isinstance(type, FloatType):
            raise self.error(f"divides '{type}': true division is of floats; use nd.floor_div, or nd.cast first")
        return type


@nd.op
class Compare(Binary):
    """`predicate`: lt, le, gt, ge, eq or ne. A comparison with NaN is false, save ne."""

    __slots__ = ()
    name = "nd.compare"
    lhs = operand(OrderedTensor)
    rhs = operand(OrderedTensor)
    y = result(BoolTensor)
    predicate = attribute(one_of("lt", "le", "gt", "ge", "eq", "ne"))

    def element(self) -> Type:
        self.same_element(self.operands)
        return i1

    def define(self, lhs: Tensor, rhs: Tensor) -> Tensor:
        return e.compare(self.predicate, lhs, rhs)  # type: ignore[no-any-return]


@nd.op
class Select(Elementwise):
    """x where the condition is true, else y; all three broadcast."""

    __slots__ = ()
    name = "nd.select"
    condition = operand(BoolTensor)
    x = operand(AnyTensor)
    y = operand(AnyTensor)
    z = result(AnyTensor)

    @property
    def data(self) -> tuple[Value, ...]:
        return self.operands[1:]

    def define(self, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return where(condition, x, y)  # type: ignore[no-any-return]
