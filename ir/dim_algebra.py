"""Dims: integer expressions over symbols that are never negative, canonical by construction.

A dim is a polynomial with integer coefficients over four kinds of atoms: `Symbol`, `Floor`, `Max0` and
`Bcast` (shared/dims/README.md). Dims and atoms are interned: the same value written twice is the same
object. `x mod y` is `x - y*(x floordiv y)`, `max(a, b)` is `b + max(a - b, 0)`, and so on; dim_text.py
prints them back.

A constructor takes a `Context`, which answers what is known about signs: FREE (symbols >= 0, nothing else)
gives the forms that types hold; facts.py passes its own for the forms it proves with.
"""
from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from itertools import count
from math import gcd
from numbers import Integral
from operator import index
from typing import Any, SupportsIndex, TypeVar, Union
from weakref import WeakValueDictionary

from .dim_relation import DimError, Relation

MAX_TERMS, MAX_SIZE, MAX_HEIGHT, MAX_DEPTH, MAX_DEGREE, MAX_CONSTANT = 256, 4096, 400, 24, 64, 2**63
SYMBOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
RESERVED = frozenset({"floordiv", "ceildiv", "mod"})

Bound = int | float                      # an int, or an infinity
Interval = tuple[Bound, Bound]
Monomial = tuple[tuple["Atom", int], ...]
Terms = tuple[tuple[int, Monomial], ...]
DimLike = Union["Dim", SupportsIndex]

T = TypeVar("T")
_lock = threading.Lock()
_interned: WeakValueDictionary[Any, Any] = WeakValueDictionary()
_serial = count(1)


def _intern(key: Any, build: Callable[[], T]) -> T:
    found: T | None = _interned.get(key)
    if found is None:
        built = build()
        with _lock:
            found = _interned.setdefault(key, built)
    return found


class Atom:
    """What a monomial is made of. `order` is a total order that does not depend on the process."""
    __slots__ = ("__weakref__", "depth", "height", "order", "size", "symbols")
    order: str
    symbols: frozenset[str]
    size: int                                  # nodes
    height: int                                # of the display tree, so that printers may recurse
    depth: int                                 # of nested atoms

    def _measure(self, rank: str, *operands: Dim) -> None:
        self.order = f"{rank}({';'.join(d.order for d in operands)})"
        self.symbols = frozenset().union(*(d.symbols for d in operands))
        self.size = 1 + sum(d.size for d in operands)
        self.height = 3 + max(d.height for d in operands)
        self.depth = 1 + max(d.depth for d in operands)

    def evaluate(self, env: Mapping[str, int]) -> int:
        raise NotImplementedError

    def __repr__(self) -> str:
        return str(atom_dim(self))


class Symbol(Atom):
    __slots__ = ("name",)
    name: str

    def __new__(cls, name: str) -> Symbol:
        return _intern((cls, name), lambda: cls._build(name))

    @classmethod
    def _build(cls, name: str) -> Symbol:
        self = object.__new__(cls)
        self.name, self.order, self.symbols = name, "0" + name, frozenset((name,))
        self.size = self.height = 1
        self.depth = 0
        return self

    def evaluate(self, env: Mapping[str, int]) -> int:
        if self.name not in env:
            raise DimError(f"dim symbol '{self.name}' is not bound")
        return index(env[self.name])


class Floor(Atom):
    """numerator floordiv divisor, rounded down. Where the divisor is not known positive it is opaque."""
    __slots__ = ("divisor", "numerator")
    numerator: Dim
    divisor: Dim

    def __new__(cls, numerator: Dim, divisor: Dim) -> Floor:
        return _intern((cls, numerator, divisor), lambda: cls._build(numerator, divisor))

    @classmethod
    def _build(cls, numerator: Dim, divisor: Dim) -> Floor:
        self = object.__new__(cls)
        self.numerator, self.divisor = numerator, divisor
        self._measure("1", numerator, divisor)
        return self

    def evaluate(self, env: Mapping[str, int]) -> int:
        by = self.divisor.evaluate(env)
        if by == 0:
            raise DimError(f"division by zero: '{self.divisor}' is 0")
        return self.numerator.evaluate(env) // by


