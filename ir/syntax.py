"""Grammar, lexers and callbacks put together: `parse_file_text` gives the nodes of a file, `parse_inner` the value
of the text inside a token. Lark builds its tables when first asked, once a thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from lark import Lark, UnexpectedToken
from lark.lexer import Lexer

from .attribute_parser import Inner, Scope
from .diagnostics import IRError, Source
from .lexer import SHORT_NAMES, Tok, inner_tokens, outer_tokens
from .literals import InnerError
from .registry import OPERATIONS

STARTS = ["file", "type", "attribute", "function", "dictionary", "label", "location"]
Children = list[Any]


@attrs.define(slots=True)
class Tail:
    """What follows the head of a generic operation."""

    type: Tok
    location: Tok | None = None
    properties: Tok | None = None
    attributes: Tok | None = None
    regions: list[RegionNode] = attrs.field(factory=list)
    successors: list[Tok] = attrs.field(factory=list)


@attrs.define(slots=True)
class RegionNode:
    """`{...}`: the nodes before the first label, then (label, nodes) pairs."""

    open: Tok
    body: list[Any]
    blocks: list[tuple[Tok, list[Any]]]
    close: Tok

    type = "REGION"
    text = "{"

    @property
    def start(self) -> int:
        return self.open.start

    @property
    def end_pos(self) -> int:
        return self.close.end_pos


class Callbacks(Inner):
    """Callbacks of both halves of the grammar. A node of an operation is [results, head, Tail or items]."""

    def empty(self, c: Children) -> list[Any]:
        return c

    def file(self, c: Children) -> Any:
        return c[0]

    def push(self, c: Children) -> list[Any]:
        c[0].append(c[1])
        return c[0]  # type: ignore[no-any-return]

    def skip(self, c: Children) -> Any:
        return c[0]

    def push_group(self, c: Children) -> list[Any]:
        c[0].append(c[1])
        c[0].extend(c[2])
        c[0].append(c[3])
        return c[0]  # type: ignore[no-any-return]

    def push_region(self, c: Children) -> list[Any]:
        c[0].append(self.region(c[1:]))
        return c[0]  # type: ignore[no-any-return]

    def operation(self, c: Children) -> Children:
        return c

    def unnamed(self, c: Children) -> Children:
        return [None, c[0], c[1]]

    def signature(self, c: Children) -> Tail:
        return Tail(c[1], c[2] if len(c) == 3 else None)

    def with_properties(self, c: Children) -> Tail:
        return _set(c[1], "properties", c[0], ("properties",))

    def with_attributes(self, c: Children) -> Tail:
        return _set(c[1], "attributes", c[0], ("properties", "attributes", "regions", "successors"))

    def with_regions(self, c: Children) -> Tail:
        return _set(c[3], "regions", c[1], ("properties", "regions", "successors"))

    def with_successors(self, c: Children) -> Tail:
        return _set(c[3], "successors", c[1], ("successors",))

    def region(self, c: Children) -> RegionNode:
        return RegionNode(c[0], c[1], c[2] if len(c) == 4 else [], c[-1])

    def empty_region(self, c: Children) -> RegionNode:
        return RegionNode(c[0], [], [], c[0])

    def block(self, c: Children) -> list[Any]:
        return [(c[0], c[1])]

    def more_blocks(self, c: Children) -> list[Any]:
        c[0].append((c[1], c[2]))
        return c[0]  # type: ignore[no-any-return]


def _set(tail: Tail, slot: str, value: Any, not_after: tuple[str, ...]) -> Tail:
    """Fill a slot of a tail, which is read from its end: those in `not_after` must come before."""
    for name in not_after:
        if getattr(tail, name):
            at = value[0] if isinstance(value, list) else value
            raise InnerError(f"{slot} must come once and in MLIR's order: successors, <{{properties}}>, regions, {{attributes}}", at.start)
    setattr(tail, slot, value)
    return tail


class _Lexer(Lexer):
    """Chooses the lexer by the start symbol."""

    __future_interface__ = 1

    def __init__(self, lexer_conf: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Any:
        text = lexer_state.text.text
        if parser_state.parse_conf.start != "file":
            return inner_tokens(text)
        return outer_tokens(text, _local.source, is_operation)


_local = threading.local()


def is_operation(name: str) -> bool:
    return name in OPERATIONS or name in SHORT_NAMES


def _lark() -> tuple[Lark, Callbacks]:
    made = getattr(_local, "lark", None)
    if made is None:
        callbacks = Callbacks()
        grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
        lark = Lark(
            grammar, parser="lalr", lexer=_Lexer, transformer=callbacks, start=STARTS, keep_all_tokens=True,
            propagate_positions=False, maybe_placeholders=False,
        )  # fmt: skip
        _speed_up(lark)
        made = _local.lark = (lark, callbacks)
    return made  # type: ignore[no-any-return]


class _Rule:
    """What Lark's loop needs of a rule, hashed as an object: its own rules and tokens hash and compare slowly."""

    def __init__(self, rule: Any) -> None:
        self.expansion = rule.expansion
        self.origin = self
        self.name = sys.intern(str(rule.origin.name))


