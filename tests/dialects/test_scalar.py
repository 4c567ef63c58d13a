"""Scalar operations against Python's exact arithmetic, on all i8 values and on edge values of every type."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.dialects import arith, scalar
from stepwell.dialects import math as m
from stepwell.ir.attributes import (
    DenseAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    bf16,
    f8E4M3FN,
    f8E5M2,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    index,
)  # fmt: skip
from stepwell.ir.core import Block
from stepwell.ir.definition import build
from stepwell.ir.floats import FLOAT_FORMATS, decode_float, encode_float

few = settings(max_examples=30)  # many combinations of types
FLOATS = [f16, bf16, f32, f64, f8E4M3FN, f8E5M2]


def make(cls, *types, result=None, **attributes):
    """An operation on fresh arguments."""
    return build(cls, *Block(types).arguments, result_types=[result] if result else None, **attributes)


def wrap(value, bits, signed=True):
    value %= 1 << bits
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def trunc_div(a, b):
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def ceil_div(a, b):
    return 0 if b == 0 else -((-a) // b)


def shift(function):
    return lambda a, n, w: 0 if n >= w else function(a, n)


SIGNED = {
    arith.AddI: lambda a, b: a + b,
    arith.SubI: lambda a, b: a - b,
    arith.MulI: lambda a, b: a * b,
    arith.DivSI: trunc_div,
    arith.RemSI: lambda a, b: 0 if b == 0 else a - b * trunc_div(a, b),
    arith.FloorDivSI: lambda a, b: 0 if b == 0 else a // b,
    arith.CeilDivSI: ceil_div,
    arith.AndI: lambda a, b: a & b,
    arith.OrI: lambda a, b: a | b,
    arith.XOrI: lambda a, b: a ^ b,
    arith.MaxSI: max,
    arith.MinSI: min,
}
UNSIGNED = {
    arith.DivUI: lambda a, b: 0 if b == 0 else a // b,
    arith.RemUI: lambda a, b: 0 if b == 0 else a % b,
    arith.CeilDivUI: ceil_div,
    arith.MaxUI: max,
    arith.MinUI: min,
}
SHIFTS = {
    arith.ShLI: lambda a, n, w: 0 if n >= w else a << n,
    arith.ShRUI: lambda a, n, w: 0 if n >= w else (a % (1 << w)) >> n,
    arith.ShRSI: lambda a, n, w: a >> min(n, w - 1),
}


def all_pairs(type):
    """Every pair of values of a small type, as two arrays and as Python ints."""
    bits = type.width
    values = [wrap(v, bits) for v in range(1 << bits)]
    array = np.array([bool(v) for v in values]) if bits == 1 else np.array(values, scalar.dtype_of(type))
    return (
        np.repeat(array, len(values)),
        np.tile(array, len(values)),
        [(a, b) for a in values for b in values],
    )


def read(array, bits):
    return [wrap(int(v), bits) for v in array]


@pytest.mark.parametrize("type", [i1, i8], ids=str)
@pytest.mark.parametrize("cls", [*SIGNED, *UNSIGNED, *SHIFTS], ids=lambda c: c.name)
def test_every_pair_of_small_integers(cls, type):
    a, b, pairs = all_pairs(type)
    bits = type.width
    got = scalar.evaluate(make(cls, type, type), a, b)
    if cls in SIGNED:
        wanted = [SIGNED[cls](x, y) for x, y in pairs]
    elif cls in UNSIGNED:
        wanted = [UNSIGNED[cls](x % (1 << bits), y % (1 << bits)) for x, y in pairs]
    else:
        wanted = [SHIFTS[cls](x, y % (1 << bits), bits) for x, y in pairs]
    assert got.dtype == scalar.dtype_of(type)
    assert read(got, bits) == [wrap(w, bits) for w in wanted]


def edges(bits):
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    near = [0, 1, -1, 2, -2, 3, 7, -7, bits - 1, bits, bits + 1, low, low + 1, high, high - 1]
    return st.one_of(st.sampled_from([wrap(v, bits) for v in near]), st.integers(low, high))


@pytest.mark.parametrize("type", [i16, i32, i64, index], ids=str)
@pytest.mark.parametrize("cls", [*SIGNED, *UNSIGNED, *SHIFTS], ids=lambda c: c.name)
@few
@given(data=st.data())
def test_wide_integers(cls, type, data):
    bits = 64 if type is index else type.width
    x, y = data.draw(edges(bits)), data.draw(edges(bits))
    dtype = scalar.dtype_of(type)
    got = int(scalar.evaluate(make(cls, type, type), np.array(x, dtype), np.array(y, dtype)))
    if cls in SIGNED:
        wanted = SIGNED[cls](x, y)
    elif cls in UNSIGNED:
        wanted = UNSIGNED[cls](x % (1 << bits), y % (1 << bits))
    else:
        wanted = SHIFTS[cls](x, y % (1 << bits), bits)
    assert got == wrap(wanted, bits)


def test_known_values():
    def value(cls, a, b, type=i32):
        dtype = scalar.dtype_of(type)
        return int(scalar.evaluate(make(cls, type, type), np.array(a, dtype), np.array(b, dtype)))

    assert value(arith.FloorDivSI, -7, 2) == -4
    assert value(arith.DivSI, -7, 2) == -3
    assert value(arith.RemSI, -7, 2) == -1
    assert value(arith.DivSI, 5, 0) == 0
    assert value(arith.DivSI, -(2**31), -1) == -(2**31)
    assert value(arith.RemSI, -(2**31), -1) == 0
    assert value(arith.MulI, 46341, 46341) == -2147479015
    assert value(arith.CeilDivSI, -128, 7, i8) == -18
    assert value(m.IPowI, 3, 4) == 81
    assert value(m.IPowI, 2, 40) == 0
    assert value(m.IPowI, -1, -3) == -1


@given(a=st.integers(-128, 127), n=st.integers(-128, 127))
def test_ipowi(a, n):
    got = int(scalar.evaluate(make(m.IPowI, i8, i8), np.int8(a), np.int8(n)))
    exact = a**n if n >= 0 else 0 if a == 0 else int(Fraction(a) ** n)
    assert got == wrap(exact, 8)


@pytest.mark.parametrize("relation", arith.CmpI.predicates)
@pytest.mark.parametrize("type", [i1, i8], ids=str)
def test_cmpi(relation, type):
    import operator

    a, b, pairs = all_pairs(type)
    names = {"eq": "eq", "ne": "ne"}
    compare = getattr(operator, names.get(relation, relation[1:]))
    unsigned = relation[0] == "u"
    got = scalar.evaluate(make(arith.CmpI, type, type, predicate=arith.CmpI.code(relation)), a, b)
    bits = 1 << type.width
    assert got.tolist() == [compare(x % bits, y % bits) if unsigned else compare(x, y) for x, y in pairs]


@pytest.mark.parametrize("relation", arith.CmpF.predicates)
def test_cmpf(relation):
    values = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
    op = make(arith.CmpF, f32, f32, predicate=arith.CmpF.code(relation))
    for x in values:
        for y in values:
            either = math.isnan(x) or math.isnan(y)
            plain = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
            wanted = {"false": False, "true": True, "ord": not either, "uno": either}.get(relation)
            if wanted is None:
                wanted = (either if relation[0] == "u" else False) or (plain[relation[1:]] and not either)
            assert bool(scalar.evaluate(op, np.float32(x), np.float32(y))) == wanted, (x, y)


# ---------------------------------------------------------------- floats


def bits_of(array, type):
    width = FLOAT_FORMATS[type.name].width // 8
    return int(np.asarray(array).view(f"u{width}"))


def words(type):
    """Bit patterns of a float type, edge values more often."""
    fmt = FLOAT_FORMATS[type.name]
    top = (1 << (fmt.width - 1)) - 1
    special = [
        encode_float(v, type.name) for v in (0.0, -0.0, 1.0, -1.5, 0.5, 2.5, math.inf, -math.inf, math.nan)
    ]
    special += [1, top, encode_float(1.0, type.name) + 1]
    return st.one_of(st.sampled_from(special), st.integers(0, (1 << fmt.width) - 1))


def array_of(word, type):
    return scalar.array_of(FloatAttr(word, type))


def same(got, wanted, type):
    """Equal bits, or both NaN."""
    value = decode_float(bits_of(got, type), type.name)
    return (math.isnan(value) and math.isnan(wanted)) or bits_of(got, type) == encode_float(wanted, type.name)


def exact(function, *values):
    """A correctly rounded result as an f64 or a Fraction, NaN and infinities as IEEE says."""
    with np.errstate(all="ignore"):
        plain = float(function(*map(np.float64, values)))
    finite = all(map(math.isfinite, values)) and math.isfinite(plain)
    return function(*map(Fraction, values)) if finite and plain != 0 else plain


def encode_exact(value, type):
    """Bits of a Fraction, rounded once; through an f64 rounded to odd, which is exact for narrower types."""
    if isinstance(value, float):
        return value
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    if type is f64 or Fraction(near) == value or math.isinf(near):
        return near
    other = math.nextafter(near, math.inf if value > Fraction(near) else -math.inf)
    return near if np.float64(near).view(np.uint64) & 1 else other


ARITHMETIC = {
    arith.AddF: lambda a, b: a + b,
    arith.SubF: lambda a, b: a - b,
    arith.MulF: lambda a, b: a * b,
    arith.DivF: lambda a, b: a / b,
}


@pytest.mark.parametrize("type", FLOATS, ids=str)
@pytest.mark.parametrize("cls", ARITHMETIC, ids=lambda c: c.name)
@few
@given(data=st.data())
def test_float_arithmetic_rounds_once(cls, type, data):
    x, y = data.draw(words(type)), data.draw(words(type))
    a, b = decode_float(x, type.name), decode_float(y, type.name)
    got = scalar.evaluate(make(cls, type, type), array_of(x, type), array_of(y, type))
    assert same(got, encode_exact(exact(ARITHMETIC[cls], a, b), type), type)


@pytest.mark.parametrize("type", FLOATS, ids=str)
@few
@given(data=st.data())
def test_fma_rounds_once(type, data):
    x, y, z = (data.draw(words(type)) for _ in range(3))
    a, b, c = (decode_float(w, type.name) for w in (x, y, z))
    got = scalar.evaluate(make(m.Fma, type, type, type), *(array_of(w, type) for w in (x, y, z)))
    if all(map(math.isfinite, (a, b, c))):
        total = Fraction(a) * Fraction(b) + Fraction(c)
        with np.errstate(all="ignore"):
            wanted = (
                encode_exact(total, type) if total else float(np.float64(a) * np.float64(b) + np.float64(c))
            )
    elif math.isfinite(a) and math.isfinite(b):
        wanted = c
    else:
        with np.errstate(all="ignore"):
            wanted = float(np.float64(a) * np.float64(b) + np.float64(c))
    assert same(got, wanted, type)


def test_fma_is_not_two_roundings():
    a = np.float32(1 + 2**-12)
    got = scalar.evaluate(make(m.Fma, f32, f32, f32), a, a, np.float32(-1))
    assert float(got) == 2**-11 + 2**-24


EXTREMES = {
    arith.MaximumF: (max, True),
    arith.MinimumF: (min, True),
    arith.MaxNumF: (max, False),
    arith.MinNumF: (min, False),
}


@pytest.mark.parametrize("type", FLOATS, ids=str)
@pytest.mark.parametrize("cls", EXTREMES, ids=lambda c: c.name)
@few
@given(data=st.data())
def test_extremes(cls, type, data):
    choose, propagates = EXTREMES[cls]
    x, y = data.draw(words(type)), data.draw(words(type))
    a, b = decode_float(x, type.name), decode_float(y, type.name)
    got = scalar.evaluate(make(cls, type, type), array_of(x, type), array_of(y, type))
    if math.isnan(a) or math.isnan(b):
        wanted = math.nan if propagates else b if math.isnan(a) else a
    else:
        wanted = choose((a, b), key=lambda v: (v, math.copysign(1, v)))
    assert same(got, wanted, type)


def test_zeros_are_ordered():
    for a, b in ((0.0, -0.0), (-0.0, 0.0)):
        high = scalar.evaluate(make(arith.MaximumF, f32, f32), np.float32(a), np.float32(b))
        low = scalar.evaluate(make(arith.MinimumF, f32, f32), np.float32(a), np.float32(b))
        assert math.copysign(1, high) == 1 and math.copysign(1, low) == -1


ROUNDINGS = {
    m.Floor: math.floor,
    m.Ceil: math.ceil,
    m.Trunc: math.trunc,
    m.RoundEven: round,
    m.Round: lambda x: math.floor(abs(Fraction(x)) + Fraction(1, 2)) * (1 if x > 0 else -1),
}


@pytest.mark.parametrize("type", FLOATS, ids=str)
@pytest.mark.parametrize("cls", ROUNDINGS, ids=lambda c: c.name)
@few
@given(data=st.data())
def test_rounding(cls, type, data):
    value = decode_float(data.draw(words(type)), type.name)
    got = scalar.evaluate(make(cls, type), array_of(encode_float(value, type.name), type))
    if not math.isfinite(value) or value == 0:
        assert same(got, value, type)
    else:
        assert same(got, math.copysign(float(ROUNDINGS[cls](value)), value), type)


def test_round_just_below_a_half():
    below = np.array(0.49999999999999994)
    assert float(scalar.evaluate(make(m.Round, f64), below)) == 0.0
    assert float(scalar.evaluate(make(m.Round, f64), np.array(-2.5))) == -3.0
    assert float(scalar.evaluate(make(m.RoundEven, f64), np.array(-2.5))) == -2.0


FUNCTIONS = {
    m.Exp: math.exp, m.ExpM1: math.expm1, m.Log: math.log, m.Log2: math.log2, m.Log10: math.log10,
    m.Log1p: math.log1p, m.Sqrt: math.sqrt, m.Tanh: math.tanh, m.Sinh: math.sinh, m.Cosh: math.cosh,
    m.Sin: math.sin, m.Cos: math.cos, m.Tan: math.tan, m.Asin: math.asin, m.Acos: math.acos, m.Atan: math.atan,
    m.Erf: math.erf, m.Exp2: lambda x: 2.0**x, m.Rsqrt: lambda x: 1 / math.sqrt(x),
}  # fmt: skip


@pytest.mark.parametrize("type", [f16, bf16, f32], ids=str)
@pytest.mark.parametrize("cls", FUNCTIONS, ids=lambda c: c.name)
def test_functions_are_within_half_an_ulp(cls, type):
    """Of f64's result: the f64 function may itself be off by an ulp of f64."""
    rng = np.random.default_rng(1)
    dtype = scalar.dtype_of(type)
    samples = rng.uniform(0.001, 0.999, 300).astype(dtype)
    got = scalar.evaluate(make(cls, type), samples)
    for x, y in zip(samples, got):
        wanted = FUNCTIONS[cls](float(x))
        rounded = decode_float(encode_float(wanted, type.name), type.name)
        assert float(y) == rounded or abs(float(y) - wanted) <= abs(rounded - wanted) * 1.000001