class Max0(Atom):
    """max(operand, 0)."""
    __slots__ = ("operand",)
    operand: Dim

    def __new__(cls, operand: Dim) -> Max0:
        return _intern((cls, operand), lambda: cls._build(operand))

    @classmethod
    def _build(cls, operand: Dim) -> Max0:
        self = object.__new__(cls)
        self.operand = operand
        self._measure("2", operand)
        return self

    def evaluate(self, env: Mapping[str, int]) -> int:
        return max(self.operand.evaluate(env), 0)


class Bcast(Atom):
    """The broadcast of two dims: `lhs == 1 ? rhs : lhs`, under the check that they are equal or one of them
    is 1."""
    __slots__ = ("lhs", "rhs")
    lhs: Dim
    rhs: Dim

    def __new__(cls, lhs: Dim, rhs: Dim) -> Bcast:
        return _intern((cls, lhs, rhs), lambda: cls._build(lhs, rhs))

    @classmethod
    def _build(cls, lhs: Dim, rhs: Dim) -> Bcast:
        self = object.__new__(cls)
        self.lhs, self.rhs = lhs, rhs
        self._measure("3", lhs, rhs)
        return self

    def evaluate(self, env: Mapping[str, int]) -> int:
        return broadcast_size(self.lhs.evaluate(env), self.rhs.evaluate(env))


def broadcast_size(a: int, b: int) -> int:
    """The broadcast of two sizes; DimError where they are unequal and neither is 1."""
    if a != b and a != 1 and b != 1:
        raise DimError(f"sizes {a} and {b} do not broadcast")
    return b if a == 1 else a


