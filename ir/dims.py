"""Typed dynamic dims: the public names, bulk evaluation, and binding a symbol from a size.

The algebra is in dim_algebra.py and dim_rules.py, text in dim_text.py, relations in dim_relation.py.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .dim_algebra import (
    MAX_CONSTANT,
    Atom,
    Bcast,
    Dim,
    DimLike,
    Floor,
    Max0,
    Monomial,
    Symbol,
    Terms,
    as_dim,
    broadcast_size,
    product,
)
from .dim_relation import DimError, Relation
from .dim_rules import bcast, ceildiv, dim_max, dim_min, floordiv, modulo
from .dim_text import format_tree, parse_dim, parse_facts, parse_relation

__all__ = [
    "MAX_CONSTANT",
    "Atom",
    "Bcast",
    "Dim",
    "DimError",
    "DimLike",
    "Floor",
    "Max0",
    "Monomial",
    "Relation",
    "Symbol",
    "Terms",
    "as_dim",
    "bcast",
    "broadcast_size",
    "ceildiv",
    "compile_dims",
    "dim_max",
    "dim_min",
    "floordiv",
    "format_tree",
    "linear_in",
    "modulo",
    "parse_dim",
    "parse_facts",
    "parse_relation",
    "product",
    "solve",
]


# -- bulk evaluation ---------------------------------------------------------------------------------------

def compile_dims(dims: Sequence[Dim], symbols: Sequence[str]) -> Callable[[Sequence[int]], tuple[int, ...]]:
    """A function from the values of `symbols`, in that order, to the values of `dims`; errors as
    `Dim.evaluate`.

    The generated source holds integer literals and numbered temporaries, one an atom, and nothing from the
    IR's text.
    """
    positions = {name: i for i, name in enumerate(symbols)}
    for name in sorted(frozenset().union(*(d.symbols for d in dims)) - positions.keys()):
        raise DimError(f"dim symbol '{name}' is not bound")
    lines: list[str] = []
    names: dict[Atom, str] = {}

    def atom(a: Atom) -> str:
        if isinstance(a, Symbol):
            return f"v[{positions[a.name]}]"
        if a not in names:
            value = _atom_source(a, polynomial)
            names[a] = f"t{len(names)}"
            lines.append(f" {names[a]} = {value}")
        return names[a]

    def polynomial(d: Dim) -> str:
        return (
            " + ".join("*".join([str(c), *(atom(a) for a, e in m for _ in range(e))]) for c, m in d.terms)
            or "0"
        )

    values = "".join(f"{polynomial(d)}, " for d in dims)
    source = "\n".join(["def f(v):", *lines, f" return ({values})"])
    scope: dict[str, Any] = {"__builtins__": {}, "max": max, "floor": _floor, "bcast": broadcast_size}
    exec(compile(source, "<dims>", "exec"), scope)
    function: Callable[[Sequence[int]], tuple[int, ...]] = scope["f"]
    return function


def _atom_source(a: Atom, polynomial: Callable[[Dim], str]) -> str:
    if isinstance(a, Max0):
        return f"max({polynomial(a.operand)}, 0)"
    if isinstance(a, Bcast):
        return f"bcast({polynomial(a.lhs)}, {polynomial(a.rhs)})"
    assert isinstance(a, Floor)
    if a.divisor.is_constant:
        return f"({polynomial(a.numerator)})//{a.divisor.value}"
    return f"floor({polynomial(a.numerator)}, {polynomial(a.divisor)})"


def _floor(x: int, y: int) -> int:
    if y == 0:
        raise DimError("division by zero in a dim")
    return x // y


# -- binding -----------------------------------------------------------------------------------------------

def linear_in(d: Dim, symbol: str, bound: set[str] | frozenset[str]) -> bool:
    """Whether `d` is a*symbol + b, where a and b use only the `bound` symbols and a is not the constant 0."""
    found = False
    for _, m in d.terms:
        for atom, exponent in m:
            if atom is Symbol(symbol):
                found = True
                if exponent > 1:
                    return False
            elif not atom.symbols <= bound - {symbol}:
                return False
    return found


def solve(d: Dim, symbol: str, value: int, env: Mapping[str, int]) -> int:
    """The size of `symbol` for which d == value, the other symbols as in `env`.

    DimError where d is not linear in it, where its factor is 0, or where the size would not be an integer
    >= 0.
    """
    if not linear_in(d, symbol, env.keys() - {symbol}):
        raise DimError(
            f"'{d}' is not linear in '{symbol}' with the other symbols bound, so {value} does not give it"
        )
    unknown = Symbol(symbol)
    factor = offset = 0
    for c, m in d.terms:
        for atom, exponent in m:
            if atom is not unknown:
                c *= atom.evaluate(env) ** exponent
        is_unknown = any(atom is unknown for atom, _ in m)
        factor, offset = factor + c * is_unknown, offset + c * (not is_unknown)
    if factor == 0:
        raise DimError(f"'{d}' == {value} does not determine '{symbol}': its factor is 0")
    size, left = divmod(value - offset, factor)
    if left or size < 0:
        raise DimError(f"'{d}' == {value} has no solution in integers '{symbol}' >= 0")
    return size
