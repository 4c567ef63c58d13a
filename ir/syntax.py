"""Grammar, lexers and callbacks put together: `parse_file_text` gives the nodes of a file, `parse_inner` the
value of the text inside a token.

Lark makes the LALR tables of grammar.lark. That takes 150 ms, so they are shipped as grammar.json, written by
`python -m stepwell.ir.syntax`; where that file is not of this grammar they are made anew.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
from lark import UnexpectedToken
from lark.parsers.lalr_analysis import ParseTable, Reduce, Shift
from lark.parsers.lalr_parser_state import ParseConf, ParserState

from .attribute_parser import Inner, Scope
from .diagnostics import IRError, Source
from .lexer import SHORT_NAMES, BadTok, Tok, inner_tokens, outer_tokens
from .literals import InnerError, without_point
from .registry import OPERATIONS

STARTS = ["file", "type", "attribute", "function", "dictionary", "label", "location", "literal"]
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

    def named(self, c: Children) -> list[Any]:
        c[0].append(c[1:])
        return c[0]  # type: ignore[no-any-return]

    def unnamed(self, c: Children) -> list[Any]:
        c[0].append([None, c[1], c[2]])
        return c[0]  # type: ignore[no-any-return]

    def signature(self, c: Children) -> Tail:
        return Tail(c[0], c[1] if len(c) == 2 else None)

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
            raise InnerError(
                f"{slot} must come once and in MLIR's order: "
                "successors, <{properties}>, regions, {attributes}",
                at.start,
            )
    setattr(tail, slot, value)
    return tail


# ---------------------------------------------------------------- tables

_HERE = Path(__file__)
_TABLES = _HERE.with_name("grammar.json")


def build_tables(grammar: str) -> dict[str, Any]:
    """The LALR tables of the grammar, as data. An action is a state to shift to, or -1 - (number of a
    rule)."""
    from lark import Lark
    from lark.lexer import Lexer

    class NoLexer(Lexer):
        def __init__(self, lexer_conf: Any) -> None:
            pass

        def lex(self, lexer_state: Any, parser_state: Any) -> Any:
            return iter(())

    lark: Any = Lark(
        grammar, parser="lalr", lexer=NoLexer, start=STARTS, keep_all_tokens=True, maybe_placeholders=False
    )
    table = lark.parser.parser.parser.parse_table
    numbers: dict[Any, int] = {}
    states = {
        state: {
            str(token): to if action is Shift else -1 - numbers.setdefault(to, len(numbers))
            for token, (action, to) in sorted(actions.items())
        }
        for state, actions in table.states.items()
    }
    rules = [
        [str(r.origin.name), len(r.expansion), str(r.alias or ("" if r.options.expand1 else r.origin.name))]
        for r in numbers
    ]
    return {
        "grammar": _digest(grammar), "rules": rules, "states": [states[i] for i in range(len(states))],
        "start": table.start_states, "end": table.end_states,
    }  # fmt: skip


def _digest(grammar: str) -> str:
    return hashlib.sha256(grammar.encode()).hexdigest()


def _load_tables() -> dict[str, Any]:
    grammar = _HERE.with_name("grammar.lark").read_text(encoding="utf-8")
    if _TABLES.exists():
        found: dict[str, Any] = json.loads(_TABLES.read_bytes())
        if found["grammar"] == _digest(grammar):
            return found
    return build_tables(grammar)


class _Rule:
    """What Lark's loop needs of a rule. It hashes as an object, which is faster than Lark's own do."""

    def __init__(self, name: str, size: int) -> None:
        self.expansion = range(size)
        self.origin = self
        self.name = name


class _Parser:
    """Lark's LALR machine over tables and callbacks."""

    def __init__(self) -> None:
        data = _load_tables()
        self.inner = Callbacks()
        rules = [_Rule(name, size) for name, size, _ in data["rules"]]
        self.callbacks = {
            rule: getattr(self.inner, callback) if callback else _only
            for rule, (*_, callback) in zip(rules, data["rules"])
        }
        states = {
            number: {t: (Shift, to) if to >= 0 else (Reduce, rules[-1 - to]) for t, to in actions.items()}
            for number, actions in enumerate(data["states"])
        }
        self.table = ParseTable(states, data["start"], data["end"])

    def state(self, start: str, tokens: Iterator[Tok]) -> Any:
        return ParserState(ParseConf(self.table, self.callbacks, start), tokens)  # type: ignore[arg-type]

    def parse(self, start: str, tokens: Iterable[Tok], end: int) -> Any:
        """The value of the tokens. Raises UnexpectedToken, with the state in it."""
        state = self.state(start, iter(()))
        feed = state.feed_token
        for token in tokens:
            feed(token)
        return feed(Tok("$END", "", end), True)


