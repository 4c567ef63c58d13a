"""An operation is a table of fields: parser, printer, verifier, builder and reference page follow from it.

    class Softmax(Operation):
        \"\"\"exp(x - max(x)) / sum(exp(x - max(x))) along one axis.\"\"\"
        name = "nn.softmax"
        x = operand(FloatTensor)
        axis = attribute(Int, default=-1)
        y = result(FloatTensor)
        assembly = "$x attr-dict `:` type($x) `->` type($y)"

Fields read as Python values on an operation: `op.x` is a Value, `op.axis` an int. `Softmax.build(x, axis=1)`
makes one; result types come from `infer_types` unless they are given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from .attributes import (
    ArrayAttr,
    Attribute,
    DenseArrayAttr,
    DictAttr,
    DimsAttr,
    FactsAttr,
    FileLoc,
    FloatAttr,
    FloatType,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    Location,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    Type,
    TypeAttr,
    UnitAttr,
    VectorType,
    from_attribute,
    i1,
    i32,
    to_attribute,
    unknown,
)  # fmt: skip
from .core import Block, Operation, OpResult, Region, UnregisteredOp, Value

OpT = TypeVar("OpT", bound=Operation)


@attrs.frozen
class Constraint:
    """What a type or an attribute must be: a predicate and the words for it."""

    description: str
    holds: Callable[[Any], bool]

    def __or__(self, other: Constraint) -> Constraint:
        return Constraint(f"{self.description} or {other.description}", lambda t: self.holds(t) or other.holds(t))


def element_of(type: Type) -> Type:
    """The element type of a tensor or vector; a scalar type is its own."""
    return type.element if isinstance(type, (TensorType, VectorType)) else type


def like(description: str, scalar: Callable[[Type], bool]) -> Constraint:
    """A scalar type for which `scalar` holds, or a tensor or vector of such."""
    return Constraint(description, lambda t: scalar(element_of(t)))


def tensor_of(description: str, scalar: Callable[[Type], bool]) -> Constraint:
    """A ranked tensor whose element type satisfies `scalar`."""
    return Constraint(description, lambda t: isinstance(t, TensorType) and scalar(t.element))


def is_float(type: Type) -> bool:
    return isinstance(type, FloatType)


def is_integer(type: Type) -> bool:
    return isinstance(type, IntegerType)


def is_signless_or_index(type: Type) -> bool:
    return isinstance(type, IndexType) or (isinstance(type, IntegerType) and type.signedness == "")


AnyType = Constraint("any type", lambda t: True)
Index = Constraint("index", lambda t: isinstance(t, IndexType))
BoolLike = like("bool-like", lambda t: t is i1)
FloatLike = like("floating-point-like", is_float)
SignlessIntegerLike = like("signless-integer-like", is_signless_or_index)
AnyTensor = Constraint("ranked tensor", lambda t: isinstance(t, TensorType))
FloatTensor = tensor_of("tensor of floats", is_float)
IntegerTensor = tensor_of("tensor of integers", is_integer)
BoolTensor = tensor_of("tensor of i1", lambda t: t is i1)


def _kind(description: str, *classes: type[Attribute]) -> Constraint:
    return Constraint(description, lambda a: isinstance(a, classes))


AnyAttr = Constraint("any attribute", lambda a: True)
Int = _kind("an integer", IntegerAttr)
Float = _kind("a float", FloatAttr)
Bool = Constraint("true or false", lambda a: isinstance(a, IntegerAttr) and a.type is i1)
String = _kind("a string", StringAttr)
Unit = _kind("a unit attribute", UnitAttr)
SymbolRef = _kind("a symbol reference", SymbolRefAttr)
TypeAttribute = _kind("a type", TypeAttr)
FunctionTypeAttribute = Constraint(
    "a function type", lambda a: isinstance(a, TypeAttr) and isinstance(a.type, FunctionType)
)
Array = _kind("an array", ArrayAttr)
Dict = _kind("a dictionary", DictAttr)
Dims = _kind("a list of dims", DimsAttr)
Facts = _kind("a list of facts", FactsAttr)
Ints = Constraint(
    "a list of integers",
    lambda a: isinstance(a, DenseArrayAttr) or (isinstance(a, ArrayAttr) and all(map(Int.holds, a.elements))),
)
Number = _kind("a number", IntegerAttr, FloatAttr)


def one_of(*words: str) -> Constraint:
    """A string attribute with one of the given values."""
    names = " or ".join(f'"{w}"' for w in words)
    return Constraint(names, lambda a: isinstance(a, StringAttr) and a.value in words)


@attrs.define
class _Field:
    """A declared part of an operation; as a descriptor it reads the part's Python value."""

    constraint: Constraint = AnyType
    variadic: bool = False
    optional: bool = False
    doc: str = ""
    name: str = attrs.field(default="", init=False)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def single(self) -> bool:
        return not (self.variadic or self.optional)


