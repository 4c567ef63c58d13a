"""Every built-in variant, forced, against NumPy, in C and on the emulator; refusals; groups and choices."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stepwell
from stepwell.ir.diagnostics import IRError
from stepwell.runtime import emulate

rng = np.random.default_rng(2)
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
          "i32": np.int32, "i64": np.int64, "i8": np.int8, "ui8": np.uint8}  # fmt: skip


@pytest.fixture(params=["cpu", "emulate"])
def target(request):
    """C, and CUDA C on the emulator with its checks."""
    if request.param == "emulate" and emulate.compiler() is None:
        pytest.skip("no C++ compiler")
    return request.param


def function(signature, body, result):
    return f"func.func @f{signature} -> {result} {{\n{body}\n  func.return %y : {result}\n}}"


def unary(op, t="tensor<[m, n], f32>", r=None, attrs=""):
    r = r or t
    return function(f"<m, n>(%x: {t})", f"  %y = {op} %x {attrs} : ({t}) -> {r}", r)


def softmax64(x):
    e = np.exp(x.astype(np.float64) - x.astype(np.float64).max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


VARIANTS = {"cpu": ["rows_cpu", "generic_cpu", "elements_cpu"],
            "emulate": ["rows_short", "rows_short_peeled", "rows_warp", "rows_block_peeled", "rows_long", "generic"]}  # fmt: skip


@pytest.mark.parametrize("target, variant", [(t, v) for t, many in VARIANTS.items() for v in many], indirect=["target"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
def test_softmax_variants(variant, dtype, target):
    t = f"tensor<[m, n], {dtype}>"
    f = stepwell.compile(unary("nn.softmax", t, attrs=f'{{variant = "{variant}"}}'), target=target)
    tolerance = {"f32": 1e-6, "f64": 1e-14, "f16": 1e-3, "bf16": 8e-3}[dtype]
    for m, n in [(3, 1), (2, 7), (5, 16), (4, 33), (1, 1023)]:
        x = (3 * rng.standard_normal((m, n))).astype(DTYPES[dtype])
        got = f(x)
        assert got.dtype == DTYPES[dtype]
        np.testing.assert_allclose(got.astype(np.float64), softmax64(x), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("op, reference", [("nd.sum", np.sum), ("nd.max", np.max), ("nd.min", np.min), ("nd.prod", np.prod)])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i8", "ui8", "i64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions(op, reference, dtype, axis, target):
    kept = "n" if axis == 0 else "m"
    wide = "i64" if dtype in ("i32", "i8", "i64") else "ui64" if dtype == "ui8" else dtype
    result = wide if op in ("nd.sum", "nd.prod") else dtype
    text = unary(op, f"tensor<[m, n], {dtype}>", f"tensor<[{kept}], {result}>", f"{{axes = [{axis}]}}")
    f = stepwell.compile(text, target=target)
    for shape in [(1, 1), (3, 5), (17, 40), (2, 131)]:
        low = 0 if dtype == "ui8" else -3
        x = rng.integers(low, 4, shape).astype(DTYPES[dtype])
        wanted = reference(x, axis=axis)
        np.testing.assert_allclose(f(x), wanted, rtol=1e-5)


def test_empty_reductions(target):
    x = np.empty((3, 0), np.float32)
    for op, value in [("nd.sum", 0.0), ("nd.prod", 1.0), ("nd.max", -np.inf), ("nd.min", np.inf), ("nd.mean", np.nan)]:
        f = stepwell.compile(unary(op, r="tensor<[m], f32>", attrs="{axes = [1]}"), target=target)
        np.testing.assert_array_equal(f(x), np.full(3, value, np.float32))


def test_nan_and_negative_zero_in_max(target):
    f = stepwell.compile(unary("nd.max", r="tensor<[m], f32>", attrs="{axes = [1]}"), target=target)
    x = rng.standard_normal((4, 50)).astype(np.float32)
    x[1, 17] = np.nan
    got = f(x)
    assert np.isnan(got[1]) and not np.isnan(got[[0, 2, 3]]).any()
    zeros = f(np.full((1, 8193), -0.0, np.float32))
    assert zeros[0] == 0 and np.signbit(zeros[0])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 40), st.integers(1, 70))
def test_argmax_first_of_equals(m, n):
    f = _argmax()
    x = rng.integers(0, 4, (m, n)).astype(np.float32)
    np.testing.assert_array_equal(f(x), x.argmax(1))


_CACHE = {}


def _argmax():
    if "argmax" not in _CACHE:
        text = unary("nd.argmax", r="tensor<[m], i64>", attrs="{axis = 1}")
        _CACHE["argmax"] = stepwell.compile(text, target="cpu")
    return _CACHE["argmax"]


MATMUL = """func.func @f<b, m, n, k>(%x: tensor<[b, m, k], DT>, %w: tensor<[b, WS], DT>) -> tensor<[b, m, n], RT> {
  %y = nn.matmul %x, %w {transpose_b = TB} : (tensor<[b, m, k], DT>, tensor<[b, WS], DT>) -> tensor<[b, m, n], RT>
  func.return %y : tensor<[b, m, n], RT>
}"""


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i8"])
@pytest.mark.parametrize("transposed", [False, True])
def test_matmul(dtype, transposed, target):
    text = MATMUL.replace("TB", str(transposed).lower()).replace("WS", "n, k" if transposed else "k, n")
    text = text.replace("DT", dtype).replace("RT", "i32" if dtype == "i8" else dtype)
    f = stepwell.compile(text, target=target)
    for b, m, n, k in [(1, 1, 1, 1), (2, 7, 33, 5), (1, 13, 70, 40), (3, 6, 32, 16), (2, 5, 3, 0), (2, 20, 70, 33), (1, 17, 3, 9)]:
        draw = (lambda s: rng.integers(-128, 128, s)) if dtype == "i8" else rng.standard_normal
        x = np.asarray(draw((b, m, k))).astype(DTYPES[dtype])
        w = np.asarray(draw((b, n, k) if transposed else (b, k, n))).astype(DTYPES[dtype])
        wide = np.int64 if dtype == "i8" else np.float64
        right = w.astype(wide).swapaxes(1, 2) if transposed else w.astype(wide)
        tolerance = {"f32": 1e-5, "f64": 1e-13, "f16": 2e-3, "i8": 0}[dtype]
        np.testing.assert_allclose(f(x, w).astype(wide), x.astype(wide) @ right, rtol=tolerance, atol=tolerance * 8)


def test_f16_sum_accumulates_wide(target):
    text = unary("nd.sum", "tensor<[m, n], f16>", "tensor<[m], f16>", "{axes = [1]}")
    f = stepwell.compile(text, target=target)
    assert f(np.ones((1, 5000), np.float16))[0] == 5000
    mean = stepwell.compile(unary("nd.mean", "tensor<[m, n], f16>", "tensor<[m], f16>", "{axes = [1]}"), target=target)
    assert mean(np.full((1, 1000), 100, np.float16))[0] == 100


def test_fused_equals_unfused_bit_for_bit(target):
    """The cast in the middle rounds, fused or not: 1/7 through f16 is 0.14282227."""
    t, h = "tensor<[m, n], f32>", "tensor<[m, n], f16>"
    body = f"  %a = nd.cast %x {{dtype = f16}} : ({t}) -> {h}\n  %y = nd.cast %a {{dtype = f32}} : ({h}) -> {t}"
    f = stepwell.compile(function(f"<m, n>(%x: {t})", body, t), target=target)
    x = np.full((2, 20), 1 / 7, np.float32)
    np.testing.assert_array_equal(f(x), x.astype(np.float16).astype(np.float32))


def test_a_variant_that_does_not_exist():
    with pytest.raises(IRError, match="asks for variant 'rows_cp', which does not exist; did you mean 'rows_cpu'"):
        stepwell.compile(unary("nn.softmax", attrs='{variant = "rows_cp"}'), target="cpu")


def test_a_variant_of_another_target_or_form_is_refused():
    with pytest.raises(IRError, match="it is for target 'cuda'"):
        stepwell.compile(unary("nn.softmax", attrs='{variant = "rows_warp"}'), target="cpu")
    with pytest.raises(IRError, match="it has no reduction"):
        stepwell.compile(unary("nd.exp", attrs='{variant = "rows_cpu"}'), target="cpu")


def test_a_long_chain_is_several_kernels(target):
    t = "tensor<[n], f32>"
    steps = "\n".join(f"  %v{i + 1} = nd.floor %v{i} : ({t}) -> {t}" for i in range(200))
    f = stepwell.compile(
        f"func.func @f<n>(%v0: {t}) -> {t} {{\n{steps}\n  func.return %v200 : {t}\n}}",
        target=target,
    )
    np.testing.assert_array_equal(f(np.array([1.5, -1.5], np.float32)), [1, -2])
    assert 2 <= f.stats.kernels < 200
