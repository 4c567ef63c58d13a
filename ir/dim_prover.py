"""The search behind `Facts`: whether a polynomial is never negative, given intervals and inequalities.

Everything here is sound over the integers; what is not found within the budget is simply not known.
"""
from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from math import gcd, inf

from .dim_algebra import (
    Atom, Bcast, Dim, Floor, Interval, Max0, Monomial, Symbol, atom_dim, combine, make, monomial_over, product)
from .dim_relation import DimError
from .dim_rules import Context

MAX_NODES, MAX_REWRITES = 120, 64
SHIFTED = "^"                                  # not in any symbol's name: `n^` is n less its lower bound


class Contradiction(DimError):
    """Facts that no sizes satisfy."""


class Known(Context):
    """Intervals of symbols, inequalities `g >= 0`, and rules `monomial -> dim` from equations."""

    def __init__(self) -> None:
        self.bounds: dict[str, Interval] = {}
        self.inequalities: list[Dim] = []
        self.rules: dict[Monomial, Dim] = {}
        self.forget()

    def forget(self) -> None:
        """Drop what was concluded: more is known now."""
        self._intervals: dict[Dim, Interval] = {}
        self._proved: dict[Dim, bool] = {}
        self._atom_facts: dict[Atom, list[Dim]] = {}
        self._shared: list[Dim] | None = None

    def symbol_interval(self, name: str) -> Interval:
        if name.endswith(SHIFTED):
            low, high = self.bounds[name[:-1]]
            return 0, high - low
        return self.bounds.get(name, (0, inf))

    def interval(self, d: Dim) -> Interval:
        if d not in self._intervals:
            self._intervals[d] = self.find_interval(d)
        return self._intervals[d]

    def reduce(self, d: Dim) -> Dim:
        for _ in range(MAX_REWRITES if self.rules else 0):
            found = next(((c, m, over, to) for c, m in d.terms for lead, to in self.rules.items()
                          if (over := monomial_over(m, lead)) is not None), None)
            if found is None:
                break
            c, m, over, to = found
            d = combine((1, d), (-c, make({m: 1})), (c, to * make({over: 1})))
        return d

    def positive(self, d: Dim) -> bool:
        return self.nonnegative(d - 1)

    def nonnegative(self, d: Dim) -> bool:
        if self.interval(d)[0] >= 0:
            return True
        if self.interval(d)[1] < 0:
            return False
        if d not in self._proved:
            try:
                self._proved[d] = self._search(d)
            except DimError:                   # a combination grew beyond what a dim may be
                self._proved[d] = False
        return self._proved[d]

    # -- elimination --------------------------------------------------------------------------------------------------

    def _search(self, goal: Dim) -> bool:
        """Best first: subtract multiples of facts until the interval of what is left shows the sign."""
        order, seen = count(), set()
        heap: list[tuple[int, int, int, Dim]] = []

        def push(p: Dim) -> None:
            p = _tightened(p)
            if p not in seen:
                seen.add(p)
                heappush(heap, (len(self._unbounded(p)), len(p.terms), next(order), p))
        push(self.shift(goal))
        for _ in range(MAX_NODES):
            if not heap:
                return False
            p = heappop(heap)[-1]
            if self.interval(p)[0] >= 0:
                return True
            for after in self._steps(p):
                push(after)
        return False

    def _unbounded(self, p: Dim) -> list[tuple[int, Monomial]]:
        """The terms of `p` with no lower bound of their own: a proof must be rid of each."""
        return [(c, m) for c, m in p.terms if self.monomial_interval(m)[1 if c < 0 else 0] in (inf, -inf)]

    def _steps(self, p: Dim) -> list[Dim]:
        facts = self._facts_for(p)
        unbounded = self._unbounded(p)
        if unbounded:                          # the term with the fewest ways out; none at all is a dead end
            return min((self._without(p, c, m, facts) for c, m in unbounded), key=len)
        return [after for c, m in p.terms if m for after in self._without(p, c, m, facts)]

    def _without(self, p: Dim, c: int, m: Monomial, facts: list[Dim]) -> list[Dim]:
        """`a*p - b*fact*cofactor` with the term `c*m` gone, for each fact that bounds it on the right side.

        From q = a*p - b*g >= -(a-1) and g >= 0 follows a*p > -a, so p >= 0: hence the a - 1.
        """
        found = []
        for g in facts:
            for e, n in g.terms:
                if n and (e < 0) == (c < 0) and (over := monomial_over(m, n)) is not None and self._never_negative(over):
                    k = gcd(c, e)
                    g_over = g * make({over: 1}) if over else g
                    a = abs(e) // k
                    found.append(combine((a, p), (-abs(c) // k, g_over)) + (a - 1))
        return found

    def _never_negative(self, m: Monomial) -> bool:
        return all(self.atom_interval(a)[0] >= 0 for a, _ in m)

    # -- facts of atoms -----------------------------------------------------------------------------------------------

    def shift(self, d: Dim) -> Dim:
        """Outer symbols with a lower bound other than 0 counted from it, so that every term shows its own sign."""
        low = {a: self.bounds[a.name][0] for a in d.atoms if isinstance(a, Symbol) and a.name in self.bounds}
        moved = {a: atom_dim(Symbol(a.name + SHIFTED)) + int(b) for a, b in low.items() if b not in (0, -inf)}   # type: ignore
        if not moved:
            return d
        return combine(*((c, product([moved.get(a, atom_dim(a)) ** e for a, e in m])) for c, m in d.terms))

    def _facts_for(self, p: Dim) -> list[Dim]:
        if self._shared is None:
            self._shared = [self.shift(g) for g in self.inequalities]
            self._shared += [f for a in dict.fromkeys(a for g in self._shared for a in g.atoms) for f in self.atom_facts(a)]
        return list(dict.fromkeys(self._shared + [f for a in p.atoms for f in self.atom_facts(a)]))

    def atom_facts(self, atom: Atom) -> list[Dim]:
        if atom not in self._atom_facts:
            self._atom_facts[atom] = [self.shift(f) for f in self._find_atom_facts(atom)]
        return self._atom_facts[atom]

    def _find_atom_facts(self, atom: Atom) -> Iterator[Dim]:
        value, (low, high) = atom_dim(atom), self.atom_interval(atom)
        if high != inf:
            yield int(high) - value
        if low not in (0, -inf):
            yield value - int(low)
        if low >= 0 and high > 1:
            yield value * value - value        # of an integer
        if isinstance(atom, Max0):
            yield value - atom.operand
        elif isinstance(atom, Floor) and self.interval(atom.divisor)[0] > 0:
            left = atom.numerator - atom.divisor * value
            yield left
            yield atom.divisor - 1 - left


def _tightened(p: Dim) -> Dim:
    """g*q + c >= 0 is q + floor(c/g) >= 0."""
    g = gcd(*(c for c, m in p.terms if m))
    return make({m: c // g for c, m in p.terms}) if g > 1 else p


def max_atoms(d: Dim) -> Iterator[Max0]:
    """The max atoms of `d`, the innermost first."""
    for a in d.atoms:
        for operand in operands(a):
            yield from max_atoms(operand)
        if isinstance(a, Max0):
            yield a


def operands(a: Atom) -> tuple[Dim, ...]:
    if isinstance(a, Floor):
        return a.numerator, a.divisor
    if isinstance(a, Max0):
        return (a.operand,)
    return (a.lhs, a.rhs) if isinstance(a, Bcast) else ()