def _only(children: Children) -> Any:
    return children[0]


_local = threading.local()


def _parser() -> _Parser:
    made = getattr(_local, "parser", None)
    if made is None:
        made = _local.parser = _Parser()
    return made  # type: ignore[no-any-return]


def is_operation(name: str) -> bool:
    return name in OPERATIONS or name in SHORT_NAMES


def parse_inner(start: str, text: str, scope: Scope) -> Any:
    """The value of `text` by rule `start`. Raises InnerError, placed in `text`."""
    return parse_tokens(start, inner_tokens(text), text, scope)


def parse_tokens(start: str, tokens: Iterable[Tok], text: str, scope: Scope) -> Any:
    parser = _parser()
    before = getattr(parser.inner, "scope", None)
    parser.inner.scope = scope
    try:
        return parser.parse(start, tokens, len(text))
    except UnexpectedToken as error:
        token: Any = error.token
        raise InnerError(expectation(error) + without_point(text, token.start), _place(error, text)) from None
    except RecursionError:
        raise InnerError("nested too deeply", 0) from None
    finally:
        parser.inner.scope = before  # type: ignore[assignment]


# ---------------------------------------------------------------- files


def parse_file_text(text: str, source: Source, report: Callable[[IRError], None]) -> list[Any]:
    """The nodes of a file whose comments are blanked. After an error, which goes to `report`, the reading
    goes on at the next operation; in place of what was left out stands an ERROR token."""
    tokens = outer_tokens(text, source, is_operation)
    state = _parser().state("file", tokens)
    end = Tok("$END", "", len(text))
    for token in tokens:
        try:
            state.feed_token(token)
        except (UnexpectedToken, InnerError) as error:
            _report(error, token, text, source, report)
            _skip(state, token, tokens, lambda e, t: _report(e, t, text, source, report))
    try:
        return state.feed_token(end, True)  # type: ignore[no-any-return]
    except (UnexpectedToken, InnerError) as error:
        report(_placed(error, text, source))
    return _outermost(state)


def _outermost(state: Any) -> list[Any]:
    """The nodes outside all regions that are still open."""
    while len(state.value_stack) > 1:
        state.state_stack.pop()
        state.value_stack.pop()
    found = state.value_stack[0] if state.value_stack else None
    return found if isinstance(found, list) else []


def _report(error: Any, token: Tok, text: str, source: Source, report: Callable[[IRError], None]) -> None:
    report(token.error if isinstance(token, BadTok) else _placed(error, text, source))


def _placed(error: Any, text: str, source: Source) -> IRError:
    if isinstance(error, InnerError):
        return source.error(error.offset, error.message)
    return source.error(_place(error, text), expectation(error))


_RESUME = frozenset(["RESULTS", "GENERIC", "OPNAME"])


def _skip(state: Any, token: Tok | None, tokens: Iterator[Tok], report: Callable[[Any, Tok], None]) -> None:
    """Drop the operation being read, and the tokens up to the next one."""
    depth = 0
    _drop(state)
    while token is not None:
        if depth == 0 and (token.type in _RESUME or token.type == "RBRACE"):
            try:
                state.feed_token(token)
                return
            except UnexpectedToken:
                pass
        depth += (token.type == "LBRACE") - (token.type == "RBRACE" and depth > 0)
        token = next(tokens, None)
        if isinstance(token, BadTok):
            report(None, token)


def _drop(state: Any) -> None:
    """Back to the list of operations that the one being read would join; names it would define are kept."""
    states, values, table = state.state_stack, state.value_stack, state.parse_conf.states
    while len(states) > 1 and table[states[-1]].get("ALIAS", (None,))[0] is not Shift:
        states.pop()
        dropped = values.pop()
        if isinstance(dropped, Tok) and dropped.type == "RESULTS":
            lost = Tok("ERROR", dropped.text, dropped.start)
            values_of_body = next((v for v in reversed(values) if isinstance(v, list)), None)
            if values_of_body is not None:
                values_of_body.append(lost)
    if len(states) == 1:  # before anything was read
        values.clear()


