"""What scalar operations compute, as NumPy functions: the one table that folding, the evaluator and the
printers of C and CUDA follow.

Each function takes NumPy arrays of one element type (0-d or broadcastable) and returns an array. The rules,
where C or LLVM leave a choice:

- Integers wrap around. i1 holds 0 and -1 for signed operations, 0 and 1 for unsigned ones. `index` is int64.
- Division and remainder by zero give 0; the smallest integer divided by -1 gives itself, its remainder is 0.
- A shift amount is unsigned; a shift by the width or more gives 0, or the sign for `shrsi`.
- `maximumf`, `minimumf` propagate NaN; `maxnumf`, `minnumf` prefer the number; all order -0.0 below +0.0.
- Float to integer truncates and saturates; NaN gives 0. A conversion to a float rounds once, to nearest even.
- `+ - * / sqrt fma` and `remf` round once. Other functions of f32 and narrower go through f64 and round once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _Numpy:
        """NumPy, imported when first used, so that loading a dialect is cheap."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            value = getattr(numpy, name)
            setattr(self, name, value)
            return value

    np = _Numpy()

Array = Any  # numpy.ndarray; spelled so that importing this module does not import NumPy

# ---------------------------------------------------------------- integers


def signed(a: Array) -> Array:
    """The signed reading; i1 becomes 0 and -1."""
    if a.dtype.kind == "b":
        return -a.astype(np.int8)
    return a.view(f"i{a.dtype.itemsize}") if a.dtype.kind == "u" else a


def unsigned(a: Array) -> Array:
    return a.view(f"u{a.dtype.itemsize}")


def _back(result: Array, like: Array) -> Array:
    """`result` in the dtype of `like`, wrapped."""
    if like.dtype.kind == "b":
        return (np.asarray(result) & 1).astype(np.bool_)
    return np.asarray(result).astype(like.dtype)


def _width(a: Array) -> int:
    return 1 if a.dtype.kind == "b" else 8 * int(a.dtype.itemsize)


Function = Callable[..., Any]


def _signed_op(function: Function) -> Function:
    return lambda a, b: _back(function(signed(a), signed(b)), a)


def _unsigned_op(function: Function) -> Function:
    return lambda a, b: _back(function(unsigned(a), unsigned(b)), a)


def _quotient(a: Array, b: Array) -> Array:
    safe = np.where((b == 0) | (b == -1), 1, b).astype(b.dtype)
    towards_zero = (a - np.fmod(a, safe)) // safe
    return np.where(b == 0, 0, np.where(b == -1, -a, towards_zero))


def _remainder(a: Array, b: Array) -> Array:
    small = (b == 0) | (b == -1)
    return np.where(small, 0, np.fmod(a, np.where(small, 1, b).astype(b.dtype)))


def _floor_quotient(a: Array, b: Array) -> Array:
    return _quotient(a, b) - ((_remainder(a, b) != 0) & ((a < 0) != (b < 0)))


def _ceil_quotient(a: Array, b: Array) -> Array:
    return _quotient(a, b) + ((_remainder(a, b) != 0) & ((a < 0) == (b < 0)))


def _unsigned_quotient(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, a // np.where(b == 0, 1, b).astype(b.dtype))


def _unsigned_remainder(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, a % np.where(b == 0, 1, b).astype(b.dtype))


def _unsigned_ceil_quotient(a: Array, b: Array) -> Array:
    return _unsigned_quotient(a, b) + (_unsigned_remainder(a, b) != 0)


addi = _signed_op(lambda a, b: np.add(a, b))
subi = _signed_op(lambda a, b: np.subtract(a, b))
muli = _signed_op(lambda a, b: np.multiply(a, b))
andi = _signed_op(lambda a, b: np.bitwise_and(a, b))
ori = _signed_op(lambda a, b: np.bitwise_or(a, b))
xori = _signed_op(lambda a, b: np.bitwise_xor(a, b))
maxsi = _signed_op(lambda a, b: np.maximum(a, b))
minsi = _signed_op(lambda a, b: np.minimum(a, b))
maxui = _unsigned_op(lambda a, b: np.maximum(a, b))
minui = _unsigned_op(lambda a, b: np.minimum(a, b))
divsi = _signed_op(_quotient)
remsi = _signed_op(_remainder)
floordivsi = _signed_op(_floor_quotient)
ceildivsi = _signed_op(_ceil_quotient)
divui = _unsigned_op(_unsigned_quotient)
remui = _unsigned_op(_unsigned_remainder)
ceildivui = _unsigned_op(_unsigned_ceil_quotient)


def _shift(function: Function, a: Array, b: Array, beyond: Any) -> Array:
    amount, width = unsigned(b), _width(a)
    small = np.where(amount < width, amount, 0).astype(a.dtype)
    return np.where(amount < width, function(a, small), beyond)


def shli(a: Array, b: Array) -> Array:
    return _back(_shift(lambda x, n: x << n, unsigned(a), b, 0), a) if _width(a) > 1 else a & ~b


def shrui(a: Array, b: Array) -> Array:
    return _back(_shift(lambda x, n: x >> n, unsigned(a), b, 0), a) if _width(a) > 1 else a & ~b


def shrsi(a: Array, b: Array) -> Array:
    return (
        _back(_shift(lambda x, n: x >> n, a, b, -(a < 0).astype(a.dtype)), a)
        if _width(a) > 1
        else a | (a & b)
    )


_COMPARE = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}


