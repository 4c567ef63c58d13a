"""The directives of assembly formats: each reads its part of an operation's text and writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from .attributes import (
    Attribute,
    DimsAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    Type,
    TypeAttr,
    f64,
    i1,
    i64,
    unit,
)  # fmt: skip
from .core import Operation, Value
from .definition import Bool, Dims, Float, Int, OperandField, String, SymbolRef, TypeAttribute, Unit

if TYPE_CHECKING:
    from .item_parser import ItemParser, Name
    from .printer import Printer


@attrs.define
class State:
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


class Element:
    """A directive. `starts`: may it begin at the next token? `present`: is there something to print?"""

    def starts(self, p: ItemParser) -> bool:
        return False

    def present(self, op: Operation) -> bool:
        return True

    def read(self, p: ItemParser, s: State) -> None:
        raise NotImplementedError

    def write(self, op: Operation, p: Printer) -> None:
        raise NotImplementedError


@attrs.define
class Literal(Element):
    text: str

    def starts(self, p: ItemParser) -> bool:
        return p.at(self.text)

    def read(self, p: ItemParser, s: State) -> None:
        p.expect(self.text)

    def write(self, op: Operation, p: Printer) -> None:
        p.write(self.text)


@attrs.define
class OperandName(Element):
    field: Any

    def starts(self, p: ItemParser) -> bool:
        return p.at_value()

    def present(self, op: Operation) -> bool:
        return bool(op.definition.operand_groups(op)[self.field.name])

    def read(self, p: ItemParser, s: State) -> None:
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
class AttributeValue(Element):
    """An attribute in the short form of its constraint."""

    field: Any
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
        return p.at("[") or (
            constraint is not Dims and kind in ("NUMBER", "STRING", "SYMBOL", "ATTR", "DICT", "TYPE")
        )

    def present(self, op: Operation) -> bool:
        value = op.get(self.field.name)
        return value is not None and value is not self.field.default_attribute

    def read(self, p: ItemParser, s: State) -> None:
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
        return p.attribute(before_colon=self.before_colon)

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
class RegionBody(Element):
    field: Any

    def starts(self, p: ItemParser) -> bool:
        return p.at_region()

    def _regions(self, op: Operation) -> Any:
        at = list(op.definition.regions).index(self.field.name)
        return op.regions[at:] if self.field.variadic else op.regions[at : at + 1]

    def present(self, op: Operation) -> bool:
        return any(r.blocks for r in self._regions(op))

    def read(self, p: ItemParser, s: State) -> None:
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
class SuccessorName(Element):
    field: Any

    def starts(self, p: ItemParser) -> bool:
        return p.kind() == "BLOCKREF"

    def _blocks(self, op: Operation) -> Any:
        if self.field is None:
            return op.successors
        at = list(op.definition.successors).index(self.field.name)
        return op.successors[at:] if self.field.variadic else op.successors[at : at + 1]

    def present(self, op: Operation) -> bool:
        return bool(self._blocks(op))

    def read(self, p: ItemParser, s: State) -> None:
        many = self.field is None or self.field.variadic
        if not many or self.starts(p):
            s.successors.append(p.successor())
        while many and p.at(",") and p.optional(","):
            s.successors.append(p.successor())

    def write(self, op: Operation, p: Printer) -> None:
        for index, block in enumerate(self._blocks(op)):
            p.write(", " if index else "").successor(block)


@attrs.define
class AttrDict(Element):
    shown: tuple[str, ...]
    before_region: bool = False
    before_colon: bool = False

    def starts(self, p: ItemParser) -> bool:
        return p.kind() in ("DICT", "EMPTY")

    def read(self, p: ItemParser, s: State) -> None:
        region = self.before_region and not (self.before_colon and p.follows("COLON"))
        for name, value in p.attr_dict(before_region=region).items():
            if name in s.properties:
                raise p.error(f"attribute '{name}' is given twice")
            s.attributes[name] = value

    def write(self, op: Operation, p: Printer) -> None:
        p.attr_dict(op, self.shown)


@attrs.define
class TypeOf(Element):
    """`type($x)`"""

    field: Any

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

    def read(self, p: ItemParser, s: State) -> None:
        single = self.field.single
        s.types[self.field.name] = [p.type()] if single else p.types()

    def write(self, op: Operation, p: Printer) -> None:
        p.types([v.type for v in self._values(op)])


@attrs.define
class AllTypes(Element):
    """`type(operands)`, `type(results)`"""

    results: bool

    def starts(self, p: ItemParser) -> bool:
        return p.at_type()

    def present(self, op: Operation) -> bool:
        return bool(op.results if self.results else op.operands)

    def read(self, p: ItemParser, s: State) -> None:
        if self.results:
            s.result_types = p.types()
        else:
            s.operand_types = p.types()

    def write(self, op: Operation, p: Printer) -> None:
        p.types([v.type for v in (op.results if self.results else op.operands)])


class FunctionalType(Element):
    def starts(self, p: ItemParser) -> bool:
        return p.at_type()

    def present(self, op: Operation) -> bool:
        return bool(op.operands or op.results)

    def read(self, p: ItemParser, s: State) -> None:
        type = p.function_type()
        s.operand_types, s.result_types = list(type.inputs), list(type.results)

    def write(self, op: Operation, p: Printer) -> None:
        p.function_type([v.type for v in op.operands], [v.type for v in op.results])


class AllOperands(Element):
    def starts(self, p: ItemParser) -> bool:
        return p.at_value()

    def present(self, op: Operation) -> bool:
        return bool(op.operands)

    def read(self, p: ItemParser, s: State) -> None:
        s.all_operands = p.values()
        if s.all_operands and p.at_value():
            raise p.expected("',' between operands")

    def write(self, op: Operation, p: Printer) -> None:
        p.write(p.names(op.operands))


class AllRegions(Element):
    def starts(self, p: ItemParser) -> bool:
        return p.at_region()

    def present(self, op: Operation) -> bool:
        return bool(op.regions)

    def read(self, p: ItemParser, s: State) -> None:
        found = s.regions["*"] = []
        if p.at_region():
            found.append(p.region())
            while p.optional(","):
                found.append(p.region())

    def write(self, op: Operation, p: Printer) -> None:
        _write_regions(op.regions, p)


@attrs.define
class OptionalGroup(Element):
    """`( ... )?`"""

    elements: list[Element]
    anchor: Element

    def present(self, op: Operation) -> bool:
        return self.anchor.present(op)

    def read(self, p: ItemParser, s: State) -> None:
        if self.elements[0].starts(p):
            for element in self.elements:
                element.read(p, s)

    def write(self, op: Operation, p: Printer) -> None:
        write_all(self.elements, op, p)


_NO_SPACE_BEFORE = (",", ")", "]", ">", "(", "<", "[")


def write_all(elements: list[Element], op: Operation, p: Printer) -> None:
    for element in elements:
        if isinstance(element, OptionalGroup):
            if element.present(op):
                element.write(op, p)
        elif isinstance(element, Literal):
            tight = element.text in _NO_SPACE_BEFORE or p.ends_with("(", "[", "<")
            p.write("" if tight else " ").write(element.text)
        elif isinstance(element, AttrDict):
            element.write(op, p)
        elif element.present(op) or isinstance(element, (AttributeValue, FunctionalType)):
            if not (isinstance(element, AttributeValue) and element.field.constraint is Unit):
                p.write("" if p.ends_with("(", "[", "<") else " ")
            element.write(op, p)