def _speed_up(lark: Any) -> None:
    """Put such rules and plain strings into the parse table (a third of the time of a parse)."""
    parser = lark.parser.parser.parser
    made: dict[Any, _Rule] = {}
    states = parser.parse_table.states
    for state, actions in states.items():
        states[state] = {
            sys.intern(str(token)): (action, made.setdefault(to, _Rule(to)) if hasattr(to, "expansion") else to)
            for token, (action, to) in actions.items()
        }
    for rule, fast in made.items():
        parser.callbacks[fast] = parser.callbacks[rule]


def parse_inner(start: str, text: str, scope: Scope) -> Any:
    """The value of `text` by rule `start`. Raises InnerError, placed in `text`."""
    lark, callbacks = _lark()
    before = getattr(callbacks, "scope", None)
    callbacks.scope = scope
    try:
        return lark.parse(text, start=start)
    except UnexpectedToken as error:
        raise InnerError(expectation(error), _place(error, text)) from None
    finally:
        callbacks.scope = before  # type: ignore[assignment]


def parse_file_text(text: str, source: Source, report: Callable[[IRError], None] | None) -> list[Any]:
    """The nodes of a file whose comments are blanked. Errors go to `report`, and the reading goes on at the next
    operation; without it the first one is raised."""
    lark, _ = _lark()
    _local.source = source
    try:
        return lark.parse(text, start="file")  # type: ignore[return-value]
    except UnexpectedToken as error:
        raise source.error(_place(error, text), expectation(error)) from None
    except InnerError as error:
        raise source.error(error.offset, error.message) from None


def _place(error: UnexpectedToken, text: str) -> int:
    """As in MLIR, what is missing is missing right behind the token before."""
    token: Any = error.token
    at = len(text) if token.type == "$END" else token.start
    return len(text[:at].rstrip()) if at else at


_WORDS = {
    "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'", "RBRACE": "'}'", "COMMA": "','",
    "COLON": "':'", "EQUAL": "'='", "ARROW": "'->'", "RANGLE": "'>'", "FUNCTYPE": "a function type",
    "$END": "the end",
}  # fmt: skip
_GROUPS = [
    ({"GENERIC", "OPNAME"}, {"RESULTS", "GENERIC", "OPNAME", "ALIAS", "RESOURCE"}, "an operation"),
    ({"SIMPLE", "INT"}, {
        "SIMPLE", "INT", "FLOAT", "STRING", "TRUE", "FALSE", "UNIT", "SYMBOL", "LOC", "OPAQUE", "DIALECT_ATTR",
        "ARRAY", "DENSE", "TENSOR", "SYMBOLIC", "VECTOR", "MEMREF", "COMPLEX", "TUPLE", "DIALECT_TYPE", "LSQB",
        "LBRACE", "LPAR"}, "attribute value"),
    ({"SIMPLE", "TENSOR"}, {
        "SIMPLE", "TENSOR", "SYMBOLIC", "VECTOR", "MEMREF", "COMPLEX", "TUPLE", "DIALECT_TYPE", "LPAR"},
     "non-function type"),
    ({"KEY", "WORD"}, {"KEY", "STRING", "WORD", "SIMPLE", "TRUE", "FALSE", "UNIT"}, "attribute name"),
    ({"INT", "FLOAT"}, {"INT", "FLOAT", "TRUE", "FALSE", "STRING"}, "a number"),
]  # fmt: skip


def expectation(error: UnexpectedToken) -> str:
    """`expected X or Y, but found Z`."""
    interactive: Any = error.interactive_parser
    expected = set(interactive.accepts() if interactive is not None else error.expected)
    if {"COMMA", "RBRACE"} <= expected:
        return "expected '}' in attribute dictionary"
    words = []
    for needs, covers, word in _GROUPS:
        if needs <= expected:
            words.append(word)
            expected -= covers
    words += sorted(_WORDS.get(name, name.lower()) for name in expected)
    found: Any = error.token
    what = "the end of the text" if found.type == "$END" else f"'{found.text[:40]}'"
    return f"expected {' or '.join(words[:8])}, but found {what}"
