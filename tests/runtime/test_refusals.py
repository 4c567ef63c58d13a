"""What a call cannot take is refused with an IRError that says why: nothing is written, nothing crashes."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import stepwell
from stepwell.ir.diagnostics import IRError
from stepwell.ir.dims import parse_relation
from stepwell.runtime import arrays as arrays_module
from stepwell.runtime.executor import check_asserts

T = "tensor<[n], f32>"
TWO = f"""func.func @f<n>(%x: {T}) -> ({T}, {T}) {{
  %y = nd.neg %x : ({T}) -> {T}
  %z = nd.add %x, %x : ({T}, {T}) -> {T}
  func.return %y, %z : {T}, {T}
}}"""
TARGETS = ["cpu", "reference"]
X = np.arange(8, dtype=np.float32)


def compiled(text, target="cpu"):
    return stepwell.compile(text, target=target, name="given.mlir")


@pytest.fixture(scope="module", params=[*TARGETS, "emulate"])
def two(request):
    return compiled(TWO, request.param)


# ---------------------------------------------------------------- out=


def test_out_that_is_read_only(two):
    kept = np.zeros(8, np.float32)
    kept.flags.writeable = False
    with pytest.raises(IRError, match=r"out\[1\] is a read-only array"):
        two(X, out=[None, kept])
    assert not kept.any()


@pytest.mark.parametrize("cut", [
    lambda a: (a[:8], a[:8]), lambda a: (a[:8], a[4:12]), lambda a: (a[:8], a[7::-1]), lambda a: (a[::2], a[2:10]),
])  # fmt: skip
def test_out_that_two_results_would_share(two, cut):
    memory = np.zeros(16, np.float32)
    with pytest.raises(IRError, match=r"out\[0\] and out\[1\] share memory"):
        two(X, out=cut(memory))
    assert not memory.any()


def test_out_whose_memory_interleaves_is_taken(two):
    memory = np.zeros(16, np.float32)
    two(X, out=[memory[::2], memory[1::2]])
    np.testing.assert_array_equal(memory, np.stack([-X, 2 * X], 1).reshape(-1))


@pytest.mark.parametrize("stride", [0, 2, 1, -3])
def test_out_that_overlaps_itself(two, stride):
    memory = np.zeros(64, np.float32)
    with pytest.raises(IRError, match=r"out\[0\] has elements that share memory"):
        two(X, out=[as_strided(memory[32:], (8,), (stride,)), None])
    assert not memory.any()


def test_strides_that_only_look_as_if_elements_overlap():
    t = "tensor<[m, n], f32>"
    f = compiled(f"func.func @f<m, n>(%x: {t}) -> {t} {{\n  %y = nd.neg %x : ({t}) -> {t}\n  func.return %y : {t}\n}}")
    x, memory = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros(8, np.float32)
    f(x, out=as_strided(memory, (2, 3), (12, 8)))  # 0 2 4 and 3 5 7
    np.testing.assert_array_equal(memory, [-0.0, 0, -1, -3, -2, -4, 0, -5])
    with pytest.raises(IRError, match="share memory"):
        f(x, out=as_strided(memory, (2, 3), (8, 4)))


@pytest.mark.parametrize("target", TARGETS)
def test_an_argument_that_is_a_result_and_also_out(target):
    f = compiled(TWO.replace("%y, %z", "%y, %x"), target)
    for second in (None, np.empty(8, np.float32)):
        x = X.copy()
        y, same = f(x, out=[x, second])
        np.testing.assert_array_equal(y, -X)
        np.testing.assert_array_equal(same, X)


def test_out_is_counted_by_result():
    f = compiled("func.func @f<n>(%x: tensor<[n], f32>) -> (index, tensor<[n], f32>) {\n"
                 "  %k = dim.value [n] : index\n  func.return %k, %x : index, tensor<[n], f32>\n}")  # fmt: skip
    out = np.empty(8, np.float32)
    assert f(X, out=[None, out])[0] == 8
    np.testing.assert_array_equal(out, X)
    with pytest.raises(IRError, match=r"out\[0\] is given, but the result is a number"):
        f(X, out=[out, None])


# ---------------------------------------------------------------- arguments

NUMBERS = f"""func.func @f<n>(%x: {T}, %s: f32, %k: i32, %b: i1) -> {T} {{
  %y = nd.neg %x : ({T}) -> {T}
  func.return %y : {T}
}}"""


@pytest.fixture(scope="module")
def numbers():
    return compiled(NUMBERS)


@pytest.mark.parametrize("s", [1, 2.5, np.float16(2), np.array(1.5), float("inf"), float("nan"), 3.4028235e38])
def test_numbers_that_a_float_takes(numbers, s):
    assert numbers(X, s, np.int8(3), np.True_).shape == (8,)


@pytest.mark.parametrize("s", [True, np.True_, 1e39, -1e300, 10**400, 10**5000, "1", None, 1j, np.array([1.5])],
                         ids=lambda v: type(v).__name__)
def test_numbers_that_a_float_does_not_take(numbers, s):
    with pytest.raises(IRError, match=r"given.mlir:1:39: error: argument %s is"):
        numbers(X, s, 3, True)


@pytest.mark.parametrize("k", [True, np.False_, 1.0, 1 << 32, 10**5000, None, np.array([1])],
                         ids=lambda v: type(v).__name__)
def test_numbers_that_an_integer_does_not_take(numbers, k):
    with pytest.raises(IRError, match="argument %k is"):
        numbers(X, 1.0, k, True)


@pytest.mark.parametrize(
    "x, says",
    [
        (X.astype(">f4"), "bytes are in the other order"),
        (np.ma.masked_array(X, X > 3), "whose mask would be ignored"),
        (X.astype(object), "dtype object"),
        (X.astype(np.float16), "dtype float16"),
        (np.float32(1), "rank 0"),
        (np.frombuffer(b"\0" * 33, np.uint8)[1:].view(np.float32), "begins in the middle of a float32"),
        ([1.0], "is a builtins.list"),
        (1.0, "is a builtins.float"),
        (None, "is a builtins.NoneType"),
    ],
)
def test_arrays_that_are_refused(numbers, x, says):
    with pytest.raises(IRError, match=says):
        numbers(x, 1.0, 3, True)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_is_an_array_like_others():
    f = compiled("func.func @f<m, n>(%x: tensor<[m, n], f32>) -> tensor<[m*n], f32> {\n"
                 "  %y = nd.reshape %x {shape = #stepwell.dims<[m*n]>} : (tensor<[m, n], f32>) -> tensor<[m*n], f32>\n"
                 "  func.return %y : tensor<[m*n], f32>\n}")  # fmt: skip
    made = f(np.matrix(X.reshape(2, 4)))
    assert type(made) is np.ndarray and made.shape == (8,)


def test_sources_targets_and_options_that_there_are_not():
    for source in (b"text", 3, None):
        with pytest.raises(TypeError, match="must be IR text, a path or a module"):
            stepwell.compile(source, target="cpu")
    with pytest.raises(ValueError, match="unknown amp 'f8'"):
        stepwell.compile(TWO, target="cpu", amp="f8")
    with pytest.raises(ValueError, match="unknown arch 'hopper'"):
        stepwell.compile(TWO, target="emulate", arch="hopper")


def test_cuda_without_a_device(monkeypatch):
    from stepwell.runtime import cuda

    monkeypatch.setattr(cuda, "available", lambda: False)
    with pytest.raises(IRError, match="target cuda needs"):
        stepwell.compile(TWO, target="cuda")


def test_a_text_has_a_name():
    with pytest.raises(IRError, match="^<text>:1:1: error"):
        stepwell.compile("nonsense", target="cpu")
    with pytest.raises(IRError, match="^given.mlir:1:1: error.*\n  nonsense\n  \\^"):
        compiled("nonsense")


def test_a_byte_order_mark_before_a_text():
    compiled("\ufeff" + TWO)


# ---------------------------------------------------------------- sizes

CHAIN = """func.func @f<a, b, c>(%x: tensor<[a], f32>, %y: tensor<[b], f32>, %z: tensor<[c], f32>)
    -> tensor<[bcast(bcast(a, b), c)], f32> {
  %s = nd.add %x, %y : (tensor<[a], f32>, tensor<[b], f32>) -> tensor<[bcast(a, b)], f32>
  %t = nd.add %s, %z : (tensor<[bcast(a, b)], f32>, tensor<[c], f32>) -> tensor<[bcast(bcast(a, b), c)], f32>
  func.return %t : tensor<[bcast(bcast(a, b), c)], f32>
}"""


def ones(*shape):
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("out", [None, ones(3)])
def test_an_assert_that_relies_on_one_that_fails(target, out):
    f = compiled(CHAIN, target)
    assert f(ones(3), ones(1), ones(3)).shape == (3,)
    with pytest.raises(IRError, match="given.mlir:3:.*axis 0 of %x is a, axis 0 of %y is b"):
        f(ones(3), ones(2), ones(3), out=out)
    with pytest.raises(IRError, match="given.mlir:4:.*axis 0 of %z is c"):
        f(ones(3), ones(3), ones(4), out=out)


def test_an_assert_that_has_no_value_is_named_where_no_other_fails():
    op = compiled(TWO).module
    first, second = (parse_relation(r) for r in ("a == b", "bcast(a, b) == c"))
    asserts = [(first, "first", op), (second, "second", op), (parse_relation("c == 3"), "third", op)]
    check_asserts(asserts, {"a": 3, "b": 3, "c": 3})
    for values, wanted in (((3, 2, 3), ["first"]), ((3, 2, 4), ["first", "third"]), ((4, 4, 3), ["second"])):
        with pytest.raises(IRError) as caught:
            check_asserts(asserts, dict(zip("abc", values)))
        assert [d.message.split()[0] for d in caught.value.diagnostics] == wanted
    with pytest.raises(IRError, match=r"second \(a = 3, b = 2, c = 3\): sizes 3 and 2 do not broadcast"):
        check_asserts(asserts[1:], {"a": 3, "b": 2, "c": 3})


@pytest.mark.parametrize("target", TARGETS)
def test_all_asserts_that_can_be_evaluated_are_reported(target):
    first, second = "tensor<[bcast(bcast(a, b), c)], f32>", "tensor<[bcast(a, c)], f32>"
    f = compiled(CHAIN.replace(f"-> {first} {{", f"-> ({first}, {second}) {{").replace(
        f"  func.return %t : {first}",
        f"  %u = nd.add %x, %z : (tensor<[a], f32>, tensor<[c], f32>) -> {second}\n"
        f"  func.return %t, %u : {first}, {second}"), target)  # fmt: skip
    with pytest.raises(IRError) as caught:
        f(ones(3), ones(2), ones(4))
    assert {d.location.line for d in caught.value.diagnostics} >= {3, 5}


@pytest.mark.parametrize("target", TARGETS)
def test_division_by_zero_in_an_assert(target):
    f = compiled("""func.func @f<k, m>(%x: tensor<[k], f32>, %i: tensor<[m], f32>) -> tensor<[m, k floordiv m], f32> {
  %y = nd.reshape %x {shape = [#stepwell.dims<[m]>, -1]} : (tensor<[k], f32>) -> tensor<[m, k floordiv m], f32>
  func.return %y : tensor<[m, k floordiv m], f32>
}""", target)  # fmt: skip
    assert f(ones(6), ones(3)).shape == (3, 2)
    with pytest.raises(IRError, match="given.mlir:2:.*cannot reshape %x.*division by zero"):
        f(ones(6), ones(0))


@pytest.mark.parametrize("target", TARGETS)
def test_a_size_that_no_assert_speaks_of(target):
    def f(dim):
        return compiled(f"""func.func @f<n, m>(%x: tensor<[n], f32>, %m: index {{dim = m}}, %k: tensor<[], f32>) -> tensor<[{dim}], f32> {{
  %y = nd.broadcast %k {{shape = #stepwell.dims<[{dim}]>}} : (tensor<[], f32>) -> tensor<[{dim}], f32>
  func.return %y : tensor<[{dim}], f32>
}}""", target)  # fmt: skip

    with pytest.raises(IRError, match="division by zero"):
        f("n floordiv m")(ones(3), 0, np.float32(1))
    with pytest.raises(IRError, match=r"given.mlir:2:.*shape \(-2,\).*n = 3, m = 5"):
        f("n - m")(ones(3), 5, np.float32(1))


def test_dims_of_arguments_and_facts_without_a_value():
    t = "tensor<[bcast(a, b)], f32>"
    f = compiled(f"func.func @f<a, b>(%x: tensor<[a], f32>, %y: tensor<[b], f32>, %z: {t}) -> {t} {{\n"
                 f"  func.return %z : {t}\n}}")  # fmt: skip
    with pytest.raises(IRError, match=r"%z axis 0, 'bcast\(a, b\)', has no size for a = 2, b = 3"):
        f(ones(2), ones(3), ones(3))
    f = compiled(f"func.func @f<n, m>(%x: {T}, %y: tensor<[m], f32>) -> {T} where n floordiv m == 3 {{\n"
                 f"  func.return %x : {T}\n}}")  # fmt: skip
    with pytest.raises(IRError, match="needs n floordiv m == 3, which has no value for n = 3, m = 0"):
        f(ones(3), ones(0))


@pytest.mark.parametrize("target", TARGETS)
def test_results_beyond_the_memory(target):
    f = compiled("""func.func @f<a, b>(%x: tensor<[a, 1], f32>, %y: tensor<[b], f32>) -> tensor<[a, b], f32> {
  %t = nd.add %x, %y : (tensor<[a, 1], f32>, tensor<[b], f32>) -> tensor<[a, b], f32>
  func.return %t : tensor<[a, b], f32>
}""", target)  # fmt: skip
    x = np.broadcast_to(np.float32(1), (1 << 40,))
    for a, b in ((1 << 40, 1 << 40), (1 << 30, 1 << 20), (1 << 32, 1 << 32)):  # products beyond 64 bits among them
        with pytest.raises(IRError, match=f"would take .*{4 * a * b} bytes"):
            f(x[:a, None], x[:b])


def test_amounts_of_memory_are_readable():
    assert [arrays_module.amount(n) for n in (0, 1023, 1536, 5 << 30)] == [
        "0 bytes", "1023 bytes", "1.5 KiB (1536 bytes)", "5 GiB (5368709120 bytes)"]  # fmt: skip
