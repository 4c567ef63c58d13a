"""The canonical forms of floor, max and broadcast, and what is known about the range of a dim.

Every rule is an identity of integers that holds wherever its context's answers hold. Sources:
shared/dims/README.md and, for floors, Graham, Knuth, Patashnik, Concrete Mathematics, section 3.2 ((3.11):
floors of floors).
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from math import gcd, inf

from .dim_algebra import (
    MAX_CONSTANT,
    ONE,
    ZERO,
    Atom,
    Bcast,
    Bound,
    Dim,
    DimLike,
    Floor,
    Interval,
    Max0,
    Monomial,
    Symbol,
    as_dim,
    atom_dim,
    combine,
    content,
    divide_exact,
    leading_sign,
    make,
    monomial_over,
    product,
    residue,
)
from .dim_relation import DimError

MAX_DIVISION_STEPS, MAX_ROUNDS, HUGE = 512, 8, 2**400


def _times(a: Interval, b: Interval) -> Interval:
    """The product of two intervals, where 0 times an infinity is 0; huge ends are rounded outwards."""
    (p, q), (r, s) = a, b
    if p >= 0 and r >= 0:
        return _rounded(p * r if p and r else 0, q * s if q and s else 0)
    ends = [x * y if x and y else 0 for x in a for y in b]
    return _rounded(min(ends), max(ends))


def _rounded(low: Bound, high: Bound) -> Interval:
    """Ends that can be added to an infinity, which a float holds."""
    return (low if -HUGE < low < HUGE else -inf if low < 0 else HUGE,
            high if -HUGE < high < HUGE else inf if high > 0 else -HUGE)


def _bound_floor(a: Bound, k: int) -> Bound:
    return a // k if isinstance(a, int) else a


def meet(a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), min(a[1], b[1])


class Context:
    """What is known about dims: here, that symbols are >= 0."""

    def symbol_interval(self, name: str) -> Interval:
        return 0, inf

    def interval(self, d: Dim) -> Interval:
        """Bounds of `d`, infinite where none is known."""
        if d._interval is None:
            d._interval = self.find_interval(d)
        return d._interval

    def nonnegative(self, d: Dim) -> bool:
        """Whether d >= 0 is known; False means that it is not known."""
        return self.interval(d)[0] >= 0

    def positive(self, d: Dim) -> bool:
        return self.interval(d)[0] > 0

    def reduce(self, d: Dim) -> Dim:
        """`d` rewritten by the equations that are known."""
        return d

    def find_interval(self, d: Dim) -> Interval:
        low: Bound = 0
        high: Bound = 0
        for c, m in d.terms:
            a, b = self.monomial_interval(m)
            low, high = (low + c * a, high + c * b) if c > 0 else (low + c * b, high + c * a)
        part = remainder_part(d)
        if part is None:
            return _rounded(low, high)
        factor, k, rest = part                 # d = rest + factor * (u mod k)
        a, b = self.interval(rest)
        return _rounded(max(low, a + min(0, factor * (k - 1))), min(high, b + max(0, factor * (k - 1))))

    def monomial_interval(self, monomial: Monomial) -> Interval:
        found: Interval = (1, 1)
        for atom, exponent in monomial:
            one = self.atom_interval(atom)
            power = one if exponent == 1 else reduce(_times, [one] * exponent)
            if exponent % 2 == 0:
                power = max(power[0], 0), power[1]
            found = power if len(monomial) == 1 else _times(found, power)
        return found

    def atom_interval(self, atom: Atom) -> Interval:
        if isinstance(atom, Symbol):
            return self.symbol_interval(atom.name)
        if isinstance(atom, Max0):
            low, high = self.interval(atom.operand)
            return max(low, 0), max(high, 0)
        if isinstance(atom, Bcast):
            (a, b), (c, d) = self.interval(atom.lhs), self.interval(atom.rhs)
            return min(a, c), max(b, d)
        assert isinstance(atom, Floor)
        return self._floor_interval(atom)

    def _floor_interval(self, atom: Floor) -> Interval:
        low, high = self.interval(atom.numerator)
        if atom.divisor.is_constant and atom.divisor.value > 0:
            return _bound_floor(low, atom.divisor.value), _bound_floor(high, atom.divisor.value)
        least, most = self.interval(atom.divisor)      # not `positive`, which may look at intervals again
        if least <= 0:
            return -inf, inf
        if isinstance(most, int):              # the quotient is extreme at an end of the divisor's range
            ends = [_bound_floor(x, y) for x in (low, high) for y in (least, most)]   # type: ignore[arg-type]
            return min(ends), max(ends)
        return (0 if low >= 0 else _bound_floor(low, least),      # type: ignore[arg-type]
                -1 if high < 0 else _bound_floor(high, least))    # type: ignore[arg-type]


FREE = Context()


def remainder_part(d: Dim) -> tuple[int, int, Dim] | None:
    """(f, k, rest) with d = rest + f * (u mod k) and fewer terms in rest, for some floor u/k in `d`."""
    floors = [(c, _floor_of(m)) for c, m in d.terms if _is_floor(m) and _floor_of(m).divisor.is_constant]
    for c, floor in floors:
        forms = [(floor.numerator, floor.divisor.value)]
        forms += [form for _, inner in floors if inner is not floor for form in as_floor_of(floor, inner)]
        for u, k in forms:
            if c % k == 0:
                rest = combine((1, d), (c // k, u), (-c, atom_dim(floor)))
                if len(rest.terms) < len(d.terms):
                    return -c // k, k, rest
    return None


def as_floor_of(outer: Floor, inner: Floor) -> Iterator[tuple[Dim, int]]:
    """(u, k) with outer = floor(u/k) and u = +-inner + p, where that is what was flattened into it."""
    by, m = outer.divisor.value, inner.divisor.value
    if by % m == 0 and by > m:
        for sign, v in ((1, inner.numerator), (-1, m - 1 - inner.numerator)):
            left = outer.numerator - v
            if all(c % m == 0 for c, _ in left.terms):
                yield combine((sign, atom_dim(inner)), (1, divide_exact(left, m))), by // m


# -- floors ------------------------------------------------------------------------------------------------

def floordiv(x: DimLike, y: DimLike, context: Context = FREE) -> Dim:
    """x / y rounded down. A divisor not known to be positive or negative gives an opaque floor, to be
    guarded."""
    x, y = as_dim(x), as_dim(y)
    if y is ZERO:
        raise DimError(f"division by zero: '{x} floordiv 0'")
    if context.interval(y)[1] < 0:
        x, y = -x, -y
    if y.is_constant:
        return _floor_constant(x, y.value, context)
    return _floor_symbolic(x, y, context) if context.positive(y) else atom_dim(Floor(x, y))


def modulo(x: DimLike, y: DimLike, context: Context = FREE) -> Dim:
    """x - y * (x floordiv y): the sign of y, as in Python."""
    x, y = as_dim(x), as_dim(y)
    return x - y * floordiv(x, y, context)


def ceildiv(x: DimLike, y: DimLike, context: Context = FREE) -> Dim:
    """x / y rounded up."""
    return -floordiv(-as_dim(x), y, context)


def _floor_constant(x: Dim, k: int, context: Context) -> Dim:
    """Reduced until nothing changes, so that a floor's numerator and divisor give back that floor."""
    whole, sign = ZERO, 1
    for _ in range(MAX_ROUNDS):
        before = x, k
        pulled, x, k = _reduce_floor(x, k, context)
        whole = combine((1, whole), (sign, pulled))
        if k == 1:
            return combine((1, whole), (sign, x))
        if _sign(x, k) < 0:                    # floor(x/k) = -1 - floor((-x-1)/k)
            whole, sign = whole - sign, -sign
            pulled, x = (_pull_exact if _is_bounded(x) else _pull)(-x - 1, k)
            whole = combine((1, whole), (sign, pulled))
        if before[0] is x and before[1] == k:
            break
    return combine((1, whole), (sign, atom_dim(Floor(x, Dim.constant(k)))))


