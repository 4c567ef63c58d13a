"""MLIR's `func`: functions, which here may declare dim symbols and facts about them.

    func.func @f<m, n>(%x: tensor<[m, n], f32>, %k: index {dim = m}) -> f32 where n % 8 == 0 { ... }

Symbols, facts and the dim that an argument is are discardable attributes (`stepwell.symbols`,
`stepwell.facts`, `stepwell.dim`), so that mlir-opt keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..ir.attributes import (
    ArrayAttr,
    Attribute,
    DictAttr,
    FactsAttr,
    FunctionType,
    IndexType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    TupleType,
    Type,
    TypeAttr,
    to_attribute,
)  # fmt: skip
from ..ir.core import Block, BlockArgument, Operation, Region
from ..ir.definition import (
    Array,
    Constraint,
    FunctionTypeAttribute,
    String,
    SymbolRef,
    Unit,
    attribute,
    operand,
    region,
    result,
)  # fmt: skip
from ..ir.definition import Facts as FactList
from ..ir.diagnostics import IRError
from ..ir.pass_options import near
from ..ir.registry import Dialect, IsolatedFromAbove, Terminator
from .symbols import lookup_symbol

if TYPE_CHECKING:
    from ..ir.facts import Facts
    from ..ir.item_parser import ItemParser
    from ..ir.printer import Printer

dialect = Dialect("func", "Functions.")
SYMBOLS, FACTS, DIM = "stepwell.symbols", "stepwell.facts", "stepwell.dim"
Attributes = Mapping[str, Attribute]


def symbols_of(type: Type) -> frozenset[str]:
    """The dim symbols that a type mentions."""
    if isinstance(type, TensorType):
        return type.symbols
    inner: tuple[Type, ...] = ()
    if isinstance(type, FunctionType):
        inner = (*type.inputs, *type.results)
    elif isinstance(type, TupleType):
        inner = type.types
    return frozenset().union(*map(symbols_of, inner))


@dialect.op
class FuncOp(Operation):
    """A function: a signature and a body, or no body where it is only declared."""

    name = "func.func"
    syntax = (
        "@name<symbols>(%argument: type {attributes}, ...) -> results where facts attributes {attributes} { body }\n"
        "  func.func @f<m, n>(%x: tensor<[m, n], f32>, %k: index {dim = m}) -> f32 where n % 8 == 0, n <= 99 { ... }\n"
        "  facts relate sums, products, `floordiv`, `ceildiv`, `%` (`mod`), `min` and `max` of symbols and numbers by\n"
        "  ==, !=, <, <=, > or >=; each call is checked against them, and what they prove is tested no more.\n"
        "  <symbols>, `-> results`, where and attributes may be left out; without a body it is a declaration."
    )
    traits = (IsolatedFromAbove,)
    default_dialect = "func"
    sym_name = attribute(String)
    function_type = attribute(FunctionTypeAttribute)
    sym_visibility = attribute(String, optional=True)
    arg_attrs = attribute(Array, optional=True, doc="one dictionary for each argument")
    res_attrs = attribute(Array, optional=True, doc="one dictionary for each result")
    no_inline = attribute(Unit, optional=True)
    code = region()

    # -- reading

    @property
    def symbols(self) -> tuple[str, ...]:
        """The declared dim symbols."""
        return tuple(self.value_of(SYMBOLS, ()))

    @property
    def relations(self) -> tuple[Any, ...]:
        """The declared facts, as relations."""
        found = self.get(FACTS)
        return found.relations if isinstance(found, FactsAttr) else ()

    @property
    def facts(self) -> Facts:
        """The declared facts, ready for proofs."""
        from ..ir.facts import Facts

        return Facts(self.relations)

    @property
    def arguments(self) -> Sequence[BlockArgument]:
        """The arguments of the body; empty for a declaration."""
        return self.body.arguments if self.region.blocks else ()

    @property
    def type(self) -> FunctionType:
        found: FunctionType = self.function_type
        return found

    @property
    def is_declaration(self) -> bool:
        return not self.region.blocks

    def argument_attributes(self, number: int) -> dict[str, Attribute]:
        """The attributes of one argument."""
        return _entry(self.get("arg_attrs"), number)

    def result_attributes(self, number: int) -> dict[str, Attribute]:
        """The attributes of one result."""
        return _entry(self.get("res_attrs"), number)

    def argument_dim(self, number: int) -> str | None:
        """The symbol that an `index` argument is declared to be."""
        found = self.argument_attributes(number).get(DIM)
        return found.value if isinstance(found, StringAttr) else None

    # -- making

    @classmethod
    def make(
        cls, name: str, inputs: Sequence[Type], results: Sequence[Type], *, symbols: Iterable[str] = (),
        relations: Iterable[Any] = (), visibility: str | None = None, names: Sequence[str | None] = (),
        dims: Mapping[int, str] | None = None, declaration: bool = False, location: Any = None,
    ) -> FuncOp:  # fmt: skip
        """A function with an empty entry block (none for a declaration); `dims` says which arguments are
        symbols."""
        body = [] if declaration else [Block(inputs, names)]
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(name),
            "function_type": TypeAttr(FunctionType(tuple(inputs), tuple(results))),
        }
        if visibility:
            properties["sym_visibility"] = StringAttr(visibility)
        if dims:
            given = [{DIM: StringAttr(dims[i])} if i in dims else {} for i in range(len(inputs))]
            properties["arg_attrs"] = _dictionaries(given)
        extra = symbol_attributes(symbols, relations)
        return cls((), (), properties, extra, [Region(body)], **({"location": location} if location else {}))

    # -- checking

    def verify_op(self) -> None:
        self._verify_entry_block()
        self._verify_attribute_lists()
        self._verify_own_attributes()
        self._verify_symbols()

    def _verify_entry_block(self) -> None:
        if self.is_declaration:
            if self.sym_visibility not in ("private", "nested"):
                raise self.error("symbol declaration cannot have public visibility")
            return
        inputs, arguments = self.type.inputs, self.arguments
        if len(inputs) != len(arguments):
            raise self.error(f"entry block must have {len(inputs)} arguments to match function signature")
        for number, (type, argument) in enumerate(zip(inputs, arguments)):
            if type is not argument.type:
                raise self.error(
                    f"type of entry block argument #{number}('{argument.type}') must match the type of the "
                    f"corresponding argument in function signature('{type}')"
                )

    def _verify_attribute_lists(self) -> None:
        for name, word, count in (("arg_attrs", "argument", len(self.type.inputs)),
                                  ("res_attrs", "result", len(self.type.results))):  # fmt: skip
            found = self.get(name)
            if isinstance(found, ArrayAttr) and len(found.elements) != count:
                raise self.error(
                    f"expects {word} attribute array to have the same number of elements as the number of "
                    f"function {word}s, got {len(found.elements)}, but expected {count}"
                )

    def _verify_own_attributes(self) -> None:
        """What begins with `stepwell.` is known and of its kind: nothing that is declared is passed over."""
        _verify_own(self, self.attributes, {SYMBOLS: Strings, FACTS: FactList}, "")
        for number in range(len(self.type.inputs)):
            _verify_own(self, self.argument_attributes(number), {DIM: String}, f"argument #{number} ")
        for number in range(len(self.type.results)):
            _verify_own(self, self.result_attributes(number), {}, f"result #{number} ")

    def _verify_symbols(self) -> None:
        declared = self.symbols
        for symbol in declared:
            if declared.count(symbol) > 1:
                raise self.error(f"declares symbol '{symbol}' twice")
        for symbol, where in self._mentions():
            if symbol not in declared:
                fix = ", ".join([*declared, *self._missing()])
                raise self.error(f"unknown symbol '{symbol}' in {where}; declare it: @{self.sym_name}<{fix}>")

    def _mentions(self) -> Iterator[tuple[str, str]]:
        """Each dim symbol that the signature uses, and where."""
        for type in (*self.type.inputs, *self.type.results):
            for symbol in sorted(symbols_of(type)):
                yield symbol, f"type '{type}'"
        for relation in self.relations:
            for symbol in sorted(relation.symbols):
                yield symbol, f"fact '{relation}'"
        for number, type in enumerate(self.type.inputs):
            dim = self.argument_dim(number)
            if dim is not None:
                if not isinstance(type, IndexType):
                    raise self.error(
                        f"argument #{number} is the dim '{dim}' and must be index, but is '{type}'"
                    )
                yield dim, f"argument #{number}"

    def _missing(self) -> list[str]:
        return [s for s in dict.fromkeys(s for s, _ in self._mentions()) if s not in self.symbols]

    # -- text

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        visibility = p.keyword() if p.at("public", "private", "nested") else None
        name, symbols = p.symbol_name(), p.angle_names()
        arguments = p.arguments()
        results, result_attributes = _parse_results(p)
        relations = p.where()
        attributes = p.attr_dict("attributes")
        relations = relations or p.where()
        given = [_with_dim_name(a.attributes) for a in arguments]
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(name),
            "function_type": TypeAttr(FunctionType(tuple(a.type for a in arguments), tuple(results))),
        }
        if visibility:
            properties["sym_visibility"] = StringAttr(visibility)
        for key, entries in (("arg_attrs", given), ("res_attrs", result_attributes)):
            if any(entries):
                properties[key] = _dictionaries(entries)
        body = p.region(arguments) if p.at_region() else Region()
        return p.make((), (), properties, {**attributes, **symbol_attributes(symbols, relations)}, [body])

    def print_items(self, p: Printer) -> None:
        if self.sym_visibility:
            p.write(" ", self.sym_visibility)
        p.write(" ", SymbolRefAttr((self.sym_name,)))
        if self.symbols:
            p.write("<", ", ".join(self.symbols), ">")
        self._print_arguments(p)
        self._print_results(p)
        if self.relations:
            p.write(" where ", ", ".join(map(str, self.relations)))
        shown = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs", SYMBOLS, FACTS)
        p.attr_dict(self, shown, keyword="attributes")
        if not self.is_declaration:
            p.write(" ")
            p.region(self.region, entry_arguments=False)

    def _print_arguments(self, p: Printer) -> None:
        p.write("(")
        for number, type in enumerate(self.type.inputs):
            p.write(", " if number else "")
            attributes = self.argument_attributes(number)
            dim = attributes.pop(DIM, None)
            if self.is_declaration:
                p.write(type)
            else:
                p.argument(self.arguments[number])
            if attributes or dim is not None:
                p.write(" ", _with_dim(DictAttr(tuple(attributes.items())), dim))
        p.write(")")

    def _print_results(self, p: Printer) -> None:
        types = self.type.results
        if not types:
            return
        p.write(" -> ")
        if self.get("res_attrs") is None:
            p.result_types(types)
            return
        p.write("(")
        for number, type in enumerate(types):
            attributes = self.result_attributes(number)
            p.write(", " if number else "", type)
            if attributes:
                p.write(" ", to_attribute(attributes))
        p.write(")")


def symbol_attributes(symbols: Iterable[str], relations: Iterable[Any]) -> dict[str, Attribute]:
    """The discardable attributes of a function's symbols and facts; none where there are none."""
    made: dict[str, Attribute] = {}
    if names := tuple(symbols):
        made[SYMBOLS] = ArrayAttr(tuple(map(StringAttr, names)))
    if facts := tuple(relations):
        made[FACTS] = FactsAttr(facts)
    return made


