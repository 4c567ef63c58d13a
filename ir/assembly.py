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
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from .attributes import (
    Attribute, DenseArrayAttr, DimsAttr, FloatAttr, IntegerAttr, StringAttr, SymbolRefAttr, Type, TypeAttr, f64, i1,
    i32, i64, unit,
)  # fmt: skip
from .core import Operation, Value
from .definition import (
    SEGMENTS, AttributeField, Bool, Dims, Float, Int, OperandField, RegionField, String,
    SuccessorField, SymbolRef, TypeAttribute, Unit, _Field,
)  # fmt: skip

if TYPE_CHECKING:
    from .item_parser import ItemParser, Name
    from .printer import Printer

_TOKENS = re.compile(r"\s*(`[^`]*`|\$\w+\^?|[\w-]+|\)\?|[(),^])")
_FORMATS: dict[type[Operation], Format] = {}
DEFAULT = "operands successors attr-dict `:` functional-type(operands, results) regions"


@attrs.define
class _State:
    """What was read so far."""

    operands: dict[str, list[Name]] = attrs.field(factory=dict)
    types: dict[str, list[Type]] = attrs.field(factory=dict)
    all_operands: list[Name] | None = None
    operand_types: list[Type] | None = None
    result_types: list[Type] | None = None
    properties: dict[str, Attribute] = attrs.field(factory=dict)
    attributes: dict[str, Attribute] = attrs.field(factory=dict)
    regions: dict[str, list[Any]] = attrs.field(factory=dict)
    successors: list[Any] = attrs.field(factory=list)


class _Element:
    """A directive. `starts`: may it begin at the next token? `present`: is there something to print?"""

    def starts(self, p: ItemParser) -> bool:
        return False

    def present(self, op: Operation) -> bool:
        return True

    def read(self, p: ItemParser, s: _State) -> None:
        raise NotImplementedError

    def write(self, op: Operation, p: Printer) -> None:
        raise NotImplementedError


@attrs.define
class _Literal(_Element):
    text: str

    def starts(self, p: ItemParser) -> bool:
        return p.at(self.text)

    def read(self, p: ItemParser, s: _State) -> None:
        p.expect(self.text)

    def write(self, op: Operation, p: Printer) -> None:
        p.write(self.text)


@attrs.define
class _Operand(_Element):
    field: OperandField

    def starts(self, p: ItemParser) -> bool:
        return p.at_value()

    def present(self, op: Operation) -> bool:
        return bool(op.definition.operand_groups(op)[self.field.name])

    def read(self, p: ItemParser, s: _State) -> None:
        if self.field.variadic:
            found = p.values()
        elif self.field.optional and not p.at_value():
            found = []
        else:
            found = [p.value()]
        s.operands[self.field.name] = found

    def write(self, op: Operation, p: Printer) -> None:
        p.write(p.names(op.definition.operand_groups(op)[self.field.name]))


