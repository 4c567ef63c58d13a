"""stepwell.compile: binding, refusals, strided inputs, out=, one compile for every shape."""

import numpy as np
import pytest

import stepwell
from stepwell.ir.diagnostics import IRError

ADD = """func.func @f<m, n>(%x: tensor<[m, n], f32>, %w: tensor<[n], f32>) -> tensor<[m, n], f32> {
  %y = nd.add %x, %w : (tensor<[m, n], f32>, tensor<[n], f32>) -> tensor<[m, n], f32>
  func.return %y : tensor<[m, n], f32>
}"""
SUM = """func.func @f<m, n>(%x: tensor<[m, n], f32>) -> tensor<[m], f32> {
  %y = nd.sum %x {axes = [1]} : (tensor<[m, n], f32>) -> tensor<[m], f32>
  func.return %y : tensor<[m], f32>
}"""
rng = np.random.default_rng(1)


def draw(*shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module", params=["cpu", "reference"])
def add(request):
    return stepwell.compile(ADD, target=request.param)


def test_every_shape_without_another_compile(add):
    for m, n in [(3, 5), (1, 1), (0, 4), (4, 0), (33, 129), (7, 16)]:
        x, w = draw(m, n), draw(n)
        np.testing.assert_array_equal(add(x, w), x + w)
    assert add.stats.compilations == 1


def test_a_symbol_has_one_value(add):
    with pytest.raises(IRError, match="symbol 'n' is 5 by %x axis 1 and 4 by %w axis 0"):
        add(draw(3, 5), draw(4))


def test_dtype_rank_count_and_kind_are_checked(add):
    x, w = draw(3, 5), draw(5)
    with pytest.raises(IRError, match=r"argument %x has dtype float64, but the signature says f32"):
        add(x.astype(np.float64), w)
    with pytest.raises(IRError, match="argument %w has rank 2"):
        add(x, draw(1, 5))
    with pytest.raises(IRError, match=r"takes 2 arguments \(%x, %w\), but 1 were given"):
        add(x)
    with pytest.raises(IRError, match=r"argument %x is a builtins.list"):
        add([1.0], w)


def test_strided_inputs_run_a_strided_variant():
    f = stepwell.compile(SUM, target="cpu")
    base = draw(20, 30)
    views = [base.T, base[::2, ::3], base[::-1, ::-1], base[:, 5:17], np.broadcast_to(base[0], (6, 30))]
    for view in views:
        np.testing.assert_allclose(f(view), view.astype(np.float64).sum(1), rtol=1e-4, atol=1e-5)
    assert f.stats.compilations == 1


def test_out_takes_the_result(add):
    x, w = draw(3, 5), draw(5)
    out = np.full((3, 5), np.nan, np.float32)
    assert add(x, w, out=out) is out
    np.testing.assert_array_equal(out, x + w)
    strided = np.full((3, 10), np.nan, np.float32)
    add(x, w, out=strided[:, ::2])
    np.testing.assert_array_equal(strided[:, ::2], x + w)
    assert np.isnan(strided[:, 1::2]).all()
    with pytest.raises(IRError, match=r"out\[0\] has shape \(2, 5\), but the result has \(3, 5\)"):
        add(x, w, out=np.empty((2, 5), np.float32))
    with pytest.raises(IRError, match=r"out\[0\] has dtype float64"):
        add(x, w, out=np.empty((3, 5)))


def test_torch_tensors_come_back_as_torch():
    torch = pytest.importorskip("torch")
    f = stepwell.compile(ADD, target="cpu")
    x, w = torch.randn(3, 5), torch.randn(5)
    y = f(x, w)
    assert isinstance(y, torch.Tensor)
    torch.testing.assert_close(y, x + w, rtol=0, atol=0)
    torch.testing.assert_close(f(x.T.contiguous().T, w), x + w, rtol=0, atol=0)


def test_index_argument_declared_to_be_a_dim():
    f = stepwell.compile(
        """func.func @f<n>(%n: index {dim = n}, %x: tensor<[2*n], f32>) -> tensor<[2*n], f32> {
          %y = nd.exp %x : (tensor<[2*n], f32>) -> tensor<[2*n], f32>
          func.return %y : tensor<[2*n], f32>
        }""",
        target="cpu",
    )
    x = draw(6)
    np.testing.assert_allclose(f(3, x), np.exp(x), rtol=1e-6)
    with pytest.raises(IRError, match="axis 0"):
        f(2, x)


def test_derived_dims_are_solved():
    f = stepwell.compile(
        """func.func @f<s>(%x: tensor<[s + 1], f32>) -> tensor<[s + 1], f32> {
          %y = nd.neg %x : (tensor<[s + 1], f32>) -> tensor<[s + 1], f32>
          func.return %y : tensor<[s + 1], f32>
        }""",
        target="cpu",
    )
    assert f.bind(draw(4)) == {"s": 3}
    with pytest.raises(IRError):
        f(draw(0))


def test_facts_are_checked_at_the_call():
    f = stepwell.compile(ADD.replace("f32> {\n  %y", "f32> where n % 8 == 0, m <= 4 {\n  %y"), target="cpu")
    f(draw(3, 8), draw(8))
    with pytest.raises(IRError) as caught:
        f(draw(5, 7), draw(7))
    assert len(caught.value.diagnostics) == 2


def test_a_symbol_that_cannot_be_bound_is_a_compile_error():
    with pytest.raises(IRError, match="pass it as a scalar argument: %m: index {dim = m}"):
        stepwell.compile(
            "func.func @f<m, n>(%x: tensor<[m*n], f32>) -> tensor<[m*n], f32> {\n"
            "  func.return %x : tensor<[m*n], f32>\n}", target="cpu",
        )  # fmt: skip


def test_unknown_target_and_missing_entry():
    with pytest.raises(ValueError, match="unknown target 'gpu'"):
        stepwell.compile(ADD, target="gpu")
    with pytest.raises(IRError, match="did you mean 'f'"):
        stepwell.compile(ADD, target="cpu", entry="ff")


def test_two_functions_do_not_share_symbols():
    f, g = stepwell.compile(ADD, target="cpu"), stepwell.compile(SUM, target="cpu")
    x = draw(3, 5)
    f(x, draw(5))
    assert g(draw(9, 2)).shape == (9,)
    assert f(draw(2, 4), draw(4)).shape == (2, 4)


@pytest.mark.parametrize("shapes", [((6, 6), (6, 6)), ((1, 7), (7, 7)), ((7, 1), (1, 7)), ((1, 1), (1, 1)), ((0, 0), (0, 0))])
def test_broadcasting_of_unknown_dims(shapes):
    from pathlib import Path

    path = Path(__file__).resolve().parents[2] / "docs/examples/broadcast_add.mlir"
    f = stepwell.compile(path, target="cpu")
    x, y = draw(*shapes[0]), draw(*shapes[1])
    np.testing.assert_array_equal(f(x, y), x + y)
    with pytest.raises(IRError, match="cannot broadcast"):
        f(draw(6, 6), draw(7, 7))


def test_out_may_share_memory_with_an_input():
    t = "tensor<[m, n], f32>"
    f = stepwell.compile(
        f"func.func @f<m, n>(%x: {t}) -> tensor<[n, m], f32> {{\n"
        f"  %y = nd.transpose %x {{permutation = [1, 0]}} : ({t}) -> tensor<[n, m], f32>\n"
        "  func.return %y : tensor<[n, m], f32>\n}", target="cpu",
    )  # fmt: skip
    memory = np.empty(32 * 32 * 4 + 64, np.uint8)
    start = -memory.__array_interface__["data"][0] % 64  # aligned, so that kernels could write it directly
    x = memory[start : start + 32 * 32 * 4].view(np.float32).reshape(32, 32)
    x[:] = draw(32, 32)
    wanted = x.T.copy()
    f(x[::-1][::-1], out=x)
    np.testing.assert_array_equal(x, wanted)


def test_a_numpy_scalar_is_a_tensor_of_rank_0():
    f = stepwell.compile(
        "func.func @f(%x: tensor<[], f32>) -> tensor<[], f32> {\n"
        "  %y = nd.neg %x : (tensor<[], f32>) -> tensor<[], f32>\n  func.return %y : tensor<[], f32>\n}", target="cpu",
    )  # fmt: skip
    assert f(np.float32(3)) == -3


def test_a_dim_argument_is_not_negative():
    f = stepwell.compile(
        "func.func @f<n>(%n: index {dim = n}, %x: tensor<[n], f32>) -> tensor<[n], f32> {\n"
        "  func.return %x : tensor<[n], f32>\n}", target="cpu",
    )  # fmt: skip
    with pytest.raises(IRError, match="%n is -1, but a dim is not negative"):
        f(-1, draw(3))


def test_out_of_a_result_that_is_an_argument():
    t = "tensor<[n], f32>"
    f = stepwell.compile(f"func.func @f<n>(%x: {t}) -> {t} {{\n  func.return %x : {t}\n}}", target="cpu")
    x, out = draw(3), f.arrays.empty((3,), np.dtype(np.float32))
    out[:] = 99
    f(x, out=out)
    np.testing.assert_array_equal(out, x)


def test_strides_that_are_no_multiples_of_the_element():
    records = np.zeros((2, 3), dtype=[("a", "i1"), ("b", "f4")])
    f = stepwell.compile(SUM, target="cpu")
    with pytest.raises(IRError, match="pass a copy"):
        f(records["b"])


def test_calls_at_other_sizes_compile_nothing(monkeypatch):
    from stepwell.ir.passes import PassManager
    from stepwell.runtime import cpu

    f = stepwell.compile(ADD, target="cpu")
    assert f.stats.compilations == 1 and f.stats.kernels > 0

    def compiles(*_, **__):
        raise AssertionError("a call compiled something")

    monkeypatch.setattr(PassManager, "run", compiles)
    for name in ("build_kernels", "compile_source", "compile_sources", "_compile", "print_module_source"):
        monkeypatch.setattr(cpu, name, compiles)
    with pytest.raises(AssertionError, match="compiled something"):
        stepwell.compile(ADD, target="cpu")
    for m, n in [(3, 5), (1, 1), (0, 4), (33, 129), (7, 1024)]:
        x, w = draw(m, n), draw(n)
        np.testing.assert_array_equal(f(x, w), x + w)
    strided = draw(8, 6)[:, ::2]
    np.testing.assert_array_equal(f(strided, strided[0]), strided + strided[0])
    assert f.stats.compilations == 1


def test_each_making_of_kernels_counts():
    f = stepwell.compile(ADD, target="cpu")
    f._prepare_kernels(f.module, "f", None, None)
    assert f.stats.compilations == 2


def test_a_function_says_what_it_is(add):
    assert repr(add) == str(add) == (
        f"<stepwell function @f(%x: tensor<[m, n], f32>, %w: tensor<[n], f32>) for {add.target}>"
    )  # fmt: skip


def test_arguments_by_name(add):
    x, w = draw(3, 5), draw(5)
    out = np.empty((3, 5), np.float32)
    for made in (add(x=x, w=w), add(w=w, x=x), add(x, w=w), add(x, w=w, out=out)):
        np.testing.assert_array_equal(made, x + w)
    assert add.bind(x, w=w) == add.bind(w=w, x=x) == {"m": 3, "n": 5}


@pytest.mark.parametrize(
    ("given", "named", "says"),
    [
        ("x", "ww", r"no argument 'ww'; did you mean 'w'\? \(it has %x, %w\)"),
        ("xw", "z", r"no argument 'z' \(it has %x, %w\)"),
        ("xw", "w", "1:45: error: argument %w is given twice, by its place and by its name"),
        ("x", "x", "argument %x is given twice"),
        ("", "w", "the call lacks argument %x"),
        ("", "x", "the call lacks argument %w"),
        ("xww", "x", "argument %x is given twice"),
    ],
)
def test_arguments_by_name_that_do_not_fit(add, given, named, says):
    with pytest.raises(IRError, match=says):
        add(*[draw(3, 5)] * len(given), **{named: draw(5)})


def test_numbers_by_name():
    t = "tensor<[n], f32>"
    f = stepwell.compile(f"func.func @f<n>(%n: index {{dim = n}}, %x: {t}) -> {t} {{\n  func.return %x : {t}\n}}", target="cpu")
    x = draw(3)
    np.testing.assert_array_equal(f(x=x, n=3), x)
    with pytest.raises(IRError, match="%n"):
        f(x=x, n="3")