# ---------------------------------------------------------------- messages


def _place(error: UnexpectedToken, text: str) -> int:
    """As in MLIR, what is missing is missing right behind the token before."""
    token: Any = error.token
    return len(text[: token.start].rstrip()) or token.start


_WORDS = {
    "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'", "RBRACE": "'}'",
    "COMMA": "','",
    "COLON": "':'", "EQUAL": "'='", "ARROW": "'->'", "SIGNATURE": "':' and a function type",
    "RANGLE": "'>'", "FUNCTYPE": "a function type",
    "$END": "the end", "DICT": "'{'", "PROPS": "'<{'", "GENERIC": "an operation",
}  # fmt: skip
_GROUPS = [
    ({"GENERIC", "OPNAME"}, {"RESULTS", "GENERIC", "OPNAME", "ALIAS", "RESOURCE"}, "an operation"),
    ({"SIMPLE", "INT"}, {
        "SIMPLE", "INT", "FLOAT", "STRING", "TRUE", "FALSE", "UNIT", "SYMBOL", "LOC", "OPAQUE",
        "DIALECT_ATTR",
        "ARRAY", "DENSE", "TENSOR", "SYMBOLIC", "VECTOR", "MEMREF", "COMPLEX", "TUPLE", "DIALECT_TYPE",
        "LSQB",
        "LBRACE", "LPAR"}, "attribute value"),
    ({"SIMPLE", "TENSOR"}, {
        "SIMPLE", "TENSOR", "SYMBOLIC", "VECTOR", "MEMREF", "COMPLEX", "TUPLE", "DIALECT_TYPE", "LPAR"},
     "non-function type"),
    ({"KEY", "WORD"}, {"KEY", "STRING", "WORD", "SIMPLE", "TRUE", "FALSE", "UNIT"}, "attribute name"),
    ({"INT", "FLOAT"}, {"INT", "FLOAT", "TRUE", "FALSE", "STRING"}, "a number"),
]  # fmt: skip


def _accepted(state: Any) -> set[str]:
    """The tokens that can follow: of those in the table, the ones that the whole stack takes."""
    table, stack = state.parse_conf.states, state.state_stack
    return {t for t in table[stack[-1]] if t.isupper() or t == "$END" if _takes(stack, t, table)}


def _takes(stack: list[int], token: str, table: Any) -> bool:
    """Would the machine shift `token`? The reductions before it are played on a copy of the stack's top."""
    depth = len(stack)
    top: list[int] = []  # the stack is stack[:depth] + top
    while True:
        action, to = table[top[-1] if top else stack[depth - 1]].get(token, (None, None))
        if action is not Reduce:
            return action is Shift
        size = len(to.expansion)
        below = max(0, size - len(top))
        del top[max(0, len(top) - size) :]
        depth -= below
        goto = table[top[-1] if top else stack[depth - 1]].get(to.name)
        if goto is None:
            return token == "$END"
        top.append(goto[1])
        if not table[goto[1]]:  # the start symbol is complete
            return token == "$END"


def expectation(error: UnexpectedToken) -> str:
    """`expected X or Y, but found Z`."""
    found: Any = error.token
    expected = _accepted(error.state)
    if found.type == "COLON" and "SIGNATURE" in expected:
        return "expected a function type after ':', as in (f32) -> f32"
    if {"COMMA", "RBRACE"} <= expected:
        return "expected '}' in attribute dictionary"
    words = []
    for needs, covers, word in _GROUPS:
        if needs <= expected:
            words.append(word)
            expected -= covers
    expected -= {"EMPTY", "KEY"}
    words += sorted(_WORDS.get(name, name.lower()) for name in expected)
    what = "the end of the text" if found.type == "$END" else f"'{found.text[:40]}'"
    return f"expected {' or '.join(words[:8])}, but found {what}"


if __name__ == "__main__":
    made = build_tables(_HERE.with_name("grammar.lark").read_text(encoding="utf-8"))
    _TABLES.write_text(json.dumps(made, separators=(",", ":"), sort_keys=True) + "\n", encoding="utf-8")