@attrs.define
class _Attribute(_Element):
    """An attribute in the short form of its constraint."""

    field: AttributeField
    before_colon: bool = False

    def starts(self, p: ItemParser) -> bool:
        constraint, kind = self.field.constraint, p.kind()
        if constraint is TypeAttribute:
            return p.at_type()
        kinds = {Int: "NUMBER", Float: "NUMBER", String: "STRING", SymbolRef: "SYMBOL"}
        wanted = next((k for c, k in kinds.items() if c is constraint), None)
        if wanted is not None:
            return kind == wanted
        if constraint is Bool:
            return p.at("true", "false")
        return p.at("[") or (constraint is not Dims and kind in ("NUMBER", "STRING", "SYMBOL", "ATTR", "DICT", "TYPE"))

    def present(self, op: Operation) -> bool:
        value = op.get(self.field.name)
        return value is not None and value is not self.field.default_attribute

    def read(self, p: ItemParser, s: _State) -> None:
        if self.field.constraint is Unit:
            s.properties[self.field.name] = unit
        elif not self.field.optional or self.starts(p):
            s.properties[self.field.name] = self._value(p)

    def _value(self, p: ItemParser) -> Attribute:
        constraint = self.field.constraint
        if constraint is Dims:
            return DimsAttr(p.dims())
        if constraint is SymbolRef:
            return p.symbol()
        if constraint is TypeAttribute:
            return TypeAttr(p.type())
        if constraint is Bool:
            return IntegerAttr(int(p.keyword("true", "false") == "true"), i1)
        if constraint is String:
            return StringAttr(p.string())
        if constraint in (Int, Float) and not p.typed_literal(self.before_colon):
            return p.attribute(i64 if constraint is Int else f64)
        return p.attribute()

    def write(self, op: Operation, p: Printer) -> None:
        value = op.get(self.field.name)
        if value is None:
            value = self.field.default_attribute
        if isinstance(value, DimsAttr) and self.field.constraint is Dims:
            p.dims(value.dims)
        elif (isinstance(value, IntegerAttr) and self.field.constraint is Int and value.type is i64) or (
            isinstance(value, FloatAttr) and self.field.constraint is Float and value.type is f64
        ):
            p.write(p.texts[value].rpartition(" : ")[0])
        elif value is not None and value is not unit:
            p.write(value)


@attrs.define
class _Region(_Element):
    field: RegionField

    def starts(self, p: ItemParser) -> bool:
        return p.at_region()

    def _regions(self, op: Operation) -> Any:
        at = list(op.definition.regions).index(self.field.name)
        return op.regions[at:] if self.field.variadic else op.regions[at : at + 1]

    def present(self, op: Operation) -> bool:
        return any(r.blocks for r in self._regions(op))

    def read(self, p: ItemParser, s: _State) -> None:
        found = []
        if not self.field.optional or p.at_region():
            found.append(p.region())
        while self.field.variadic and p.optional(","):
            found.append(p.region())
        s.regions[self.field.name] = found

    def write(self, op: Operation, p: Printer) -> None:
        _write_regions(self._regions(op), p)


def _write_regions(regions: Any, p: Printer) -> None:
    for index, region in enumerate(regions):
        p.write(", " if index else "").region(region, empty_block=True)


@attrs.define
class _Successor(_Element):
    field: SuccessorField | None

    def starts(self, p: ItemParser) -> bool:
        return p.kind() == "BLOCKREF"

    def _blocks(self, op: Operation) -> Any:
        if self.field is None:
            return op.successors
        at = list(op.definition.successors).index(self.field.name)
        return op.successors[at:] if self.field.variadic else op.successors[at : at + 1]

    def present(self, op: Operation) -> bool:
        return bool(self._blocks(op))

    def read(self, p: ItemParser, s: _State) -> None:
        many = self.field is None or self.field.variadic
        if not many or self.starts(p):
            s.successors.append(p.successor())
        while many and p.at(",") and p.optional(","):
            s.successors.append(p.successor())

    def write(self, op: Operation, p: Printer) -> None:
        for index, block in enumerate(self._blocks(op)):
            p.write(", " if index else "").successor(block)


@attrs.define
class _AttrDict(_Element):
    shown: tuple[str, ...]
    before_region: bool = False

    def starts(self, p: ItemParser) -> bool:
        return p.kind() in ("DICT", "EMPTY")

    def read(self, p: ItemParser, s: _State) -> None:
        for name, value in p.attr_dict(before_region=self.before_region).items():
            if name in s.properties:
                raise p.error(f"attribute '{name}' is given twice")
            s.attributes[name] = value

    def write(self, op: Operation, p: Printer) -> None:
        p.attr_dict(op, self.shown)


