"""Rewrites as a table: each line is a pattern, what replaces it and, where it needs one, a condition.

    x, y = Var("x"), Var("y")
    add, mul = call(AddI), call(MulI)
    RULES = rules(
        (add(x, zero), x),
        (mul(x, zero), zero),
        (trunc(extend(x)), x, lambda m: m.x.type is m.op.result.type),
    )

A pattern is a call over variables, constants and calls. A variable that occurs twice must be the same value.
The operands of a commutative operation are tried in both orders, each call by itself: the first that matches
is taken. A replacement is a variable, a constant, or a call; its new operations get their types from
`infer_types` (the outermost the root's), and attributes only as the rule gives them: `call(AddI)(x, y,
predicate=lambda m: m.op.predicate)`. A rule is skipped where types do not agree or a constant cannot be made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from .attributes import Attribute, Type
from .core import Operation, OpResult, Value
from .registry import Commutative
from .rewriter import Pattern, PatternRewriter, constant_of, is_constant_class

Bindings = dict[str, Value]


@attrs.frozen
class Var:
    """Any value; the same one wherever the name occurs in a rule."""

    name: str

    def __str__(self) -> str:
        return self.name


@attrs.frozen
class Const:
    """A constant for which `holds(attribute)`; `make(type)` builds it in a replacement, or gives None."""

    name: str
    holds: Callable[[Attribute], bool]
    make: Callable[[Type], Attribute | None] = lambda type: None

    def __str__(self) -> str:
        return self.name


@attrs.frozen(eq=False)
class Call:
    """An operation of class `cls` on what `arguments` match."""

    cls: type[Operation]
    arguments: tuple[Any, ...]
    attributes: Mapping[str, Any]
    line: str

    @property
    def both_orders(self) -> bool:
        """Whether the operands may stand in either order."""
        return len(self.arguments) == 2 and Commutative in self.cls.definition.traits

    @property
    def repeats(self) -> bool:
        """Whether one variable stands for two operands."""
        names = [a.name for a in self.arguments if isinstance(a, Var)]
        return len(set(names)) < len(names)

    def __str__(self) -> str:
        return f"{self.cls.name}({', '.join(map(str, self.arguments))})"


def call(cls: type[Operation]) -> Callable[..., Call]:
    """A function that writes a call of `cls` in a rule."""

    def make(*arguments: Any, **attributes: Any) -> Call:
        frame = sys._getframe(1)
        return Call(cls, arguments, attributes, f"{frame.f_code.co_filename}:{frame.f_lineno}")

    return make


class Match:
    """What a rule matched: `m.op` is the root, `m.x` the value of variable x."""

    def __init__(self, op: Operation, bindings: Bindings) -> None:
        self.op: Any = op
        self._bindings = bindings

    def __getattr__(self, name: str) -> Any:
        try:
            return self._bindings[name]
        except KeyError:
            raise AttributeError(f"the rule has no variable '{name}'") from None


def _matches(pattern: Any, value: Value, bindings: Bindings) -> bool:
    if type(pattern) is Var:
        return bindings.setdefault(pattern.name, value) is value
    if type(pattern) is Const:
        attribute = constant_of(value)
        return attribute is not None and pattern.holds(attribute)
    return (
        type(value) is OpResult
        and type(value.op) is pattern.cls
        and _matches_call(pattern, value.op, bindings)
    )


def _matches_call(pattern: Call, op: Operation, bindings: Bindings) -> bool:
    operands = op.operands
    if len(pattern.arguments) != len(operands):
        return False
    saved = dict(bindings)
    if all(_matches(a, v, bindings) for a, v in zip(pattern.arguments, operands)):
        return True
    if not pattern.both_orders:
        return False
    bindings.clear()
    bindings.update(saved)
    return all(_matches(a, v, bindings) for a, v in zip(pattern.arguments, operands[::-1]))


def _fits(argument: Any, definer: type[Operation] | None) -> bool:
    if type(argument) is Const:
        return is_constant_class(definer)
    return type(argument) is Var or definer is argument.cls


class Rule(Pattern):
    """One line of a table."""

    def __init__(
        self, pattern: Call, replacement: Any, condition: Callable[[Match], bool] | None = None
    ) -> None:
        self.root = pattern.cls  # type: ignore[misc]
        self.pattern, self.replacement, self.condition = pattern, replacement, condition

    @property
    def label(self) -> str:
        return f"{self.pattern} -> {self.replacement} ({self.pattern.line})"

    def may_match(self, definers: Sequence[type[Operation] | None], repeated: bool) -> bool:
        arguments = self.pattern.arguments
        if len(arguments) != len(definers) or (self.pattern.repeats and not repeated):
            return False
        orders = [definers, definers[::-1]] if self.pattern.both_orders else [definers]
        return any(all(map(_fits, arguments, order)) for order in orders)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        bindings: Bindings = {}
        if not _matches_call(self.pattern, op, bindings):
            return False
        match = Match(op, bindings)
        if self.condition is not None and not self.condition(match):
            return False
        root = op.results[0]
        if isinstance(self.replacement, Var) and match._bindings[self.replacement.name].type is not root.type:
            return False
        value = self._value(self.replacement, match, rewriter)
        if value is None or value is root:
            return False
        rewriter.replace(op, value)
        return True

    def _value(self, what: Any, match: Match, rewriter: PatternRewriter) -> Value | None:
        if isinstance(what, Var):
            return match._bindings[what.name]
        type = match.op.results[0].type
        if isinstance(what, Const):
            attribute = what.make(type)
            return None if attribute is None else rewriter.constant(attribute, type)
        arguments = [self._value(a, match, rewriter) for a in what.arguments]
        if any(a is None for a in arguments):
            return None
        given = {k: v(match) if callable(v) else v for k, v in what.attributes.items()}
        types = [type] if what is self.replacement else None
        return rewriter.create(what.cls, *arguments, result_types=types, **given).results[0]


def rules(*table: tuple[Any, ...]) -> list[Rule]:
    """The patterns of a table of (pattern, replacement) and (pattern, replacement, condition)."""
    return [Rule(*line) for line in table]