def test_special_values_of_functions():
    def value(cls, *xs):
        return float(scalar.evaluate(make(cls, *[f32] * len(xs)), *map(np.float32, xs)))

    assert value(m.Exp, 1000) == math.inf and value(m.Exp, -math.inf) == 0
    assert value(m.Log, 0) == -math.inf and math.isnan(value(m.Log, -1))
    assert math.isnan(value(m.Sqrt, -1)) and math.copysign(1, value(m.Sqrt, -0.0)) == -1
    assert value(m.Rsqrt, 0.0) == math.inf
    assert value(m.Erf, math.inf) == 1 and math.isnan(value(m.Erf, math.nan))
    assert math.copysign(1, value(m.PowF, -0.0, 0.5)) == 1 and value(m.PowF, -math.inf, 0.5) == math.inf
    assert value(m.PowF, math.nan, 0) == 1 and value(m.PowF, 1, math.nan) == 1
    assert value(m.Atan2, 0.0, -1) == pytest.approx(math.pi)
    assert value(m.CopySign, 3, -0.0) == -3
    assert value(arith.RemF, -7, 2) == -1 and math.isnan(value(arith.RemF, 1, 0))
    assert math.copysign(1, value(arith.NegF, 0.0)) == -1


def test_tests_of_floats():
    xs = np.array([1, math.nan, math.inf, -math.inf, 0], np.float32)
    assert scalar.evaluate(make(m.IsNaN, f32), xs).tolist() == [False, True, False, False, False]
    assert scalar.evaluate(make(m.IsInf, f32), xs).tolist() == [False, False, True, True, False]
    assert scalar.evaluate(make(m.IsFinite, f32), xs).tolist() == [True, False, False, False, True]


