"""What scalar operations compute: the one table that folding, the evaluator and the printers of C and CUDA follow.

Each function takes NumPy arrays of one element type (0-d or broadcastable) and returns an array. The rules, where
C or LLVM leave a choice:

- Integers wrap around. i1 holds 0 and -1 for signed operations, 0 and 1 for unsigned ones. `index` is int64.
- Division and remainder by zero give 0; the smallest integer divided by -1 gives itself, its remainder is 0.
- A shift amount is unsigned; a shift by the width or more gives 0, or the sign for `shrsi`.
- `maximumf`, `minimumf` propagate NaN, `maxnumf`, `minnumf` prefer the number; all four order -0.0 below +0.0.
- Float to integer truncates and saturates; NaN gives 0. Every conversion to a float rounds once, to nearest even.
- `+ - * / sqrt fma` and `remf` round once. Other functions of f32 and narrower are computed in f64 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..ir.attributes import (
    Attribute, DenseAttr, FloatAttr, FloatType, IndexType, IntegerAttr, IntegerType, TensorType, Type, bf16, f8E4M3FN, f8E5M2,
    f16, f32, f64, i1, i8, i16, i32, i64, index, ui8, ui16, ui32, ui64,
)  # fmt: skip
from ..ir.definition import element_of

if TYPE_CHECKING:
    import numpy as np

    from ..ir.core import Operation
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

# ---------------------------------------------------------------- types

_NAMES: dict[Type, str] = {
    i1: "bool_", i8: "int8", i16: "int16", i32: "int32", i64: "int64", index: "int64",
    ui8: "uint8", ui16: "uint16", ui32: "uint32", ui64: "uint64", f16: "float16", f32: "float32", f64: "float64",
}  # fmt: skip
_EXTENSIONS: dict[Type, str] = {bf16: "bfloat16", f8E4M3FN: "float8_e4m3fn", f8E5M2: "float8_e5m2"}
_DTYPES: dict[Type, Any] = {}
_TYPES: dict[Any, Type] = {}


def _load() -> None:
    import ml_dtypes
    import numpy

    _DTYPES.update((t, numpy.dtype(getattr(numpy, name))) for t, name in _NAMES.items())
    _DTYPES.update((t, numpy.dtype(getattr(ml_dtypes, name))) for t, name in _EXTENSIONS.items())
    _TYPES.update((dtype, t) for t, dtype in _DTYPES.items() if t is not index)


def has_dtype(type: Type) -> bool:
    """Whether NumPy can hold elements of `type` (a scalar type, or the element type of a shaped one)."""
    element = element_of(type)
    return element in _NAMES or element in _EXTENSIONS


def dtype_of(type: Type) -> np.dtype[Any]:
    """The NumPy dtype of the elements of `type`; bf16 and the f8 types come from ml_dtypes. TypeError for others."""
    if not _DTYPES:
        _load()
    try:
        return _DTYPES[element_of(type)]
    except KeyError:
        raise TypeError(f"no NumPy dtype holds '{type}'") from None


def type_of(dtype: Any) -> Type:
    """The scalar type of a NumPy dtype: unsigned dtypes give `ui8`...; int64 gives i64. TypeError for others."""
    if not _DTYPES:
        _load()
    try:
        return _TYPES[np.dtype(dtype)]
    except KeyError:
        raise TypeError(f"no element type for NumPy dtype '{dtype}'") from None


# ---------------------------------------------------------------- constants


def constant(value: Any, type: Type) -> Attribute:
    """The attribute of a Python number, NumPy scalar or array as a constant of `type`, wrapped or rounded to it.

    For a vector or tensor type a number (or 0-d array) gives a splat."""
    element = element_of(type)
    if element is type and not hasattr(value, "dtype"):
        return _plain_constant(value, element)
    array = convert(np.asarray(value), element)
    if element is type:
        return _scalar(_words(array).item(), element)
    words = _words(array).ravel().tolist()
    splat = len(set(words)) == 1
    values = words[:1] if splat else words
    return DenseAttr(type, tuple(_read(w, element) for w in values), splat)


def _plain_constant(value: Any, element: Type) -> Attribute:
    if isinstance(element, FloatType):
        return FloatAttr.of(float(value), element)
    return IntegerAttr(_wrap(int(value), element), element)


def _scalar(word: int, element: Type) -> Attribute:
    value = _read(word, element)
    return FloatAttr(value, element) if isinstance(element, FloatType) else IntegerAttr(value, element)


def _read(word: int, element: Type) -> int:
    return int(word) if isinstance(element, FloatType) else _wrap(int(word), element)


def _wrap(value: int, type: Type) -> int:
    """`value` modulo 2**width, in the reading that attributes hold: 0 or 1 for i1, signed unless the type is `ui`."""
    width = type.width if isinstance(type, IntegerType) else 64
    value &= (1 << width) - 1
    unsigned = type is i1 or (isinstance(type, IntegerType) and type.signedness == "u")
    return value if unsigned or not value >> (width - 1) else value - (1 << width)


def _words(array: Array) -> Array:
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind not in "iu" else array


def array_of(attribute: Attribute) -> Array | None:
    """The array of a constant: 0-d for a scalar or a splat; None where NumPy has no dtype for it."""
    if isinstance(attribute, DenseAttr):
        return _dense_array(attribute)
    if not isinstance(attribute, (IntegerAttr, FloatAttr)) or not has_dtype(attribute.type):
        return None
    return _from_words(attribute.bits if isinstance(attribute, FloatAttr) else attribute.value, attribute.type)


def _dense_array(attribute: DenseAttr) -> Array | None:
    if not has_dtype(attribute.type) or not all(isinstance(v, int) for v in attribute.values):
        return None
    if attribute.splat:
        return _from_words(attribute.values[0], element_of(attribute.type))
    shape = [d if isinstance(d, int) else d.value for d in attribute.type.shape]  # type: ignore[attr-defined]
    return _from_words(attribute.values, element_of(attribute.type)).reshape(shape)


def _from_words(words: Any, element: Type) -> Array:
    dtype = dtype_of(element)
    mask = (1 << 8 * dtype.itemsize) - 1
    masked = [w & mask for w in words] if isinstance(words, tuple) else words & mask
    array = np.array(masked, f"u{dtype.itemsize}")
    return array != 0 if dtype.kind == "b" else array.view(dtype)


def try_constant(value: Any, type: Type) -> Attribute | None:
    """As `constant`; None where a constant of `type` cannot be written (odd widths, dynamic dims)."""
    dims = type.shape if isinstance(type, TensorType) else ()
    static = all(d is not None and d.is_constant for d in dims)
    return constant(value, type) if static and has_dtype(type) else None


def splat_of(attribute: Attribute | None) -> int | None:
    """The one word that a constant holds everywhere: an integer, or the bits of a float."""
    if isinstance(attribute, DenseAttr):
        return attribute.values[0] if attribute.splat and isinstance(attribute.values[0], int) else None
    if isinstance(attribute, IntegerAttr):
        return attribute.value
    return attribute.bits if isinstance(attribute, FloatAttr) else None


def same_integer(word: int, value: int, type: Type) -> bool:
    """Whether `word` stands for `value` in an integer type, in the signed or the unsigned reading."""
    if isinstance(type, FloatType):
        return False
    width = type.width if isinstance(type, IntegerType) else 64
    return not (word - value) & ((1 << width) - 1)


def evaluate(op: Operation, *arrays: Array) -> Array:
    """The result of a scalar operation (an `arith` or `math` op) on arrays of its operands' element types."""
    with np.errstate(all="ignore"):
        return op.evaluate(*map(np.asarray, arrays))  # type: ignore[attr-defined]


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
    return _back(_shift(lambda x, n: x >> n, a, b, -(a < 0).astype(a.dtype)), a) if _width(a) > 1 else a | (a & b)


