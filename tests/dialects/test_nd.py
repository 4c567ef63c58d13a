"""Every `nd` operator against NumPy (and PyTorch where NumPy has none), through the evaluator."""

import math

import hypothesis.extra.numpy as hnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_cases import BF16, F, apply, check, dims, expected_value, function_of, static, tensor

from stepwell.dialects import nd
from stepwell.dialects.evaluate import evaluate_function
from stepwell.dialects.operator import facts_of
from stepwell.ir.attributes import bf16, f8E5M2, f16, f32, f64, i1, i8, i32, i64, ui8, ui64
from stepwell.ir.definition import build, rebuild
from stepwell.ir.diagnostics import IRError
from stepwell.ir.facts import Truth

FLOATS = [np.float16, BF16, np.float32, np.float64]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-3, 100.0, -100.0, math.inf, -math.inf, math.nan]


def edge_values(dtype):
    """Every pair of edge values of a dtype, as two arrays."""
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        values = np.array([info.min, info.min + 1, 0, 1, 2, 7, 100, info.max], dtype)
        values = np.concatenate([values, np.array([-1, -7], dtype)]) if info.min else values
    else:
        values = np.array(EDGES, np.float64).astype(dtype)
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


def wide(x):
    return x.astype(np.float64) if x.dtype == np.float64 else x.astype(np.float32)


