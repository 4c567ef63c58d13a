"""On a GPU: every example and every variant, on fresh random data, against the definition in f64."""

from pathlib import Path

import numpy as np
import pytest
from kernel_texts import ATOMIC, BALLOT, int_kernel

import stepwell
from stepwell.runtime.driver import main

pytestmark = pytest.mark.gpu
EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
SIZES = {
    "layer_norm": ["m=100,1,37,300", "n=1024,1023,1,33000"],
    "softmax": ["m=100,1,37,300", "n=1024,1023,1,33000"],
    "broadcast_add": ["a=6,1,7,1000", "b=6,7,1,333", "c=6,7,1,1", "d=6,7,7,333"],
    "mlp": ["b=1,7,64,600", "i=1,33,128,129", "h=1,65,256,527", "o=1,5,64,577"],
    "attention": ["b=1,2,1,2", "h=1,3,4,2", "s=1,17,64,129", "t=1,33,64,65", "d=1,5,64,33"],
    "transformer_block": ["b=2,1,1,3", "s=17,1,128,333"],
    "digits": ["b=1,7,360,33"],
}
SOFTMAX = (EXAMPLES / "softmax.mlir").read_text()


@pytest.mark.parametrize("amp", [None, "f16", "bf16"])
@pytest.mark.parametrize("name", SIZES)
def test_examples(name, amp, capsys):
    dims = [word for size in SIZES[name] for word in ("--dim", size)]
    low = ["--amp", amp] if amp and name != "digits" else []  # an argmax may change with the precision
    status = main(["run", str(EXAMPLES / f"{name}.mlir"), "--target", "cuda", "--check", *dims, *low])
    out = capsys.readouterr()
    assert status == 0, out.out + out.err
    assert out.out.count("agrees") == 4


def numpy_softmax(x):
    e = np.exp(x.astype(np.float64) - x.astype(np.float64).max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 31, 32, 127, 128, 1000, 1017, 1018, 1019, 1020, 1021, 1022, 1023, 1024, 4095, 4096, 9001])
def test_softmax_row_lengths(dtype, n):
    import cupy
    import ml_dtypes

    kinds = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
    f = stepwell.compile(SOFTMAX.replace("f32", dtype), target="cuda")
    x = (2 * np.random.default_rng(n).standard_normal((33, n))).astype(kinds[dtype])
    y = cupy.full((33, n), np.nan, kinds[dtype])
    f(cupy.asarray(x), out=y)
    tolerance = {"f16": 1e-3, "bf16": 8e-3, "f32": 2e-6, "f64": 1e-13}[dtype]
    np.testing.assert_allclose(y.get().astype(np.float64), numpy_softmax(x), rtol=tolerance, atol=tolerance / 100)


def test_strided_misaligned_and_views():
    import cupy

    f = stepwell.compile(SOFTMAX, target="cuda")
    base = cupy.random.standard_normal((65, 130), dtype=cupy.float32)
    flat = base.reshape(-1)
    for view in (base.T, base[::2, ::3], base[:, ::-1], base[1:, 1:], flat[1 : 1 + 64 * 130].reshape(64, 130),
                 cupy.broadcast_to(base[0], (7, 130))):  # fmt: skip
        np.testing.assert_allclose(f(view).get(), numpy_softmax(view.get()), rtol=2e-6, atol=1e-8)
    assert f.stats.compilations == 1


