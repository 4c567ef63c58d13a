"""Kinds A, B and C of the corpus of public bug reports, where `nd` operators cover them, with their right values."""

import math

import numpy as np
import pytest
from operator_cases import BF16, F, apply, check, expected_value, static

from stepwell.dialects import nd
from stepwell.ir.attributes import bf16, f32, i64
from stepwell.ir.diagnostics import IRError


def test_b06_sums_of_f16():
    x = np.array([32000] * 4 + [-32000] * 4, np.float16)
    want = expected_value("B06")
    check(apply(nd.Sum, x), want["sum"])
    check(apply(nd.Mean, x), want["mean"])
    check(apply(nd.Sum, x.reshape(2, 4), axes=[1], dtype=f32), want["rows_f32"])
    check(apply(nd.Sum, x.reshape(2, 4), axes=[1]), [math.inf, -math.inf])


def test_b08_low_precision_reductions():
    want = expected_value("B08")
    check(apply(nd.Sum, np.ones(4096, BF16)), want["bf16_sum"])
    check(apply(nd.Sum, np.ones(4096, np.float16)), want["f16_sum"])
    check(apply(nd.Prod, np.full(64, 1.0078125, BF16)), want["prod_bf16"])


def test_b10_nan_in_minimum_and_maximum():
    x, b, want = F([math.nan], [1], [20]), F(10), expected_value("B10")
    check(apply(nd.Minimum, x, b), want["min"])
    check(apply(nd.Maximum, x, b), want["max"])
    check(apply(nd.Minimum, b, x), want["rmin"])
    check(apply(nd.Maximum, np.ones((2, 2), np.float32), F(math.nan)), want["ones"])


def test_b15_floor_of_quotients():
    q = np.arange(1, 2001).astype(np.float32)
    for d in (41, 55, 3):
        a, b = q * np.float32(d), F(d)
        assert (apply(nd.FloorDiv, a, b) == q).all()
        assert (apply(nd.Floor, apply(nd.Div, a, b)) == q).all()


def test_b18_integer_sums_widen():
    want = expected_value("B18")
    total, product = apply(nd.Sum, np.full(4, 100, np.int8)), apply(nd.Prod, np.full(3, 20000, np.int32))
    assert total.dtype == product.dtype == np.int64
    check(total, want["sum"])
    assert product == want["prod"]


def test_b20_unsigned_arithmetic():
    want = expected_value("B20")
    a, b = np.array([4294967295], np.uint32), np.array([1], np.int8)
    a, b = apply(nd.Cast, a, dtype=i64), apply(nd.Cast, b, dtype=i64)  # promotion is explicit
    check(apply(nd.Add, a, b), want["add"])
    check(apply(nd.Compare, a, b, predicate="gt"), want["gt"])
    check(apply(nd.Maximum, a, b), want["max"])
    check(apply(nd.Add, np.array([250], np.uint8), np.array([10], np.uint8)), want["u8u8"])
    assert apply(nd.Compare, np.array([200], np.uint8), np.array([1], np.uint8), predicate="gt").all()


def test_b25_division_then_truncation():
    a = np.arange(1, 3001)
    q = apply(nd.Div, (2 * a).astype(np.float32), a.astype(np.float32))
    assert (apply(nd.Cast, q, dtype=i64) == expected_value("B25")["q"]).all()


def test_b26_bf16_rounding():
    x = np.array([3.14, -3.14, 0.26914087, 1.00390625, 1.01171875, 3.3961776e38, 1e-40, -0.0, math.inf], np.float32)
    back = apply(nd.Cast, apply(nd.Cast, x, dtype=bf16), dtype=f32)
    assert [hex(v) for v in back.view(np.uint32)] == expected_value("B26")
    assert np.isnan(apply(nd.Cast, np.array([0x7F800001], np.uint32).view(np.float32), dtype=bf16)).all()


def test_b28_float_identities_are_none():
    x, zero, want = F(1, -2, math.inf, -math.inf, math.nan, 0), F(0), expected_value("B28")
    product = apply(nd.Mul, x, zero)
    check(product, want["f"])
    assert np.signbit(product[1])
    check(apply(nd.Sub, x, x), want["g"])
    check(apply(nd.Add, apply(nd.Mul, zero, x), x), want["h"])
    check(apply(nd.Div, x, x), want["k"])


def test_b30_maximum_of_negative_zeros():
    for n in (1, 1024, 8192, 8193, 100001):
        assert apply(nd.Max, np.full(n, -0.0, np.float32)) == 0
    x = np.full(8193, -1, np.float32)
    x[8192] = -0.0
    assert apply(nd.Max, x) == 0


def test_b31_nan_in_reductions():
    x = F([1, math.nan, 3, 2], [math.nan] * 4, [-math.inf, -5, -7, -6])
    want = expected_value("B31")
    check(apply(nd.Max, x, axes=[1]), want["max"])
    check(apply(nd.Min, x, axes=[1]), want["min"])
    check(apply(nd.Max, x), want["all"])


@pytest.mark.parametrize("run", [apply, static])
def test_c08_concat_of_empty(run):
    e, a, z, b = F(), F(1, 2), np.zeros((2, 0), np.float32), F([3], [4])
    operands = [([e, a], 0), ([a, e], 0), ([e, e], 0), ([z, b], 1)]
    for (parts, axis), want in zip(operands, expected_value("C08")):
        check(run(nd.Concat, *parts, axis=axis), want)


