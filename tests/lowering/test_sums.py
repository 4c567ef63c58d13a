"""Sums are blocked: their error stays small whatever the extent, the axes and the layout of the input."""

import numpy as np
import pytest

import stepwell
from stepwell.dialects import expression as e
from stepwell.dialects.operator import Operator
from stepwell.ir.attributes import TensorType
from stepwell.ir.definition import FloatTensor, operand, result
from stepwell.ir.registry import Dialect

rng = np.random.default_rng(4)
EXTENTS = [0, 1, 255, 256, 257, 65535, 65537]
_COMPILED = {}


def reduction(op, shape, axes, attrs="{{axes = {axes}}}", element="f32"):
    """The compiled `op` of an f32 tensor; `shape` holds symbols and numbers."""
    key = (op, shape, axes)
    if key not in _COMPILED:
        kept = ", ".join(str(d) for n, d in enumerate(shape) if n not in axes)
        names = ", ".join(d for d in shape if isinstance(d, str))
        t, r = f"tensor<[{', '.join(map(str, shape))}], f32>", f"tensor<[{kept}], {element}>"
        _COMPILED[key] = stepwell.compile(
            f"func.func @f{f'<{names}>' if names else ''}(%x: {t}) -> {r} {{\n"
            f"  %y = {op} %x {attrs.format(axes=list(axes), axis=axes[0])} : ({t}) -> {r}\n"
            f"  func.return %y : {r}\n}}", target="cpu",
        )  # fmt: skip
    return _COMPILED[key]


def stride0(shape):
    """Values along the longest axis, the same ones along all others."""
    ones = [d if d == max(shape) else 1 for d in shape]
    return np.broadcast_to(rng.random(ones, dtype=np.float32), shape)


LAYOUTS = {
    "contiguous": lambda shape: rng.random(shape, dtype=np.float32),
    "fortran": lambda shape: np.asfortranarray(rng.random(shape, dtype=np.float32)),
    "stride0": stride0,
    "ones": lambda shape: np.ones(shape, np.float32),
    "fortran_ones": lambda shape: np.ones(shape, np.float32, order="F"),
    "stride0_ones": lambda shape: np.broadcast_to(np.float32(1), shape),
}
PLACES = {  # shape, with the extent as n; symbols; axes
    "first": (lambda n: (n, 3), ("n", "k"), (0,)),
    "middle": (lambda n: (2, n, 3), ("m", "n", "k"), (1,)),
    "last": (lambda n: (3, n), ("m", "n"), (1,)),
    "all": (lambda n: (3, n), ("m", "n"), (0, 1)),
    "first and last": (lambda n: (n, 2, 3), ("n", "m", "k"), (0, 2)),
}


@pytest.mark.parametrize("op, exact", [("nd.sum", np.sum), ("nd.mean", np.mean)])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_error_against_f64(op, exact, place, layout):
    shape, symbols, axes = PLACES[place]
    f = reduction(op, symbols, axes)
    for n in EXTENTS:
        x = LAYOUTS[layout](shape(n))
        with np.errstate(invalid="ignore"):  # the mean of nothing
            wanted = exact(x.astype(np.float64), axis=axes) if n or op == "nd.sum" else np.full_like(f(x), np.nan)
        np.testing.assert_allclose(f(x), wanted, rtol=4e-6, err_msg=f"extent {n}")


@pytest.mark.parametrize("order", "CF")
def test_one_value_many_times(order):
    """The worst case: all additions of a chunk err in the same direction, by up to 1/2 ulp."""
    x = np.tile(rng.random(200, dtype=np.float32), (65537, 1)).copy(order)
    np.testing.assert_allclose(reduction("nd.mean", ("m", "n"), (0,))(x), x[0], rtol=1e-5)


