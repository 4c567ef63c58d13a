"""`ItemParser`: reads the tokens of one operation in custom form. Its calls are listed in assembly.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from .attribute_parser import parse_shape
from .attributes import (
    Attribute,
    DictAttr,
    FunctionType,
    Location,
    StringAttr,
    SymbolRefAttr,
    Type,
)  # fmt: skip
from .core import Block, Operation, Region, Value
from .definition import set_results, without_defaults
from .diagnostics import IRError
from .dims import Dim, DimError, parse_facts
from .lexer import Tok, inner_tokens
from .literals import InnerError, number_attribute, parse_int, symbol_reference, unquote, without_point
from .syntax import RegionNode
from .verifier import check_fields

if TYPE_CHECKING:
    from .parser import _Builder

Token = Any  # Tok or RegionNode
_OPEN = {"(": ")", "[": "]", "<": ">"}
_TYPES = ("TYPE", "FUNCTYPE")


@attrs.frozen
class Name:
    """`%a` where it is written."""

    text: str
    offset: int


@attrs.frozen
class Argument:
    """`%x: f32 {a = 1} loc(...)`; without a name in a declaration."""

    name: Name | None
    type: Type
    attributes: Mapping[str, Attribute]
    location: Location


@attrs.define
class Region_:
    """A region whose body is still to be read."""

    region: Region
    node: RegionNode
    arguments: list[tuple[str, int, Type, Location | None]] = attrs.field(factory=list)
    entry: bool = False
    terminator: Callable[[], Operation] | None = None


class ItemParser:
    def __init__(
        self, builder: _Builder, cls: type[Operation], head: Tok, items: list[Token], location: Any,
        results: Tok | None,
    ) -> None:  # fmt: skip
        self.builder = builder
        self.cls = cls
        self.head = head
        self.items = [part for token in items for part in _parts(token)]
        self.index = 0
        self._location = location
        self._results = results
        self.regions: list[Region_] = []

    def operation(self) -> Operation:
        """The operation, by its class's `parse_items` or declared format."""
        from .assembly import format_of

        own = getattr(self.cls, "parse_items", None)
        try:
            op: Operation = own(self) if own is not None else format_of(self.cls).parse(self)
        except DimError as error:
            raise self.error(str(error)) from None
        except IRError as error:
            raise error.at(self.location) from None
        except RecursionError:
            raise self.error("nested too deeply") from None
        except (IndexError, KeyError, ValueError) as error:  # a `parse_items` that expected more
            if _in_infer_types(error):
                raise
            raise self.error(f"'{self.cls.name}' cannot be read from this: {error}") from None
        if self.index < len(self.items):
            token = self.items[self.index]
            point = without_point(self.builder.text, token.start)
            raise self.error(f"unexpected '{token.text}' in '{self.cls.name}'{point}")
        return op

    # -- where

    @property
    def location(self) -> Location:
        loc = self._location
        return loc[0].location(loc[1]) if isinstance(loc, tuple) else loc  # type: ignore[no-any-return]

    @property
    def result_count(self) -> int:
        """How many results the text names."""
        if self._results is None:
            return 0
        parts = self._results.text[:-1].split(",")
        return sum(int(p.partition(":")[2] or 1) for p in parts)

    def error(self, message: str) -> IRError:
        """An error at the next token."""
        token = self.token
        return self.builder.error(token.start if token else self._end(), message)

    def expected(self, what: str) -> IRError:
        """An error right behind the token before, as in MLIR."""
        token = self.token
        text = self.builder.text
        at = len(text[: token.start].rstrip()) if token else self._end()
        return self.builder.error(at, f"expected {what}")

    def _end(self) -> int:
        last = self.items[self.index - 1] if self.index else self.head
        return last.end_pos  # type: ignore[no-any-return]

    # -- tokens

    @property
    def token(self) -> Token | None:
        return self.items[self.index] if self.index < len(self.items) else None

    def kind(self) -> str:
        token = self.token
        return token.type if token else "END"

    def take(self) -> Token:
        self.index += 1
        return self.items[self.index - 1]

    def at(self, *texts: str) -> bool:
        token = self.token
        return token is not None and token.text in texts and token.type != "STRING"

    def optional(self, text: str) -> bool:
        if text in ("(", "<") and self.kind() in ("FUNCTYPE", "PROPS"):
            self._split()
        if not self.at(text):
            return False
        self.index += 1
        return True

    optional_keyword = optional

    def expect(self, text: str) -> None:
        if not self.optional(text):
            raise self.expected(f"'{text}'")

    def _split(self) -> None:
        """Read the next token, a function type, as single tokens."""
        from .lexer import outer_tokens

        token = self.take()
        parts = list(outer_tokens("(" + token.text[1:], self.builder.source, lambda name: False))
        for part in parts:
            part.start += token.start
        self.items[self.index - 1 : self.index] = parts
        self.index -= 1

    def keyword(self, *allowed: str) -> str:
        token = self.token
        if token is None or token.type not in ("ID", "TYPE") or (allowed and token.text not in allowed):
            raise self.expected(" or ".join(f"'{a}'" for a in allowed) or "a keyword")
        return self.take().text  # type: ignore[no-any-return]

    def string(self) -> str:
        return unquote(self._take("STRING", "a string").text)

    def _take(self, kind: str, what: str) -> Token:
        if self.kind() != kind:
            raise self.expected(what)
        return self.take()

    def integer(self) -> int:
        token = self.token
        if self.kind() != "NUMBER" or "." in token.text:  # type: ignore[union-attr]
            raise self.expected("an integer")
        return parse_int(self.take().text)

    def number(self) -> int | float:
        text = self._take("NUMBER", "a number").text
        return float(text) if "." in text else parse_int(text)

    def at_symbol(self) -> bool:
        return self.kind() == "SYMBOL"

    def symbol(self) -> SymbolRefAttr:
        return symbol_reference(self._take("SYMBOL", "a symbol, as in @name").text)

    def symbol_name(self) -> str:
        symbol = self.symbol()
        if len(symbol.path) > 1:
            raise self.error(f"expected a plain symbol, not '{symbol}'")
        return symbol.name

    def symbol_attribute(self) -> StringAttr:
        return StringAttr(self.symbol_name())

    def angle_names(self) -> list[str]:
        names: list[str] = []
        if self.optional("<"):
            names.append(self.keyword())
            while self.optional(","):
                names.append(self.keyword())
            self.expect(">")
        return names

    # -- values

    def at_value(self) -> bool:
        return self.kind() == "VALUE"

    def value(self) -> Name:
        token = self._take("VALUE", "SSA operand")
        return Name(token.text, token.start)

    def values(self) -> list[Name]:
        names = []
        if self.at_value():
            names.append(self.value())
            while self.at(",") and self.follows("VALUE"):
                self.index += 1
                names.append(self.value())
        return names

    def follows(self, kind: str) -> bool:
        """Is the token after the next of that kind?"""
        after = self.index + 1
        return after < len(self.items) and self.items[after].type == kind

    def resolve(self, name: Name, type: Type | None = None) -> Value:
        if type is None:
            return self.builder.known(name.text, name.offset)
        return self.builder.use(name.text, type, name.offset)

    def resolve_all(self, names: Sequence[Name], types: Sequence[Type] | None = None) -> list[Value]:
        if types is not None and len(types) != len(names):
            raise self.error(f"{len(names)} operands present, but expected {len(types)}")
        return [self.resolve(n, types[i] if types is not None else None) for i, n in enumerate(names)]

    # -- types and attributes

    def at_type(self) -> bool:
        return self.kind() in _TYPES or self.at("(")

    def _read(self, start: str, begin: int, end: int) -> Any:
        return self.builder.read(start, self.builder.text[begin:end], begin)

    def type(self) -> Type:
        token = self.token
        if token is not None and token.type in _TYPES:
            self.index += 1
            return self.builder.read("type", token.text, token.start)  # type: ignore[no-any-return]
        if self.at("("):
            return self.function_type()
        raise self.expected("a type")

    def types(self) -> list[Type]:
        found = []
        if self.at_type():
            found.append(self.type())
            while self.optional(","):
                found.append(self.type())
        return found

    def result_types(self) -> list[Type]:
        """`T`, or `(T, U)`; the latter is one token when it is a function type."""
        if self.kind() == "FUNCTYPE" or not self.optional("("):
            return [self.type()]
        found = self.types()
        self.expect(")")
        return found

    def function_type(self) -> FunctionType:
        if self.kind() == "FUNCTYPE":
            return self.type()  # type: ignore[return-value]
        self.expect("(")
        inputs = self.types()
        self.expect(")")
        self.expect("->")
        return FunctionType(tuple(inputs), tuple(self.result_types()))

    def attribute(self, type: Type | None = None, before_colon: bool = False) -> Attribute:
        """An attribute. A literal takes `type`, where one is given, and else may carry its own."""
        token = self.token
        if token is None:
            raise self.expected("attribute value")
        if type is not None and (token.type == "NUMBER" or token.text in ("true", "false")):
            return self._typed_literal(type)
        end = self._group_end()
        if type is None and token.type in ("NUMBER", "STRING", "ATTR", "ID"):
            if self.typed_literal(before_colon) and self.items[end + 1].type in _TYPES:
                end += 2
        begin, self.index = token.start, end
        found: Attribute = self._read("attribute", begin, self.items[end - 1].end_pos)
        return found

    def typed_literal(self, before_colon: bool) -> bool:
        """Has the literal here its own type, as in `3 : i32`? `before_colon`: the format has a colon too, so
        it takes two."""
        texts = [t.text for t in self.items[self.index + 1 :]]
        return len(texts) > 1 and texts[0] == ":" and (not before_colon or ":" in texts[2:])

    def _typed_literal(self, type: Type) -> Attribute:
        token = self.take()
        try:
            return number_attribute(next(_relexed(token)), type)
        except InnerError as error:
            raise self.builder.error(error.offset, error.message) from None

    def _group_end(self) -> int:
        """The index behind the next token, or behind the bracketed group that it opens."""
        close = _OPEN.get(self.items[self.index].text)
        if close is None:
            return self.index + 1
        open, depth = self.items[self.index].text, 0
        for at in range(self.index, len(self.items)):
            text = self.items[at].text
            depth += (text == open) - (text == close)
            if not depth:
                return at + 1
        raise self.expected(f"'{close}'")

    def attr_dict(self, keyword: str | None = None, before_region: bool = False) -> Mapping[str, Attribute]:
        """`{a = 1}`; `before_region`: a lone `{}` is the region that follows."""
        if keyword is not None and not self.optional(keyword):
            return {}
        token = self.token
        if token is None or token.type not in ("DICT", "EMPTY"):
            return {}
        if token.type == "EMPTY" and before_region and not self._region_follows():
            return {}
        self.index += 1
        found: DictAttr = self.builder.read("dictionary", token.text, token.start)
        return dict(found.entries)

    def _region_follows(self) -> bool:
        return any(self.follows(kind) for kind in ("REGION", "EMPTY"))

    def dims(self) -> tuple[Dim | None, ...]:
        if not self.at("["):
            raise self.expected("'[' and dims")
        first, end = self.index, self._group_end()
        open, close = self.items[first], self.items[end - 1]
        self.index = end
        try:
            return parse_shape(self.builder.text[open.end_pos : close.start], open)
        except InnerError as error:
            raise self.builder.error(error.offset, error.message) from None

    def where(self) -> tuple[Any, ...]:
        if self.kind() != "WHERE":
            return ()
        token = self.take()
        text = token.text.removeprefix("where").rstrip()
        try:
            return tuple(parse_facts(text))
        except DimError as error:
            at = token.start + len("where") + (error.column or 0)
            raise self.builder.error(at, error.message) from None

    def source_text(self) -> str:
        token = self.token
        if token is None:
            raise self.expected("more")
        self.index = self._group_end()
        return self.builder.text[token.start : self.items[self.index - 1].end_pos]

    # -- arguments, regions, successors

    def arguments(self) -> list[Argument]:
        self.expect("(")
        found: list[Argument] = []
        while not self.optional(")"):
            if found:
                self.expect(",")
            found.append(self.argument())
        return found

    def argument(self) -> Argument:
        """`%x: f32 {a = 1} loc(...)`, or without a name."""
        name, start = None, self.token.start if self.token else self._end()
        if self.at_value():
            name = self.value()
            self.expect(":")
        type = self.type()
        attributes = self.attr_dict()
        location = self.builder.location(self.take()) if self.kind() == "LOC" else self.builder.source.location(start)
        return Argument(name, type, attributes, location)

    def at_region(self) -> bool:
        return self.kind() in ("REGION", "EMPTY")

    def region(self, arguments: Sequence[Argument | tuple[Name, Type]] = ()) -> Region:
        if not self.at_region():
            raise self.expected("'{' and a region")
        node = self.take()
        if node.type == "EMPTY":
            node = RegionNode(node, [], [], node)
        made = Region_(Region(), node, [_entry_argument(a) for a in arguments])
        self.builder.deferred.append(made)
        self.regions.append(made)
        return made.region

    def default_block(self, region: Region) -> None:
        if work := self._deferred(region):
            work.entry = True

    def finish(self, region: Region, terminator: Callable[[], Operation]) -> None:
        if work := self._deferred(region):
            work.entry, work.terminator = True, terminator

    def _deferred(self, region: Region) -> Region_ | None:
        """The work of a region that was written; none for one that the class made itself."""
        return next((work for work in self.regions if work.region is region), None)

    def successor(self) -> Block:
        token = self._take("BLOCKREF", "block name")
        return self.builder.block(token.text, token.start)

    def successor_operands(self) -> list[Value]:
        if not self.optional("("):
            return []
        names = self.values()
        self.expect(":")
        values = self.resolve_all(names, self.types())
        self.expect(")")
        return values

    # -- the result

    def make(
        self, operands: Sequence[Value] = (), result_types: Sequence[Type] | None = None,
        properties: Mapping[str, Any] | None = None, attributes: Mapping[str, Any] | None = None,
        regions: Sequence[Region] = (), successors: Sequence[Block] = (),
    ) -> Operation:  # fmt: skip
        """The operation. Without `result_types` they are inferred, where the class has results."""
        from .attributes import to_attribute

        inherent = self.cls.definition.attributes
        own = {n: to_attribute(a) for n, a in (properties or {}).items() if a is not None}
        rest = {n: to_attribute(a) for n, a in (attributes or {}).items()}
        own.update((n, a) for n, a in rest.items() if n in inherent)
        rest = {n: a for n, a in rest.items() if n not in inherent}
        own = without_defaults(own, inherent)
        op = self.cls(operands, result_types or (), own, rest, regions, successors, self._location)
        if result_types is None and self.cls.definition.results:
            check_fields(op)
            set_results(op, op.infer_types())  # type: ignore[attr-defined]
        return op


def _in_infer_types(error: Exception) -> bool:
    """Whether it comes of a shape rule, which is no matter of the text."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_name != "infer_types":
        trace = trace.tb_next
    return trace is not None


def _parts(token: Token) -> list[Token]:
    """A colon and a function type that the lexer took together, apart."""
    if token.type != "SIGNATURE":
        return [token]
    skip = token.text.index("(")
    return [Tok("COLON", ":", token.start), Tok("FUNCTYPE", token.text[skip:], token.start + skip)]


def _relexed(token: Tok) -> Any:
    for part in inner_tokens(token.text):
        part.start += token.start
        yield part


def _entry_argument(argument: Argument | tuple[Name, Type]) -> tuple[str, int, Type, Location | None]:
    location: Location | None = None  # where its name is
    if isinstance(argument, Argument):
        name, type, location = argument.name, argument.type, argument.location
    else:
        name, type = argument
    return (name.text, name.offset, type, location) if name else ("", 0, type, location)
