"""What a set of relations says, in the form that proofs use: substitutions, intervals, inequalities,
rules."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import gcd, inf

from .dim_algebra import (
    ZERO,
    Bound,
    Dim,
    Floor,
    Interval,
    Max0,
    Monomial,
    Symbol,
    atom_dim,
    combine,
    content,
    divide_exact,
    make,
)
from .dim_prover import Contradiction, Known, max_atoms
from .dim_relation import Relation
from .dim_rules import Rebuild, meet, rebuild

MAX_ROUNDS, CASE_COST = 5, 20


class Knowledge(Known):
    """`images` maps a symbol to its form in the symbols that remain; primed ones are new, `n' ` counts
    eights of n."""

    def __init__(self, relations: Iterable[Relation] = ()):
        super().__init__()
        self.images: dict[str, Dim] = {}
        self.sides: list[Dim] = []             # inequalities that a substitution brought along
        self.unequal: list[Dim] = []
        self.fresh = 0
        relations = tuple(relations)
        for _ in range(MAX_ROUNDS):
            if not self._learn(relations) or self._is_simple():
                break

    def case(self, assumption: Dim) -> Knowledge:
        """This and `assumption >= 0`, which is in rewritten form."""
        other = Knowledge()
        other.images, other.sides, other.fresh = dict(self.images), [*self.sides, assumption], self.fresh
        other.bounds, other.rules, other.unequal = dict(self.bounds), dict(self.rules), list(self.unequal)
        other.budget = self.budget - CASE_COST
        other._set_inequalities([*self.inequalities, assumption])
        return other

    def rewrite(self, d: Dim) -> Dim:
        return Rebuild(self.images, self).dim(d)

    def _learn(self, relations: tuple[Relation, ...]) -> bool:
        """Go through all relations under what is known; whether that taught something new."""
        before = self._state()
        for r in relations:
            if r.kind == "==":
                self._learn_equation(rebuild(r.difference, self.images, self))
        found = [self.rewrite(g) for g in self.sides]
        found += [g for r in relations for g in self._one_sided(r)]
        found += [self.rewrite(g) for g in self.inequalities]  # a relation may by now be rewritten to 0 >= 0
        self.unequal = [self.rewrite(r.difference) for r in relations if r.kind == "!="]
        found += [g for p in self.unequal for g in self._kept_apart(p)]
        self._set_inequalities(found)
        return before != self._state()

    def _is_simple(self) -> bool:
        """Intervals and substitutions free of floors say it all: a second look would teach nothing."""
        images = self.images.values()
        return not (self.inequalities or self.rules or self.unequal) and all(
            isinstance(a, Symbol) for d in images for a in d.atoms)

    def _state(self) -> tuple[object, ...]:
        """What is known, by the dims' hashes: comparing dims would give relations."""
        return (dict(self.bounds), {name: hash(d) for name, d in self.images.items()},
                {m: hash(d) for m, d in self.rules.items()}, [hash(g) for g in self.inequalities])

    def _one_sided(self, r: Relation) -> list[Dim]:
        if r.kind == "!=":
            return []
        p = self.rewrite(r.rhs - r.lhs)
        return [p, -p] if r.kind == "==" else [p - (r.kind == "<")]

    def _kept_apart(self, p: Dim) -> list[Dim]:
        """p != 0 with one sign known."""
        if p is ZERO:
            raise Contradiction("the facts contradict each other")
        return [p - 1] if self.interval(p)[0] >= 0 else [-p - 1] if self.interval(p)[1] <= 0 else []

    # -- equations -----------------------------------------------------------------------------------------

    def _learn_equation(self, p: Dim) -> None:
        """p == 0: substitute an isolated symbol, else rewrite the leading monomial, else it stays two
        inequalities."""
        if p.is_constant:
            if p.value:
                raise Contradiction("the facts contradict each other")
            return
        k = gcd(*(c for c, m in p.terms if m))
        if p.constant_part % k:
            raise Contradiction("the facts contradict each other: an equation has no integer solution")
        p = divide_exact(p, k)
        symbols = [
            (c, a) for c, m in p.terms if len(m) == 1 for a, e in m if e == 1 and isinstance(a, Symbol)
        ]
        for c, symbol in sorted(symbols, key=lambda item: self._is_in_floor(p, item[1])):
            if abs(c) == 1 and self._isolate(p, c, symbol):
                return
        if len(p.terms) == 2 == len(symbols) and p.terms[0][0] * p.terms[1][0] < 0:
            return self._share_factor(symbols)
        lead, m = p.terms[0]
        if abs(lead) == 1:
            self.rules[m] = make({m: 1}) - lead * p
            self.sides += [atom_dim(a, 2) - atom_dim(a) for a, e in m if e > 1]    # which the rule hides
            self.forget()

    def _is_in_floor(self, p: Dim, symbol: Symbol) -> bool:
        return any(symbol.name in a.symbols for a in p.atoms if a is not symbol)

    def _isolate(self, p: Dim, c: int, symbol: Symbol) -> bool:
        """p == 0 with c = +-1 the coefficient of `symbol`; a floor that has it inside becomes a new
        symbol."""
        rest, floors = p - c * atom_dim(symbol), {}
        for _, m in rest.terms:
            if any(symbol.name in a.symbols for a, _ in m):
                floor = m[0][0]
                if len(m) > 1 or m[0][1] > 1 or not isinstance(floor, Floor) or not floor.divisor.is_constant:
                    return False
                floors[m] = floor
        new = {m: self._new_symbol(symbol, self.atom_interval(floor)) for m, floor in floors.items()}
        image = -c * combine(*((e, new[m] if m in new else make({m: 1})) for e, m in rest.terms))
        self._substitute(symbol, image)
        for m, floor in floors.items():
            left = self.rewrite(floor.numerator) - floor.divisor * self.rewrite(new[m])
            self.sides += [left, floor.divisor - 1 - left]
        return True

    def _share_factor(self, symbols: list[tuple[int, Symbol]]) -> None:
        """a*x == b*y with a and b coprime: x = b*q and y = a*q."""
        (a, x), (b, y) = symbols
        q = self._new_symbol(x, (-inf, inf))
        self._substitute(x, abs(b) * q)
        self._substitute(y, abs(a) * q)

    def _new_symbol(self, old: Symbol, bounds: Interval) -> Dim:
        self.fresh += 1
        name = f"{old.name.split(chr(39))[0]}'{self.fresh}"
        self.bounds[name] = bounds
        return atom_dim(Symbol(name))

    def _substitute(self, symbol: Symbol, image: Dim) -> None:
        low, high = self.symbol_interval(symbol.name)
        if low != -inf:
            self.sides.append(image - int(low))
        if high != inf:
            self.sides.append(int(high) - image)
        self.forget()
        one = Rebuild({symbol.name: image}, self)
        self.images = {name: one.dim(to) for name, to in self.images.items()} | {symbol.name: image}
        rules, self.rules = self.rules, {}
        for m, to in rules.items():            # a rule is an equation: learn it again in the new symbols
            self._learn_equation(rebuild(make({m: 1}) - to, {symbol.name: image}, self))
        self.bounds.pop(symbol.name, None)

    # -- inequalities --------------------------------------------------------------------------------------

    def _set_inequalities(self, found: list[Dim]) -> None:
        """Keep those that intervals do not show, after every interval that they show is narrowed."""
        self.forget()
        equations = [make({m: 1}) - to for m, to in self.rules.items()]
        equations += [
            -p for p in equations
        ]  # their two inequalities, which the rules would rewrite to 0 >= 0
        found = list(dict.fromkeys([*found, *(g for f in [*found, *equations] for g in self._relaxed(f))]))
        for _ in range(MAX_ROUNDS):
            before = dict(self.bounds)
            for g in [*found, *equations]:
                self._narrow(g)
            if self.bounds == before:
                break
            self.forget()
        self.inequalities = [g for g in found if self.interval(g)[0] < 0]
        self._fix_constants()
        self.forget()

    def _fix_constants(self) -> None:
        for name, (low, high) in list(self.bounds.items()):
            if low == high and name not in self.images:
                self._substitute(Symbol(name), Dim.constant(int(low)))

    def _relaxed(self, g: Dim) -> Iterator[Dim]:
        """g >= 0 with a floor u/k replaced by what it lies between, (u-k+1)/k and u/k, and -max(x, 0) by -x
        and 0."""
        for c, m in g.terms:
            if c < 0 and len(m) == 1 and m[0][1] == 1 and isinstance(m[0][0], Max0):
                yield combine((1, g), (-c, atom_dim(m[0][0])))
                yield combine((1, g), (-c, atom_dim(m[0][0])), (c, m[0][0].operand))
            if len(m) == 1 and m[0][1] == 1 and isinstance(m[0][0], Floor) and m[0][0].divisor.is_constant:
                u, k = m[0][0].numerator, m[0][0].divisor.value
                yield combine((k, g), (-c * k, atom_dim(m[0][0])), (c, u if c > 0 else u - k + 1))

    def _narrow(self, g: Dim) -> None:
        """From c*m + rest >= 0, the interval of each symbol in m."""
        if self.interval(g)[1] < 0:
            raise Contradiction("the facts contradict each other")
        for c, m in g.terms:
            room = self.interval(g - make({m: c}))[1]
            if room == inf or not m:
                continue
            for atom, _ in m:
                if isinstance(atom, Symbol):
                    self._bound(atom.name, self._implied(c, m, int(room), atom))

    def _implied(self, c: int, m: Monomial, room: int, symbol: Symbol) -> Interval:
        """The interval of `symbol`, a factor of m, in c*m >= -room."""
        if m == ((symbol, 1),):
            return (-(room // c), inf) if c > 0 else (-inf, room // -c)
        least = [(self.atom_interval(a)[0], e) for a, e in m if a is not symbol]
        low = self.symbol_interval(symbol.name)[0]
        if low < 0 or any(b < 0 for b, _ in least):
            return -inf, inf
        if c > 0:
            return (1, inf) if room < 0 else (-inf, inf)
        by = -c
        for b, e in least:
            by *= int(b) ** e
        return (-inf, room // by) if by else (-inf, inf)

    def _bound(self, name: str, interval: Interval) -> None:
        if name in self.images:
            return
        low, high = meet(self.symbol_interval(name), interval)
        if low > high:
            raise Contradiction(f"the facts contradict each other: they leave no size for '{name}'")
        if (low, high) != self.symbol_interval(name):
            self.bounds[name] = low, high
            self.forget()

    # -- questions -----------------------------------------------------------------------------------------

    def decide(self, kind: str, p: Dim, splits: int) -> bool | None:
        """Whether `p kind 0` always holds (True), never does (False), or neither was shown (None)."""
        if kind == "!=":
            equal = self.decide("==", p, splits)
            return None if equal is None else not equal
        answer = self._is_zero(p) if kind == "==" else self._is_at_most_zero(p + (kind == "<"))
        if answer is None and splits and self.budget > 0:
            answer = self._by_cases(kind, p, splits)
        return answer

    def _is_at_most_zero(self, p: Dim) -> bool | None:
        return True if self.nonnegative(-p) else False if self.nonnegative(p - 1) else None

    def _is_zero(self, p: Dim) -> bool | None:
        if p.is_constant:
            return p is ZERO
        if p.constant_part % gcd(*(c for c, m in p.terms if m)):
            return False
        primitive = divide_exact(p, content(p))
        if {primitive, -primitive} & self._unequal_set():
            return False
        if self.nonnegative(p - 1) or self.nonnegative(-p - 1):
            return False
        return True if self.nonnegative(p) and self.nonnegative(-p) else None

    def _unequal_set(self) -> set[Dim]:
        return {divide_exact(q, content(q)) for q in self.unequal}

    def _by_cases(self, kind: str, p: Dim, splits: int) -> bool | None:
        """The answer that the two cases of a max atom agree on; a case that cannot be has none."""
        for atom in list(dict.fromkeys(max_atoms(p)))[:splits]:
            answers = set()
            for assumption in (atom.operand, -atom.operand - 1):
                try:
                    case = self.case(assumption)
                    answers.add(case.decide(kind, case.rewrite(p), splits - 1))
                    self.budget = case.budget
                except Contradiction:
                    continue
            if len(answers) == 1 and None not in answers:
                return answers.pop()
        return None

    def bounds_of(self, p: Dim) -> tuple[Bound, Bound]:
        """The interval of `p`, narrowed by what the inequalities say of its terms."""
        return self.least(p), -self.least(-p)