def cmpi(predicate: str, a: Array, b: Array) -> Array:
    """`predicate` is eq, ne, or lt, le, gt, ge after s or u."""
    read = unsigned if predicate[0] == "u" else signed
    return getattr(np, _COMPARE[predicate[-2:]])(read(a), read(b))


def cmpf(predicate: str, a: Array, b: Array) -> Array:
    """`predicate` is false, true, ord, uno, or eq, ne, lt, le, gt, ge after o (ordered) or u (or
    unordered)."""
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in ("false", "true"):
        return np.full(unordered.shape, predicate == "true")
    if predicate in ("ord", "uno"):
        return unordered if predicate == "uno" else ~unordered
    holds = getattr(np, _COMPARE[predicate[-2:]])(a, b)
    return holds | unordered if predicate[0] == "u" else holds & ~unordered


def select(condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition, a, b)


def absi(a: Array) -> Array:
    return _back(np.abs(signed(a)), a)


def ctpop(a: Array) -> Array:
    bits = unsigned(a)
    return _back(sum((bits >> n) & 1 for n in range(_width(a))), a)


def ipowi(a: Array, n: Array) -> Array:
    """a**n, wrapping. For n < 0 it is 1 for a = 1, 1 or -1 for a = -1, else 0."""
    base, power = np.broadcast_arrays(signed(a), signed(n))
    odd, result, rest = power & 1, np.ones_like(base), np.maximum(power, 0)
    for _ in range(_width(a)):
        result = np.where(rest & 1, result * base, result)
        base, rest = base * base, rest >> 1
    inverse = np.where(signed(a) == 1, 1, np.where(signed(a) == -1, np.where(odd, -1, 1), 0))
    return _back(np.where(power < 0, inverse, result), a)


# ---------------------------------------------------------------- floats


def _once(function: Function) -> Function:
    """Formats below f32 go through f32 and round once: exact for + - * / sqrt, rounding, minima and
    maxima."""

    def apply(*arrays: Array) -> Array:
        dtype = arrays[0].dtype
        if dtype.itemsize >= 4:
            return function(*arrays)
        return np.asarray(function(*[a.astype(np.float32) for a in arrays])).astype(dtype)

    return apply


def _in_f64(function: Function) -> Function:
    """Computed in f64 and rounded once to the operands' type."""
    return lambda *arrays: round_to(
        np.asarray(function(*[a.astype(np.float64) for a in arrays])), arrays[0].dtype
    )


def _to_odd(x: Array) -> Array:
    """f64 as f32, rounded to odd, so that rounding further down is as if it had started from f64."""
    near = x.astype(np.float32)
    even = (near.view(np.uint32) & 1) == 0
    wrong = (near != x) & ~np.isnan(x) & even
    return np.where(wrong, np.nextafter(near, np.where(x > near, np.inf, -np.inf).astype(np.float32)), near)


def round_to(x: Array, dtype: Any) -> Array:
    """A float array in another float dtype, rounded once to nearest even."""
    if x.dtype == np.float64 and np.dtype(dtype) not in (np.float64, np.float32, np.float16):
        x = _to_odd(x)  # ml_dtypes goes from f64 through f32
    return x.astype(dtype)


def _maximum(a: Array, b: Array) -> Array:
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def _max_number(a: Array, b: Array) -> Array:
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, _maximum(a, b)))  # fmax keeps a signalling NaN


def _minimum(a: Array, b: Array) -> Array:
    return -_maximum(-a, -b)


def _min_number(a: Array, b: Array) -> Array:
    return -_max_number(-a, -b)


def _half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(np.ones_like(x), x), whole)