@pytest.mark.parametrize("dtype, wide", [("i8", "i32"), ("i32", "i32"), ("f64", "f64"), ("f16", "f16")])
def test_matmul_dtypes(dtype, wide):
    import cupy

    kinds = {"i8": np.int8, "i32": np.int32, "f64": np.float64, "f16": np.float16}
    text = f"""func.func @f<m, n, k>(%x: tensor<[m, k], {dtype}>, %w: tensor<[k, n], {dtype}>) -> tensor<[m, n], {wide}> {{
      %y = nn.matmul %x, %w : (tensor<[m, k], {dtype}>, tensor<[k, n], {dtype}>) -> tensor<[m, n], {wide}>
      func.return %y : tensor<[m, n], {wide}>
    }}"""
    f = stepwell.compile(text, target="cuda")
    rng = np.random.default_rng(5)
    for m, n, k in [(1, 1, 1), (65, 33, 17), (130, 129, 128), (600, 700, 130), (5, 3, 0)]:
        draw = rng.standard_normal if dtype.startswith("f") else (lambda s: rng.integers(-100, 100, s))
        x, w = np.asarray(draw((m, k))).astype(kinds[dtype]), np.asarray(draw((k, n))).astype(kinds[dtype])
        exact = x.astype(np.float64) @ w.astype(np.float64)
        got = f(cupy.asarray(x), cupy.asarray(w)).get().astype(np.float64)
        if dtype.startswith("i"):
            np.testing.assert_array_equal(got, exact)
        else:
            limit = {"f64": 1e-13, "f16": 1e-3}[dtype]
            np.testing.assert_allclose(got, exact, rtol=limit, atol=limit * np.sqrt(k + 1))


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min", "mean"])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions(op, axis):
    import cupy

    kept = "m" if axis else "n"
    text = f"""func.func @f<m, n>(%x: tensor<[m, n], f32>) -> tensor<[{kept}], f32> {{
      %y = nd.{op} %x {{axes = [{axis}]}} : (tensor<[m, n], f32>) -> tensor<[{kept}], f32>
      func.return %y : tensor<[{kept}], f32>
    }}"""
    f = stepwell.compile(text, target="cuda")
    for shape in [(1, 1), (33, 1023), (300, 40), (3, 20001)]:
        x = (1 + np.random.default_rng(1).standard_normal(shape) / 100).astype(np.float32)
        wanted = getattr(np, op)(x.astype(np.float64), axis=axis)
        np.testing.assert_allclose(f(cupy.asarray(x)).get(), wanted, rtol=3e-5)


def test_torch_tensors_on_the_device():
    torch = pytest.importorskip("torch")
    f = stepwell.compile(SOFTMAX.replace("f32", "bf16"), target="cuda")
    x = torch.randn(10, 100, device="cuda", dtype=torch.bfloat16)
    y = f(x)
    assert isinstance(y, torch.Tensor) and y.is_cuda and y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), torch.softmax(x.float(), -1), rtol=1e-2, atol=1e-3)


def test_an_array_of_the_host_is_refused():
    from stepwell.ir.diagnostics import IRError

    f = stepwell.compile(SOFTMAX, target="cuda")
    with pytest.raises(IRError, match="argument %x is a numpy.ndarray"):
        f(np.zeros((2, 3), np.float32))


def test_ballots_and_atomics():
    """As on the emulator: two blocks of 64 threads."""
    import cupy

    from stepwell.runtime import cuda

    x = np.random.default_rng(0).integers(-(2**31), 2**31, 64).astype(np.int32)
    votes, most = cupy.zeros(64, cupy.int32), cupy.full(1, x[0], cupy.int32)
    for body, y in ((BALLOT, votes), (ATOMIC.replace("KIND", "maxsi"), most)):
        given = cupy.asarray(x)
        cuda.build_kernels([int_kernel(body)])["k"]([given.data.ptr, y.data.ptr], [64], (2, 1, 1))
    wanted = [sum(int(v < 3) << n for n, v in enumerate(warp)) for warp in x.reshape(2, 32)]
    np.testing.assert_array_equal(votes.get().view(np.uint32), np.repeat(np.array(wanted, np.uint32), 32))
    assert int(most[0]) == x.max()


def test_sums_are_blocked():
    import cupy

    text = """func.func @f<m, n>(%x: tensor<[m, n], f32>) -> tensor<[n], f32> {
      %y = nd.mean %x {axes = [0]} : (tensor<[m, n], f32>) -> tensor<[n], f32>
      func.return %y : tensor<[n], f32>
    }"""
    f = stepwell.compile(text, target="cuda")
    assert float(f(cupy.ones((1 << 25, 1), cupy.float32))[0]) == 1
    for shape in [(1 << 21, 3), (70001, 5), (257, 40)]:
        x = np.random.default_rng(0).random(shape).astype(np.float32)
        for given in (cupy.asarray(x), cupy.asfortranarray(cupy.asarray(x))):
            np.testing.assert_allclose(f(given).get(), x.mean(0, dtype=np.float64), rtol=4e-6)