_COMPARE = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


def cmpi(predicate: str, a: Array, b: Array) -> Array:
    """`predicate` is eq, ne, or lt, le, gt, ge after s or u."""
    read = unsigned if predicate[0] == "u" else signed
    return getattr(np, _COMPARE[predicate[-2:]])(read(a), read(b))


def cmpf(predicate: str, a: Array, b: Array) -> Array:
    """`predicate` is false, true, ord, uno, or eq, ne, lt, le, gt, ge after o (ordered) or u (or unordered)."""
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
    """Formats below f32 go through f32 and round once: exact for + - * / sqrt, rounding, minima and maxima."""

    def apply(*arrays: Array) -> Array:
        dtype = arrays[0].dtype
        if dtype.itemsize >= 4:
            return function(*arrays)
        return np.asarray(function(*[a.astype(np.float32) for a in arrays])).astype(dtype)

    return apply


def _in_f64(function: Function) -> Function:
    """Computed in f64 and rounded once to the operands' type."""
    return lambda *arrays: round_to(np.asarray(function(*[a.astype(np.float64) for a in arrays])), arrays[0].dtype)


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
    return np.where((a == 0) & (b == 0), a + b, np.fmax(a, b))


def _minimum(a: Array, b: Array) -> Array:
    return -_maximum(-a, -b)


def _min_number(a: Array, b: Array) -> Array:
    return -_max_number(-a, -b)


def _half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(np.ones_like(x), x), whole)


def _power(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    return np.power(np.atleast_1d(a), np.atleast_1d(b)).reshape(a.shape)  # 0-d exponents take wrong short cuts


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
        return math.copysign(math.inf, exact)


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


def convert(a: Array, type: Type) -> Array:
    """Any numeric array as elements of `type`: wrapped to an integer type, rounded once to a float type."""
    dtype = dtype_of(type)
    if a.dtype == dtype:
        return a
    if isinstance(type, FloatType):
        return integer_to_float(a, dtype) if a.dtype.kind in "iub" else round_to(a, dtype)
    return resize(a, dtype) if isinstance(type, (IntegerType, IndexType)) else a.astype(dtype)