def _reduce_floor(x: Dim, k: int, context: Context) -> tuple[Dim, Dim, int]:
    """(whole, x', k') with floor(x/k) = whole + floor(x'/k')."""
    whole = ZERO
    while k > 1:
        for pull in (_pull_exact, _pull):
            pulled, x = pull(x, k)
            whole = whole + pulled
            low, high = context.interval(x)
            if isinstance(low, int) and isinstance(high, int) and low // k == high // k:
                return whole, Dim.constant(low // k), 1
            if _is_bounded(x) and len(x.terms) - bool(x.constant_part) > 1:
                return whole, *(_without_content(x, k) or (x, k))
        smaller = _without_content(x, k) or _flatten(x, k) or _drop_small(x, k, context)
        if smaller is None:
            break
        x, k = smaller
    return whole, x, k


def _is_bounded(x: Dim) -> bool:
    """A sum of remainders, whose bounds taking it apart would lose. (Of any symbols: this only chooses a
    form.)"""
    low, high = FREE.interval(x)
    return low > -inf and high < inf


def _pull_exact(x: Dim, k: int) -> tuple[Dim, Dim]:
    """(q, x - k*q) with the terms that k divides, and the constant's quotient, in q: `n mod 4` stays
    whole."""
    q = make({m: c // k for c, m in x.terms if c % k == 0 or not m})
    return q, combine((1, x), (-k, q))


def _pull(x: Dim, k: int) -> tuple[Dim, Dim]:
    """(q, x - k*q) with every coefficient left nearest 0, the constant in [0, k).

    On a tie a floor goes negative, as it is in `n mod 4`; of halves, one that is to be flattened keeps its
    sign.
    """
    kept = _flat_term(x, 2) if k == 2 else None

    def nearest(c: int, m: Monomial) -> int:
        return c - residue(c, k, c < 0 if m == kept else k > 2 and _is_floor(m)) if m else c
    q = make({m: nearest(c, m) // k for c, m in x.terms})
    return q, combine((1, x), (-k, q))


def _is_floor(m: Monomial) -> bool:
    return len(m) == 1 and m[0][1] == 1 and isinstance(m[0][0], Floor)


def _flat_term(x: Dim, k: int) -> Monomial | None:
    """The floor by a constant with coefficient 1 or -1 modulo k that is nested deepest: it may hold the
    others."""
    inner = [
        m for c, m in x.terms if _is_floor(m) and c % k in (1, k - 1) and _floor_of(m).divisor.is_constant
    ]
    deepest = max((_floor_of(m).depth for m in inner), default=0)
    inner = [m for m in inner if _floor_of(m).depth == deepest]
    return inner[0] if len(inner) == 1 else None


def _floor_of(m: Monomial) -> Floor:
    atom = m[0][0]
    assert isinstance(atom, Floor)
    return atom


def _without_content(x: Dim, k: int) -> tuple[Dim, int] | None:
    """floor((g*p + c) / (g*k)) = floor((p + floor(c/g)) / k)."""
    g = gcd(k, *(c for c, m in x.terms if m))
    return (make({m: c // g for c, m in x.terms}), k // g) if g > 1 else None


def _flatten(x: Dim, k: int) -> tuple[Dim, int] | None:
    """floor((floor(u/m) + p) / k) = floor((u + m*p) / (m*k)), and -floor(u/m) = floor((m-1-u)/m)."""
    term = _flat_term(x, k)
    c = next((c for c, m in x.terms if m == term), 0) if term else 0
    if term is None or abs(c) != 1:
        return None
    floor = _floor_of(term)
    by = floor.divisor.value
    u = floor.numerator if c == 1 else by - 1 - floor.numerator
    return combine((1, u), (by, x), (-c * by, atom_dim(floor))), k * by


def _drop_small(x: Dim, k: int, context: Context) -> tuple[Dim, int] | None:
    """floor((g*p + r) / (g*k)) = floor((p + t) / k) where r is known to lie in [t*g, (t+1)*g)."""
    divisors = {gcd(c, k) for c, m in x.terms if m} - {1}
    for g in sorted(divisors, reverse=True):
        p = make({m: c // g for c, m in x.terms if m and c % g == 0})
        r = combine((1, x), (-g, p))
        low, high = context.interval(r)
        if isinstance(low, int) and isinstance(high, int) and low // g == high // g:
            return p + low // g, k // g
    return None


def _sign(x: Dim, k: int) -> int:
    """The sign of the first coefficient that is not half of k, which of floor(x/k) and floor((-x-1)/k) one
    has positive."""
    for c, m in x.terms:
        if m and 2 * abs(c) != k:
            return 1 if c > 0 else -1
    return -1 if x.constant_part else 1        # all are half of k, which has been divided out: k is 2


def _floor_symbolic(x: Dim, y: Dim, context: Context) -> Dim:
    """y is positive: divide by its leading monomial, then look at the sign of what is left."""
    whole, x = _divide(x, y)
    if context.nonnegative(x) and context.nonnegative(y - 1 - x):
        return whole
    if context.nonnegative(-x - 1) and context.nonnegative(x + y):
        return whole - 1
    smaller = _without_factor(x, y, context) or _flatten_symbolic(x, y) or _drop_below(x, y, context)
    if smaller is not None:
        return whole + floordiv(*smaller, context)
    if leading_sign(x) > 0:
        return whole + atom_dim(Floor(x, y))
    pulled, x = _divide(-x - 1, y)
    return whole - 1 - pulled - (atom_dim(Floor(x, y)) if x is not ZERO else ZERO)


def _divide(x: Dim, y: Dim) -> tuple[Dim, Dim]:
    """(q, x - q*y), no term of which can be lessened by a multiple of y's leading term."""
    whole = ZERO
    for _ in range(MAX_DIVISION_STEPS):
        q = next(_quotients(x, y), None)
        if q is None:
            break
        whole, x = whole + q, x - q * y
    return whole, x


def _quotients(x: Dim, y: Dim) -> Iterator[Dim]:
    """How often y's leading term goes into each term of x, where that is not 0."""
    lead, by = y.terms[0]
    for c, m in x.terms:
        over = monomial_over(m, by)
        if over is not None and (times := (c - residue(c, abs(lead))) // lead):
            yield make({over: times})


def _without_factor(x: Dim, y: Dim, context: Context) -> tuple[Dim, Dim] | None:
    """Cancel a common integer and the common atoms that are >= 0, hence > 0, since y is."""
    g = gcd(
        content(y), *(c for c, m in x.terms if m)
    )  # floor((g*p + c) / (g*z)) = floor((p + floor(c/g)) / z)
    shared = None
    for _, m in x.terms + y.terms:
        shared = dict(m) if shared is None else {a: min(e, dict(m).get(a, 0)) for a, e in shared.items()}
    common = tuple((a, e) for a, e in (shared or {}).items() if e and context.atom_interval(a)[0] >= 0)
    if g <= 1 and not common:
        return None
    return tuple(make({monomial_over(m, common): c // g for c, m in d.terms}) for d in (x, y))   # type: ignore


def _flatten_symbolic(x: Dim, y: Dim) -> tuple[Dim, Dim] | None:
    """floor(floor(u/m) / y) = floor(u / (m*y)) for constants m > 0."""
    flat = _flatten(x, MAX_CONSTANT)
    return None if flat is None else (flat[0], y * (flat[1] // MAX_CONSTANT))


def _drop_below(x: Dim, y: Dim, context: Context) -> tuple[Dim, Dim] | None:
    """floor((a*p + r) / (a*z)) = floor(p / z) where 0 <= r < a, for an atom a of the single term y."""
    if len(y.terms) != 1:
        return None
    for atom, _ in y.terms[0][1]:
        a = ((atom, 1),)
        p = make({over: c for c, m in x.terms if (over := monomial_over(m, a)) is not None})
        r = x - p * atom_dim(atom)
        if p is not ZERO and context.nonnegative(r) and context.nonnegative(atom_dim(atom) - 1 - r):
            return p, make({monomial_over(y.terms[0][1], a): y.terms[0][0]})    # type: ignore[dict-item]
    return None


# -- max, min, broadcast -----------------------------------------------------------------------------------

def max0(x: Dim, context: Context = FREE) -> Dim:
    """max(x, 0), of the x whose leading coefficient is positive: max(-x, 0) = max(x, 0) - x."""
    if context.nonnegative(x):
        return x
    if context.nonnegative(-x):
        return ZERO
    g = content(x)
    x = divide_exact(x, g)
    return g * (atom_dim(Max0(x)) if leading_sign(x) > 0 else x + atom_dim(Max0(-x)))


def _in_order(dims: tuple[DimLike, ...]) -> list[Dim]:
    return sorted({as_dim(d) for d in dims}, key=lambda d: d.order)


def dim_max(*dims: DimLike) -> Dim:
    return reduce(lambda a, b: b + max0(a - b), _in_order(dims))


def dim_min(*dims: DimLike) -> Dim:
    return reduce(lambda a, b: a - max0(a - b), _in_order(dims))


def bcast(*dims: DimLike, context: Context = FREE) -> Dim:
    """The broadcast, under the check that all sizes other than 1 are equal; associative and commutative.

    A size known not to be 1 is the result. Constants that cannot be broadcast are a DimError.
    """
    parts = {part for d in dims for part in _bcast_parts(as_dim(d))} - {ONE}
    constants = {p for p in parts if p.is_constant}
    if len(constants) > 1:
        raise DimError("sizes " + " and ".join(sorted(map(str, constants))) + " do not broadcast")
    ordered = sorted(constants or [p for p in parts if context.interval(p)[0] > 1], key=lambda d: d.order)
    if ordered:
        return ordered[0]
    return reduce(lambda a, b: atom_dim(Bcast(a, b)), _in_order(tuple(parts))) if parts else ONE


def _bcast_parts(d: Dim) -> list[Dim]:
    if len(d.terms) == 1 and d.terms[0][0] == 1 and len(d.terms[0][1]) == 1:
        atom, exponent = d.terms[0][1][0]
        if exponent == 1 and isinstance(atom, Bcast):
            return _bcast_parts(atom.lhs) + _bcast_parts(atom.rhs)
    return [d]


# -- substitution ------------------------------------------------------------------------------------------

def rebuild(d: Dim, mapping: Mapping[str, Dim], context: Context) -> Dim:
    """`d` with symbols replaced, built again under `context`."""
    return Rebuild(mapping, context).dim(d)


class Rebuild:
    """One substitution; every atom is built once."""

    def __init__(self, mapping: Mapping[str, Dim], context: Context):
        self.mapping, self.context = mapping, context
        self.built: dict[Atom, Dim] = {}

    def dim(self, d: Dim) -> Dim:
        if self.context is FREE and self.mapping.keys().isdisjoint(d.symbols):
            return d
        return self.context.reduce(
            combine(*((c, product([self.atom(a) ** e for a, e in m])) for c, m in d.terms))
        )

    def atom(self, a: Atom) -> Dim:
        if a not in self.built:
            self.built[a] = self._build(a)
        return self.built[a]

    def _build(self, a: Atom) -> Dim:
        if isinstance(a, Symbol):
            return self.mapping[a.name] if a.name in self.mapping else atom_dim(a)
        if isinstance(a, Floor):
            return floordiv(self.dim(a.numerator), self.dim(a.divisor), self.context)
        if isinstance(a, Max0):
            return max0(self.dim(a.operand), self.context)
        assert isinstance(a, Bcast)
        return bcast(self.dim(a.lhs), self.dim(a.rhs), context=self.context)
