"""MLIR's `math`: functions of floats and integers, on scalars, vectors and tensors."""

from __future__ import annotations

from ..ir.definition import AnyAttr, FloatLike, attribute, operand, result
from ..ir.registry import Dialect
from . import scalar_numpy
from .scalar_ops import NO_FASTMATH, FloatBinary, FloatTest, FloatUnary, IntegerBinary, IntegerUnary, ScalarOp

dialect = Dialect("math", "Mathematical functions.")


@dialect.op
class AbsF(FloatUnary):
    """Magnitude."""

    name = "math.absf"
    numpy = staticmethod(scalar_numpy.absf)


@dialect.op
class AbsI(IntegerUnary):
    """Magnitude of a signed integer; the smallest gives itself."""

    name = "math.absi"
    numpy = staticmethod(scalar_numpy.absi)


@dialect.op
class CtPop(IntegerUnary):
    """How many bits are set."""

    name = "math.ctpop"
    numpy = staticmethod(scalar_numpy.ctpop)


@dialect.op
class Exp(FloatUnary):
    """e to the power x."""

    name = "math.exp"
    numpy = staticmethod(scalar_numpy.function("exp"))


@dialect.op
class Exp2(FloatUnary):
    """2 to the power x."""

    name = "math.exp2"
    numpy = staticmethod(scalar_numpy.function("exp2"))


@dialect.op
class ExpM1(FloatUnary):
    """exp(x) - 1, accurate near 0."""

    name = "math.expm1"
    numpy = staticmethod(scalar_numpy.function("expm1"))


@dialect.op
class Log(FloatUnary):
    """Natural logarithm."""

    name = "math.log"
    numpy = staticmethod(scalar_numpy.function("log"))


@dialect.op
class Log2(FloatUnary):
    """Logarithm to base 2."""

    name = "math.log2"
    numpy = staticmethod(scalar_numpy.function("log2"))


@dialect.op
class Log10(FloatUnary):
    """Logarithm to base 10."""

    name = "math.log10"
    numpy = staticmethod(scalar_numpy.function("log10"))


@dialect.op
class Log1p(FloatUnary):
    """log(1 + x), accurate near 0."""

    name = "math.log1p"
    numpy = staticmethod(scalar_numpy.function("log1p"))


@dialect.op
class Sqrt(FloatUnary):
    """Square root."""

    name = "math.sqrt"
    numpy = staticmethod(scalar_numpy.sqrt)


@dialect.op
class Rsqrt(FloatUnary):
    """1 / sqrt(x)."""

    name = "math.rsqrt"
    numpy = staticmethod(scalar_numpy.rsqrt)


@dialect.op
class Tanh(FloatUnary):
    """Hyperbolic tangent."""

    name = "math.tanh"
    numpy = staticmethod(scalar_numpy.function("tanh"))


@dialect.op
class Sinh(FloatUnary):
    """Hyperbolic sine."""

    name = "math.sinh"
    numpy = staticmethod(scalar_numpy.function("sinh"))


@dialect.op
class Cosh(FloatUnary):
    """Hyperbolic cosine."""

    name = "math.cosh"
    numpy = staticmethod(scalar_numpy.function("cosh"))


@dialect.op
class Sin(FloatUnary):
    """Sine of x in radians."""

    name = "math.sin"
    numpy = staticmethod(scalar_numpy.function("sin"))


@dialect.op
class Cos(FloatUnary):
    """Cosine of x in radians."""

    name = "math.cos"
    numpy = staticmethod(scalar_numpy.function("cos"))


@dialect.op
class Tan(FloatUnary):
    """Tangent of x in radians."""

    name = "math.tan"
    numpy = staticmethod(scalar_numpy.function("tan"))


@dialect.op
class Asin(FloatUnary):
    """Arc sine."""

    name = "math.asin"
    numpy = staticmethod(scalar_numpy.function("arcsin"))


@dialect.op
class Acos(FloatUnary):
    """Arc cosine."""

    name = "math.acos"
    numpy = staticmethod(scalar_numpy.function("arccos"))


@dialect.op
class Atan(FloatUnary):
    """Arc tangent."""

    name = "math.atan"
    numpy = staticmethod(scalar_numpy.function("arctan"))


@dialect.op
class Erf(FloatUnary):
    """Error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x."""

    name = "math.erf"
    numpy = staticmethod(scalar_numpy.erf)


@dialect.op
class Floor(FloatUnary):
    """The greatest integer not above x."""

    name = "math.floor"
    numpy = staticmethod(scalar_numpy.floor)


@dialect.op
class Ceil(FloatUnary):
    """The least integer not below x."""

    name = "math.ceil"
    numpy = staticmethod(scalar_numpy.ceil)


@dialect.op
class Round(FloatUnary):
    """The nearest integer, halves away from zero."""

    name = "math.round"
    numpy = staticmethod(scalar_numpy.round_half_away)


@dialect.op
class RoundEven(FloatUnary):
    """The nearest integer, halves to even."""

    name = "math.roundeven"
    numpy = staticmethod(scalar_numpy.roundeven)


@dialect.op
class Trunc(FloatUnary):
    """x without its fraction."""

    name = "math.trunc"
    numpy = staticmethod(scalar_numpy.trunc)


@dialect.op
class PowF(FloatBinary):
    """lhs to the power rhs, as C's pow."""

    name = "math.powf"
    numpy = staticmethod(scalar_numpy.powf)


@dialect.op
class Atan2(FloatBinary):
    """The angle of the point (rhs, lhs)."""

    name = "math.atan2"
    numpy = staticmethod(scalar_numpy.function("arctan2"))


@dialect.op
class CopySign(FloatBinary):
    """The magnitude of lhs with the sign of rhs."""

    name = "math.copysign"
    numpy = staticmethod(scalar_numpy.copysign)


@dialect.op
class IPowI(IntegerBinary):
    """lhs to the power rhs, signed, wrapping around; a negative power rounds towards zero."""

    name = "math.ipowi"
    numpy = staticmethod(scalar_numpy.ipowi)


@dialect.op
class Fma(ScalarOp):
    """a * b + c, rounded once."""

    name = "math.fma"
    a = operand(FloatLike)
    b = operand(FloatLike)
    c = operand(FloatLike)
    fastmath = attribute(AnyAttr, default=NO_FASTMATH)
    out = result(FloatLike)
    numpy = staticmethod(scalar_numpy.fma)


@dialect.op
class IsNaN(FloatTest):
    """Whether x is NaN."""

    name = "math.isnan"
    numpy = staticmethod(scalar_numpy.isnan)


@dialect.op
class IsInf(FloatTest):
    """Whether x is an infinity."""

    name = "math.isinf"
    numpy = staticmethod(scalar_numpy.isinf)


@dialect.op
class IsFinite(FloatTest):
    """Whether x is neither NaN nor an infinity."""

    name = "math.isfinite"
    numpy = staticmethod(scalar_numpy.isfinite)
