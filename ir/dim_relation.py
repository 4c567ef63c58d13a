"""Relations between dims, and the error every dim computation raises.

A `Relation` is a statement, not a truth value: only `Facts.prove` (ir/facts.py) turns it into yes, no or
unknown.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from .dim_algebra import Dim

_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<=": lambda a, b: a <= b, "<": lambda a, b: a < b}


class DimError(ValueError):
    """A dim that cannot be built, read or evaluated; `column` (from 0) points into the text, where there is
    one."""

    def __init__(self, message: str, column: int | None = None):
        super().__init__(message if column is None else f"{message} (column {column})")
        self.message = message
        self.column = column


@attrs.frozen(repr=False, eq=True)
class Relation:
    """`lhs kind rhs`, kind one of == != <= <. Equal when kind and both sides are the same objects."""
    kind: str
    lhs: Dim = attrs.field(eq=id)
    rhs: Dim = attrs.field(eq=id)

    @staticmethod
    def of(kind: str, lhs: Dim, rhs: Dim) -> Relation:
        """Any of == != < <= > >=; a lone constant of an equation goes to the right."""
        if kind in (">", ">="):
            return Relation({">": "<", ">=": "<="}[kind], rhs, lhs)
        if kind in ("==", "!=") and lhs.is_constant and not rhs.is_constant:
            return Relation(kind, rhs, lhs)
        if kind not in _HOLDS:
            raise DimError(f"unknown comparison '{kind}'")
        return Relation(kind, lhs, rhs)

    @property
    def difference(self) -> Dim:
        """lhs - rhs, whose sign decides the relation."""
        return self.lhs - self.rhs

    @property
    def symbols(self) -> frozenset[str]:
        return self.lhs.symbols | self.rhs.symbols

    def negated(self) -> Relation:
        if self.kind in ("==", "!="):
            return Relation("!=" if self.kind == "==" else "==", self.lhs, self.rhs)
        return Relation("<=" if self.kind == "<" else "<", self.rhs, self.lhs)

    def evaluate(self, env: Mapping[str, int]) -> bool:
        """The truth at one point; DimError as for `Dim.evaluate`."""
        return _HOLDS[self.kind](self.lhs.evaluate(env), self.rhs.evaluate(env))

    def substitute(self, mapping: Mapping[str, Dim | int]) -> Relation:
        return Relation(self.kind, self.lhs.substitute(mapping), self.rhs.substitute(mapping))

    def __bool__(self) -> bool:
        raise TypeError(
            f"'{self}' is a relation between dims, not a truth value: ask Facts.prove, which answers "
            "yes, no or unknown (or compare with 'is' for the same dim)"
        )

    def __str__(self) -> str:
        return f"{self.lhs} {self.kind} {self.rhs}"

    __repr__ = __str__