def test_c11_concat_checks():
    for shape, axis, allowed in (
        ((0,), 999, "from -1 to 0"),
        ((2, 3), 2, "from -2 to 1"),
        ((2, 3), -3, "from -2 to 1"),
    ):
        with pytest.raises(IRError, match=f"axis {axis}, but .* range allowed is {allowed}"):
            static(nd.Concat, np.zeros(shape, np.float32), np.zeros(shape, np.float32), axis=axis)
    with pytest.raises(IRError, match="needs operands of one rank"):
        static(nd.Concat, np.zeros(2, np.float32), np.zeros((2, 2), np.float32))


@pytest.mark.parametrize("run", [apply, static])
def test_c15_negative_steps(run):
    x, y, want = np.arange(10), np.arange(15).reshape(3, 5), expected_value("C15")
    for (start, limit, step), values in zip(
        [(8, 1, -2), (9, 0, -4), (5, 0, -1), (-1, -100, -1), (-3, 2, -2)], want["x"]
    ):
        check(run(nd.Slice, x, starts=[start], limits=[limit], steps=[step]), values)
    check(run(nd.Slice, y, starts=[0, 4], limits=[3, 0], steps=[1, -2]), want["a1"])
    check(run(nd.Slice, y, starts=[2, 0], limits=[0, 5], steps=[-1, 1]), want["a0"])
    check(run(nd.Slice, y, starts=[-1, -1], limits=[-100, -100], steps=[-1, -1]), want["rev"])


@pytest.mark.parametrize("run", [apply, static])
def test_c16_empty_slices(run):
    x = np.arange(10.0)
    for start, limit, step in ((0, 5, -1), (3, 3, 1), (7, 2, 1), (20, 30, 1)):
        y = run(nd.Slice, x, starts=[start], limits=[limit], steps=[step])
        assert y.shape == (0,)
        assert run(nd.Sum, y) == 0
        check(run(nd.Concat, y, np.ones(1)), [1])


@pytest.mark.parametrize("run", [apply, static])
def test_c18_slices_of_an_empty_axis(run):
    x = np.zeros((0, 4), np.float32)
    given = [
        ((0, 0), (99, 4), (2, 1)),
        ((99, 0), (-99, 4), (-3, 1)),
        ((0, 0), (100, 4), (1, 1)),
        ((0, 0), (0, 4), (1, 3)),
    ]
    for (starts, limits, steps), shape in zip(given, expected_value("C18")):
        assert run(nd.Slice, x, starts=list(starts), limits=list(limits), steps=list(steps)).shape == tuple(shape)


def test_c20_argmax_over_one():
    assert not apply(nd.Argmax, np.zeros((40, 900, 1), np.float32), axis=-1).any()
    assert not apply(nd.Argmax, np.arange(70000, dtype=np.float32)[:, None], axis=1).any()


def test_c21_maximum_of_a_sum():
    i, j = np.ogrid[:4, :4]
    a, b = ((5 * i + 3 * j) % 7).astype(np.float32), ((i * j) % 4).astype(np.float32)
    total, want = apply(nd.Add, apply(nd.Transpose, a), b), expected_value("C21")
    check(apply(nd.Max, total, axes=[1]), want["v"])
    check(apply(nd.Argmax, total, axis=1), want["i"])


def test_c23_argmax_of_inverted_integers():
    cases = [np.array(v, np.int32) for v in ([2, 2], [0, -1, 5], [2147483647, -2147483648])]
    cases.append(np.array([255, 0, 0], np.uint8))
    for x, want in zip(cases, expected_value("C23")):
        ones = np.array([-1], np.int64).astype(x.dtype)
        assert apply(nd.Argmax, apply(nd.Xor, x, ones)) == want


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_c25_clamp_keeps_nan(dtype):
    x = np.array([math.nan, -5, 0.5, 7, math.inf, -math.inf, -0.0], dtype)
    rows = [apply(nd.Clamp, x, min=-1.0, max=2.0), apply(nd.Clamp, x, min=-1.0), apply(nd.Clamp, x, max=2.0)]
    check(rows, expected_value("C25"))
    assert np.isnan(apply(nd.Relu, x)[0])


def test_c26_clamp_with_crossed_bounds():
    want = expected_value("C26")
    check(apply(nd.Clamp, F(0.5, 1.5, 5), min=2.0, max=1.0), want[0])
    check(apply(nd.Clamp, np.array([-3, 0, 9], np.int32), min=4, max=-4), want[1])
    with pytest.raises(IRError, match="is not a value of 'i8'"):
        apply(nd.Clamp, np.zeros(2, np.int8), max=300)


def test_c31_gelu():
    x, want = F(-50, -13.5, -3, -1, -0.5, 0, 0.5, 1, 3, 50), expected_value("C31")
    check(apply(nd.Gelu, x), want["exact"], 2e-6)
    check(apply(nd.Gelu, x, approximate="tanh"), want["tanh"], 2e-6)


def test_c38_minimum_of_three():
    y = apply(nd.Minimum, apply(nd.Minimum, F([1], [5], [9]), F([2, 4, 6, 8])), np.array(7, np.float32))
    check(y, expected_value("C38"))


def test_a01_reshape_then_broadcast():
    for key, want in expected_value("A01").items():
        a, b = map(int, key.split(","))
        x, y = (np.arange(1, n + 1, dtype=np.float32) for n in (a, b))
        check(apply(nd.Mul, *(apply(nd.Reshape, v, shape=[-1, 4]) for v in (x, y))), want)
