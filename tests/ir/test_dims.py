"""The dim algebra: canonical forms, text, evaluation, errors."""

import copy
import math
import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ir.dims import (
    Dim,
    DimError,
    Relation,
    as_dim,
    bcast,
    ceildiv,
    compile_dims,
    dim_max,
    dim_min,
    linear_in,
    parse_dim,
    parse_facts,
    parse_relation,
    product,
    solve,
)

NAMES = ("n", "m", "d")
n, m, d, h = map(Dim.symbol, "nmdh")

ON_INTS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "ceildiv": lambda a, b: -(-a // b),
    "max": max,
    "min": min,
}
ON_DIMS = ON_INTS | {"ceildiv": ceildiv, "max": dim_max, "min": dim_min}


def trees() -> st.SearchStrategy:
    constants = st.tuples(st.just("const"), st.integers(-9, 16))
    leaves = st.one_of(constants, st.tuples(st.just("sym"), st.sampled_from(NAMES)))
    by_constant = st.sampled_from([("const", k) for k in (2, 3, 4, 6, 8, 16, -2)])

    def grow(inner: st.SearchStrategy) -> st.SearchStrategy:
        any_two = st.tuples(st.sampled_from(sorted(ON_INTS)), inner, inner)
        division = st.sampled_from(["floordiv", "mod", "ceildiv"])
        return st.one_of(any_two, st.tuples(division, inner, by_constant))

    return st.recursive(leaves, grow, max_leaves=8)


def walk(tree: tuple, leaf: object, operations: dict) -> object:
    if tree[0] in ("const", "sym"):
        return leaf(tree)
    return operations[tree[0]](walk(tree[1], leaf, operations), walk(tree[2], leaf, operations))


@given(trees(), st.lists(st.integers(0, 30), min_size=3, max_size=3))
def test_value_and_text_of_any_expression(tree: tuple, values: list[int]) -> None:
    env = dict(zip(NAMES, values))

    def on_ints(leaf: tuple) -> int:
        return leaf[1] if leaf[0] == "const" else env[leaf[1]]

    try:
        dim = walk(tree, lambda t: Dim.constant(t[1]) if t[0] == "const" else Dim.symbol(t[1]), ON_DIMS)
        expected = walk(tree, on_ints, ON_INTS)
    except (DimError, ZeroDivisionError):
        return
    assert parse_dim(str(dim)) is dim
    assert dim.evaluate(env) == expected
    assert dim.substitute(env) is Dim.constant(expected)
    assert compile_dims([dim, dim + 1], NAMES)(values) == (expected, expected + 1)
    assert walk(dim.display_tree(), on_ints, ON_INTS) == expected


@pytest.mark.parametrize(
    "left, right",
    [
        ("(4*n + 1) // 4", "n"),
        ("(4*n + 1) % 4", "1"),
        ("n//4*4 + n%4", "n"),
        ("n // 2 // 3", "n // 6"),
        ("(n ceildiv 4) ceildiv 8", "n ceildiv 32"),
        ("(-n) // 4", "-(n ceildiv 4)"),
        ("n + (-n) % 16", "(n ceildiv 16)*16"),
        ("(n - 1)//2 + 1", "n ceildiv 2"),
        ("n ceildiv 2 + n // 2", "n"),
        ("(n - 1)*(n + 1)", "n**2 - 1"),
        ("min(n, m) + max(n, m)", "n + m"),
        ("max(n, m, 3)", "max(3, m, n)"),
        ("min(2*n, 2*m)", "2*min(m, n)"),
        ("max(n, 0)", "n"),
        ("bcast(n, m)", "bcast(m, n)"),
        ("bcast(bcast(n, m), d)", "bcast(n, bcast(d, m))"),
        ("bcast(n, 1)", "n"),
        ("bcast(n, n)", "n"),
        ("bcast(n, 4)", "4"),
        ("bcast(0, n)", "0"),
        ("(n*(d + 1) + n) // (d + 1)", "n + n // (d + 1)"),
        ("(n mod 8) floordiv 8", "0"),
        ("(16*m + n % 8) // 16", "m"),
        ("5*n // 8 // 3", "5*n // 24"),
    ],
)
def test_one_object(left: str, right: str) -> None:
    assert parse_dim(left) is parse_dim(right)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("1 + n*4", "4*n + 1"),
        ("n % 8", "n mod 8"),
        ("n // 8", "n floordiv 8"),
        ("n ceildiv 16", "n ceildiv 16"),
        ("n ceildiv 2", "n ceildiv 2"),
        ("n ceildiv d", "n ceildiv d"),
        ("n ceildiv (d + 1)", "n ceildiv (d + 1)"),
        ("n % d", "n mod d"),
        ("m*(n % 8)", "m*(n mod 8)"),
        ("max(n, 1)", "max(n, 1)"),
        ("min(128, n)", "min(n, 128)"),
        ("3*max(n, m)", "3*max(m, n)"),
        ("1 - n", "1 - n"),
        ("-n", "-n"),
        ("0", "0"),
        ("n**3", "n*n*n"),
    ],
)
def test_text(text: str, shown: str) -> None:
    assert str(parse_dim(text)) == shown


