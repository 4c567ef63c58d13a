"""The evaluator: modes, tiles, reads, reductions, contractions, and binding of symbols."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_cases import apply, dims, function_of, tensor

from stepwell.dialects import arith, evaluate_compute, func, nd, nn
from stepwell.dialects import expression as e
from stepwell.dialects.compute import Map, Reduce, Yield
from stepwell.dialects.evaluate import bind_symbols, definition_of, evaluate_function
from stepwell.dialects.evaluate import evaluate_compute as run_block
from stepwell.dialects.expression import Tensor, Trace
from stepwell.dialects.expression_scalar import constant, select
from stepwell.dialects.operator import Operator, trace
from stepwell.dialects.signature import Signature
from stepwell.ir.attributes import SymbolRefAttr, f16, f32, f64, i32, index
from stepwell.ir.builder import Builder
from stepwell.ir.core import Block
from stepwell.ir.definition import build
from stepwell.ir.diagnostics import IRError
from stepwell.ir.dims import parse_facts
from stepwell.ir.facts import Facts
from stepwell.ir.module import empty_module
from stepwell.ir.parser import parse_module
from stepwell.ir.verifier import verify

RANDOM = np.random.default_rng(0)


def traced(types, write):
    """A block of what `write` returns, as tensors, of traced arguments; verified."""
    block = Block(types)
    with Trace(Builder(block).insert, Facts()):
        made = write(*(Tensor.of(a) for a in block.arguments))
        made = made if isinstance(made, tuple) else (made,)
        values = [e.materialize(t).value for t in made]
    block.append(Yield(values))
    for op in block.ops:
        op.verify_op()
        for inner in op.walk():
            inner.verify_op()
    return block


def test_elementwise_chain_is_one_map():
    block = traced([tensor("m, n", f16)], lambda x: e.exp(x * 2 + 1) - x / 3)
    assert [type(op) for op in block.ops] == [Map, Yield]
    reads = [op for op in block.first.walk() if op.op_name == "compute.read"]
    assert len(reads) == 1


def test_softmax_is_four_operations():
    block = definition_of(function_of(nn.Softmax, [tensor("m, n", f16)]).body.first)
    assert [type(op) for op in block.ops] == [Reduce, Map, Reduce, Map, Yield]


def test_definitions_are_shared_by_attributes():
    ops = [function_of(nd.Sum, [tensor("m, n", f32)], axes=a).body.first for a in ([0], [0], [1])]
    assert definition_of(ops[0]) is definition_of(ops[1]) is not definition_of(ops[2])
    square = function_of(nd.Mul, [tensor("n", f32), tensor("n", f32)])
    first, second = square.body.arguments
    square.body.first.operands = (first, first)
    x, y = np.full(3, 2, np.float32), np.full(3, 5, np.float32)
    assert evaluate_function(square, [x, y])[0].tolist() == [4, 4, 4]
    square.body.first.operands = (first, second)
    assert evaluate_function(square, [x, y])[0].tolist() == [10, 10, 10]


# ---------------------------------------------------------------- floats


def test_floats_in_f64():
    x = np.array([1 / 3, 1e6, 1e-9], np.float32)
    y = apply(nd.Cast, x, dtype=f16, floats="f64")
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y, x.astype(np.float64))
    total = apply(nd.Sum, np.full(1 << 12, 0.1, np.float16), floats="f64")
    assert total == float(np.float16(0.1)) * (1 << 12)
    assert apply(nd.Cast, np.array([16777217]), dtype=f32, floats="f64") == 16777217
    assert apply(nd.Argmax, x, floats="f64").dtype == np.int64


def test_a_chain_rounds_at_each_operator():
    function = func.FuncOp.make("f", [tensor("n", f16)], [tensor("n", f16)], symbols="n", names=["x"])
    b = Builder(function.body)
    y = b.create(nd.Add, *function.arguments * 2).result
    b.create(func.ReturnOp, [b.create(nd.Sub, y, function.arguments[0]).result])
    x = np.array([40000.0, 1.0], np.float16)
    assert evaluate_function(function, [x])[0].tolist() == [np.inf, 1.0]
    assert evaluate_function(function, [x], floats="f64")[0].tolist() == [40000.0, 1.0]


# ---------------------------------------------------------------- tiles


@given(st.lists(st.integers(0, 5), max_size=4), st.integers(1, 40))
def test_tiles_cover_once(sizes, limit):
    seen = np.zeros(sizes, int)
    for tile in evaluate_compute.tiles(sizes, limit):
        assert np.prod(tile.sizes, dtype=int) <= limit
        seen[tile.slices] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("limit", [1, 7, 64])
def test_small_tiles_give_the_same(monkeypatch, limit):
    x = RANDOM.integers(-9, 9, (5, 6, 7)).astype(np.float64)
    monkeypatch.setattr(evaluate_compute.tiles, "__defaults__", (limit,))
    monkeypatch.setattr(evaluate_compute, "TILE_ELEMENTS", limit)
    np.testing.assert_array_equal(apply(nd.Add, x, x[0]), x + x[0])
    np.testing.assert_array_equal(apply(nd.Sum, x, axes=[0, 2]), x.sum((0, 2)))
    np.testing.assert_array_equal(apply(nd.Argmax, x, axis=1), x.argmax(1))
    np.testing.assert_array_equal(apply(nn.Matmul, x, x.swapaxes(1, 2)), x @ x.swapaxes(1, 2))


# ---------------------------------------------------------------- reads


@pytest.mark.parametrize(
    "write",
    [
        lambda x: e.from_function(("n", "m"), lambda i, j: x.at(j, i)),
        lambda x: e.from_function(("m", "n - 1"), lambda i, j: x.at(i, j + 1)),
        lambda x: e.from_function(("m", "n"), lambda i, j: x.at(i, (j * -1) + e.dim_value("n") - 1)),
        lambda x: e.from_function(("m", 3), lambda i, j: x.at(i, j * 2)),
        lambda x: e.from_function(("n",), lambda j: x.at(2, j)),
        lambda x: e.from_function(("m", "n", 2), lambda i, j, k: x.at(i, j) * 2),
    ],
)
def test_affine_reads(write):
    m, n = 4, 6
    x = np.arange(m * n, dtype=np.float32).reshape(m, n)
    expected = {
        0: x.T, 1: x[:, 1:], 2: x[:, ::-1], 3: x[:, 0:6:2], 4: x[2], 5: np.repeat(x[:, :, None] * 2, 2, 2),
    }  # fmt: skip
    [y] = run_block(traced([tensor("m, n", f32)], write), [x], {"m": m, "n": n})
    assert any(y.shape == v.shape and (y == v).all() for v in expected.values())


def test_diagonal_and_gathered_reads():
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    diagonal = traced([tensor("n, n", f32)], lambda x: e.from_function(("n",), lambda i: x.at(i, i)))
    assert run_block(diagonal, [x], {"n": 3})[0].tolist() == [0, 4, 8]
    rows = traced(
        [tensor("n, n", f32), tensor("k", i32)],
        lambda x, at: e.from_function(("k", "n"), lambda i, j: x.at(at.at(i), j)),
    )
    assert run_block(rows, [x, np.array([2, 0], np.int32)], {"n": 3, "k": 2})[0].tolist() == x[[2, 0]].tolist()
    with pytest.raises(IRError, match="reads outside axis 0"):
        run_block(rows, [x, np.array([3, 0], np.int32)], {"n": 3, "k": 2})
    beyond = traced([tensor("n", f32)], lambda x: e.from_function(("n",), lambda i: x.at(i + 1)))
    with pytest.raises(IRError, match="reads from 1 to 3 on axis 0, which has 3 elements"):
        run_block(beyond, [x[0]], {"n": 3})


# ---------------------------------------------------------------- reductions


def test_reduction_in_order_without_associativity():
    def write(x):
        def double(a, b):
            return a * 2 + b

        return e.reduce(["m"], ["n"], x.at, double, [0.0], associative=False, commutative=False)

    block = traced([tensor("m, n", f64)], write)
    x = RANDOM.integers(0, 9, (3, 5)).astype(float)
    [y] = run_block(block, [x], {"m": 3, "n": 5})
    np.testing.assert_array_equal(y, x @ [16, 8, 4, 2, 1])


@given(st.integers(0, 3), st.integers(0, 70))
def test_fold_keeps_the_order(m, n):
    """`last` is associative, not commutative."""

    def last(v, is_set, w, other_set):
        return select(other_set, w, v), is_set | other_set

    def write(x):
        return e.reduce(["m"], ["n"], lambda i, j: (x.at(i, j), e.equal(j, j)), last, [-1.0, False], commutative=False)

    block = traced([tensor("m, n", f32)], write)
    x = np.arange(m * n, dtype=np.float32).reshape(m, n)
    y, is_set = run_block(block, [x], {"m": m, "n": n})
    assert y.tolist() == (x[:, -1].tolist() if n else [-1.0] * m)
    assert is_set.tolist() == [n > 0] * m


def test_body_that_does_not_depend_on_the_reduced_axis():
    block = traced([], lambda: e.reduce(["m"], ["n"], lambda i, j: constant(1.0, f32), e.add, [0.0]))
    assert run_block(block, [], {"m": 2, "n": 5})[0].tolist() == [5, 5]
    block = traced([tensor("m", f32), tensor("k", f32)], lambda a, b: e.contract(
        ["m", "k"], ["n"], lambda i, j, k: a.at(i) * b.at(j)))  # fmt: skip
    x, y = np.array([2, 3], np.float32), np.array([5, 7], np.float32)
    assert run_block(block, [x, y], {"m": 2, "k": 2, "n": 4})[0].tolist() == [[40, 56], [60, 84]]


@given(st.integers(0, 3), st.integers(0, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))
def test_convolution_is_a_contraction(b, c, n, o, k):
    length = n + k - 1
    block = traced([tensor("b, c, n + k - 1", f64), tensor("o, c, k", f64)], lambda x, w: e.contract(
        ["b", "o", "n"], ["c", "k"], lambda i, j, t, r, s: x.at(i, r, t + s) * w.at(j, r, s)))  # fmt: skip
    x, w = RANDOM.integers(-5, 5, (b, c, length)) * 1.0, RANDOM.integers(-5, 5, (o, c, k)) * 1.0
    expected = np.zeros((b, o, n))
    for s in range(k):
        expected += np.einsum("bcn,oc->bon", x[:, :, s : s + n], w[:, :, s])
    [y] = run_block(block, [x, w], {"b": b, "c": c, "n": n, "o": o, "k": k})
    np.testing.assert_array_equal(y, expected)


# ---------------------------------------------------------------- verifier


def test_compute_verifier():
    block = traced([tensor("n", f32)], lambda x: e.exp(x))
    made = block.first
    for op in list(made.body.ops):
        if op.op_name == "compute.read":
            op.operands = (op.operands[0],)
            with pytest.raises(IRError, match="needs 1 indices"):
                op.verify_op()
    block = traced([tensor("n", f32)], lambda x: e.exp(x))
    block.first.body.add_argument(index)
    with pytest.raises(IRError, match="body needs 1 arguments, but has 2"):
        block.first.verify_op()
    block = traced([tensor("n", f32)], lambda x: e.exp(x))
    block.first.results[0].type = tensor("n", f64)
    with pytest.raises(IRError, match=r"must yield \(f64\), but yields \(f32\)"):
        block.first.verify_op()
    block = traced([tensor("n", f32)], lambda x: e.exp(x))
    block.first.operands = ()
    with pytest.raises(IRError, match=r"not an operand of its 'compute\.map'"):
        block.first.verify_op()
    block = traced([tensor("n", f32)], lambda x: e.exp(x))
    block.first.body.insert_before(build(nd.Neg, block.arguments[0]), block.first.body.terminator)
    with pytest.raises(IRError, match="is not a pure scalar operation"):
        block.first.verify_op()


# ---------------------------------------------------------------- signatures


def signature(types, symbols, facts="", named=None, result=None):
    return func.FuncOp.make("f", types, [], symbols=symbols, relations=parse_facts(facts),
                            names=["x", "w", "k"], dims=named)  # fmt: skip


def test_symbols_are_bound_linearly():
    function = signature([tensor("2*s, s + t", f32), tensor("3", f32)], ["s", "t"])
    assert bind_symbols(function, [np.zeros((8, 9)), np.zeros(3)]) == {"s": 4, "t": 5}
    with pytest.raises(IRError, match=r"%x axis 0 is 7, which does not fit '2\*s'"):
        bind_symbols(function, [np.zeros((7, 9)), np.zeros(3)])
    with pytest.raises(IRError, match="%w axis 0 must be 3, but is 4"):
        bind_symbols(function, [np.zeros((8, 9)), np.zeros(4)])


def test_one_symbol_has_one_value():
    function = signature([tensor("m, n", f32), tensor("n", f32)], ["m", "n"])
    with pytest.raises(IRError, match="symbol 'n' is 3 by %x axis 1 and 2 by %w axis 0"):
        bind_symbols(function, [np.zeros((5, 3)), np.zeros(2)])
    with pytest.raises(IRError, match="of rank 2, but the array has rank 1"):
        bind_symbols(function, [np.zeros(5), np.zeros(2)])
    with pytest.raises(IRError, match="takes 2 arguments, not 1"):
        bind_symbols(function, [np.zeros((5, 3))])


def test_all_failures_are_reported_together():
    function = signature([tensor("m, n", f32), tensor("n, m", f32)], ["m", "n"], "m mod 4 == 0, n <= 2")
    with pytest.raises(IRError) as caught:
        bind_symbols(function, [np.zeros((5, 3)), np.zeros((4, 6))])
    text = str(caught.value)
    assert text.count("error:") == 4
    assert "needs m mod 4 == 0, which does not hold for m = 5" in text
    assert "needs n <= 2, which does not hold for n = 3" in text


def test_scalar_dims():
    function = signature([tensor("n*k", f32), tensor("1", f32), index], ["n", "k"], named={2: "k"})
    assert bind_symbols(function, [np.zeros(12), np.zeros(1), 4]) == {"n": 3, "k": 4}
    with pytest.raises(IRError, match="does not fit"):
        bind_symbols(function, [np.zeros(13), np.zeros(1), 4])


def test_unbindable_symbol_names_the_scalar_to_pass():
    function = signature([tensor("n*k", f32)], ["n", "k"])
    with pytest.raises(IRError, match=r"cannot bind symbol 'n' .* %n: index \{dim = n\}"):
        Signature.of(function)


def test_calls_and_scalars():
    module = empty_module()
    callee = func.FuncOp.make("g", [tensor("2", f32)], [tensor("2", f32)])
    inner = Builder(callee.body)
    inner.create(func.ReturnOp, [inner.create(nd.Neg, callee.arguments[0]).result])
    caller = func.FuncOp.make("f", [tensor("2", f32), i32], [tensor("2", f32), i32])
    b = Builder(caller.body)
    two = tensor("2", f32)
    called = b.create(func.CallOp, [caller.arguments[0]], callee=SymbolRefAttr(("g",)), result_types=[two])
    total = b.create(arith.AddI, caller.arguments[1], caller.arguments[1]).result
    b.create(func.ReturnOp, [called.results[0], total])
    module.body.append(callee)
    module.body.append(caller)
    y, total = evaluate_function(caller, [np.array([1, -2], np.float32), 21])
    assert y.tolist() == [-1, 2]
    assert total == 42


def test_dims_of_a_result():
    assert function_of(nd.Reshape, [tensor("4*n, m", f32)], shape=dims("n, 4*m")).type.results[0] is tensor(
        "n, 4*m", f32
    )


def test_arguments_are_checked():
    function = function_of(nd.Neg, [tensor("n", i32)])
    with pytest.raises(IRError, match="needs dtype int32, not int64"):
        evaluate_function(function, [np.zeros(2, np.int64)])


TEXT = """
func.func @f<m, n>(%x: tensor<[m, n], f32>, %w: tensor<[n], f32>) -> tensor<[m, n], f32> where n % 8 == 0 {
  %c = nd.constant {value = 0.5} : () -> tensor<f32>
  %y = nn.layer_norm %x, %w {eps = 1.0e-6} : (tensor<[m, n], f32>, tensor<[n], f32>) -> tensor<[m, n], f32>
  %z = nd.mul %y, %c : (tensor<[m, n], f32>, tensor<f32>) -> tensor<[m, n], f32>
  %s = nd.max %z {axes = [1], keepdims = true} : (tensor<[m, n], f32>) -> tensor<[m, 1], f32>
  %v = nd.compare %z, %s {predicate = "lt"} : (tensor<[m, n], f32>, tensor<[m, 1], f32>) -> tensor<[m, n], i1>
  %q = nd.select %v, %z, %s : (tensor<[m, n], i1>, tensor<[m, n], f32>, tensor<[m, 1], f32>) -> tensor<[m, n], f32>
  %j = nd.concat %q, %x {axis = 1} : (tensor<[m, n], f32>, tensor<[m, n], f32>) -> tensor<[m, 2*n], f32>
  %a = nd.argmax %j {axis = -1} : (tensor<[m, 2*n], f32>) -> tensor<[m], i64>
  %r = nd.slice %j {starts = [0, 0], limits = #stepwell.dims<[m, n]>} : (tensor<[m, 2*n], f32>) -> tensor<[m, n], f32>
  func.return %r : tensor<[m, n], f32>
}
"""


def test_definitions_are_text():
    """A function, and the same expanded into its definitions, print, parse back and give equal bits."""
    module = parse_module(TEXT)
    operators = parse_module(str(module))
    [function] = [op for op in module.walk() if isinstance(op, func.FuncOp)]
    for op in list(function.body.ops):
        if isinstance(op, Operator):
            for old, new in zip(op.results, trace(op, op.operands, Builder(before=op))):
                old.replace_all_uses_with(new)
            op.erase()
    verify(module)
    text = str(module)
    assert "nd." not in text and "nn." not in text
    again = parse_module(text)
    verify(again)
    assert str(again) == text
    x, w = RANDOM.standard_normal((3, 16)).astype(np.float32), RANDOM.standard_normal(16).astype(np.float32)
    results = []
    for m in (operators, module, again):
        [f] = [op for op in m.walk() if isinstance(op, func.FuncOp)]
        results += evaluate_function(f, [x, w])
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()