def test_division_of_multiples_is_exact():
    """Corpus B15."""
    q = np.arange(1, 2001).astype(np.float32)
    for d in (41, 55, 3):
        quotient = scalar.evaluate(make(arith.DivF, f32, f32), np.float32(d) * q, np.full_like(q, d))
        assert (scalar.evaluate(make(m.Floor, f32), quotient) == q).all()


def test_no_float_shortcuts():
    """Corpus B28: x*0, x-x, x/x are what IEEE says."""
    x = np.array([1, -2, math.inf, -math.inf, math.nan, 0], np.float32)
    product = scalar.evaluate(make(arith.MulF, f32, f32), x, np.zeros_like(x))
    assert np.signbit(product).tolist()[:2] == [False, True] and np.isnan(product[2:5]).all()
    assert np.isnan(scalar.evaluate(make(arith.SubF, f32, f32), x, x)[2:5]).all()
    assert np.isnan(scalar.evaluate(make(arith.DivF, f32, f32), x, x)[2:]).all()


# ---------------------------------------------------------------- conversions


NARROWINGS = [
    (a, b) for a in FLOATS for b in FLOATS if FLOAT_FORMATS[a.name].width > FLOAT_FORMATS[b.name].width
]


@pytest.mark.parametrize(("source", "target"), NARROWINGS, ids=str)
@few
@given(data=st.data())
def test_truncf_rounds_once(source, target, data):
    word = data.draw(words(source))
    value = decode_float(word, source.name)
    got = scalar.evaluate(make(arith.TruncF, source, result=target), array_of(word, source))
    assert same(got, value, target)