def test_divisors_not_known_positive_are_opaque() -> None:
    assert (n * d) // d is not n
    assert (n * d) // dim_max(d, 1) is not n
    assert (0 * n) // d is not Dim.constant(0)
    assert ((n // d) * d + n % d) is n


def test_equality_is_identity_and_a_relation_has_no_truth() -> None:
    assert (n == n) is True and (n != n) is False
    assert isinstance(n == m, Relation) and isinstance(n != 3, Relation)
    assert {n: 1, n // 2: 2}[parse_dim("n floordiv 2")] == 2
    assert {Dim.constant(-1): 1, Dim.constant(-2): 2}[-2] == 2
    assert n != "n" and Dim.constant(3) == 3 and Dim.constant(3) != 4
    with pytest.raises(TypeError, match=r"Facts\.prove"):
        bool(n < m)
    with pytest.raises(TypeError, match="not a constant"):
        bool(n)
    with pytest.raises(TypeError, match="'n' is not a constant"):
        n.value  # noqa: B018


def test_copies_are_the_same_object() -> None:
    dim = n % 8 + bcast(m, d)
    assert copy.deepcopy(dim) is dim and pickle.loads(pickle.dumps(dim)) is dim


def test_relations() -> None:
    facts = parse_facts("h * d == e, n % 8 == 0, 1 <= s <= 4096, n > m")
    assert [str(f) for f in facts] == ["d*h == e", "n mod 8 == 0", "1 <= s", "s <= 4096", "m < n"]
    assert parse_facts(" ") == []
    assert parse_relation("n >= 3") == as_dim(3).le(n) and hash(n < m) == hash(m > n)
    assert (n < m).negated() == m.le(n) and n.eq(m).negated().kind == "!="
    assert (n < m).evaluate({"n": 1, "m": 2}) and (n < m).substitute({"m": 3}) == n.lt(3)
    assert (n < m + d).symbols == {"n", "m", "d"}


@pytest.mark.parametrize(
    "text, column",
    [
        ("n +", 3),
        ("n @ 2", 2),
        ("max(n", 5),
        ("n // 0", 2),
        ("2 n", 2),
        ("bcast(3, 4)", 0),
        ("9223372036854775809", 0),
        ("mod", 0),
        ("(" * 5000, 100),
        ("n ** 99", 5),
        ("n == 3", 2),
    ],
)
def test_errors_have_a_column(text: str, column: int) -> None:
    with pytest.raises(DimError) as caught:
        parse_dim(text)
    assert caught.value.column == column


HOSTILE = {
    "power": "(a + b + c + d)**20",
    "floors": "(" * 60 + "n" + "+ m) // 7" * 60,
    "maxima": "max(" * 60 + "n" + "".join(f", m{i})" for i in range(60)),
    "sum": "+".join(f"a{i}" for i in range(3000)),
    "factors": "*".join(f"(a{i} + 1)" for i in range(40)),
    "bcast": "bcast(" + ", ".join(f"a{i}" for i in range(300)) + ")",
    "long": "n" * 200_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_explosions_are_errors(name: str) -> None:
    start = time.perf_counter()
    with pytest.raises(DimError):
        parse_dim(HOSTILE[name])
    assert time.perf_counter() - start < 2


def test_evaluation_errors() -> None:
    for dim, env, message in [(n, {}, "'n' is not bound"), (m // n, {"n": 0, "m": 1}, "division by zero")]:
        with pytest.raises(DimError, match=message):
            dim.evaluate(env)
    with pytest.raises(DimError, match="not bound"):
        compile_dims([n], ("m",))
    with pytest.raises(DimError, match="division by zero"):
        compile_dims([m // n], ("m", "n"))([1, 0])
    with pytest.raises(DimError, match="do not broadcast"):
        bcast(n, m).evaluate({"n": 2, "m": 3})
    assert bcast(n, m).evaluate({"n": 1, "m": 0}) == 0


def test_solve() -> None:
    assert solve(2 * n, "n", 10, {}) == 5
    assert solve(n + 1, "n", 1, {}) == 0
    assert solve(h * d + m // 2, "d", 13, {"h": 4, "m": 3}) == 3
    assert linear_in(h * d, "d", {"h"}) and not linear_in(h * d, "d", set())
    assert not linear_in(n * n, "n", set()) and not linear_in(n // 2, "n", set())
    for dim, name, value, env, message in [
        (2 * n, "n", 3, {}, "no solution"),
        (n + 4, "n", 3, {}, "no solution"),
        (h * d, "d", 12, {}, "not linear"),
        (h * d, "d", 0, {"h": 0}, "factor is 0"),
    ]:
        with pytest.raises(DimError, match=message):
            solve(dim, name, value, env)


def test_constants_and_products() -> None:
    assert product([2, n, 3]) is 6 * n and product([]) is Dim.constant(1)
    assert Dim.constant(math.prod([2] * 63)).value == 2**63
    with pytest.raises(DimError, match=r"2\*\*63"):
        Dim.constant(2**63 + 1)
    with pytest.raises(DimError):
        Dim.symbol("a b")
