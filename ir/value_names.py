"""Names of values while a text is read: scopes, uses before the definition, result packs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from .attributes import Location, TensorType, Type, none
from .core import BlockArgument, Operation, Value
from .diagnostics import Diagnostic, IRError, Source
from .lexer import Tok
from .literals import parse_int
from .pass_options import near

_RESULT = re.compile(r"(%[\w$.\-]+)\s*(?::\s*(\d+))?")


class Forward(Value):
    """A value that is used before its definition."""

    __slots__ = ("key", "meant", "offset")

    def __init__(self, type: Type, key: str, offset: int) -> None:
        super().__init__(type)
        self.key = key
        self.offset = offset
        self.meant = ""  # a question that names a value which is like it


class Unknown(Value):
    """A result of an operation with an error; it may be used as a value of any type."""


class ValueNames:
    """The values that the region being read can name."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.values: dict[str, Value] = {}  # `%x`, and `%x#1` for later results; of the isolated region
        self.forwards: dict[str, Forward] = {}
        self.local: list[str] = []  # keys defined in the innermost region

    def error(self, offset: int, message: str, *notes: Diagnostic) -> IRError:
        return self.source.error(offset, message, *notes)

    def use(self, key: str, type: Type, offset: int) -> Value:
        """The value of that name, which must have that type; a placeholder where it is not defined yet."""
        if key.endswith("#0"):
            key = key[:-2]
        value = self.values.get(key)
        if isinstance(self.values.get(key.partition("#")[0]), Unknown):
            return Unknown(type)
        if value is None:
            if "#" in key and self._defined(key):
                raise self.error(offset, "reference to invalid result number")
            value = self.values[key] = self.forwards[key] = Forward(type, key, offset)
        elif value.type is not type:
            name = key.partition("#")[0]
            raise self.error(
                offset,
                f"use of value '{name}' expects different type than prior uses: '{type}' vs '{value.type}'",
                Diagnostic(_declared(name, value, type), self._place(value), "note"),
            )
        return value

    def _place(self, value: Value) -> Location:
        if isinstance(value, Forward):
            return self.source.location(value.offset)
        return value.location if isinstance(value, BlockArgument) else value.op.location  # type: ignore[attr-defined]

    def _undeclared(self, key: str, meant: str, why: str = "") -> str:
        return f"use of undeclared SSA value name '{key}'{why}{meant}"

    def _meant(self, key: str, values: Iterable[str]) -> str:
        """`; did you mean '%x'?`, of the names that are defined."""
        names = {name.partition("#")[0][1:] for name in values if not isinstance(self.values.get(name), Forward)}
        return near(key.partition("#")[0][1:], names).replace("'", "'%", 1)

    def _defined(self, key: str) -> bool:
        first = self.values.get(key.partition("#")[0])
        return first is not None and not isinstance(first, Forward)

    def known(self, key: str, offset: int) -> Value:
        """The value of that name, which must be defined already."""
        value = self.values.get(key[:-2] if key.endswith("#0") else key)
        if isinstance(self.values.get(key.partition("#")[0]), Unknown):
            raise IRError([])  # it was reported where the value is defined
        if value is None or isinstance(value, Forward):
            why = ": it must be defined before this, or its type written"
            raise self.error(offset, self._undeclared(key, self._meant(key, self.values), why))
        return value

    def define(self, key: str, value: Value, offset: int) -> None:
        old = self.values.get(key)
        if old is not None:
            if not isinstance(old, Forward):
                raise self.error(offset, f"redefinition of SSA value '{key}'")
            if old.type is not value.type:
                shown = key if "#" in key else f"{key}#0"
                note = Diagnostic(
                    f"previously used here with type '{old.type}'", self.source.location(old.offset), "note"
                )
                del self.forwards[key]
                self.values[key] = value
                raise self.error(offset, f"definition of SSA value '{shown}' has type '{value.type}'", note)
            del self.forwards[key]
            old.replace_all_uses_with(value)
        self.values[key] = value
        self.local.append(key)

    def _define_results(self, op: Operation, token: Tok) -> None:
        results, text, start = op.results, token.text, token.start
        if len(results) == 1 and "," not in text and ":" not in text:
            key = text[:-1].rstrip()
            if key in self.values:
                self.define(key, results[0], start)
            else:
                self.values[key] = results[0]
                self.local.append(key)
            results[0].hint = hint_of(key)
            return
        groups = [(m[1], parse_int(m[2] or "1"), m.start()) for m in _RESULT.finditer(text)]
        self._check_result_count(groups, len(results), start)
        at = 0
        for name, count, offset in groups:
            results[at].hint = hint_of(name)
            for position in range(count):
                self.define(
                    f"{name}#{position}" if position else name, results[at + position], start + offset
                )
            at += count

    def _check_result_count(self, groups: list[tuple[str, int, int]], have: int, start: int) -> None:
        if not have:
            raise self.error(start, "cannot name an operation with no results")
        total = sum(count for _, count, _ in groups)
        if any(count == 0 for _, count, _ in groups):
            raise self.error(start, "expected named operation to have at least 1 result")
        if total != have:
            raise self.error(start, f"operation defines {have} results but was provided {total} to bind")

    def _define_unknown(self, token: Tok) -> None:
        """After an error: uses of the results are no errors of their own."""
        for match in _RESULT.finditer(token.text):
            unknown = Unknown(none)
            old = self.forwards.pop(match[1], None)
            if match[1] not in self.values or old is not None:
                self.values[match[1]] = unknown
                self.local.append(match[1])


def _declared(name: str, value: Value, used: Type) -> str:
    """`'%x' is declared here: dim 1 is 'n', not 'm'`"""
    word = "first used" if isinstance(value, Forward) else "declared"
    have = value.type
    differs = [f"its type is '{have}'"]
    if isinstance(have, TensorType) and isinstance(used, TensorType):
        if have.rank != used.rank:
            differs = [f"its rank is {have.rank}, not {used.rank}"]
        else:
            pairs = enumerate(zip(have.shape, used.shape, strict=True))
            unlike = [(n, *("?" if d is None else d for d in pair)) for n, pair in pairs if pair[0] is not pair[1]]
            differs = [f"dim {n} is '{a}', not '{b}'" for n, a, b in unlike]
            if have.element is not used.element:
                differs.append(f"its elements are {have.element}, not {used.element}")
            if not differs:
                differs = [f"its type is '{have}'"]
    return f"'{name}' is {word} here: {', '.join(differs)}"


def hint_of(name: str) -> str | None:
    """What to keep of `%name`: numbers are given anew."""
    return None if name[1:].isdigit() else sys.intern(name[1:])