class OperandField(_Field):
    def __get__(self, op: Operation | None, owner: type) -> Any:
        return self if op is None else _pick(self, op.definition.operand_groups(op)[self.name])


class ResultField(_Field):
    def __get__(self, op: Operation | None, owner: type) -> Any:
        return self if op is None else _pick(self, op.definition.result_groups(op)[self.name])


class SuccessorField(_Field):
    def __get__(self, op: Operation | None, owner: type) -> Any:
        if op is None:
            return self
        at = list(op.definition.successors).index(self.name)
        return op.successors[at:] if self.variadic else op.successors[at]


class RegionField(_Field):
    def __get__(self, op: Operation | None, owner: type) -> Any:
        if op is None:
            return self
        at = list(op.definition.regions).index(self.name)
        return op.regions[at] if at < len(op.regions) else None


def _pick(field: _Field, values: tuple[Value, ...]) -> Any:
    if field.variadic:
        return values
    return values[0] if values else None


@attrs.define
class AttributeField(_Field):
    default: Any = None  # Python value; the attribute may be absent when it is given or the field is optional

    def __get__(self, op: Operation | None, owner: type) -> Any:
        return self if op is None else op.value_of(self.name, self.default)

    @property
    def default_attribute(self) -> Attribute | None:
        return None if self.default is None else to_attribute(self.default)


def without_defaults(
    properties: Mapping[str, Attribute], fields: Mapping[str, AttributeField]
) -> dict[str, Attribute]:
    """`properties` less those at their default: an absent one means the same, and text in custom form omits it."""
    return {n: a for n, a in properties.items() if n not in fields or a is not fields[n].default_attribute}


def operand(constraint: Constraint = AnyType, *, variadic: bool = False, optional: bool = False, doc: str = "") -> Any:
    return OperandField(constraint, variadic, optional, doc)


def result(constraint: Constraint = AnyType, *, variadic: bool = False, doc: str = "") -> Any:
    return ResultField(constraint, variadic, False, doc)


def attribute(
    constraint: Constraint = AnyAttr, *, default: Any = None, optional: bool = False, doc: str = ""
) -> Any:
    return AttributeField(constraint, False, optional or default is not None, doc, default)


def region(*, variadic: bool = False, optional: bool = False, doc: str = "") -> Any:
    return RegionField(AnyType, variadic, optional, doc)


def successor(*, variadic: bool = False, doc: str = "") -> Any:
    return SuccessorField(AnyType, variadic, False, doc)


@attrs.frozen
class Trait:
    """A property of an operation class; `verify` raises through `op.error`. `types_only`: whether it raises
    depends on the types of operands and results alone, so that one check does for all of equal types."""

    name: str
    verify: Callable[[Operation], None] | None = attrs.field(default=None, eq=False)
    types_only: bool = attrs.field(default=False, eq=False)


@attrs.define
class OpDefinition:
    """The fields of an operation class, by kind, in the order declared."""

    name: str
    operands: dict[str, OperandField] = attrs.field(factory=dict)
    results: dict[str, ResultField] = attrs.field(factory=dict)
    attributes: dict[str, AttributeField] = attrs.field(factory=dict)
    regions: dict[str, RegionField] = attrs.field(factory=dict)
    successors: dict[str, SuccessorField] = attrs.field(factory=dict)
    traits: tuple[Trait, ...] = ()
    assembly: str | None = None  # of a class with a form of its own (`parse_items`): its `syntax`, for readers
    simple: bool = True  # every operand and result field holds exactly one value

    def has(self, trait: Trait) -> bool:
        return trait in self.traits

    def operand_groups(self, op: Operation) -> dict[str, tuple[Value, ...]]:
        return _groups(op, self.operands, op.operands, "operandSegmentSizes")

    def result_groups(self, op: Operation) -> dict[str, tuple[Value, ...]]:
        return _groups(op, self.results, op.results, "resultSegmentSizes")


def _groups(
    op: Operation, fields: Mapping[str, _Field], values: tuple[Any, ...], sizes_name: str
) -> dict[str, tuple[Any, ...]]:
    """Split `values` among `fields`: by the segment sizes where several vary, else by what is left over."""
    loose = [f for f in fields.values() if not f.single]
    if len(loose) > 1:
        sizes = list(op.value_of(sizes_name) or ())
        if len(sizes) != len(fields) or sum(sizes) != len(values):
            raise op.error(f"needs '{sizes_name}' with {len(fields)} numbers that add up to {len(values)}")
    else:
        spare = len(values) - (len(fields) - len(loose))
        if spare < 0 or (spare and not loose) or (loose and loose[0].optional and not loose[0].variadic and spare > 1):
            kind = "operands" if fields and isinstance(next(iter(fields.values())), OperandField) else "results"
            raise op.error(f"expects {len(fields)} {kind}, but has {len(values)}")
        sizes = [1 if f.single else spare for f in fields.values()]
    groups, at = {}, 0
    for name, size in zip(fields, sizes, strict=True):
        groups[name] = values[at : at + size]
        at += size
    return groups


SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")


def define(cls: type[Operation]) -> None:
    """Collect the fields that `cls` and its bases declare into `cls.definition`."""
    own = getattr(cls, "syntax", "(a form of its own)") if hasattr(cls, "parse_items") else None
    made = OpDefinition(
        cls.name, traits=tuple(getattr(cls, "traits", ())), assembly=getattr(cls, "assembly", None) or own
    )  # fmt: skip
    slots: list[tuple[type[_Field], dict[str, Any]]] = [
        (OperandField, made.operands), (ResultField, made.results), (AttributeField, made.attributes),
        (RegionField, made.regions), (SuccessorField, made.successors),
    ]  # fmt: skip
    for base in reversed(cls.__mro__):
        for name, field in vars(base).items():
            for kind, table in slots:
                if isinstance(field, kind):
                    table[name] = field
    for fields, sizes in ((made.operands, SEGMENTS[0]), (made.results, SEGMENTS[1])):
        if sum(not f.single for f in fields.values()) > 1:
            made.attributes[sizes] = AttributeField(Ints, doc="how many values each group has")
            made.attributes[sizes].name = sizes
    made.simple = all(f.single for f in (*made.operands.values(), *made.results.values()))
    cls.definition = made


def set_results(op: Operation, types: Iterable[Type]) -> None:
    """Give an operation that was made without results its result types."""
    op.results = tuple(OpResult(t, op, i) for i, t in enumerate(types))


def caller_location() -> Location:
    """File and line of the nearest Python frame outside this package's ir folder."""
    frame = inspect.currentframe()
    here = __name__.rpartition(".")[0]
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(here):
        frame = frame.f_back
    return unknown if frame is None else FileLoc(frame.f_code.co_filename, frame.f_lineno, 1)


def build(
    cls: type[OpT], *operands: Any, result_types: Sequence[Type] | None = None, regions: Sequence[Region] = (),
    successors: Sequence[Block] = (), location: Location | None = None, attributes: Mapping[str, Any] | None = None,
    **properties: Any,
) -> OpT:  # fmt: skip
    """Make an operation. `operands` follow the declared operand fields (a list for a variadic one, None for an
    absent one); keyword arguments are its attributes by name, as Python values. Result types are inferred
    unless given. Raises TypeError for an argument that the definition does not have, IRError from inference."""
    definition = cls.definition
    if len(operands) > len(definition.operands):
        raise TypeError(f"{cls.name} takes {len(definition.operands)} operands, not {len(operands)}")
    groups = [_as_group(v) for v in operands] + [()] * (len(definition.operands) - len(operands))
    values = {name: to_attribute(v) for name, v in properties.items() if v is not None}
    unknown_names = [name for name in values if name not in definition.attributes]
    if unknown_names:
        raise TypeError(f"{cls.name} has no attribute '{unknown_names[0]}'; it has {list(definition.attributes)}")
    if SEGMENTS[0] in definition.attributes:
        values[SEGMENTS[0]] = DenseArrayAttr(i32, tuple(len(g) for g in groups))
    discardable = {name: to_attribute(v) for name, v in (attributes or {}).items()}
    flat = [value for group in groups for value in group]
    op = cls(flat, result_types or (), values, discardable, regions, successors, location or caller_location())
    if result_types is None and definition.results:
        try:
            set_results(op, op.infer_types())  # type: ignore[attr-defined]
        except Exception:
            op.erase()
            raise
    return op


def _as_group(value: Any) -> tuple[Value, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, Value) else tuple(value)


def rebuild(op: OpT, operands: Sequence[Value], **changed: Any) -> OpT:
    """The same operation on other operands: all its attributes kept (save those in `changed`), its regions
    moved over, its result types inferred again. The new operation is not inserted."""
    properties = {**op.properties, **{k: to_attribute(v) for k, v in changed.items()}}
    regions = op.regions
    op.regions = ()
    made = type(op)(operands, (), properties, op.attributes, regions, op.successors, op.location)
    set_results(made, made.infer_types())  # type: ignore[attr-defined]
    for old, new in zip(op.results, made.results, strict=True):
        new.hint = old.hint
    return made


def describe_default(field: AttributeField) -> str:
    return str(field.default_attribute)


def as_python(attribute: Attribute | None) -> Any:
    return from_attribute(attribute)


UnregisteredOp.definition = OpDefinition(UnregisteredOp.name)
