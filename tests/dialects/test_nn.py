"""The `nn` operators against NumPy and PyTorch, through the evaluator."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_cases import BF16, F, apply, check, expected_value, function_of, static, tensor

from stepwell.dialects import nd, nn
from stepwell.dialects.evaluate import evaluate_function
from stepwell.ir.attributes import f16, f32, i8, i32
from stepwell.ir.definition import rebuild
from stepwell.ir.diagnostics import IRError

FLOATS = [np.float16, BF16, np.float32, np.float64]
RANDOM = np.random.default_rng(0)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


def layer_norm(x, eps=1e-5, axes=(-1,)):
    x = np.asarray(x, np.float64)
    centered = x - x.mean(axes, keepdims=True)
    return centered / np.sqrt((centered**2).mean(axes, keepdims=True) + eps)


def close(actual, expected, dtype, ulps=2):
    """Within `ulps` of a dtype of the largest value."""
    assert actual.dtype == dtype
    eps = float(ml_dtypes.finfo(dtype).eps)
    scale = float(np.abs(expected).max(initial=0))
    np.testing.assert_allclose(actual.astype(np.float64), expected, rtol=0, atol=ulps * eps * max(scale, 1e-30))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (2, 5, 33), (4, 1024), (0, 4), (5,)])
def test_softmax(shape, dtype):
    x = (4 * RANDOM.standard_normal(shape)).astype(dtype)
    for axis in range(-1, x.ndim - 1):
        close(apply(nn.Softmax, x, axis=axis), softmax(x.astype(np.float64), axis), dtype, 4)


def test_softmax_edges():
    y = apply(nn.Softmax, F([0, 1, 2], [1000, 1000, 999]))
    check(y, expected_value("C35"), 1e-6)
    assert np.isnan(apply(nn.Softmax, F([-math.inf, -math.inf]))).all()  # the rule that C33 takes for plain softmax
    assert np.isnan(apply(nn.Softmax, F([0, math.nan, 1]))).all()
    check(apply(nn.Softmax, F([0, -math.inf])), [[1, 0]])
    assert apply(nn.Softmax, np.zeros((3, 0), np.float32)).shape == (3, 0)
    with pytest.raises(IRError, match="range allowed is from -2 to 1"):
        apply(nn.Softmax, np.zeros((2, 2), np.float32), axis=2)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mean", [0, 1000])
@pytest.mark.parametrize("n", [1, 7, 1023, 1024])
def test_layer_norm(n, mean, dtype):
    x, w, b = ((RANDOM.standard_normal(s) + m).astype(dtype) for s, m in (((5, n), mean), (n, 1), (n, 0)))
    expected = layer_norm(x) * w.astype(float) + b.astype(float)
    ulps = 2 if dtype in (np.float16, BF16) else 2 * (1 + mean)  # the inputs' own ulp is that much larger
    close(apply(nn.LayerNorm, x, w, b, dims=["m, n", "n", "n"]), expected, dtype, ulps)
    close(apply(nn.LayerNorm, x, w, dims=["m, n", "n"]), layer_norm(x) * w.astype(float), dtype, ulps)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rms_norm(dtype):
    for n in (1, 7, 1000):
        x, w = (RANDOM.standard_normal(s).astype(dtype) for s in ((2, 3, n), (n,)))
        wide = x.astype(np.float64)
        expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
        close(apply(nn.RmsNorm, x), expected, dtype, 4)
        close(apply(nn.RmsNorm, x, w, dims=["a, b, n", "n"]), expected * w.astype(float), dtype, 4)


def test_norm_errors():
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(IRError, match=r"axis 1 of %x0 is 3, axis 0 of %x1 is 4"):
        static(nn.LayerNorm, x, np.zeros(4, np.float32))
    with pytest.raises(IRError, match=r"%x1 has 'f16'"):
        static(nn.LayerNorm, x, np.zeros(3, np.float16))
    with pytest.raises(IRError, match="normalized_rank 3"):
        static(nn.LayerNorm, x, normalized_rank=3)
    with pytest.raises(IRError, match="needs %x1 of rank 1"):
        static(nn.RmsNorm, x, x)


# ---------------------------------------------------------------- matmul

SIDE = st.integers(0, 5)


@given(st.data(), st.booleans(), st.booleans(), st.sampled_from([np.float64, np.int8, np.int32]), st.booleans())
def test_matmul(data, transpose_a, transpose_b, dtype, known):
    m, k, n = (data.draw(SIDE) for _ in range(3))
    batch = data.draw(st.sampled_from([((), ()), ((3,), ()), ((2, 1), (4,)), ((1,), (0,)), ((2,), (3, 2))]))
    a = np.random.default_rng(0).integers(-9, 9, (*batch[0], m, k)).astype(dtype)
    b = np.random.default_rng(1).integers(-9, 9, (*batch[1], k, n)).astype(dtype)
    expected = np.matmul(a.astype(np.int64), b.astype(np.int64))
    a = a.swapaxes(-1, -2) if transpose_a else a
    b = b.swapaxes(-1, -2) if transpose_b else b
    y = (static if known else apply)(nn.Matmul, a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    assert y.dtype == {np.int8: np.int32}.get(dtype, dtype)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_matmul_rounds_once(dtype):
    a, b = RANDOM.standard_normal((33, 200)).astype(dtype), RANDOM.standard_normal((200, 17)).astype(dtype)
    close(
        apply(nn.Matmul, a, b),
        a.astype(float) @ b.astype(float),
        dtype,
        2 if dtype in (np.float16, BF16) else 20,
    )


def test_matmul_accumulates_wide():
    ones = np.ones((1, 5000), np.float16)
    assert apply(nn.Matmul, ones, ones.T) == 5000
    assert apply(nn.Matmul, ones * 100, ones.T, dtype=f32).dtype == np.float32
    assert apply(nn.Matmul, ones * 100, ones.T, dtype=f32) == 500000


def test_matmul_of_nothing_is_zero():
    assert apply(nn.Matmul, np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)).tolist() == [[0] * 3] * 2


def test_matmul_propagates_nan_and_infinity():
    a, b = F([0, math.inf]), F([math.inf], [1])
    assert np.isnan(apply(nn.Matmul, a, b)).all()


def test_b11_int8_products():
    a, b = (
        np.array([[100, -100, 7], [127, -128, 1]], np.int8),
        np.array([[50, -128], [-128, 127], [3, -5]], np.int8),
    )
    want = expected_value("B11")
    y = apply(nn.Matmul, a, b)
    assert y.dtype == np.int32
    check(y, want["C"])
    k = np.full((1, 70000), 127, np.int8)
    assert apply(nn.Matmul, k, k.T) == want["bigK"]
    u = np.full((1, 3), 255, np.uint8)
    assert apply(nn.Matmul, u, u.T) == 3 * 255 * 255


def test_b23_mixed_types():
    with pytest.raises(IRError, match=r"%x0 has 'f16' and %x1 has 'f32'"):
        static(nn.Matmul, np.zeros((2, 3, 4), np.float16), np.zeros((2, 4, 5), np.float32))


@pytest.mark.parametrize("run", [apply, static])
def test_c30_shapes(run):
    for key, want in expected_value("C30").items():
        shapes = [tuple(int(d) for d in part.strip("()").split(",") if d.strip()) for part in key.split("x")]
        a, b = (np.ones(s, np.float32) for s in shapes)
        if want == "error":
            with pytest.raises(IRError, match=r"cannot multiply: axis 2 of %x0 is \S+, axis 0 of %x1 is \S+ \('tensor"):
                run(nn.Matmul, a, b)
        else:
            assert list(run(nn.Matmul, a, b).shape) == want


# ---------------------------------------------------------------- the corpus of public reports


def test_b01_rms_norm_of_f16():
    h = np.stack([np.tile([9100.0, -9100.0], 4), np.arange(1, 9.0)]).astype(np.float16)
    check(
        apply(nn.RmsNorm, h, np.ones(8, np.float16), dims=["m, n", "n"], eps=1e-5),
        expected_value("B01"),
        2e-3,
    )


def test_b03_constant_rows():
    x = np.array([[1234.0] * 256, [-0.1] * 256, [65536.0] * 256], np.float32)
    check(apply(nn.LayerNorm, x), np.zeros_like(x), 1e-2)


def test_b05_variance_beyond_f16():
    x = np.array([[600, -600, 500, -500, 550, -550, 520, -520]], np.float16)
    check(apply(nn.LayerNorm, x), expected_value("B05"), 2e-3)


def test_b13_zero_points():
    b, want = (np.arange(7)[:, None] - np.arange(3)).astype(np.int8), expected_value("B13")
    for value, a_zero, b_zero, row in (
        (37, 37, 5, "first_row"),
        (37, 36, 0, "second_row"),
        (0, 3, 5, "third_row"),
    ):
        a = apply(nd.Cast, np.full((4, 7), value, np.uint8), dtype=i32)
        left = apply(nd.Sub, a, np.array([a_zero], np.int32))
        right = apply(nd.Sub, apply(nd.Cast, b, dtype=i32), np.array([b_zero], np.int32))
        check(apply(nn.Matmul, left, right), [want[row]] * 4)


def test_c28_norm_of_large_groups():
    x = (0.5 + ((np.arange(8 * 512 * 1024) % 7) - 3) / 8).astype(np.float32).reshape(2, -1)
    check(apply(nn.LayerNorm, x)[:, :7], expected_value("C28"), 1e-4)


def test_c36_norm_without_weight():
    x, want = np.arange(30, dtype=np.float32).reshape(3, 2, 5), np.array(expected_value("C36")).reshape(2, 5)
    check(apply(nn.LayerNorm, x, normalized_rank=2, eps=1e-3), np.broadcast_to(want, x.shape), 1e-5)
    weight = np.full((2, 5), 2, np.float32)
    y = apply(nn.LayerNorm, x, weight, dims=["a, b, c", "b, c"], normalized_rank=2, eps=1e-3)
    check(y, np.broadcast_to(2 * want, x.shape), 2e-5)


def test_against_torch():
    torch = pytest.importorskip("torch")
    x, w, b = (RANDOM.standard_normal(s).astype(np.float32) for s in ((6, 40), 40, 40))
    t = [torch.from_numpy(v) for v in (x, w, b)]
    expected = torch.nn.functional.layer_norm(t[0], (40,), t[1], t[2]).numpy()
    np.testing.assert_allclose(apply(nn.LayerNorm, x, w, b, dims=["m, n", "n", "n"]), expected, atol=2e-6)
    expected = torch.nn.functional.rms_norm(t[0], (40,), t[1], 1e-6).numpy()
    np.testing.assert_allclose(apply(nn.RmsNorm, x, w, dims=["m, n", "n"]), expected, atol=2e-6)
    np.testing.assert_allclose(apply(nn.Softmax, x), torch.softmax(t[0], -1).numpy(), atol=1e-6)


REBUILT = [
    (nn.Softmax, ["m, n"], {"axis": 0}), (nn.LayerNorm, ["m, n"], {"eps": 0.5, "normalized_rank": 2}),
    (nn.RmsNorm, ["m, n"], {"eps": 0.5}),
    (nn.Matmul, ["k, m", "n, k"], {"transpose_a": True, "transpose_b": True, "dtype": f16}),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "shapes", "attributes"), REBUILT, ids=lambda v: getattr(v, "name", ""))
def test_rebuild_keeps_attributes(cls, shapes, attributes):
    op = function_of(cls, [tensor(s, f32) for s in shapes], **attributes).body.first
    made = rebuild(op, op.operands)
    assert made.properties == op.properties
    assert [r.type for r in made.results] == [r.type for r in op.results]


def test_one_function_serves_every_shape():
    function = function_of(nn.Matmul, [tensor("a, m, k", i8), tensor("c, k, n", i8)])
    for a, c, m, k, n in ((2, 2, 3, 4, 5), (1, 3, 1, 1, 1), (3, 1, 0, 2, 7), (0, 1, 2, 2, 2)):
        x, y = np.ones((a, m, k), np.int8), np.ones((c, k, n), np.int8)
        np.testing.assert_array_equal(evaluate_function(function, [x, y])[0], np.matmul(x, y, dtype=np.int32))
    assert function.type.results[0].element is i32
