"""The custom text of an operation, from its declared format or from two methods.

**A format.** `assembly = "$x (`,` $y^)? attr-dict `:` type($x) `->` type($y)"` compiles once a class to a reader
and a printer. Directives:

| directive | meaning |
|---|---|
| `` `literal` `` | a keyword or punctuation |
| `$operand` | `%a`; a comma list for a variadic one; may be absent for an optional one |
| `$attribute` | as its constraint says: `3` (Int, i64), `1.5` (Float, f64), `true` (Bool), `"s"` (String), `@f` (SymbolRef), `f32` (TypeAttribute), `[m, 4*n]` (Dims); any other attribute in full |
| `$region`, `$successor` | `{...}`, `^bb1` (a comma list for a variadic one) |
| `attr-dict` | all other attributes; those at their default are left out |
| `type($x)` | of an operand or result; a comma list for a variadic one |
| `type(operands)`, `type(results)` | of all; a comma list |
| `functional-type(operands, results)` | `(f32) -> f32` |
| `operands`, `results`, `regions`, `successors` | all of them (`results` only inside type) |
| `( ... $anchor^ ... )?` | present when the anchor (an operand, attribute, region or literal) is |

Without `assembly`: ``operands successors attr-dict `:` functional-type(operands, results) regions``, and nothing
for the type where there are no operands and no results. Operand types that the text does not give are those of
the operands as already defined; result types that it does not give come from `infer_types`.

**Two methods**, where a format will not do:

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        x = p.value()
        p.expect(":")
        return p.make([p.resolve(x, p.type())])

    def print_items(self, p: Printer) -> None:      # after the operation's name
        p.write(" ", p.name(self.x), " : ", self.x.type)

`ItemParser` (item_parser.py) reads the tokens of one operation:

| call | what it reads |
|---|---|
| `p.at(*texts) -> bool` | is the next token one of these? Nothing is read |
| `p.optional(text) -> bool`, `p.expect(text)` | a keyword or punctuation; `p.optional_keyword` is the same |
| `p.keyword(*allowed) -> str` | any bare word, or one of `allowed` |
| `p.string() -> str`, `p.integer() -> int`, `p.number() -> int or float` | literals |
| `p.symbol() -> SymbolRefAttr`, `p.symbol_name() -> str`, `p.at_symbol() -> bool` | `@a::@b`, `@a` |
| `p.angle_names() -> list[str]` | `<m, n>`; empty where there is none |
| `p.at_value() -> bool`, `p.value() -> Name`, `p.values() -> list[Name]` | `%a`; a comma list, maybe empty |
| `p.resolve(name, type=None) -> Value`, `p.resolve_all(names, types=None)` | the value; without a type it must be defined already |
| `p.at_type() -> bool`, `p.type() -> Type`, `p.types() -> list[Type]` | a type; a comma list; `p.result_types()` is `T` or `(T, U)` |
| `p.function_type() -> FunctionType` | `(f32) -> f32` |
| `p.attribute(type=None) -> Attribute` | an attribute in full, `3 : i32` say; with `type` a literal without its type |
| `p.attr_dict() -> dict`, `p.attr_dict("attributes")` | `{a = 1}`, or nothing; after a keyword |
| `p.dims() -> tuple[Dim or None, ...]` | `[m, 4*n, ?]` |
| `p.where() -> tuple[Relation, ...]` | `where n % 8 == 0, n <= 9`; empty where there is none |
| `p.arguments() -> list[Argument]` | `(%x: f32 {a = 1} loc("f":1:1), ...)`; `name` is None in `(f32, f32)`; `type`, `attributes`, `location` |
| `p.region(arguments=()) -> Region`, `p.at_region() -> bool` | `{...}`; `arguments` (Argument, or a pair of Name and Type) become those of the entry block. **The body is read after `parse_items` has returned** |
| `p.successor() -> Block` | `^bb1` |
| `p.successor_operands() -> list[Value]` | `(%a, %b : i32, f32)` after a successor; may be absent |
| `p.source_text() -> str` | the source text of the next token or bracketed group |
| `p.location -> Location`, `p.result_count -> int` | of the operation |
| `p.default_block(region)` | give a region an entry block without arguments if its body turns out empty |
| `p.error(message) -> IRError` | to raise, placed at the next token |
| `p.make(operands=(), result_types=None, properties=None, attributes=None, regions=(), successors=())` | the operation. Operands are Values; `attributes` that the definition names go to the properties; without `result_types`, `infer_types` |
| `p.finish(region, terminator)` | call `terminator() -> Operation` to end the region's last block if it does not end in one |

`Printer` (printer.py) writes; strings are written as they are, attributes and types as their text:

| call | what it writes |
|---|---|
| `p.write(*parts)` | strings, attributes, types |
| `p.name(value) -> str`, `p.names(values) -> str` | `%x`; `%x, %y` |
| `p.types(types)` | `f32, i32` |
| `p.result_types(types)` | `f32`, or `(f32, i32)` |
| `p.function_type(inputs, results)` | `(f32) -> f32` |
| `p.attr_dict(op, elide=(), keyword=None)` | ` {a = 1}` with a blank before it, or nothing; leaves out defaults and `elide` |
| `p.region(region, entry_arguments=True, terminator=True)` | ` {...}` without the blank before it; may leave out the label of the entry block and its terminator |
| `p.argument(block_argument, attributes={})` | `%x: f32 {a = 1}` |
| `p.successor(block, operands=())` | `^bb1(%a, %b : i32, f32)` |
| `p.dims(dims)` | `[m, 4*n]` |

A class may also have `default_dialect = "func"` (inside its regions `func.return` is written `return`) and
`asm_result_name(self) -> str | None` (the name to print for a result without one of its own, such as `c0_i32`).
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .attributes import DenseArrayAttr, Type, i32
from .core import Operation, Value
from .definition import SEGMENTS
from .directives import (
    AllOperands,
    AllRegions,
    AllTypes,
    AttrDict,
    AttributeValue,
    Element,
    FunctionalType,
    Literal,
    OperandName,
    OptionalGroup,
    RegionBody,
    State,
    SuccessorName,
    TypeOf,
    write_all,
)  # fmt: skip

if TYPE_CHECKING:
    from .item_parser import ItemParser
    from .printer import Printer

_TOKENS = re.compile(r"\s*(`[^`]*`|\$\w+\^?|[\w-]+|\)\?|[(),^])")
_FORMATS: dict[type[Operation], Format] = {}
DEFAULT = "operands successors attr-dict `:` functional-type(operands, results) regions"


def _flat(elements: list[Element]) -> Iterator[Element]:
    for element in elements:
        if isinstance(element, OptionalGroup):
            yield from _flat(element.elements)
        else:
            yield element


class Format:
    """The declared format of one class."""

    def __init__(self, cls: type[Operation]) -> None:
        self.cls = cls
        self.definition = cls.definition
        self.declared = self.definition.assembly is not None
        text = self.definition.assembly or DEFAULT
        self.shown = tuple(n for n in re.findall(r"\$(\w+)", text) if n in self.definition.attributes)
        if "$" in text:
            self.shown += SEGMENTS
        self.tokens = _TOKENS.findall(text)
        if "".join(self.tokens) != re.sub(r"\s+(?=(?:[^`]*`[^`]*`)*[^`]*$)", "", text):
            raise ValueError(f"assembly of '{cls.name}' cannot be read: {text!r}")
        self.at = 0
        self.elements = list(self._sequence())
        self._look_ahead()

    def _sequence(self) -> Iterator[Element]:
        while self.at < len(self.tokens) and self.tokens[self.at] != ")?":
            token = self.tokens[self.at]
            self.at += 1
            yield self._group() if token == "(" else self._element(token.rstrip("^"))

    def _group(self) -> Element:
        begin = self.at
        elements = list(self._sequence())
        inside = self.tokens[begin : self.at]
        self.at += 1
        names = [t for t in inside if not (t.startswith("(") or t == ",")]
        marked = [i for i, t in enumerate(self._heads(names)) if t.endswith("^")]
        return OptionalGroup(elements, elements[marked[0]] if marked else elements[0])

    def _heads(self, tokens: list[str]) -> list[str]:
        """One token an element: what stands in the brackets of `type($x)^` is left out."""
        heads: list[str] = []
        depth_word = False
        for token in tokens:
            if token == ")":
                depth_word = False
            elif token == "^":
                heads[-1] += "^"
            elif depth_word:
                continue
            else:
                heads.append(token)
                depth_word = token in ("type", "functional-type")
        return heads

    def _element(self, token: str) -> Element:
        d = self.definition
        if token.startswith("`"):
            return Literal(token.strip("`"))
        if token.startswith("$"):
            return self._field(token[1:])
        if token == "attr-dict":
            return AttrDict(self.shown)
        if token == "type":
            return self._type(self._arguments()[0])
        if token == "functional-type":
            self._arguments()
            return FunctionalType()
        simple: dict[str, Any] = {
            "operands": AllOperands, "regions": AllRegions, "successors": lambda: SuccessorName(None),
        }  # fmt: skip
        if token not in simple:
            raise ValueError(f"assembly of '{d.name}': unknown directive '{token}'")
        return simple[token]()  # type: ignore[no-any-return]

    def _arguments(self) -> list[str]:
        end = (
            self.tokens.index(")", self.at)
            if ")" in self.tokens[self.at :]
            else self.tokens.index(")?", self.at)
        )
        found = [t for t in self.tokens[self.at + 1 : end] if t != ","]
        self.at = end + 1
        if self.at < len(self.tokens) and self.tokens[self.at] == "^":
            self.at += 1
        return found

    def _field(self, name: str) -> Element:
        d = self.definition
        kinds: list[tuple[Any, Any]] = [
            (d.operands, OperandName), (d.attributes, AttributeValue),
            (d.regions, RegionBody), (d.successors, SuccessorName),
        ]  # fmt: skip
        for fields, kind in kinds:
            if name in fields:
                return kind(fields[name])  # type: ignore[no-any-return]
        raise ValueError(f"assembly of '{d.name}': no field '{name}'")

    def _type(self, argument: str) -> Element:
        if argument in ("operands", "results"):
            return AllTypes(argument == "results")
        d, name = self.definition, argument[1:]
        return TypeOf(d.operands[name] if name in d.operands else d.results[name])

    def _look_ahead(self) -> None:
        """Tell attributes whether a colon follows them, and attr-dict whether a region does."""
        colon, after = False, None
        for element in reversed(list(_flat(self.elements))):
            if isinstance(element, AttributeValue):
                element.before_colon = colon
            elif isinstance(element, AttrDict):
                element.before_region = any(isinstance(e, RegionBody | AllRegions) for e in self.elements)
                element.before_colon = isinstance(after, Literal) and after.text == ":"
            elif isinstance(element, Literal):
                colon = colon or element.text == ":"
            after = element

    # -- reading

    def parse(self, p: ItemParser) -> Operation:
        s = State()
        if self.declared:
            for element in self.elements:
                element.read(p, s)
        else:
            self._parse_default(p, s)
        operands = self._operands(p, s)
        regions = s.regions.get("*") or [r for n in self.definition.regions for r in s.regions.get(n, [])]
        return p.make(operands, self._result_types(s), s.properties, s.attributes, regions, s.successors)

    def _parse_default(self, p: ItemParser, s: State) -> None:
        for element in self.elements:
            if isinstance(element, Literal):
                if not p.optional(":"):
                    if s.all_operands or any(f.single for f in self.definition.results.values()):
                        raise p.expected("':' and the types, as in ': (operand types) -> result type'")
                    s.operand_types, s.result_types = [], []
            elif not (isinstance(element, FunctionalType) and s.operand_types is not None):
                element.read(p, s)

    def _operands(self, p: ItemParser, s: State) -> list[Value]:
        fields = self.definition.operands
        if s.all_operands is not None:
            return p.resolve_all(s.all_operands, s.operand_types)
        groups = {name: s.operands.get(name, []) for name in fields}
        names = [n for group in groups.values() for n in group]
        if SEGMENTS[0] in self.definition.attributes:
            s.properties[SEGMENTS[0]] = DenseArrayAttr(i32, tuple(len(g) for g in groups.values()))
        if s.operand_types is not None:
            return p.resolve_all(names, s.operand_types)
        return [v for name, group in groups.items() for v in p.resolve_all(group, s.types.get(name))]

    def _result_types(self, s: State) -> list[Type] | None:
        if s.result_types is not None:
            return s.result_types
        fields = self.definition.results
        if all(name in s.types for name in fields):
            if SEGMENTS[1] in self.definition.attributes:
                s.properties[SEGMENTS[1]] = DenseArrayAttr(i32, tuple(len(s.types[n]) for n in fields))
            return [t for name in fields for t in s.types[name]]
        return None

    # -- printing

    def print(self, op: Operation, p: Printer) -> None:
        if self.declared:
            write_all(self.elements, op, p)
            return
        typed = bool(op.operands or op.results)
        write_all([e for e in self.elements if typed or not isinstance(e, (Literal, FunctionalType))], op, p)


def format_of(cls: type[Operation]) -> Format:
    """The compiled format of a class."""
    found = _FORMATS.get(cls)
    if found is None:
        found = _FORMATS[cls] = Format(cls)
    return found