def _power(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    return np.power(np.atleast_1d(a), np.atleast_1d(b)).reshape(
        a.shape
    )  # 0-d exponents take wrong short cuts


addf = _once(lambda a, b: np.add(a, b))
subf = _once(lambda a, b: np.subtract(a, b))
mulf = _once(lambda a, b: np.multiply(a, b))
divf = _once(lambda a, b: np.divide(a, b))
remf = _once(lambda a, b: np.fmod(a, b))
negf = _once(lambda a: np.negative(a))
maximumf, minimumf = _once(_maximum), _once(_minimum)
maxnumf, minnumf = _once(_max_number), _once(_min_number)
absf = _once(lambda a: np.abs(a))
sqrt = _once(lambda a: np.sqrt(a))
floor = _once(lambda a: np.floor(a))
ceil = _once(lambda a: np.ceil(a))
trunc = _once(lambda a: np.trunc(a))
roundeven = _once(lambda a: np.rint(a))
round_half_away = _once(_half_away)
copysign = _once(lambda a, b: np.copysign(a, b))
isnan: Function = lambda a: np.isnan(a)  # noqa: E731
isinf: Function = lambda a: np.isinf(a)  # noqa: E731
isfinite: Function = lambda a: np.isfinite(a)  # noqa: E731
powf = _in_f64(_power)
rsqrt = _in_f64(lambda a: 1 / np.sqrt(a))


def function(name: str) -> Function:
    """The NumPy function `name` of f64, rounded once to the operands' type."""
    return _in_f64(lambda *arrays: getattr(np, name)(*arrays))


def _elementwise(scalar: Callable[..., float], *arrays: Array) -> Array:
    return np.asarray(np.frompyfunc(scalar, len(arrays), 1)(*arrays)).astype(np.float64)


erf = _in_f64(lambda a: _elementwise(math.erf, a))


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once."""
    if a.dtype == np.float64:
        return _elementwise(_exact_fma, a, b, c)
    x, y, z = (v.astype(np.float64) for v in (a, b, c))
    total, error = _two_sum(x * y, z)  # the product of two f32 is exact
    return round_to(_nudge_to_odd(total, error), a.dtype)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and what rounding left out (Knuth)."""
    total = np.asarray(a + b)
    part = total - a
    return total, np.asarray((a - (total - part)) + (b - part))


def _nudge_to_odd(total: Array, error: Array) -> Array:
    even = (total.view(np.uint64) & 1) == 0
    wrong = np.isfinite(total) & even & (error != 0) & ~np.isnan(error)
    return np.where(wrong, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)


def _exact_fma(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else a * b + c  # a sum of 0 is exact in floats, and has the right sign
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


# ---------------------------------------------------------------- conversions


def extend_signed(a: Array, dtype: Any) -> Array:
    return resize(signed(a), dtype)


def extend_unsigned(a: Array, dtype: Any) -> Array:
    return resize(unsigned(a), dtype)


def resize(a: Array, dtype: Any) -> Array:
    """An integer array in another integer dtype, modulo 2**width."""
    return (a & 1).astype(np.bool_) if np.dtype(dtype).kind == "b" else a.astype(dtype)


def integer_to_float(a: Array, dtype: Any) -> Array:
    """Rounded once; i64 to bf16 goes through an f64 whose last bit says whether bits were lost."""
    if np.dtype(dtype).itemsize <= 2 and a.dtype.itemsize == 8:
        low = a & 0x7FF
        a = np.where((low != 0) & (np.abs(a.astype(np.float64)) > 2.0**53), (a - low) | 0x800, a)
    if np.dtype(dtype).itemsize <= 2:
        return round_to(a.astype(np.float64), dtype)
    return a.astype(dtype)


def sitofp(a: Array, dtype: Any) -> Array:
    return integer_to_float(signed(a), dtype)


def uitofp(a: Array, dtype: Any) -> Array:
    return integer_to_float(unsigned(a), dtype)


def _saturate(a: Array, low: int, high: int, dtype: Any) -> Array:
    x = np.trunc(a.astype(np.float64))
    inside = (x >= low) & (x < high + 1)
    whole = np.where(inside, x, 0).astype(dtype)
    number = np.dtype(dtype).type
    return np.where(inside, whole, np.where(x > 0, number(high), np.where(x < 0, number(low), number(0))))


def fptosi(a: Array, dtype: Any) -> Array:
    if np.dtype(dtype).kind == "b":
        return _saturate(a, -1, 0, np.int8) != 0
    info = np.iinfo(dtype)
    return _saturate(a, int(info.min), int(info.max), dtype)


def fptoui(a: Array, dtype: Any) -> Array:
    if np.dtype(dtype).kind == "b":
        return _saturate(a, 0, 1, np.uint8) != 0
    wide = np.dtype(f"u{np.dtype(dtype).itemsize}")
    return _saturate(a, 0, int(np.iinfo(wide).max), wide).view(dtype)


def bitcast(a: Array, dtype: Any) -> Array:
    return a.view(dtype)
