"""The fault this project was born from: a norm in f32 run with mixed precision must keep its statistics in f32."""

from pathlib import Path

import numpy as np
import pytest

import stepwell
from stepwell.ir.attributes import f32
from stepwell.ir.diagnostics import IRError
from stepwell.lowering.schedules.generic import generic
from stepwell.lowering.variants import VARIANTS, variant

EXAMPLE = Path(__file__).resolve().parents[2] / "docs/examples/layer_norm.mlir"
rng = np.random.default_rng(3)


def norm64(x, w, b):
    x, w, b = (a.astype(np.float16).astype(np.float64) for a in (x, w, b))
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * w + b


def static(n):
    text = EXAMPLE.read_text()
    return text.replace("<m, n>", "<m>").replace("m, n]", f"m, {n}]").replace("[n]", f"[{n}]")


def error(got, exact):
    return np.abs(got.astype(np.float64) - exact).max()


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("n", [1024, 1023, 1])
@pytest.mark.parametrize("mean", [0, 1000])
@pytest.mark.parametrize("dynamic", [True, False])
def test_layer_norm_in_f16(target, n, mean, dynamic):
    f = stepwell.compile(EXAMPLE if dynamic else static(n), target=target, amp="f16")
    x = (rng.standard_normal((50, n)) + mean).astype(np.float32)
    w, b = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    got = f(x, w, b)
    assert got.dtype == np.float32  # the signature does not change
    exact = norm64(x, w, b)
    best = error(exact.astype(np.float16), exact)  # rounded once
    assert error(got, exact) <= 1.5 * best + 1e-30


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("n", [1023, 70001])
def test_layer_norm_in_f32(order, n):
    """Statistics are sums over the row, good in each layout: the mean, which is 10, is off by 1e-6 of itself at most."""
    x = (np.random.default_rng(5).standard_normal((4, n)) + 10).astype(np.float32)
    centred = x - x.mean(-1, keepdims=True, dtype=np.float64)
    exact = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    w, b = np.ones(n, np.float32), np.zeros(n, np.float32)
    assert error(stepwell.compile(EXAMPLE, target="cpu")(x.copy(order), w, b), exact) <= 1e-5


def test_a_variant_that_accepts_f32_only_is_refused_for_f16():
    text = EXAMPLE.read_text().replace("f32", "f16").replace("eps = 1.0e-5", 'eps = 1.0e-5, variant = "only_f32"')
    try:
        variant("only_f32", target="cpu", operators=("nn.layer_norm",), dtypes=(f32,))(generic)
        with pytest.raises(IRError, match=r"'nn.layer_norm' op cannot take variant 'only_f32': it accepts f32 only, "
                                          r"but operand %x is f16"):  # fmt: skip
            stepwell.compile(text, target="cpu")
        stepwell.compile(text.replace("f16", "f32"), target="cpu")
    finally:
        VARIANTS.pop("only_f32", None)


def test_an_array_of_another_dtype_is_refused():
    f = stepwell.compile(EXAMPLE.read_text().replace("f32", "f16"), target="cpu")
    with pytest.raises(IRError, match="argument %x has dtype float32, but the signature says f16"):
        f(np.zeros((2, 3), np.float32), np.zeros(3, np.float16), np.zeros(3, np.float16))