@pytest.mark.parametrize("n", EXTENTS)
def test_static_extents(n):
    for shape, axes in [((n, 3), (0,)), ((3, n), (1,)), ((3, n), (0, 1)), ((2, n, 3), (1, 2))]:
        x = LAYOUTS["fortran"](shape)
        np.testing.assert_allclose(reduction("nd.sum", shape, axes)(x), x.sum(axes, dtype=np.float64), rtol=4e-6)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_layouts_agree(axes):
    """A layout chooses the variant; none may be much worse than another."""
    x = rng.random((1000, 1000), dtype=np.float32)
    f = reduction("nd.sum", ("m", "n"), axes)
    for same in (x, np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2]):
        np.testing.assert_allclose(f(same), x.sum(axes, dtype=np.float64), rtol=1e-6)


def test_the_mean_of_many_ones():
    """A single f32 that counts them stays at 2^24."""
    x = np.broadcast_to(np.float32(1), (1 << 25, 1))
    assert reduction("nd.mean", ("m", "n"), (0,))(x) == [1]
    assert reduction("nd.sum", ("m", "n"), (0, 1))(x) == 1 << 25


@pytest.mark.parametrize("layout", ["contiguous", "fortran", "stride0"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("n", [1, 255, 257, 65537])
def test_what_is_not_a_sum_is_exact(layout, axis, n):
    x = LAYOUTS[layout]((n, 3) if axis == 0 else (3, n))
    for op, exact in [("nd.max", np.max), ("nd.min", np.min)]:
        np.testing.assert_array_equal(reduction(op, ("m", "n"), (axis,))(x), exact(x, axis=axis))
    found = reduction("nd.argmax", ("m", "n"), (axis,), "{{axis = {axis}}}", "i64")(x)
    np.testing.assert_array_equal(found, x.argmax(axis))
    near_one = (1 + (x - 0.5) / 1e3).astype(np.float32)
    got = reduction("nd.prod", ("m", "n"), (axis,))(near_one)
    np.testing.assert_allclose(got, near_one.astype(np.float64).prod(axis), rtol=6e-8 * n + 1e-7)


sums = Dialect("sums", "Reductions whose combiners are the test's own.")


class _OverFirst(Operator):
    """[n, m] -> [m]."""

    precision = "keep"

    def infer_types(self):
        return [TensorType(self.x.type.dims[1:], self.x.type.element)]


@sums.op
class Spread(_OverFirst):
    """The sum of squared distances to the mean, by Chan's rule: count, mean and sum are combined."""

    name = "sums.spread"
    x = operand(FloatTensor)
    y = result(FloatTensor)

    def define(self, x):
        def combine(n, mean, square, n2, mean2, square2):
            both = n + n2
            part = n2 / e.maximum(both, 1)
            away = mean2 - mean
            return both, mean + away * part, square + square2 + away * away * n * part

        def one(i, j):
            value = x.at(j, i)
            return value * 0 + 1, value, value * 0

        return e.reduce(x.shape[1:], x.shape[:1], one, combine, [0.0, 0.0, 0.0])[2]


@sums.op
class Doubling(_OverFirst):
    """y = 2 y + x from the first to the last: in no other order."""

    name = "sums.doubling"
    x = operand(FloatTensor)
    y = result(FloatTensor)

    def define(self, x):
        return e.reduce(
            x.shape[1:], x.shape[:1], lambda i, j: x.at(j, i), lambda a, b: a * 2 + b, [0.0], associative=False,
            commutative=False,
        )[0]  # fmt: skip


@pytest.mark.parametrize("n", [1, 257, 65537])
def test_a_combiner_with_sums_in_it(n):
    x = rng.random((n, 3), dtype=np.float32) + 10
    for same in (x, np.asfortranarray(x)):
        got = reduction("sums.spread", ("n", "m"), (0,), "")(same)
        np.testing.assert_allclose(got, x.astype(np.float64).var(0) * n, rtol=2e-5)


def test_what_is_not_associative_keeps_its_order():
    x = np.zeros((300, 2), np.float32)
    x[-3:] = [[1, 2], [3, 4], [5, 6]]
    for same in (x, np.asfortranarray(x)):
        assert reduction("sums.doubling", ("n", "m"), (0,), "")(same).tolist() == [15, 22]