def test_truncf_does_not_round_twice():
    value = 1 + 2**-8 + 2**-40  # f32 would give the tie 1 + 2**-8, and then 1
    got = scalar.evaluate(make(arith.TruncF, f64, result=bf16), np.array(value))
    assert float(got) == 1 + 2**-7
    half = scalar.evaluate(make(arith.TruncF, f32, result=f16), np.float32(1 / 7))
    assert float(half) == pytest.approx(0.14282227, abs=1e-8)


@pytest.mark.parametrize(("target", "source"), NARROWINGS, ids=str)
def test_extf_is_exact(source, target):
    width = FLOAT_FORMATS[source.name].width
    op = make(arith.ExtF, source, result=target)
    for word in range(0, 1 << width, 1 if width <= 16 else 104_729):
        value = decode_float(word, source.name)
        if width <= 8 or word % 97 == 0 or width > 16:
            assert same(scalar.evaluate(op, array_of(word, source)), value, target)


@pytest.mark.parametrize("target", FLOATS, ids=str)
@pytest.mark.parametrize("source", [i1, i8, i32, i64], ids=str)
@few
@given(data=st.data())
def test_integer_to_float(source, target, data):
    bits = source.width
    value = data.draw(edges(bits)) if bits > 1 else data.draw(st.sampled_from([0, -1]))
    array = scalar.array_of(IntegerAttr(value, source))
    signed = scalar.evaluate(make(arith.SIToFP, source, result=target), array)
    unsigned = scalar.evaluate(make(arith.UIToFP, source, result=target), array)
    assert same(signed, encode_exact(Fraction(value), target), target)
    assert same(unsigned, encode_exact(Fraction(value % (1 << bits)), target), target)


