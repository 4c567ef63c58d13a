"""Dims and relations as text: the display tree, its format, and the parser that reads it back.

    sum     := term (('+' | '-') term)*
    term    := factor (('*' | 'floordiv' | '//' | 'mod' | '%' | 'ceildiv') factor)*
    factor  := '-' factor | primary ('**' integer)?
    primary := integer | symbol | ('max' | 'min' | 'bcast') '(' sum (',' sum)* ')' | '(' sum ')'
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

from .dim_algebra import (
    MAX_CONSTANT,
    SYMBOL_NAME,
    Atom,
    Bcast,
    Dim,
    Floor,
    Max0,
    Monomial,
    Symbol,
    atom_dim,
    combine,
    leading_sign,
    make,
    monomial_over,
)
from .dim_relation import DimError, Relation
from .dim_rules import FREE, bcast, ceildiv, dim_max, dim_min, floordiv, modulo

Tree = tuple[Any, ...]
MAX_TEXT, MAX_NESTING = 1 << 17, 100

# -- printing ----------------------------------------------------------------------------------------------

Piece = tuple[int, Monomial, Tree]             # coefficient, other factors, and one named tree


def display_tree(d: Dim) -> Tree:
    """The tree that is printed: floors and max(x, 0) named mod, ceildiv, max and min where that leaves
    fewer terms."""
    pieces, rest = _named_pieces(d)
    products = [(c, [*_factors(m), tree]) for c, m, tree in pieces]
    products = [(c, _factors(m)) for c, m in rest.terms if m] + products
    products.sort(key=lambda item: item[0] < 0)
    if rest.constant_part or not products:
        products.insert(
            0 if products and products[0][0] < 0 < rest.constant_part else len(products),
            (rest.constant_part, []),
        )
    return reduce(_append, products[1:], _product(*products[0]))


def _append(left: Tree, item: tuple[int, list[Tree]]) -> Tree:
    return "sub" if item[0] < 0 else "add", left, _product(abs(item[0]), item[1])


def _product(coefficient: int, factors: list[Tree]) -> Tree:
    if coefficient != 1 or not factors:
        factors = [("const", coefficient), *factors]
    return reduce(lambda a, b: ("mul", a, b), factors)


def _factors(m: Monomial) -> list[Tree]:
    return [_atom_tree(a) for a, e in m for _ in range(e)]


def _atom_tree(a: Atom) -> Tree:
    if isinstance(a, Symbol):
        return "sym", a.name
    if isinstance(a, Max0):
        return "max", display_tree(a.operand), ("const", 0)
    if isinstance(a, Bcast):
        return "bcast", display_tree(a.lhs), display_tree(a.rhs)
    assert isinstance(a, Floor)
    if _known_positive(a) and a.divisor.is_constant and a.numerator.constant_part == a.divisor.value - 1:
        return "ceildiv", display_tree(a.numerator - a.divisor + 1), display_tree(a.divisor)
    return "floordiv", display_tree(a.numerator), display_tree(a.divisor)


def _known_positive(a: Floor) -> bool:
    return FREE.positive(a.divisor)


def _named_pieces(d: Dim) -> tuple[list[Piece], Dim]:
    """(pieces, rest) with d the sum of the pieces and rest."""
    pieces: list[Piece] = []
    while found := next(_shorter(d), None):
        pieces.append(found[0])
        d = found[1]
    return pieces, d


def _shorter(d: Dim) -> Iterator[tuple[Piece, Dim]]:
    """Pieces of `d` that take two terms away, or are a better name of one, each with what is left."""
    for c, m in d.terms:
        for atom, _ in m:
            for piece, value in _names(c, m, atom):
                rest = d - value
                if len(rest.terms) < len(d.terms) - 1 or value.terms == ((c, m),):
                    yield piece, rest


def _names(c: int, m: Monomial, atom: Atom) -> Iterator[tuple[Piece, Dim]]:
    """What the term `c*m` may be part of, because of `atom`: a named piece and its value."""
    others = monomial_over(m, ((atom, 1),)) or ()
    if isinstance(atom, Floor):
        yield from _floor_names(c, others, atom)
    elif isinstance(atom, Max0):
        plus, minus = _by_sign(atom.operand)
        value = atom_dim(atom)
        both = display_tree(plus), display_tree(minus)
        if c > 0:
            yield (c, others, ("max", *both)), _scaled(c, others, value + minus)
        else:
            yield (-c, others, ("min", *both)), _scaled(-c, others, plus - value)


def _by_sign(x: Dim) -> tuple[Dim, Dim]:
    """(a, b) with x = a - b and no negative coefficient in either."""
    return make({m: c for c, m in x.terms if c > 0}), make({m: -c for c, m in x.terms if c < 0})


def _scaled(c: int, m: Monomial, d: Dim) -> Dim:
    return combine((c, d * make({m: 1})))


def _floor_names(c: int, others: Monomial, floor: Floor) -> Iterator[tuple[Piece, Dim]]:
    x, y, value = floor.numerator, floor.divisor, atom_dim(floor)
    lead, by = y.terms[0]
    over = monomial_over(others, by)
    if over is not None and c % lead == 0:
        a = -c // lead
        yield (a, over, ("mod", display_tree(x), display_tree(y))), _scaled(a, over, x - y * value)
    if y.is_constant and y.value == 2:         # the two halves: x = x floordiv 2 + x ceildiv 2
        yield (-c, others, ("ceildiv", display_tree(x), ("const", 2))), _scaled(-c, others, x - value)
    if not _known_positive(floor) and c < 0 and leading_sign(x) < 0:
        yield (-c, others, ("ceildiv", display_tree(-x), display_tree(y))), _scaled(c, others, value)
    if _known_positive(floor) and not y.is_constant and x.constant_part == -1:
        yield (c, others, ("ceildiv", display_tree(x + 1), display_tree(y))), _scaled(c, others, value + 1)


_RANK = {"add": 1, "sub": 1, "mul": 2, "floordiv": 2, "mod": 2, "ceildiv": 2}
_SIGN = {"add": "+", "sub": "-", "mul": "*"}


def format_tree(tree: Tree) -> str:
    """Text with the fewest parentheses that leave no doubt: those round an operand of a division stay."""
    kind = tree[0]
    if kind in ("const", "sym"):
        return str(tree[1])
    if kind in ("max", "min", "bcast"):
        return f"{kind}({format_tree(tree[1])}, {format_tree(tree[2])})"
    if kind in ("add", "sub"):
        return f"{format_tree(tree[1])} {_SIGN[kind]} {_operand(tree[2], kind)}"
    if kind == "mul" and tree[1] == ("const", -1):
        return "-" + _operand(tree[2], kind)
    joint = "*" if kind == "mul" else f" {kind} "
    return _operand(tree[1], kind) + joint + _operand(tree[2], kind)


def _operand(tree: Tree, kind: str) -> str:
    text = format_tree(tree)
    bare = tree[0] not in _RANK or (tree[0] == "mul" and kind == "mul") or _RANK[tree[0]] > _RANK[kind]
    negative = text.startswith("-") and kind != "mul"
    return text if bare and not negative else f"({text})"


# -- parsing -----------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    rf"\s*(?:(?P<number>\d+)|(?P<name>{SYMBOL_NAME.pattern})|(?P<mark>\*\*|//|==|!=|<=|>=|[-+*%(),<>])|$)"
)
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_SUMS: dict[str, Callable[[Dim, Dim], Dim]] = {"+": Dim.__add__, "-": Dim.__sub__}
_TERMS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "*": Dim.__mul__, "floordiv": floordiv, "//": floordiv, "mod": modulo, "%": modulo, "ceildiv": ceildiv}
_CALLS: dict[str, Callable[..., Dim]] = {"max": dim_max, "min": dim_min, "bcast": bcast}


class _Reader:
    def __init__(self, text: str):
        if len(text) > MAX_TEXT:
            raise DimError(f"a dim expression of {len(text)} characters is too long")
        self.tokens, self.at, self.depth = _tokens(text), 0, 0

    @property
    def token(self) -> str:
        return self.tokens[self.at][0]

    @property
    def column(self) -> int:
        return self.tokens[self.at][1]

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][0]

    def fail(self, expected: str) -> DimError:
        return DimError(
            f"expected {expected}, found " + (f"'{self.token}'" if self.token else "the end"), self.column
        )

    def expect(self, mark: str) -> None:
        if self.token != mark:
            raise self.fail(f"'{mark}'" if mark else "the end of the expression")
        self.take()

    def chain(self, operators: dict[str, Callable[[Dim, Dim], Dim]], operand: Callable[[], Dim]) -> Dim:
        left = operand()
        while self.token in operators:
            column = self.column
            operator = operators[self.take()]
            left = self.built(column, operator, left, operand())
        return left

    def built(self, column: int, build: Callable[..., Dim], *operands: Any) -> Dim:
        try:
            return build(*operands)
        except DimError as error:
            raise error if error.column is not None else DimError(error.message, column) from None

    def sum(self) -> Dim:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise DimError("the dim expression is nested too deeply", self.column)
        found = self.chain(_SUMS, self.term)
        self.depth -= 1
        return found

    def term(self) -> Dim:
        return self.chain(_TERMS, self.factor)

    def factor(self) -> Dim:
        negative = False
        while self.token == "-":
            self.take()
            negative = not negative
        found = self.primary()
        if self.token == "**":
            self.take()
            column = self.column
            if not self.token.isdigit():
                raise self.fail("an integer exponent")
            found = self.built(column, Dim.__pow__, found, self.integer())
        return -found if negative else found

    def integer(self) -> int:
        if len(self.token) > 20 or int(self.token) > MAX_CONSTANT:
            raise DimError("a constant beyond 2**63", self.column)
        return int(self.take())

    def primary(self) -> Dim:
        column, token = self.column, self.token
        if token.isdigit():
            return Dim.constant(self.integer())
        if token == "(":
            self.take()
            found = self.sum()
            self.expect(")")
            return found
        if not SYMBOL_NAME.fullmatch(token):
            raise self.fail("a dim")
        self.take()
        if token in _CALLS and self.token == "(":
            return self.built(column, _CALLS[token], *self.arguments())
        return self.built(column, Dim.symbol, token)

    def arguments(self) -> list[Dim]:
        self.take()
        found = [self.sum()]
        while self.token == ",":
            self.take()
            found.append(self.sum())
        self.expect(")")
        return found

    def relations(self) -> list[Relation]:
        """A chain `a <= b < c` as its links."""
        found, left = [], self.sum()
        while self.token in _COMPARISONS:
            kind = self.take()
            right = self.sum()
            found.append(Relation.of(kind, left, right))
            left = right
        if not found:
            raise self.fail("a comparison")
        return found


def _tokens(text: str) -> list[tuple[str, int]]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            column = len(text) - len(text[at:].lstrip())
            raise DimError(f"unexpected character '{text[column]}'", column)
        if match.lastgroup:
            found.append((match.group(match.lastgroup), match.start(match.lastgroup)))
        at = match.end()
    return [*found, ("", len(text))]


def parse_dim(text: str) -> Dim:
    """Reads what `str` of a dim writes, and // and %; DimError with a column."""
    reader = _Reader(text)
    found = reader.sum()
    reader.expect("")
    return found


def parse_facts(text: str) -> list[Relation]:
    """The comma list of a where clause; a chain gives its links."""
    reader = _Reader(text)
    if reader.token == "":
        return []
    found = reader.relations()
    while reader.token == ",":
        reader.take()
        found += reader.relations()
    reader.expect("")
    return found


def parse_relation(text: str) -> Relation:
    """One comparison."""
    found = parse_facts(text)
    if len(found) != 1:
        raise DimError(f"expected one comparison, found {len(found)}")
    return found[0]
