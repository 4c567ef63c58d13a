"""Every `nd` operator against NumPy (and PyTorch where NumPy has none), through the evaluator."""

import math

import hypothesis.extra.numpy as hnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_cases import BF16, apply, dims, function_of, static, tensor

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
    return lambda a, b: function(wide(a), wide(b)).astype(a.dtype) if a.dtype.kind not in "iub" else function(a, b)


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
    a, b = edge_values(dtype) if dtype is not np.bool_ else (np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool))
    for cls, function in ((nd.And, np.bitwise_and), (nd.Or, np.bitwise_or), (nd.Xor, np.bitwise_xor)):
        same(apply(cls, a, b), function(a, b))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("predicate", ["lt", "le", "gt", "ge", "eq", "ne"])
@np.errstate(all="ignore")
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
    axes = data.draw(st.none() | st.lists(st.sampled_from(range(len(shape))), unique=True) if shape else st.none())
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
        expected = REDUCTIONS[cls](x.astype(np.float64) if x.dtype == BF16 else x, axis=over, keepdims=keepdims)
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