def test_i64_to_bf16_rounds_once():
    value = (1 << 62) + (1 << 54) + 1  # just above the tie
    got = scalar.evaluate(make(arith.SIToFP, i64, result=bf16), np.int64(value))
    assert float(got) == 2.0**62 + 2.0**55


@pytest.mark.parametrize("source", FLOATS, ids=str)
@pytest.mark.parametrize("target", [i1, i8, i32, i64], ids=str)
@few
@given(data=st.data())
def test_float_to_integer_saturates(source, target, data):
    word = data.draw(words(source))
    value, bits = decode_float(word, source.name), target.width

    def clamp(low, high):
        if math.isnan(value):
            return 0
        return max(
            low, min(high, math.trunc(value) if math.isfinite(value) else (high if value > 0 else low))
        )

    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    got = scalar.evaluate(make(arith.FPToSI, source, result=target), array_of(word, source))
    assert wrap(int(got), bits) == clamp(low, high)
    got = scalar.evaluate(make(arith.FPToUI, source, result=target), array_of(word, source))
    assert wrap(int(got), bits, signed=False) == clamp(0, (1 << bits) - 1)


def test_integer_conversions():
    def value(cls, number, source, target):
        return int(
            scalar.evaluate(make(cls, source, result=target), scalar.array_of(IntegerAttr(number, source)))
        )

    assert value(arith.ExtSI, -1, i8, i32) == -1 and value(arith.ExtUI, -1, i8, i32) == 255
    assert value(arith.ExtSI, 1, i1, i32) == -1 and value(arith.ExtUI, 1, i1, i32) == 1
    assert value(arith.TruncI, 300, i32, i8) == 44 and value(arith.TruncI, 2, i32, i1) == 0
    assert value(arith.IndexCast, -5, i32, index) == -5
    assert value(arith.IndexCastUI, -5, i32, index) == 2**32 - 5
    assert value(arith.IndexCast, 2**32 + 7, index, i32) == 7
    assert int(scalar.evaluate(make(arith.Bitcast, f32, result=i32), np.float32(1))) == 0x3F800000


