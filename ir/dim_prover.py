"""The search behind `Facts`: whether a polynomial is never negative, given intervals and inequalities.

Everything here is sound over the integers; what is not found within the budget is simply not known.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import count, permutations
from math import gcd, inf

from .dim_algebra import (
    ONE,
    Atom,
    Bcast,
    Bound,
    Dim,
    Floor,
    Interval,
    Max0,
    Monomial,
    Symbol,
    atom_dim,
    combine,
    make,
    monomial_over,
    product,
)
from .dim_relation import DimError
from .dim_rules import Context, as_floor_of

MAX_NODES, MAX_REWRITES, MAX_BOUND_STEPS = 100, 64, 24
SHIFTED = "^"                                  # not in any symbol's name: `n^` is n less its lower bound


class Contradiction(DimError):
    """Facts that no sizes satisfy."""


class Known(Context):
    """Intervals of symbols, inequalities `g >= 0`, and rules `monomial -> dim` from equations."""

    def __init__(self) -> None:
        self.bounds: dict[str, Interval] = {}
        self.inequalities: list[Dim] = []
        self.rules: dict[Monomial, Dim] = {}
        self.budget = MAX_NODES                # of search steps; a question sets it, and its cases share it
        self.forget()

    def forget(self) -> None:
        """Drop what was concluded: more is known now."""
        self._intervals: dict[Dim, Interval] = {}
        self._proved: dict[Dim, bool] = {}
        self._atom_facts: dict[Atom, list[Dim]] = {}
        self._monomials: dict[Monomial, Interval] = {}
        self._gathered: dict[tuple[Atom, ...], list[Dim]] = {}
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

    def monomial_interval(self, monomial: Monomial) -> Interval:
        if monomial not in self._monomials:
            self._monomials[monomial] = super().monomial_interval(monomial)
        return self._monomials[monomial]

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
                found = self._search(d)
            except DimError:                   # a combination grew beyond what a dim may be
                found = False
            if not found and self.budget <= 0:
                return False                   # broken off: not cached
            self._proved[d] = found
        return self._proved[d]

    # -- elimination ---------------------------------------------------------------------------------------

    def _search(self, goal: Dim) -> bool:
        """Best first: subtract multiples of facts until the interval of what is left shows the sign."""
        order, seen, goal = count(), set(), self.shift(goal)
        degree = max(map(_degree, [goal, *self._facts_for(goal)]))
        heap: list[tuple[int, int, int, Dim]] = []

        def push(p: Dim) -> None:
            p = _tightened(p)
            if p not in seen and _degree(p) <= degree:
                seen.add(p)
                heappush(heap, (len(self._unbounded(p)), len(p.terms), next(order), p))
        push(goal)
        for _ in range(MAX_NODES):
            if not heap or self.budget <= 0:
                return False
            self.budget -= 1
            p = heappop(heap)[-1]
            if self.interval(p)[0] >= 0:
                return True
            for after in self._steps(p):
                self.budget -= 1
                push(after)
        return False

    def least(self, p: Dim) -> Bound:
        """The greatest lower bound of `p` found in a few steps of elimination."""
        best = self.interval(p)[0]
        todo = deque([(1, self.shift(p))])     # scale * p >= what is left
        for _ in range(MAX_BOUND_STEPS):
            if not todo:
                break
            scale, left = todo.popleft()
            low = self.interval(left)[0]
            if isinstance(low, int):
                best = max(best, -(-low // scale))
                continue
            facts = self._facts_for(left)
            for c, m in self._unbounded(left):
                for _, e, g, over in self._ways(c, m, facts):
                    a = abs(e) // gcd(c, e)
                    todo.append((scale * a, _without(left, c, e, g, over) - (a - 1)))
        return best

    def _unbounded(self, p: Dim) -> list[tuple[int, Monomial]]:
        """The terms of `p` with no lower bound of their own: a proof must be rid of each."""
        return [(c, m) for c, m in p.terms if self.monomial_interval(m)[1 if c < 0 else 0] in (inf, -inf)]

    def _steps(self, p: Dim) -> Iterator[Dim]:
        facts = self._facts_for(p)
        unbounded = self._unbounded(p)
        if unbounded:                          # the term with the fewest ways out; none at all is a dead end
            ways = min((self._ways(c, m, facts) for c, m in unbounded), key=len)
        else:
            ways = [way for c, m in p.terms if m for way in self._ways(c, m, facts)]
        return (_without(p, *way) for way in ways)

    def _ways(self, c: int, m: Monomial, facts: list[Dim]) -> list[tuple[int, int, Dim, Monomial]]:
        """(c, e, g, over) for each fact g that has e*n, n*over = m, and so bounds the term c*m on the side
        that matters."""
        return [
            (c, e, g, over)
            for g in facts
            for e, n in g.terms
            if n
            and (e < 0) == (c < 0)
            and (over := monomial_over(m, n)) is not None
            and self._never_negative(over)
        ]

    def _never_negative(self, m: Monomial) -> bool:
        return all(self.atom_interval(a)[0] >= 0 for a, _ in m)

    # -- facts of atoms ------------------------------------------------------------------------------------

    def shift(self, d: Dim) -> Dim:
        """Outer symbols with a lower bound other than 0 counted from it, so that every term shows its own
        sign."""
        moved: dict[Atom, Dim] = {}
        for a in d.atoms:
            low = self.bounds[a.name][0] if isinstance(a, Symbol) and a.name in self.bounds else 0
            if isinstance(a, Symbol) and low not in (0, -inf):
                moved[a] = atom_dim(Symbol(a.name + SHIFTED)) + int(low)
        if not moved:
            return d
        return combine(*((c, product([moved.get(a, atom_dim(a)) ** e for a, e in m])) for c, m in d.terms))

    def _facts_for(self, p: Dim) -> list[Dim]:
        squares = [a for _, m in p.terms for a, e in m if e > 1 and self.atom_interval(a)[0] >= 0]
        return self._gather(p.atoms) + [
            atom_dim(a, 2) - atom_dim(a) for a in squares
        ]  # a*a >= a of an integer

    def _gather(self, atoms: tuple[Atom, ...]) -> list[Dim]:
        if self._shared is None:
            self._shared = [self.shift(g) for g in self.inequalities]
            atoms_of_facts = dict.fromkeys(a for g in self._shared for a in g.atoms)
            self._shared += [f for a in atoms_of_facts for f in self.atom_facts(a)]
        if atoms not in self._gathered:
            own = [f for a in atoms for f in self.atom_facts(a)] + [
                self.shift(f) for f in _facts_of_pairs(atoms)
            ]
            self._gathered[atoms] = list(dict.fromkeys(self._shared + own))
        return self._gathered[atoms]

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
        if isinstance(atom, Max0):
            yield value - atom.operand
        elif isinstance(atom, Floor) and self.interval(atom.divisor)[0] > 0:
            left = atom.numerator - atom.divisor * value
            yield left
            yield atom.divisor - 1 - left


def _facts_of_pairs(atoms: Iterable[Atom]) -> Iterator[Dim]:
    """The bounds of a floor by the floor inside it: sharper than those by its numerator."""
    floors = [a for a in atoms if isinstance(a, Floor) and a.divisor.is_constant]
    for outer, inner in permutations(floors, 2):
        for u, k in as_floor_of(outer, inner):
            left = combine((1, u), (-k, atom_dim(outer)))
            yield left
            yield k - 1 - left


def _degree(p: Dim) -> int:
    return sum([e for _, e in p.terms[0][1]]) if p.terms else 0


def _without(p: Dim, c: int, e: int, g: Dim, over: Monomial) -> Dim:
    """a*p - b*g*over, in which the term with coefficient c in p and e in g is gone.

    From q = a*p - b*g >= -(a-1) and g >= 0 follows a*p > -a, so p >= 0: hence the a - 1 that is added.
    """
    k = gcd(c, e)
    a = abs(e) // k
    return combine((a, p), (-abs(c) // k, g * make({over: 1}) if over else g), (a - 1, ONE))


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