@attrs.define
class _TypeOf(_Element):
    """`type($x)`"""

    field: _Field

    def starts(self, p: ItemParser) -> bool:
        return p.at_type()

    def _values(self, op: Operation) -> tuple[Value, ...]:
        groups = (
            op.definition.operand_groups(op)
            if isinstance(self.field, OperandField)
            else op.definition.result_groups(op)
        )
        return groups[self.field.name]

    def present(self, op: Operation) -> bool:
        return bool(self._values(op))

    def read(self, p: ItemParser, s: _State) -> None:
        single = self.field.single
        s.types[self.field.name] = [p.type()] if single else p.types()

    def write(self, op: Operation, p: Printer) -> None:
        p.types([v.type for v in self._values(op)])


@attrs.define
class _AllTypes(_Element):
    """`type(operands)`, `type(results)`"""

    results: bool

    def starts(self, p: ItemParser) -> bool:
        return p.at_type()

    def present(self, op: Operation) -> bool:
        return bool(op.results if self.results else op.operands)

    def read(self, p: ItemParser, s: _State) -> None:
        if self.results:
            s.result_types = p.types()
        else:
            s.operand_types = p.types()

    def write(self, op: Operation, p: Printer) -> None:
        p.types([v.type for v in (op.results if self.results else op.operands)])


class _FunctionalType(_Element):
    def starts(self, p: ItemParser) -> bool:
        return p.at_type()

    def present(self, op: Operation) -> bool:
        return bool(op.operands or op.results)

    def read(self, p: ItemParser, s: _State) -> None:
        type = p.function_type()
        s.operand_types, s.result_types = list(type.inputs), list(type.results)

    def write(self, op: Operation, p: Printer) -> None:
        p.function_type([v.type for v in op.operands], [v.type for v in op.results])


class _Operands(_Element):
    def starts(self, p: ItemParser) -> bool:
        return p.at_value()

    def present(self, op: Operation) -> bool:
        return bool(op.operands)

    def read(self, p: ItemParser, s: _State) -> None:
        s.all_operands = p.values()

    def write(self, op: Operation, p: Printer) -> None:
        p.write(p.names(op.operands))


class _Regions(_Element):
    def starts(self, p: ItemParser) -> bool:
        return p.at_region()

    def present(self, op: Operation) -> bool:
        return bool(op.regions)

    def read(self, p: ItemParser, s: _State) -> None:
        found = s.regions["*"] = []
        if p.at_region():
            found.append(p.region())
            while p.optional(","):
                found.append(p.region())

    def write(self, op: Operation, p: Printer) -> None:
        _write_regions(op.regions, p)


@attrs.define
class _Optional(_Element):
    """`( ... )?`"""

    elements: list[_Element]
    anchor: _Element

    def present(self, op: Operation) -> bool:
        return self.anchor.present(op)

    def read(self, p: ItemParser, s: _State) -> None:
        if self.elements[0].starts(p):
            for element in self.elements:
                element.read(p, s)

    def write(self, op: Operation, p: Printer) -> None:
        _write_all(self.elements, op, p)


_NO_SPACE_BEFORE = (",", ")", "]", ">", "(", "<", "[")


def _write_all(elements: list[_Element], op: Operation, p: Printer) -> None:
    for element in elements:
        if isinstance(element, _Optional):
            if element.present(op):
                element.write(op, p)
        elif isinstance(element, _Literal):
            tight = element.text in _NO_SPACE_BEFORE or p.ends_with("(", "[", "<")
            p.write("" if tight else " ").write(element.text)
        elif isinstance(element, _AttrDict):
            element.write(op, p)
        elif element.present(op) or isinstance(element, (_Attribute, _FunctionalType)):
            p.write("" if p.ends_with("(", "[", "<") else " ")
            element.write(op, p)