class Dim:
    """An interned polynomial: `terms` in graded lexical order, the constant last. Equality is identity.

    `==` and the orderings give a `Relation`; but `==` of the same dim is True, and of two constants a bool
    (ints that differ may share a hash, -1 and -2 do, and a dict then asks).
    """
    __slots__ = ("__weakref__", "_hash", "_interval", "_order", "_symbols", "_text",
                 "depth", "height", "size", "terms")
    terms: Terms
    size: int
    height: int
    depth: int
    _hash: int
    _interval: Interval | None                 # these four are found when asked for
    _order: str | None
    _symbols: frozenset[str] | None
    _text: str | None

    @staticmethod
    def constant(value: SupportsIndex) -> Dim:
        return make({(): index(value)})

    @staticmethod
    def symbol(name: str) -> Dim:
        if not SYMBOL_NAME.fullmatch(name) or name in RESERVED:
            raise DimError(f"'{name}' cannot name a dim symbol")
        return atom_dim(Symbol(name))

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols, those inside atoms too."""
        if self._symbols is None:
            self._symbols = frozenset().union(*(a.symbols for _, m in self.terms for a, _ in m))
        return self._symbols

    @property
    def order(self) -> str:
        """Structural text that sorts dims the same way in every process."""
        if self._order is None:
            self._order = "+".join(str(c) + "".join(f"*{a.order}^{e}" for a, e in m) for c, m in self.terms)
        return self._order

    @property
    def is_constant(self) -> bool:
        return not self.terms or not self.terms[0][1]

    @property
    def value(self) -> int:
        if not self.is_constant:
            raise TypeError(f"dim '{self}' is not a constant")
        return self.terms[0][0] if self.terms else 0

    @property
    def constant_part(self) -> int:
        return self.terms[-1][0] if self.terms and not self.terms[-1][1] else 0

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The distinct atoms of the monomials, in order; not those nested in them."""
        return tuple(dict.fromkeys(a for _, m in self.terms for a, _ in m))

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The value at one point; DimError names an unbound symbol, a division by zero, a failed
        broadcast."""
        total = 0
        for coefficient, monomial in self.terms:
            for atom, exponent in monomial:
                coefficient *= atom.evaluate(env) ** exponent
            total += coefficient
        return total

    def substitute(self, mapping: Mapping[str, DimLike]) -> Dim:
        """All symbols of `mapping` replaced at once."""
        from .dim_rules import FREE, rebuild
        return rebuild(self, {name: as_dim(to) for name, to in mapping.items()}, FREE)

    def display_tree(self) -> tuple[Any, ...]:
        """Nested tuples of const, sym, add, sub, mul, floordiv, mod, ceildiv, max, min and bcast, as `str`
        shows it."""
        from .dim_text import display_tree
        return display_tree(self)

    def __str__(self) -> str:
        if self._text is None:
            from .dim_text import format_tree
            self._text = format_tree(self.display_tree())
        return self._text

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        from .dim_text import parse_dim
        return parse_dim, (str(self),)

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        return self.value != 0

    def __add__(self, other: DimLike) -> Dim:
        return combine((1, self), (1, as_dim(other))) if _dim_like(other) else NotImplemented

    def __sub__(self, other: DimLike) -> Dim:
        return combine((1, self), (-1, as_dim(other))) if _dim_like(other) else NotImplemented

    def __rsub__(self, other: DimLike) -> Dim:
        return as_dim(other) - self if _dim_like(other) else NotImplemented

    def __neg__(self) -> Dim:
        return combine((-1, self))

    def __mul__(self, other: DimLike) -> Dim:
        return _multiply(self, as_dim(other)) if _dim_like(other) else NotImplemented

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, exponent: SupportsIndex) -> Dim:
        if not 0 <= index(exponent) <= MAX_DEGREE:
            raise DimError(f"exponent {exponent} is not in [0, {MAX_DEGREE}]")
        return product([self] * index(exponent))

    def __floordiv__(self, other: DimLike) -> Dim:
        return _rules("floordiv", self, other)

    def __rfloordiv__(self, other: DimLike) -> Dim:
        return _rules("floordiv", other, self)

    def __mod__(self, other: DimLike) -> Dim:
        return _rules("modulo", self, other)

    def __rmod__(self, other: DimLike) -> Dim:
        return _rules("modulo", other, self)

    def eq(self, other: DimLike) -> Relation:
        return Relation.of("==", self, as_dim(other))

    def ne(self, other: DimLike) -> Relation:
        return Relation.of("!=", self, as_dim(other))

    def lt(self, other: DimLike) -> Relation:
        return Relation.of("<", self, as_dim(other))

    def le(self, other: DimLike) -> Relation:
        return Relation.of("<=", self, as_dim(other))

    def gt(self, other: DimLike) -> Relation:
        return Relation.of(">", self, as_dim(other))

    def ge(self, other: DimLike) -> Relation:
        return Relation.of(">=", self, as_dim(other))

    def __eq__(self, other: Any) -> Any:
        if not _dim_like(other):
            return NotImplemented
        other = as_dim(other)
        return self is other or (not (self.is_constant and other.is_constant) and self.eq(other))

    def __ne__(self, other: Any) -> Any:
        if not _dim_like(other):
            return NotImplemented
        other = as_dim(other)
        return self is not other and ((self.is_constant and other.is_constant) or self.ne(other))

    __lt__, __le__, __gt__, __ge__ = lt, le, gt, ge


def _dim_like(value: object) -> Any:
    return isinstance(value, (Dim, int, Integral))


def _rules(name: str, a: DimLike, b: DimLike) -> Any:
    from . import dim_rules  # which is built on this module
    return getattr(dim_rules, name)(as_dim(a), as_dim(b)) if _dim_like(a) and _dim_like(b) else NotImplemented


def as_dim(value: Dim | SupportsIndex | str) -> Dim:
    """A dim as it is, an integer as a constant, a text parsed."""
    if isinstance(value, Dim):
        return value
    if isinstance(value, str):
        from .dim_text import parse_dim
        return parse_dim(value)
    return Dim.constant(value)


# -- polynomials -------------------------------------------------------------------------------------------

def _rank(monomial: Monomial) -> tuple[Any, ...]:
    """Graded lexical order, a true monomial order: division by a leading monomial ends."""
    return -sum([e for _, e in monomial]), [(a.order, -e) for a, e in monomial]


def make(coefficients: Mapping[Monomial, int]) -> Dim:
    present = [m for m, c in coefficients.items() if c]
    if len(present) > 1:
        present.sort(key=_rank)
    terms = tuple((coefficients[m], m) for m in present)
    return _intern(terms, lambda: _build(terms))


def _build(terms: Terms) -> Dim:
    self = object.__new__(Dim)
    self.terms = terms
    degree = height = depth = constant = 0
    size = len(terms)
    for c, m in terms:
        constant = max(constant, abs(c))
        degree = max(degree, sum([e for _, e in m]))
        for a, _ in m:
            size, height, depth = size + a.size, max(height, a.height), max(depth, a.depth)
    self.size, self.height, self.depth = size, len(terms) + degree + height, depth
    _limit(constant, MAX_CONSTANT, "has a constant beyond 2**63")
    _limit(len(terms), MAX_TERMS, f"has more than {MAX_TERMS} terms")
    _limit(degree, MAX_DEGREE, f"is of a degree beyond {MAX_DEGREE}")
    _limit(size, MAX_SIZE, f"has more than {MAX_SIZE} nodes")
    _limit(max(depth * MAX_HEIGHT // MAX_DEPTH, self.height), MAX_HEIGHT, "is nested too deeply")
    self._symbols = None
    self._order = self._text = self._interval = None
    # A constant hashes as its int, which it equals; any other must not meet an int's hash by accident, or a
    # dict would
    # ask for the truth value of their equality.
    self._hash = hash(self.value) if self.is_constant else next(_serial) * 0x9E3779B97F4A7C15 % (2**61 - 1)
    return self


def _limit(measured: int, most: int, message: str) -> None:
    if measured > most:
        raise DimError(f"the dim expression {message}")


def atom_dim(atom: Atom, exponent: int = 1) -> Dim:
    return make({((atom, exponent),): 1})


def combine(*scaled: tuple[int, Dim]) -> Dim:
    """The sum of factor times dim."""
    total: dict[Monomial, int] = {}
    for factor, dim in scaled:
        for c, m in dim.terms:
            total[m] = total.get(m, 0) + factor * c
    return make(total)


def monomial_times(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    if len(a) == len(b) == 1 and a[0][0] is not b[0][0]:
        return a + b if a[0][0].order < b[0][0].order else b + a
    exponents = dict(a)
    for atom, e in b:
        exponents[atom] = exponents.get(atom, 0) + e
    return tuple(sorted(exponents.items(), key=lambda item: item[0].order))


def monomial_over(a: Monomial, b: Monomial) -> Monomial | None:
    """a / b where b divides a, else None."""
    exponents = dict(a)
    for atom, e in b:
        left = exponents.get(atom, 0) - e
        if left < 0:
            return None
        exponents[atom] = left
    return tuple((atom, e) for atom, e in exponents.items() if e)


def _multiply(a: Dim, b: Dim) -> Dim:
    _limit(len(a.terms) * len(b.terms), 16 * MAX_TERMS, "has a product with too many terms")
    total: dict[Monomial, int] = {}
    for c, m in a.terms:
        for d, n in b.terms:
            mn = monomial_times(m, n)
            total[mn] = total.get(mn, 0) + c * d
    return make(total)


def product(dims: Iterable[DimLike]) -> Dim:
    return reduce(_multiply, (as_dim(d) for d in dims), ONE)


def content(d: Dim) -> int:
    """The gcd of all coefficients, the constant's too (0 for 0)."""
    return gcd(*(c for c, _ in d.terms))


def divide_exact(d: Dim, k: int) -> Dim:
    return make({m: c // k for c, m in d.terms})


def residue(c: int, k: int, negative_tie: bool = False) -> int:
    """c modulo k, the representative nearest 0."""
    r = c % k
    return r - k if 2 * r > k or (2 * r == k and negative_tie) else r


def leading_sign(d: Dim) -> int:
    return -1 if d.terms and d.terms[0][0] < 0 else 1


ZERO, ONE = Dim.constant(0), Dim.constant(1)
