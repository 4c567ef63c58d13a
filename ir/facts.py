"""Proofs about dims under the facts of one function.

Facts are declared in a where clause or learnt from asserts. They rewrite (`n % 8 == 0` is n = 8*n', an equation substitutes
its isolated symbol), bound symbols, and feed the elimination of dim_prover.py. The rewritten forms stay in here.
"""
from __future__ import annotations

import enum
from collections.abc import Iterable
from math import gcd, inf

from .dim_algebra import ZERO, Bound, Dim, DimLike, Floor, Interval, Monomial, Symbol, as_dim, atom_dim, combine, make
from .dim_prover import Contradiction, Known, max_atoms
from .dim_relation import DimError, Relation
from .dim_rules import Rebuild, meet, modulo

__all__ = ["Contradiction", "Facts", "Truth"]

MAX_ROUNDS, MAX_SPLITS, MAX_SCAN = 4, 2, 100_000


class Truth(enum.Enum):
    """What is proved of a relation: it always holds, never holds, or neither was shown."""
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

    def negated(self) -> Truth:
        return {Truth.YES: Truth.NO, Truth.NO: Truth.YES}.get(self, self)

    def __bool__(self) -> bool:
        raise TypeError("a Truth is yes, no or unknown: compare it with 'is', as in 'is Truth.YES'")


class Facts:
    """An immutable set of relations that hold; `Contradiction` where they are seen to exclude each other."""

    def __init__(self, relations: Iterable[Relation] = ()):
        self.relations = tuple(dict.fromkeys(relations))
        self._known = Known()
        self._images: dict[str, Dim] = {}
        self._unequal: list[Dim] = []
        self._extra: list[Dim] = []            # inequalities in rewritten form: the assumption of a case
        self._answers: dict[Relation, Truth] = {}
        self._learn()

    def assume(self, *relations: Relation) -> Facts:
        """These facts and more."""
        return Facts(self.relations + relations)

    # -- questions ----------------------------------------------------------------------------------------------------

    def prove(self, relation: Relation) -> Truth:
        """YES or NO hold for all sizes that satisfy the facts; a dim that grows beyond its limits is UNKNOWN."""
        if relation not in self._answers:
            try:
                self._answers[relation] = self._decide(relation.kind, self.rewrite(relation.difference), MAX_SPLITS)
            except Contradiction:
                raise
            except DimError:
                return Truth.UNKNOWN
        return self._answers[relation]

    def prove_all(self, relations: Iterable[Relation]) -> Truth:
        """YES where all are, NO where one is."""
        answers = {self.prove(r) for r in relations}
        return next((t for t in (Truth.NO, Truth.UNKNOWN) if t in answers), Truth.YES)

    def bounds(self, d: DimLike) -> tuple[int | None, int | None]:
        """The least and greatest value known, None where there is none."""
        p = self.rewrite(as_dim(d))
        low, high = self._known.interval(p)
        for g in self._known.inequalities:
            low, high = meet((low, high), self._bounds_by(p, g))
        return None if low == -inf else int(low), None if high == inf else int(high)

    def divisible(self, d: DimLike, k: int) -> bool:
        """Whether k divides d, as far as is proved."""
        return self.prove(modulo(as_dim(d), k).eq(0)) is Truth.YES

    @property
    def is_consistent(self) -> bool:
        """False where the facts exclude each other (building them raises where that is seen at once)."""
        return not any(self._known.nonnegative(-g - 1) for g in self._known.inequalities)

    def smallest(self, symbol: str, at_least: int = 7) -> int:
        """The smallest value from `at_least` up that the facts on this symbol alone allow, else the largest below."""
        alone = [r for r in self.relations if r.symbols == {symbol}]
        low, high = self._known.interval(self.rewrite(Dim.symbol(symbol)))
        step, offset = self._progression(symbol)
        start = max(at_least, int(low))
        start += (offset - start) % step
        upward = range(start, int(min(high, start + MAX_SCAN * step)) + 1, step)
        below = int(min(high, at_least - 1))
        downward = range(below - (below - offset) % step, max(int(low), 0) - 1, -step)
        for values in (upward, downward):
            for value in values:
                if all(_holds(r, symbol, value) for r in alone):
                    return value
        raise DimError(f"no size of '{symbol}' satisfies " + ", ".join(map(str, alone)))

    # -- rewriting ----------------------------------------------------------------------------------------------------

    def rewrite(self, d: Dim) -> Dim:
        """`d` in the form that proofs use. It must not enter the IR."""
        return Rebuild(self._images, self._known).dim(d)

    def _again(self, d: Dim) -> Dim:
        """An already rewritten form under what is known now."""
        return self.rewrite(d)

    def _learn(self) -> None:
        for _ in range(MAX_ROUNDS):
            if not self._learn_once():
                break

    def _learn_once(self) -> bool:
        """Go through all relations under what is known so far; whether that taught something."""
        before = dict(self._known.bounds), dict(self._images), dict(self._known.rules), list(self._known.inequalities)
        equations = [r.difference for r in self.relations if r.kind == "=="]
        for d in equations:
            self._learn_equation(self.rewrite(d))
        found = [self._images_stay(name) for name in self._images]
        found += [self.rewrite(r.rhs - r.lhs - (r.kind == "<")) for r in self.relations if r.kind in ("<=", "<")]
        found += [self.rewrite(g) for g in self._extra]
        for d in equations:
            p = self.rewrite(d)
            found += [p, -p]
        self._unequal = [self.rewrite(r.difference) for r in self.relations if r.kind == "!="]
        found += [g for p in self._unequal for g in self._apart(p)]
        self._set_inequalities(found)
        return before != (self._known.bounds, self._images, self._known.rules, self._known.inequalities)