# ---------------------------------------------------------------- compiling


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

    def _sequence(self) -> Iterator[_Element]:
        while self.at < len(self.tokens) and self.tokens[self.at] != ")?":
            token = self.tokens[self.at]
            self.at += 1
            yield self._group() if token == "(" else self._element(token.rstrip("^"))

    def _group(self) -> _Element:
        begin = self.at
        elements = list(self._sequence())
        inside = self.tokens[begin : self.at]
        self.at += 1
        names = [t for t in inside if not (t.startswith("(") or t == ",")]
        marked = [i for i, t in enumerate(self._heads(names)) if t.endswith("^")]
        return _Optional(elements, elements[marked[0]] if marked else elements[0])

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

    def _element(self, token: str) -> _Element:
        d = self.definition
        if token.startswith("`"):
            return _Literal(token.strip("`"))
        if token.startswith("$"):
            return self._field(token[1:])
        if token == "attr-dict":
            return _AttrDict(self.shown)
        if token == "type":
            return self._type(self._arguments()[0])
        if token == "functional-type":
            self._arguments()
            return _FunctionalType()
        simple: dict[str, Any] = {
            "operands": _Operands, "regions": _Regions, "successors": lambda: _Successor(None),
        }  # fmt: skip
        if token not in simple:
            raise ValueError(f"assembly of '{d.name}': unknown directive '{token}'")
        return simple[token]()  # type: ignore[no-any-return]

    def _arguments(self) -> list[str]:
        end = self.tokens.index(")", self.at) if ")" in self.tokens[self.at :] else self.tokens.index(")?", self.at)
        found = [t for t in self.tokens[self.at + 1 : end] if t != ","]
        self.at = end + 1
        if self.at < len(self.tokens) and self.tokens[self.at] == "^":
            self.at += 1
        return found

    def _field(self, name: str) -> _Element:
        d = self.definition
        kinds: list[tuple[Any, Any]] = [
            (d.operands, _Operand), (d.attributes, _Attribute), (d.regions, _Region), (d.successors, _Successor),
        ]  # fmt: skip
        for fields, kind in kinds:
            if name in fields:
                return kind(fields[name])  # type: ignore[no-any-return]
        raise ValueError(f"assembly of '{d.name}': no field '{name}'")

    def _type(self, argument: str) -> _Element:
        if argument in ("operands", "results"):
            return _AllTypes(argument == "results")
        d, name = self.definition, argument[1:]
        return _TypeOf(d.operands[name] if name in d.operands else d.results[name])

    def _look_ahead(self) -> None:
        for element, after in zip(self.elements, [*self.elements[1:], None]):
            if isinstance(element, _Attribute):
                element.before_colon = isinstance(after, _Literal) and after.text == ":"
            if isinstance(element, _AttrDict):
                element.before_region = any(isinstance(e, (_Region, _Regions)) for e in self.elements)

    # -- reading

    def parse(self, p: ItemParser) -> Operation:
        s = _State()
        if self.declared:
            for element in self.elements:
                element.read(p, s)
        else:
            self._parse_default(p, s)
        operands = self._operands(p, s)
        regions = s.regions.get("*") or [r for n in self.definition.regions for r in s.regions.get(n, [])]
        return p.make(operands, self._result_types(s), s.properties, s.attributes, regions, s.successors)

    def _parse_default(self, p: ItemParser, s: _State) -> None:
        for element in self.elements:
            if isinstance(element, _Literal):
                if not p.optional(":"):
                    s.operand_types, s.result_types = [], []
            elif not (isinstance(element, _FunctionalType) and s.operand_types is not None):
                element.read(p, s)

    def _operands(self, p: ItemParser, s: _State) -> list[Value]:
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

    def _result_types(self, s: _State) -> list[Type] | None:
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
            _write_all(self.elements, op, p)
            return
        typed = bool(op.operands or op.results)
        _write_all([e for e in self.elements if typed or not isinstance(e, (_Literal, _FunctionalType))], op, p)


def format_of(cls: type[Operation]) -> Format:
    """The compiled format of a class."""
    found = _FORMATS.get(cls)
    if found is None:
        found = _FORMATS[cls] = Format(cls)
    return found
