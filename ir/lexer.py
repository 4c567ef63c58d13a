"""The two lexers over grammar.lark.

`outer_tokens` cuts a file into coarse tokens: MLIR has no mark that ends an operation, so result lists and
operation names are recognised here, and whatever holds types or attributes is one token, found by its
brackets. `inner_tokens` cuts the text of such a token. Comments are blanked first, so offsets are those of
the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from .attributes import FileLoc
from .diagnostics import IRError, Source

Match = re.Match[str]
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_NAME = r"(?:\d+|[A-Za-z_$.\-][\w$.\-]*)"
_ID = r"[A-Za-z_][\w$]*(?:\.[\w$]+)*"
_VALUE = rf"%{_NAME}(?:\#\d+)?"
_RESULT = rf"%{_NAME}(?:\s*:\s*\d+)?"
_SYMBOL = rf"@(?:[A-Za-z_][\w$.]*|{_STRING})"
_SIMPLE = r"(?:[su]?i\d+|index|none|bf16|tf32|f\d+(?:E\w+)?)(?![\w$.])"
_OPAQUE = r"(?:affine_map|affine_set|sparse|strided|dense_resource|opaque|distinct\[\d+\])\s*(?=<)"
_NUMBER = r"-?(?:0x[0-9a-fA-F]+|\d+\.\d*(?:[eE][-+]?\d+)?|\d+)"
_FLAT = (
    rf'[^{{}}"\n]*(?:{_STRING}[^{{}}"\n]*)*'  # the inside of a dictionary that fits in a line and holds none
)

# The forms that begin an operation or a block are looked for only where one may begin. A name with a leading
# underscore is a form whose end is found by `_Outer`.
_STARTS = rf"""
    (?P<RESULTS>{_RESULT}(?:\s*,\s*{_RESULT})*\s*=(?=\s*["A-Za-z_]))
  | (?P<GENERIC>"[^"\\\n]*"\s*\(\s*(?:{_VALUE}(?:\s*,\s*{_VALUE})*\s*)?\))
  | (?P<LABEL>\^{_NAME}\s*(?:\(\s*\)\s*)?:)
  | (?P<_LABEL>\^{_NAME}\s*(?=\(\s*%))
  | (?P<_ALIAS>[#!][A-Za-z_][\w$]*\s*=(?!=))
  | (?P<_OPNAME>{_ID})
"""
_ITEMS = rf"""
    (?P<SIGNATURE>:\s*\([^()%"]*\)\s*->\s*(?:\([^()%"]*\)|[!\w$.]+(?![\w$.]|\s*<)))
  | (?P<_COLON>:)
  | (?P<_FUNCTYPE>\([^()%"]*\)\s*->\s*(?:\([^()%"]*\)|[!\w$.]+(?![\w$.]|\s*<)))
  | (?P<PROPS><\{{{_FLAT}\}}>)
  | (?P<VALUE>{_VALUE})
  | (?P<_LPAR>\() | (?P<RPAR>\)) | (?P<COMMA>,) | (?P<ARROW>->) | (?P<RBRACE>\}})
  | (?P<_LBRACE>\{{)
  | (?P<_PROPS><\{{)
  | (?P<TYPE>{_SIMPLE})
  | (?P<_TYPE>(?:tensor|vector|memref|complex|tuple)\s*(?=<)|![A-Za-z_][\w$.]*)
  | (?P<_ATTR>(?:dense|array)\s*(?=<)|{_OPAQUE}|\#[A-Za-z_][\w$.]*)
  | (?P<_LOC>loc\s*(?=\())
  | (?P<WHERE>where\b(?:(?!\battributes\b|\bloc\()[^{{\n,]|,\s*)+)
  | (?P<ID>{_ID})
  | (?P<NUMBER>{_NUMBER})
  | (?P<SYMBOL>{_SYMBOL}(?:\s*::\s*{_SYMBOL})*)
  | (?P<BLOCKREF>\^{_NAME})
  | (?P<STRING>{_STRING})
  | (?P<LSQB>\[) | (?P<RSQB>\]) | (?P<EQUAL>=(?!=))
  | (?P<PUNCT>[<>=!]=|\|\||&&|[^\s"\x00])
  | (?P<_BAD>[\s\S])
"""
_OUTER_START = re.compile(rf"\s*(?:{_STARTS})", re.X)
_OUTER_ITEM = re.compile(rf"\s*(?:{_ITEMS})", re.X)
_DICT_START = re.compile(rf"\{{\s*(?:({_ID})|{_STRING})\s*([=,}}])")
_EMPTY = re.compile(r"\{\s*\}")
_TYPE_WORD = re.compile(r"[!\w$.]+\s*")
_PAREN = re.compile(r"\s*\(")
_ARROW = re.compile(r"\s*->\s*")
_NEW_LINE = re.compile(r"[ \t\r]*\n")
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*")
# After these an operation cannot begin.
_NO_START = frozenset(["COMMA", "COLON", "EQUAL", "ARROW", "LPAR", "LSQB", "PUNCT", "GENERIC", "PROPS"])
# Right after these an undotted name is an operation's; after others only at the start of a line.
_BEFORE_OP = frozenset(["", "LBRACE", "RBRACE", "LABEL", "LOC"])
_BEFORE_TYPE = frozenset(["COLON", "ARROW", "COMMA", "LPAR", "EQUAL"])
SHORT_NAMES = {
    "module": "builtin.module", "return": "func.return", "call": "func.call",
    "call_indirect": "func.call_indirect",
}  # fmt: skip


class Tok:
    """A token: its kind, text and offset. The rest is what Lark wants to see on one."""

    __slots__ = ("start", "text", "type")
    line = column = end_line = end_column = 0

    def __init__(self, type: str, text: str, start: int) -> None:
        self.type = type
        self.text = text
        self.start = start

    @property
    def start_pos(self) -> int:
        return self.start

    @property
    def end_pos(self) -> int:
        return self.start + len(self.text)

    def __repr__(self) -> str:
        return f"{self.type}({self.text!r})"


class BadTok(Tok):
    """Where the text cannot be cut into tokens; what follows starts on the next line."""

    __slots__ = ("error",)

    def __init__(self, start: int, error: IRError) -> None:
        super().__init__("BAD", "", start)
        self.error = error


def decode_source(data: bytes, file: str) -> str:
    """The text of a file. Bytes that are not UTF-8 are kept as surrogates (PEP 383); IRError for UTF-16 and for what
    is no text."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise IRError("the file is UTF-16, but IR is read as UTF-8; save it as UTF-8", FileLoc(file, 1, 1))
    if (at := data.find(b"\0")) >= 0:
        place = FileLoc(file, data.count(b"\n", 0, at) + 1, at - data.rfind(b"\n", 0, at))
        raise IRError("a byte 0: the file is no text in UTF-8 (a binary file, or UTF-16?)", place)
    return data.decode("utf-8", "surrogateescape")


def blank_comments(text: str) -> str:
    """`text` with its comments, and a byte order mark before it, replaced by blanks."""
    if text.startswith("\ufeff"):
        text = " " + text[1:]
    if "//" not in text:
        return text
    return _COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else " " * len(m[0]), text)


# ---------------------------------------------------------------- brackets

_BRACES = re.compile(rf"{_STRING}|[{{}}]")
_PARENS = re.compile(rf"{_STRING}|[()]")
_ANGLES = re.compile(rf"{_STRING}|->|=>|[<>=!]=|[<>]")
_ALL = re.compile(rf"{_STRING}|->|=>|[<>=!]=|[<>(){{}}\[\]]|\n")


def closing(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed: the offset behind it, or -1."""
    depth = 0
    for match in pattern.finditer(text, start):
        found = match[0]
        if len(found) > 1:
            continue
        depth += 1 if found in "{(<" else -1
        if not depth:
            return match.end()
    return -1


_BRACKETS = re.compile(rf"{_STRING}|->|[(){{}}\[\]]")
_PARTNERS = {")": "(", "]": "[", "}": "{"}


def _balanced(text: str) -> bool:
    """Do round, square and curly brackets match?"""
    open: list[str] = []
    for found in _BRACKETS.findall(text):
        if found in _PARTNERS:
            if not open or open.pop() != _PARTNERS[found]:
                return False
        elif len(found) == 1:
            open.append(found)
    return not open


def _line_end(text: str, start: int) -> int:
    """The end of the line on which all brackets opened since `start` are closed."""
    depth = 0
    blank = True
    for match in _ALL.finditer(text, start):
        found = match[0]
        if found == "\n":
            blank = blank and not text[start : match.start()].strip()
            if depth <= 0 and not blank:
                return match.start()
        elif len(found) == 1:
            depth += 1 if found in "<({[" else -1
    return len(text)


# ---------------------------------------------------------------- outer


class _Outer:
    """Finds the ends of the tokens that one regular expression cannot."""

    def __init__(self, text: str, source: Source, is_operation: Callable[[str], bool]) -> None:
        self.text = text
        self.source = source
        self.is_operation = is_operation
        self._parens: dict[int, int] | None = None

    def parens(self, start: int) -> int:
        """Where the `(` at `start` is closed. All are matched at once: nested ones are asked for one by
        one."""
        if self._parens is None:
            self._parens, open = {}, []
            for match in _PARENS.finditer(self.text):
                if match[0] == "(":
                    open.append(match.start())
                elif match[0] == ")" and open:
                    self._parens[open.pop()] = match.end()
        if start not in self._parens:
            raise self.source.error(start, "'(' is never closed")
        return self._parens[start]

    def closed(self, pattern: re.Pattern[str], start: int) -> int:
        end = closing(pattern, self.text, start)
        if end < 0:
            raise self.source.error(start, f"'{self.text[start]}' is never closed")
        return end

    def with_angles(self, end: int) -> int:
        """Where a name that ends at `end` ends with the `<...>` that may follow."""
        return self.closed(_ANGLES, end) if self.text[end : end + 1] == "<" else end

    def _opname(self, start: int, end: int, before: str, gap: int) -> tuple[str, int]:
        """A name where an operation may begin; keywords and types look alike, so those are tried again."""
        name = self.text[start:end]
        line_start = before in _BEFORE_OP or "\n" in self.text[gap:start]
        if "." in name or before == "RESULTS" or (line_start and name in SHORT_NAMES):
            return "OPNAME", end
        return self.again(start, before, gap)

    def again(self, start: int, before: str, gap: int) -> tuple[str, int]:
        match = _OUTER_ITEM.match(self.text, start)
        assert match is not None and match.lastgroup is not None
        kind, end = match.lastgroup, match.end()
        return SPECIAL[kind](self, start, end, before, gap) if kind in SPECIAL else (kind, end)

    def _functype(self, start: int, end: int, before: str, gap: int) -> tuple[str, int]:
        return ("FUNCTYPE", end) if before in _BEFORE_TYPE else ("LPAR", start + 1)

    def _colon(self, start: int, end: int, before: str, gap: int) -> tuple[str, int]:
        paren = _PAREN.match(self.text, end)
        if paren is None:
            return "COLON", end
        kind, stop = self._lpar(paren.end() - 1, paren.end(), "COLON", gap)
        return ("SIGNATURE", stop) if kind == "FUNCTYPE" else ("COLON", end)

    def _lpar(self, start: int, end: int, before: str, gap: int) -> tuple[str, int]:
        if before in _BEFORE_TYPE:
            inputs = self.parens(start)
            if arrow := _ARROW.match(self.text, inputs):
                return self.function_type(arrow.end())
        return "LPAR", end

    def function_type(self, at: int) -> tuple[str, int]:
        """A function type, whose results start at `at`."""
        if self.text[at : at + 1] == "(":
            return "FUNCTYPE", self.parens(at)
        word = _TYPE_WORD.match(self.text, at)
        if word is None:
            raise self.source.error(at, "expected a type")
        end = self.with_angles(word.end())
        return "FUNCTYPE", end if end > word.end() else at + len(word[0].rstrip())

    def _lbrace(self, start: int, end: int, before: str, gap: int) -> tuple[str, int]:
        text = self.text
        if text.startswith("{-#", start):
            stop = text.find("#-}", start)
            return "RESOURCE", len(text) if stop < 0 else stop + 3
        if empty := _EMPTY.match(text, start):
            return "EMPTY", empty.end()
        head = _DICT_START.match(text, start)
        if head and not (head[2] != "=" and head[1] and self.is_operation(head[1])):
            return "DICT", self.closed(_BRACES, start)
        return "LBRACE", end

    def _props(self, start: int, end: int, before: str, gap: int) -> tuple[str, int]:
        stop = self.closed(_BRACES, start + 1)
        if self.text[stop : stop + 1] != ">":
            raise self.source.error(stop, "expected '>' to close properties")
        return "PROPS", stop + 1

    def _label(self, start: int, end: int, before: str, gap: int) -> tuple[str, int]:
        stop = self.parens(end)
        colon = re.compile(r"\s*:").match(self.text, stop)
        return ("LABEL", colon.end()) if colon else ("BLOCKREF", len(self.text[:end].rstrip()))

    def _alias(self, start: int, end: int, before: str, gap: int) -> tuple[str, int]:
        return "ALIAS", _line_end(self.text, end)

    def _type(self, start: int, end: int, before: str, gap: int) -> tuple[str, int]:
        return "TYPE", self.with_angles(end)

    def _attr(self, start: int, end: int, before: str, gap: int) -> tuple[str, int]:
        return "ATTR", self.with_angles(end)

    def _loc(self, start: int, end: int, before: str, gap: int) -> tuple[str, int]:
        return "LOC", self.parens(end)

    def _bad(self, start: int, end: int, before: str, gap: int) -> tuple[str, int]:
        char = self.text[start]
        raise self.source.error(
            start, "string is never closed" if char == '"' else f"unexpected character {char!r}"
        )


SPECIAL: dict[str, Any] = {f"_{name[1:].upper()}": getattr(_Outer, name) for name in vars(_Outer) if name in (
    "_opname", "_colon", "_functype", "_lpar", "_lbrace", "_props", "_label",
    "_alias", "_type", "_attr", "_loc", "_bad")
}  # fmt: skip


def outer_tokens(text: str, source: Source, is_operation: Callable[[str], bool]) -> Iterator[Tok]:
    """The coarse tokens of a file whose comments are blanked; BadTok where brackets or quotes do not
    match."""
    ends = _Outer(text, source, is_operation)
    start_match, item_match = _OUTER_START.match, _OUTER_ITEM.match
    at, last, kind = 0, len(text.rstrip()), ""
    while at < last:
        items = kind in _NO_START or (kind == "OPNAME" and not _NEW_LINE.match(text, at))
        match: Any = None if items else start_match(text, at)
        if match is None:
            match = item_match(text, at)
        before, kind = kind, match.lastgroup
        start, end = match.span(kind)
        if kind in SPECIAL:
            try:
                kind, end = SPECIAL[kind](ends, start, end, before, at)
            except IRError as error:
                yield BadTok(start, error)
                line_end = text.find("\n", start)
                kind, at = "", line_end if line_end >= 0 else last
                continue
        yield Tok(kind, text[start:end], start)
        at = end


# ---------------------------------------------------------------- inner

_DIM = r"(?:\d+|\?|\*)\s*x\s*"
_INNER = re.compile(rf"""\s*(?:
    (?P<KEY>[A-Za-z_][\w$.]*(?=\s*=(?!=)))
  | (?P<TENSOR>tensor\s*<\s*(?:{_DIM})*(?!\[))
  | (?P<SYMBOLIC>tensor\s*<\s*\[[^\]]*\]\s*,)
  | (?P<VECTOR>vector\s*<\s*(?:(?:\d+|\[\s*\d+\s*\])\s*x\s*)*)
  | (?P<MEMREF>memref\s*<\s*(?:{_DIM})*)
  | (?P<COMPLEX>complex\s*<)
  | (?P<TUPLE>tuple\s*<)
  | (?P<SIMPLE>{_SIMPLE})
  | (?P<DENSE>dense\s*<)
  | (?P<ARRAY>array\s*<)
  | (?P<FUSED>fused\s*<)
  | (?P<OPAQUE>{_OPAQUE})
  | (?P<LOC>loc\s*(?=\())
  | (?P<DIALECT_TYPE>![A-Za-z_][\w$.]*)
  | (?P<DIALECT_ATTR>\#[A-Za-z_][\w$.]*)
  | (?P<TRUE>true\b) | (?P<FALSE>false\b) | (?P<UNIT>unit\b)
  | (?P<WORD>[A-Za-z_][\w$.]*)
  | (?P<FLOAT>-?\d+\.\d*(?:[eE][-+]?\d+)?)
  | (?P<INT>-?(?:0x[0-9a-fA-F]+|\d+))
  | (?P<STRING>{_STRING})
  | (?P<SYMBOL>{_SYMBOL}(?:\s*::\s*{_SYMBOL})*)
  | (?P<VALUE>{_VALUE})
  | (?P<BLOCKREF>\^{_NAME})
  | (?P<ARROW>->)
  | (?P<LPAR>\() | (?P<RPAR>\)) | (?P<LSQB>\[) | (?P<RSQB>\]) | (?P<LBRACE>\{{) | (?P<RBRACE>\}})
  | (?P<RANGLE>>) | (?P<COMMA>,) | (?P<COLON>:) | (?P<EQUAL>=)
  | (?P<BAD>\S)
)""", re.X)  # fmt: skip
_HAS_ANGLES = frozenset(["OPAQUE", "DIALECT_TYPE", "DIALECT_ATTR"])


_NUMBERS = re.compile(r"\s*\[[\[\]\s\d,.eE+\-]{200,}(?=>)")


def inner_tokens(text: str, numbers: bool = True) -> Iterator[Tok]:
    """The tokens inside a type, an attribute or a location. What is kept as text is one token, and so are,
    with `numbers`, long lists of numbers in `dense<...>`."""
    at, last = 0, len(text.rstrip())
    while at < last:
        match: Any = _INNER.match(text, at)
        kind = match.lastgroup
        start, end = match.span(kind)
        if kind in _HAS_ANGLES and text[end : end + 1] == "<":
            end = closing(_ANGLES, text, end)
        elif kind == "LOC":
            end = closing(_PARENS, text, end)
        if end < 0 or (kind in _HAS_ANGLES and not _balanced(text[start:end])):
            kind, end = "BAD", last
        yield Tok(kind, text[start:end], start)
        at = end
        if kind == "DENSE" and numbers and (many := _NUMBERS.match(text, at)):
            yield Tok("NUMBERS", many[0], at)
            at = many.end()