# ---------------------------------------------------------------- constants and types


def test_types_and_dtypes():
    assert scalar.dtype_of(i1) == np.bool_ and scalar.dtype_of(index) == np.int64
    assert scalar.dtype_of(bf16) == ml_dtypes.bfloat16
    assert scalar.dtype_of(TensorType((2, 3), f16)) == np.float16
    assert scalar.type_of(np.int64) is i64 and scalar.type_of("uint8") is IntegerType(8, "u")
    with pytest.raises(TypeError, match="no NumPy dtype holds 'i7'"):
        scalar.dtype_of(IntegerType(7))


def test_constants():
    assert scalar.constant(255, i8) is IntegerAttr(-1, i8)
    assert scalar.constant(True, i1) is IntegerAttr(1, i1)
    assert scalar.constant(-1, i1) is IntegerAttr(1, i1)  # corpus D06
    assert scalar.constant(2**64 - 1, i64) is IntegerAttr(-1, i64)
    assert scalar.constant(0.1, f16) is FloatAttr.of(0.1, f16)
    type = TensorType((2,), i8)
    assert scalar.constant(np.array([1, 300]), type) is DenseAttr(type, (1, 44), False)
    assert scalar.constant(7, type) is DenseAttr(type, (7,), True)
    nan = FloatAttr(0x7FC00123, f32)
    assert scalar.constant(scalar.array_of(nan), f32) is nan


def folded(cls, type, *values, **attributes):
    op = make(cls, *[type] * len(values), **attributes)
    return op.fold([scalar.constant(v, type) for v in values])


def test_chain_of_products_wraps():
    """Corpus D31."""
    first = folded(arith.MulI, i32, 2147483647, -2147483648)
    second = folded(arith.MulI, i32, first.value, -2147483648)
    assert folded(arith.MulI, i32, second.value, -1) is IntegerAttr(0, i32)
    assert folded(arith.MulI, i32, 65536, 65536) is IntegerAttr(0, i32)
    assert folded(arith.MulI, i32, -2147483648, -1) is IntegerAttr(-2147483648, i32)
    assert folded(arith.SubI, i32, -2147483648, 1) is IntegerAttr(2147483647, i32)


def test_upper_half_of_u64():
    """Corpus D33."""
    m64 = 2**64
    unsigned = {
        9223372036854775813: folded(arith.AddI, i64, 2**63, 5),
        9223372041149743104: folded(arith.MulI, i64, 2**32, 2**31 + 1),
        0: folded(arith.AddI, i64, m64 - 1, 1),
        18446744073709551614: folded(arith.SubI, i64, 3, 5),
        1844674407370955161: folded(arith.DivUI, i64, m64 - 1, 10),
        5: folded(arith.RemUI, i64, m64 - 1, 10),
    }
    assert all(found.value % m64 == wanted for wanted, found in unsigned.items())
    assert folded(arith.CmpI, i64, 2**63, 1, predicate=arith.CmpI.code("ugt")) is IntegerAttr(1, i1)


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        (-128, 7, -18),
        (-128, -1, None),
        (-127, -1, 127),
        (127, -1, -127),
        (-128, 127, -1),
        (7, -128, 0),
        (3, 0, None),
    ],
)
def test_ceiling_division_folds_only_where_it_is_defined(a, b, wanted):
    """Corpus B16."""
    found = folded(arith.CeilDivSI, i8, a, b)
    assert found is (None if wanted is None else IntegerAttr(wanted, i8))


def test_folding_of_shaped_constants():
    type = TensorType((3,), i32)
    vector = scalar.constant(np.array([1, 2, 3]), type)
    op = make(arith.AddI, type, type)
    assert op.fold([vector, scalar.constant(10, type)]) is scalar.constant(np.array([11, 12, 13]), type)
    splat = op.fold([scalar.constant(1, type), scalar.constant(2, type)])
    assert splat.splat and splat.values == (3,)


def test_odd_widths_are_left_alone():
    i7 = IntegerType(7)
    assert make(arith.AddI, i7, i7).fold([IntegerAttr(1, i7), IntegerAttr(2, i7)]) is None