Strings = Constraint("a list of strings", lambda a: isinstance(a, ArrayAttr) and all(map(String.holds, a.elements)))


def _verify_own(op: Operation, attributes: Attributes, known: Mapping[str, Constraint], place: str) -> None:
    for name, value in attributes.items():
        if name in known and not known[name].holds(value):
            raise op.error(f"{place}has '{name}' = {value}, but it must be {known[name].description}")
        if name.startswith("stepwell.") and name not in known:
            meant = near(name, known) or f"; the names there are {', '.join(known) or 'none'}"
            raise op.error(f"{place}has no attribute '{name}'{meant}")


def _entry(array: Attribute | None, number: int) -> dict[str, Attribute]:
    if not isinstance(array, ArrayAttr) or number >= len(array.elements):
        return {}
    found = array.elements[number]
    return dict(found.entries) if isinstance(found, DictAttr) else {}


def _dictionaries(entries: Sequence[Attributes]) -> ArrayAttr:
    return ArrayAttr(tuple(DictAttr(tuple(e.items())) for e in entries))


def _with_dim_name(attributes: Attributes) -> dict[str, Attribute]:
    """The attributes of an argument; `dim = m`, however the bare word was read, becomes `stepwell.dim`."""
    made = dict(attributes)
    if "dim" in made:
        value = made.pop("dim")
        made[DIM] = value if isinstance(value, StringAttr) else StringAttr(str(value).strip("[]"))
    return made


