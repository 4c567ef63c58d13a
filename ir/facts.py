"""Proofs about dims under the facts of one function.

Facts are declared in a where clause or learnt from asserts. They rewrite (`n % 8 == 0` is n = 8*n', an
equation substitutes its isolated symbol), bound symbols, and feed an elimination; dim_learn.py and
dim_prover.py hold the two halves. The rewritten forms stay in here.
"""
from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from math import inf

from .dim_algebra import Dim, DimLike, Symbol, as_dim
from .dim_learn import Knowledge
from .dim_prover import Contradiction
from .dim_relation import DimError, Relation
from .dim_rules import modulo

__all__ = ["Contradiction", "Facts", "Truth", "conflict"]

MAX_SPLITS, REWRITE_BUDGET, SEARCH_BUDGET, MAX_SCAN = 2, 80, 250, 100_000


class Truth(enum.Enum):
    """What is proved of a relation: it always holds, never holds, or neither was shown."""
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

    def __bool__(self) -> bool:
        raise TypeError("a Truth is yes, no or unknown: compare it, as in 'is Truth.YES'")


_TRUTH = {True: Truth.YES, False: Truth.NO, None: Truth.UNKNOWN}


class Facts:
    """An immutable set of relations that hold; `Contradiction` where they are seen to exclude each other."""

    def __init__(self, relations: Iterable[Relation] = ()):
        self.relations = tuple(dict.fromkeys(relations))
        self._knowledge = Knowledge(self.relations)
        self._answers: dict[Relation, Truth] = {}

    def assume(self, *relations: Relation) -> Facts:
        """These facts and more."""
        return Facts(self.relations + relations)

    def prove(self, relation: Relation) -> Truth:
        """YES or NO hold for all sizes that satisfy the facts; a dim that grows beyond its limits is UNKNOWN.

        Where a divisor can be 0 the answer is about the sizes at which both sides exist.
        """
        if relation not in self._answers:
            self._answers[relation] = self._prove(relation)
        return self._answers[relation]

    def _prove(self, relation: Relation) -> Truth:
        try:
            p = self.rewrite(relation.difference)
            self._knowledge.budget = SEARCH_BUDGET
            return _TRUTH[self._knowledge.decide(relation.kind, p, MAX_SPLITS)]
        except Contradiction:
            raise
        except DimError:
            return Truth.UNKNOWN

    def prove_all(self, relations: Iterable[Relation]) -> Truth:
        """YES where all are, NO where one is."""
        answers = {self.prove(r) for r in relations}
        return next((t for t in (Truth.NO, Truth.UNKNOWN) if t in answers), Truth.YES)

    def bounds(self, d: DimLike) -> tuple[int | None, int | None]:
        """The least and greatest value known, None where there is none."""
        p = self.rewrite(d)
        try:
            low, high = self._knowledge.bounds_of(p)
        except DimError:                       # a step grew beyond what a dim may be
            low, high = self._knowledge.interval(p)
        return None if low == -inf else int(low), None if high == inf else int(high)

    def divisible(self, d: DimLike, k: int) -> bool:
        """Whether k divides d, as far as is proved."""
        return self.prove(modulo(as_dim(d), k).eq(0)) is Truth.YES

    def rewrite(self, d: DimLike) -> Dim:
        """`d` in the form that proofs use, for messages about proofs. It must not enter the IR."""
        self._knowledge.budget = REWRITE_BUDGET
        return self._knowledge.rewrite(as_dim(d))

    @property
    def is_consistent(self) -> bool:
        """False where the facts are proved to exclude each other (what is seen at once raises when they are
        built)."""
        self._knowledge.budget = SEARCH_BUDGET
        return not any(self._knowledge.nonnegative(-g - 1) for g in self._knowledge.inequalities)

    def smallest(self, symbol: str, at_least: int = 7) -> int:
        """The smallest value from `at_least` up that the facts on this symbol alone allow, else the largest
        below."""
        for value in self.sizes(symbol, at_least):
            return value
        alone = ", ".join(str(r) for r in self.relations if r.symbols == {symbol})
        raise DimError(f"no size of '{symbol}' satisfies {alone or 'the facts'}")

    def sizes(self, symbol: str, at_least: int = 7) -> Iterator[int]:
        """The values that the facts on this symbol alone allow, from `at_least` up and then down from there. Where
        there is no greatest, the search ends after MAX_SCAN steps."""
        alone = [r for r in self.relations if r.symbols == {symbol}]
        image = self.rewrite(Dim.symbol(symbol))
        low, high = self._knowledge.interval(image)
        step, offset = _progression(image)
        first = max(at_least, int(low))
        first += (offset - first) % step
        last = min(int(min(high, first + MAX_SCAN * step)), first + MAX_SCAN * step)
        below = int(min(high, at_least - 1))
        below -= (below - offset) % step
        for values in (range(first, last + 1, step), range(below, max(int(low), 0) - 1, -step)):
            for value in values:
                if all(_holds(r, {symbol: value}) for r in alone):
                    yield value


def conflict(relations: Iterable[Relation]) -> tuple[Relation, ...]:
    """Relations, as few as possible, that are seen to exclude each other (also because a side of one then has no
    value); none where all may hold together."""
    left = tuple(dict.fromkeys(relations))
    if not _excluded(left):
        return ()
    for r in left:
        if _excluded(rest := tuple(other for other in left if other is not r)):
            left = rest
    return left


def _excluded(relations: Iterable[Relation]) -> bool:
    try:
        return not Facts(relations).is_consistent
    except DimError:
        return True


def _holds(relation: Relation, values: dict[str, int]) -> bool:
    """False too where a side has no value."""
    try:
        return relation.evaluate(values)
    except DimError:
        return False


def _progression(image: Dim) -> tuple[int, int]:
    """(step, offset) of the values of a*q + b; (1, 0) for any other form."""
    if image.is_constant:
        return 1, 0
    c, m = image.terms[0]
    linear = len(m) == 1 and m[0][1] == 1 and isinstance(m[0][0], Symbol) and not m[0][0].name.isidentifier()
    return (
        (abs(c), image.constant_part)
        if linear and len(image.terms) - bool(image.constant_part) == 1
        else (1, 0)
    )