def same(actual, expected, ulps=0):
    """Equal, NaN to NaN, or within `ulps` of the result's dtype."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if actual.dtype.kind in "iub":
        np.testing.assert_array_equal(actual, expected)
        return
    eps = float(ml_dtypes.finfo(expected.dtype).eps)
    np.testing.assert_allclose(
        actual.astype(np.float64), expected.astype(np.float64), rtol=ulps * eps,
        atol=(ulps > 0) * float(ml_dtypes.finfo(expected.dtype).smallest_normal), equal_nan=True,
    )  # fmt: skip


UNARY = {
    nd.Neg: np.negative, nd.Abs: np.abs, nd.Exp: np.exp, nd.Exp2: np.exp2, nd.Expm1: np.expm1, nd.Log: np.log,
    nd.Log2: np.log2, nd.Log1p: np.log1p, nd.Sqrt: np.sqrt, nd.Tanh: np.tanh, nd.Sin: np.sin, nd.Cos: np.cos,
    nd.Floor: np.floor, nd.Ceil: np.ceil, nd.Round: np.rint, nd.Sign: np.sign, nd.Square: np.square,
    nd.Reciprocal: np.reciprocal, nd.Rsqrt: lambda x: 1 / np.sqrt(x), nd.Relu: lambda x: np.maximum(x, 0),
    nd.Sigmoid: lambda x: 1 / (1 + np.exp(-x)), nd.Silu: lambda x: x / (1 + np.exp(-x)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("cls", UNARY, ids=lambda c: c.name)
@np.errstate(all="ignore")
def test_unary_floats(cls, dtype):
    x = np.concatenate([edge_values(dtype)[0], np.linspace(-9, 9, 101).astype(dtype)])
    same(apply(cls, x), UNARY[cls](x.astype(np.float64)).astype(np.float32).astype(dtype)
         if dtype is not np.float64 else UNARY[cls](x), ulps=6)  # fmt: skip


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("cls", [nd.Neg, nd.Abs, nd.Square, nd.Relu, nd.Sign], ids=lambda c: c.name)
@np.errstate(all="ignore")
def test_unary_integers(cls, dtype):
    x = edge_values(dtype)[0]
    same(apply(cls, x), UNARY[cls](x).astype(dtype))


def _numpy_binary(function):
    return lambda a, b: (
        function(wide(a), wide(b)).astype(a.dtype) if a.dtype.kind not in "iub" else function(a, b)
    )


BINARY = {
    nd.Add: np.add, nd.Sub: np.subtract, nd.Mul: np.multiply, nd.Maximum: np.maximum, nd.Minimum: np.minimum,
    nd.FloorDiv: np.floor_divide, nd.Remainder: np.remainder,
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("cls", BINARY, ids=lambda c: c.name)
@np.errstate(all="ignore")
def test_binary(cls, dtype):
    a, b = edge_values(dtype)
    same(apply(cls, a, b, dims=["n", "n"]), _numpy_binary(BINARY[cls])(a, b))


@pytest.mark.parametrize("dtype", FLOATS)
@np.errstate(all="ignore")
def test_div_and_pow(dtype):
    a, b = edge_values(dtype)
    same(apply(nd.Div, a, b), (wide(a) / wide(b)).astype(dtype))
    both = [math_pow(x, y) for x, y in zip(a.astype(float), b.astype(float))]
    same(apply(nd.Pow, a, b), np.array(both).astype(dtype), ulps=4)


def math_pow(x, y):
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.inf
    except ValueError:
        return (math.copysign(math.inf, x) if y % 2 == 1 else math.inf) if x == 0 else math.nan


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, np.bool_])
def test_bits(dtype):
    a, b = (
        edge_values(dtype)
        if dtype is not np.bool_
        else (np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool))
    )
    for cls, function in ((nd.And, np.bitwise_and), (nd.Or, np.bitwise_or), (nd.Xor, np.bitwise_xor)):
        same(apply(cls, a, b), function(a, b))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("predicate", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_compare(predicate, dtype):
    a, b = edge_values(dtype)
    name = {
        "lt": "less",
        "le": "less_equal",
        "gt": "greater",
        "ge": "greater_equal",
        "eq": "equal",
        "ne": "not_equal",
    }
    same(apply(nd.Compare, a, b, predicate=predicate), np.asarray(getattr(np, name[predicate])(a, b)))


def test_select_and_logical_not():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    same(apply(nd.Select, x > 2, x, -x[:1]), np.where(x > 2, x, -x[:1]))
    same(apply(nd.LogicalNot, x), x == 0)
    same(apply(nd.LogicalNot, x > 2), ~(x > 2))


def test_activations_against_torch():
    torch = pytest.importorskip("torch")
    x = np.concatenate([np.linspace(-30, 30, 301), [math.nan]]).astype(np.float32)
    t = torch.from_numpy(x)
    functions = torch.nn.functional
    for actual, expected in [
        (apply(nd.Gelu, x), functions.gelu(t)),
        (apply(nd.Gelu, x, approximate="tanh"), functions.gelu(t, approximate="tanh")),
        (apply(nd.Softplus, x, beta=2.0, threshold=5.0), functions.softplus(t, beta=2, threshold=5)),
        (apply(nd.Erf, x), torch.erf(t)), (apply(nd.Silu, x), functions.silu(t)),
    ]:  # fmt: skip
        np.testing.assert_allclose(actual, expected.numpy(), rtol=2e-6, atol=1e-6, equal_nan=True)


def test_integers_do_not_divide():
    with pytest.raises(IRError, match=r"true division is of floats; use nd.floor_div, or nd.cast"):
        apply(nd.Div, np.array([1]), np.array([2]))


def test_one_element_type():
    with pytest.raises(IRError, match=r"%x0 has 'f16' and %x1 has 'f32'"):
        apply(nd.Add, np.zeros(2, np.float16), np.zeros(2, np.float32))


# ---------------------------------------------------------------- broadcasting

SIDES = st.integers(0, 4)


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=4, max_dims=4), st.booleans())
def test_broadcasting(shapes, known):
    a, b = (np.arange(math.prod(s), dtype=np.float32).reshape(s) for s in shapes.input_shapes)
    same((static if known else apply)(nd.Add, a, b), a + b)


def test_one_function_serves_every_broadcast():
    function = function_of(nd.Add, [tensor("n", f32), tensor("m", f32)])
    for n, m in ((6, 6), (7, 7), (1, 7), (7, 1), (1, 1), (0, 0), (1, 0)):
        a, b = np.arange(n, dtype=np.float32), np.arange(m, dtype=np.float32)
        same(evaluate_function(function, [a, b])[0], a + b)
    with pytest.raises(IRError, match=r"axis 0 of %x0 is n, axis 0 of %x1 is m, and neither is 1"):
        evaluate_function(function, [np.zeros(2, np.float32), np.zeros(3, np.float32)])


def test_constant_mismatch_is_an_error_at_once():
    with pytest.raises(IRError, match=r"axis 1 of %x0 is 3, axis 0 of %x1 is 4, and neither is 1"):
        static(nd.Add, np.zeros((2, 3), np.float32), np.zeros(4, np.float32))


def test_facts_decide():
    equal = function_of(nd.Add, [tensor("n", f32), tensor("m", f32)], "n == m")
    op = equal.body.first
    assert [r.prove(facts_of(op)) for r in op.requirements()] == [Truth.YES]
    with pytest.raises(IRError, match="neither is 1"):
        function_of(nd.Add, [tensor("n + 2", f32), tensor("n + 3", f32)])


def test_declared_result_is_checked():
    function = function_of(nd.Add, [tensor("n", f32), tensor("m", f32)], result_types=[tensor("n", f32)])
    with pytest.raises(IRError, match="declared as n, but is"):
        evaluate_function(function, [np.zeros(1, np.float32), np.zeros(3, np.float32)])
    with pytest.raises(IRError, match="declared as 2, but is 3"):
        function_of(nd.Neg, [tensor("3", f32)], result_types=[tensor("2", f32)])
    with pytest.raises(IRError, match="is declared as 'tensor<3xf16>'"):
        function_of(nd.Neg, [tensor("3", f32)], result_types=[tensor("3", f16)])


# ---------------------------------------------------------------- casts and creation


def test_cast_to_integers_saturates():
    x = np.array([1.9, -1.9, 300, -300, math.inf, -math.inf, math.nan, 0], np.float32)
    assert apply(nd.Cast, x, dtype=i8).tolist() == [1, -1, 127, -128, 127, -128, 0, 0]
    assert apply(nd.Cast, x, dtype=ui8).tolist() == [1, 0, 255, 0, 255, 0, 0, 0]
    assert apply(nd.Cast, x, dtype=i1).tolist() == [True, True, True, True, True, True, True, False]
    assert apply(nd.Cast, np.array([1e30, -1e30]), dtype=i64).tolist() == [2**63 - 1, -(2**63)]
    assert apply(nd.Cast, np.array([1e30, -1e30]), dtype=ui64).tolist() == [2**64 - 1, 0]


def test_cast_of_integers():
    x = np.array([-1, 0, 255, 256, 2**31 - 1], np.int32)
    for element in (i8, ui8, i64, ui64, f32, f64):
        result = apply(nd.Cast, x, dtype=element)
        same(result, x.astype(result.dtype))
    same(apply(nd.Cast, np.array([200, 255], np.uint8), dtype=i32), np.array([200, 255], np.int32))
    same(apply(nd.Cast, np.array([True, False]), dtype=f32), np.array([1, 0], np.float32))


def test_cast_rounds_once():
    just_above_a_tie = np.array([1 + 2.0**-11 + 2.0**-40])  # in f32 it would be the tie
    assert apply(nd.Cast, just_above_a_tie, dtype=f16) == np.float16(1 + 2.0**-10)
    assert apply(nd.Cast, np.array([1 + 2.0**-8 + 2.0**-40]), dtype=bf16) == BF16(1 + 2.0**-7)
    x = np.array([1 / 7], np.float32)
    assert apply(nd.Cast, apply(nd.Cast, x, dtype=f16), dtype=f32)[0] == np.float32(0.14282227)
    same(
        apply(nd.Cast, np.array([1.3, 1e6], np.float32), dtype=f8E5M2),
        np.array([1.25, np.inf]).astype(ml_dtypes.float8_e5m2),
    )


def test_constant_and_iota():
    for value, element in ((2.5, f16), (-7, i8), (1, f64), (True, i1)):
        op = build(nd.Constant, value=value, shape=dims("2, 3"), dtype=element)
        function = _creation(op)
        [y] = evaluate_function(function, [])
        same(y, np.full((2, 3), value, y.dtype))
    [y] = evaluate_function(_creation(build(nd.Iota, axis=1, shape=dims("2, 3"), dtype=i64)), [])
    same(y, np.broadcast_to(np.arange(3), (2, 3)))
    with pytest.raises(IRError, match="has the float"):
        build(nd.Constant, value=2.5, dtype=i8)


def _creation(op):
    from stepwell.dialects import func

    function = func.FuncOp.make("f", [], [r.type for r in op.results])
    function.body.append(op)
    function.body.append(func.ReturnOp(op.results))
    return function


# ---------------------------------------------------------------- shape and movement


@given(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3), st.randoms())
def test_transpose_and_broadcast(shape, random):
    x = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    order = list(range(len(shape)))
    random.shuffle(order)
    same(apply(nd.Transpose, x, permutation=order), x.transpose(order))
    same(apply(nd.Transpose, x), x.T)
    target = (2, *(3 if s == 1 else s for s in shape))
    same(apply(nd.Broadcast, x, shape=list(target)), np.broadcast_to(x, target))


@pytest.mark.parametrize(
    ("source", "target", "shape", "result"),
    [
        ("b, s, h*d", "b, s, h, d", (2, 3, 20), (2, 3, 4, 5)),
        ("b, s, h, d", "b, s, h*d", (2, 3, 4, 5), (2, 3, 20)),
        ("b, s", "-1", (3, 4), (12,)),
        ("a, 4", "2, a, 2", (3, 4), (2, 3, 2)),
        ("n, 6", "n, 3, -1", (5, 6), (5, 3, 2)),
        ("a, b", "1, a, b", (0, 5), (1, 0, 5)),
        ("", "1, 1", (), (1, 1)),
        ("1, 1", "", (1, 1), ()),
        ("2*n, 3", "n, -1", (4, 3), (2, 6)),
        ("n, m", "m, n", (2, 3), (3, 2)),
        ("0, 4", "4, 0", (0, 4), (4, 0)),
    ],
)
def test_reshape(source, target, shape, result):
    x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    extra = [tensor("h, d", f32)] if "h" in source and "h, d" not in source else []
    function = function_of(nd.Reshape, [tensor(source, f32)], shape=dims(target)) if not extra else None
    if function is None:  # h and d are bound by a second argument
        function = function_of(nd.Reshape, [tensor("b, s, 5*h", f32)], shape=dims("b, s, h, 5"))
    same(evaluate_function(function, [x])[0], x.reshape(result))


def test_reshape_errors():
    with pytest.raises(IRError, match=r"12 elements, to \[5, 2\], 10"):
        static(nd.Reshape, np.zeros((3, 4), np.float32), shape=[5, 2])
    with pytest.raises(IRError, match="one may be -1"):
        apply(nd.Reshape, np.zeros(4, np.float32), shape=[-1, -1])
    function = function_of(nd.Reshape, [tensor("n", f32)], shape=[-1, 4])
    same(
        evaluate_function(function, [np.arange(8, dtype=np.float32)])[0],
        np.arange(8, dtype=np.float32).reshape(2, 4),
    )
    with pytest.raises(IRError, match="cannot reshape %x0"):
        evaluate_function(function, [np.arange(7, dtype=np.float32)])


BOUNDS = st.integers(-12, 12)


@given(st.integers(0, 9), BOUNDS, BOUNDS, st.integers(-4, 4).filter(bool), st.booleans())
def test_slice_is_pythons(n, start, limit, step, known):
    x = np.arange(n, dtype=np.int64)
    y = (static if known else apply)(nd.Slice, x, starts=[start], limits=[limit], steps=[step])
    same(y, x[start:limit:step])


def test_symbolic_slice():
    function = function_of(nd.Slice, [tensor("a, b", f32)], starts=[0, 0], limits=dims("a, b - 3"))
    for a, b in ((4, 6), (2, 4), (2, 2)):
        x = np.arange(a * b, dtype=np.float32).reshape(a, b)
        same(evaluate_function(function, [x])[0], x[:, : max(b - 3, 0)])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(-2, 1), st.booleans())
def test_concat(sizes, axis, known):
    parts = [np.full((2, s) if axis % 2 else (s, 2), n, np.int16) for n, s in enumerate(sizes)]
    same((static if known else apply)(nd.Concat, *parts, axis=axis), np.concatenate(parts, axis))


# ---------------------------------------------------------------- reductions

REDUCTIONS = {nd.Sum: np.sum, nd.Prod: np.prod, nd.Max: np.max, nd.Min: np.min, nd.Mean: np.mean}


@pytest.mark.parametrize("cls", REDUCTIONS, ids=lambda c: c.name)
@given(
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=7),
    dtype=st.sampled_from(FLOATS + INTEGERS),
    data=st.data(),
)
@np.errstate(all="ignore")
@pytest.mark.filterwarnings("ignore")
def test_reductions(cls, shape, dtype, data):
    axes = data.draw(
        st.none() | st.lists(st.sampled_from(range(len(shape))), unique=True) if shape else st.none()
    )
    keepdims = data.draw(st.booleans())
    x = np.random.default_rng(0).integers(0 if np.dtype(dtype).kind == "u" else -3, 4, shape).astype(dtype)
    over = tuple(range(len(shape))) if axes is None else tuple(axes)
    if cls is nd.Mean and np.dtype(dtype).kind in "iu":
        with pytest.raises(IRError, match="is of floats"):
            apply(cls, x, axes=axes, keepdims=keepdims)
        return
    if cls in (nd.Max, nd.Min):
        if any(shape[a] == 0 for a in over):
            return
        expected = REDUCTIONS[cls](
            x.astype(np.float64) if x.dtype == BF16 else x, axis=over, keepdims=keepdims
        )
        same(apply(cls, x, axes=axes, keepdims=keepdims), np.asarray(expected).astype(dtype))
        return
    source = x if x.dtype.kind in "iu" else wide(x)
    expected = np.asarray(REDUCTIONS[cls](source, axis=over, keepdims=keepdims))
    result = {"i": np.int64, "u": np.uint64}.get(x.dtype.kind, dtype)
    same(apply(cls, x, axes=axes, keepdims=keepdims), expected.astype(result), ulps=2)


@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9), st.data())
def test_argmax(shape, data):
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    keepdims = data.draw(st.booleans())
    x = np.random.default_rng(data.draw(st.integers(0, 9))).integers(0, 3, shape).astype(np.float32)
    if data.draw(st.booleans()):
        x[x == 1] = np.nan
    expected = np.asarray(x.argmax(axis=axis, keepdims=keepdims))
    same(apply(nd.Argmax, x, axis=axis, keepdims=keepdims), expected)


def test_reduction_of_nothing():
    empty = np.zeros((2, 0), np.float32)
    assert apply(nd.Sum, empty, axes=[1]).tolist() == [0, 0]
    assert apply(nd.Prod, empty, axes=[1]).tolist() == [1, 1]
    assert np.isnan(apply(nd.Mean, empty, axes=[1])).all()
    assert apply(nd.Max, empty, axes=[1]).tolist() == [-math.inf] * 2
    assert apply(nd.Min, empty.astype(np.int8), axes=[1]).tolist() == [127] * 2
    with pytest.raises(IRError, match="over axis 1 of %x0, which is empty"):
        static(nd.Max, empty, axes=[1])
    with pytest.raises(IRError, match="needs it not to be empty"):
        apply(nd.Argmax, empty, axis=1)


def test_accumulation_type():
    assert apply(nd.Mean, np.full(1000, 100, np.float16)) == 100
    assert apply(nd.Sum, np.full(1000, 100, np.float16)) == np.inf
    assert apply(nd.Sum, np.full(1000, 100, np.float16), dtype=f32) == 100000
    assert apply(nd.Sum, np.full(9, 127, np.int8)).dtype == np.int64
    assert apply(nd.Sum, np.full(9, 127, np.int8), dtype=i8) == np.int64(9 * 127).astype(np.int8)
    assert apply(nd.Mean, np.arange(4, dtype=np.int32), dtype=f32) == 1.5
    assert apply(nd.Sum, np.array([True, True])) == 2
    assert apply(nd.Sum, np.full(1 << 16, 16777217, np.int32)) == 16777217 << 16
    exact = np.array([1e300, 1.0, -1e300])
    assert apply(nd.Min, exact) == -1e300


def test_axis_out_of_range():
    x = np.zeros((2, 3), np.float32)
    for cls, attributes in (
        (nd.Sum, {"axes": [2]}),
        (nd.Argmax, {"axis": -3}),
        (nd.Transpose, {"permutation": [0, 5]}),
    ):
        with pytest.raises(IRError, match="the range allowed is from -2 to 1"):
            apply(cls, x, **attributes)
    with pytest.raises(IRError, match="twice"):
        apply(nd.Sum, x, axes=[1, -1])


# ---------------------------------------------------------------- rebuilding

OFF_DEFAULT = [
    (nd.Gelu, {"approximate": "tanh"}), (nd.Softplus, {"beta": 3.0, "threshold": 7.0}),
    (nd.Clamp, {"min": -0.5, "max": 0.25}), (nd.Sum, {"axes": [0], "keepdims": True, "dtype": f64}),
    (nd.Slice, {"starts": [1, 0], "limits": [3, -1], "steps": [1, 2]}),
    (nd.Transpose, {"permutation": [1, 0]}),
    (nd.Argmax, {"axis": 0, "keepdims": True}), (nd.Cast, {"dtype": f16}), (nd.Reshape, {"shape": [-1]}),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "attributes"), OFF_DEFAULT, ids=lambda v: getattr(v, "name", ""))
def test_rebuild_keeps_attributes(cls, attributes):
    op = function_of(cls, [tensor("m, n", f32)], **attributes).body.first
    made = rebuild(op, op.operands)
    assert made.properties == op.properties
    assert [r.type for r in made.results] == [r.type for r in op.results]


# ---------------------------------------------------------------- the corpus of public reports


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
    x = np.array(
        [3.14, -3.14, 0.26914087, 1.00390625, 1.01171875, 3.3961776e38, 1e-40, -0.0, math.inf], np.float32
    )
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
        assert run(nd.Slice, x, starts=list(starts), limits=list(limits), steps=list(steps)).shape == tuple(
            shape
        )


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