def _with_dim(attributes: DictAttr, dim: Attribute | None) -> str:
    rest = str(attributes)[1:-1]
    shown = [f"dim = {dim.value}"] if isinstance(dim, StringAttr) else []
    return "{" + ", ".join([*shown, *([rest] if rest else [])]) + "}"


def _parse_results(p: ItemParser) -> tuple[list[Type], list[Attributes]]:
    if not p.optional("->"):
        return [], []
    if not p.at("("):
        return [p.type()], [{}]
    results = p.arguments()
    return [r.type for r in results], [r.attributes for r in results]


@dialect.op
class ReturnOp(Operation):
    """Ends a function and gives its results."""

    name = "func.return"
    traits = (Terminator,)
    values = operand(variadic=True)
    assembly = "attr-dict ($values^ `:` type($values))?"

    def verify_op(self) -> None:
        function = self.parent_op
        if not isinstance(function, FuncOp):
            raise self.error("expects parent op 'func.func'")
        wanted = function.type.results
        if len(wanted) != len(self.operands):
            raise self.error(
                f"has {len(self.operands)} operands, but enclosing function (@{function.sym_name}) returns "
                f"{len(wanted)}"
            )
        for number, (value, type) in enumerate(zip(self.operands, wanted)):
            if value.type is not type:
                raise IRError(
                    f"type of return operand {number} ('{value.type}') doesn't match function result type "
                    f"('{type}') in function @{function.sym_name}", self.location,
                )  # fmt: skip


@dialect.op
class CallOp(Operation):
    """Calls a function of the same symbol table."""

    name = "func.call"
    callee = attribute(SymbolRef)
    arg_attrs = attribute(Array, optional=True)
    res_attrs = attribute(Array, optional=True)
    no_inline = attribute(Unit, optional=True)
    arguments = operand(variadic=True)
    out = result(variadic=True)

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        callee = p.symbol()
        p.expect("(")
        names = p.values()
        p.expect(")")
        attributes = p.attr_dict()
        p.expect(":")
        type = p.function_type()
        return p.make(p.resolve_all(names, type.inputs), type.results, {"callee": callee}, attributes)

    def print_items(self, p: Printer) -> None:
        p.write(" ", self.callee, "(", p.names(self.operands), ")")
        p.attr_dict(self, ["callee"])
        p.write(" : ")
        p.function_type([v.type for v in self.operands], [r.type for r in self.results])

    def target(self) -> FuncOp:
        """The function called; IRError where there is none."""
        found = lookup_symbol(self, self.callee)
        if not isinstance(found, FuncOp):
            raise self.error(f"'{str(self.callee)[1:]}' does not reference a valid function")
        return found

    def verify_op(self) -> None:
        target = self.target()
        if target.symbols:
            raise self.error(
                f"cannot call @{target.sym_name}, which has dim symbols <{', '.join(target.symbols)}>"
            )
        inputs, results = target.type.inputs, target.type.results
        if len(inputs) != len(self.operands):
            raise self.error("incorrect number of operands for callee")
        for number, (type, value) in enumerate(zip(inputs, self.operands)):
            if value.type is not type:
                raise self.error(f"operand type mismatch: expected operand type '{type}', but provided "
                                 f"'{value.type}' for operand number {number}")  # fmt: skip
        if len(results) != len(self.results):
            raise self.error("incorrect number of results for callee")
        for number, (type, value) in enumerate(zip(results, self.results)):
            if value.type is not type:
                notes = f"op result types: '{value.type}'", f"function result types: '{type}'"
                raise self.error(f"result type mismatch at index {number}", *notes)
