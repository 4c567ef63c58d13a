"""MLIR's `arith`: integer and float arithmetic, comparisons and conversions, on scalars, vectors and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..ir.attributes import (
    Attribute, DenseAttr, FloatAttr, FloatType, IndexType, IntegerAttr, IntegerType, Type, i1, i64,
)  # fmt: skip
from ..ir.core import Operation
from ..ir.definition import (
    AnyAttr, BoolLike, Constraint, FloatLike, SignlessIntegerLike, Trait, attribute, build, element_of, like,
    operand, result,
)  # fmt: skip
from ..ir.registry import Dialect, Pure
from ..ir.rewriter import ConstantLike, materializes_constants
from . import scalar
from .scalar_ops import (
    NO_FASTMATH, NO_OVERFLOW, CommutativeFloatBinary, CommutativeIntegerBinary, FloatBinary, FloatUnary, Folded,
    IntegerBinary, IntegerDivision, OverflowBinary, ScalarOp, UnsignedDivision, parse_flags, print_flags, with_element,
)  # fmt: skip

if TYPE_CHECKING:
    from ..ir.item_parser import ItemParser
    from ..ir.printer import Printer

dialect = Dialect("arith", "Arithmetic on integers and floats.")


def _is_constant(attribute: Attribute) -> bool:
    return isinstance(attribute, (IntegerAttr, FloatAttr, DenseAttr)) or getattr(attribute, "type", None) is not None


@dialect.op
class Constant(Operation):
    """A constant: its value's type is the result's type."""

    name = "arith.constant"
    traits = (Pure, ConstantLike)
    value = attribute(Constraint("TypedAttr instance", _is_constant))
    out = result()

    def infer_types(self) -> list[Type]:
        return [self.get("value").type]

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        attributes = p.attr_dict()
        return p.make((), None, {"value": p.attribute()}, attributes)

    def print_items(self, p: Printer) -> None:
        p.attr_dict(self, ["value"])
        p.write(" ", self.get("value"))

    def asm_result_name(self) -> str | None:
        """MLIR's names: c0_i32, true, cst."""
        value = self.get("value")
        if not isinstance(value, IntegerAttr):
            return "cst"
        if value.type is i1:
            return "true" if value.value else "false"
        return f"c{value.value}" if isinstance(value.type, IndexType) else f"c{value.value}_{value.type}"

    def verify_op(self) -> None:
        """The type of the value is the type of the result; integers are signless."""
        type = self.results[0].type
        if getattr(self.get("value"), "type", None) is not type:
            raise self.error("failed to verify that all of {value, result} have same type")
        if isinstance(type, IntegerType) and type.signedness:
            raise self.error("integer return type must be signless")


def constant(value: Any, type: Type, location: Any = None) -> Constant:
    """An `arith.constant` of a Python number (wrapped or rounded to `type`), an array or an attribute."""
    made = value if isinstance(value, Attribute) else scalar.constant(value, type)
    return build(Constant, value=made, location=location)


@materializes_constants
def _materialize(value: Attribute, type: Type, location: Any) -> Operation | None:
    fits = isinstance(value, (IntegerAttr, FloatAttr, DenseAttr)) and value.type is type
    return Constant((), (type,), {"value": value}, location=location) if fits else None


# ---------------------------------------------------------------- integers


@dialect.op
class AddI(OverflowBinary, CommutativeIntegerBinary):
    """Sum, wrapping around."""

    name = "arith.addi"
    numpy = staticmethod(scalar.addi)


@dialect.op
class SubI(OverflowBinary):
    """Difference, wrapping around."""

    name = "arith.subi"
    numpy = staticmethod(scalar.subi)


@dialect.op
class MulI(OverflowBinary, CommutativeIntegerBinary):
    """Product, wrapping around."""

    name = "arith.muli"
    numpy = staticmethod(scalar.muli)


@dialect.op
class DivSI(IntegerDivision):
    """Signed quotient, rounded towards zero."""

    name = "arith.divsi"
    numpy = staticmethod(scalar.divsi)


@dialect.op
class DivUI(UnsignedDivision):
    """Unsigned quotient, rounded towards zero."""

    name = "arith.divui"
    numpy = staticmethod(scalar.divui)


@dialect.op
class CeilDivSI(IntegerDivision):
    """Signed quotient, rounded up."""

    name = "arith.ceildivsi"
    numpy = staticmethod(scalar.ceildivsi)


@dialect.op
class CeilDivUI(UnsignedDivision):
    """Unsigned quotient, rounded up."""

    name = "arith.ceildivui"
    numpy = staticmethod(scalar.ceildivui)


@dialect.op
class FloorDivSI(IntegerDivision):
    """Signed quotient, rounded down: -7 by 2 is -4."""

    name = "arith.floordivsi"
    numpy = staticmethod(scalar.floordivsi)


@dialect.op
class RemSI(IntegerDivision):
    """Signed remainder, with the sign of the dividend."""

    name = "arith.remsi"
    numpy = staticmethod(scalar.remsi)


@dialect.op
class RemUI(UnsignedDivision):
    """Unsigned remainder."""

    name = "arith.remui"
    numpy = staticmethod(scalar.remui)


@dialect.op
class AndI(CommutativeIntegerBinary):
    """Bitwise and."""

    name = "arith.andi"
    numpy = staticmethod(scalar.andi)


@dialect.op
class OrI(CommutativeIntegerBinary):
    """Bitwise or."""

    name = "arith.ori"
    numpy = staticmethod(scalar.ori)


@dialect.op
class XOrI(CommutativeIntegerBinary):
    """Bitwise exclusive or."""

    name = "arith.xori"
    numpy = staticmethod(scalar.xori)


@dialect.op
class ShLI(OverflowBinary):
    """Shift to the left; by the width or more gives 0."""

    name = "arith.shli"
    numpy = staticmethod(scalar.shli)


@dialect.op
class ShRSI(IntegerBinary):
    """Shift to the right, filled with the sign; by the width or more gives the sign."""

    name = "arith.shrsi"
    numpy = staticmethod(scalar.shrsi)


@dialect.op
class ShRUI(IntegerBinary):
    """Shift to the right, filled with zeros; by the width or more gives 0."""

    name = "arith.shrui"
    numpy = staticmethod(scalar.shrui)


@dialect.op
class MaxSI(CommutativeIntegerBinary):
    """The greater, as signed integers."""

    name = "arith.maxsi"
    numpy = staticmethod(scalar.maxsi)


@dialect.op
class MaxUI(CommutativeIntegerBinary):
    """The greater, as unsigned integers."""

    name = "arith.maxui"
    numpy = staticmethod(scalar.maxui)


@dialect.op
class MinSI(CommutativeIntegerBinary):
    """The lesser, as signed integers."""

    name = "arith.minsi"
    numpy = staticmethod(scalar.minsi)


@dialect.op
class MinUI(CommutativeIntegerBinary):
    """The lesser, as unsigned integers."""

    name = "arith.minui"
    numpy = staticmethod(scalar.minui)


# ---------------------------------------------------------------- floats


@dialect.op
class AddF(CommutativeFloatBinary):
    """Sum."""

    name = "arith.addf"
    numpy = staticmethod(scalar.addf)


@dialect.op
class SubF(FloatBinary):
    """Difference."""

    name = "arith.subf"
    numpy = staticmethod(scalar.subf)


@dialect.op
class MulF(CommutativeFloatBinary):
    """Product."""

    name = "arith.mulf"
    numpy = staticmethod(scalar.mulf)


@dialect.op
class DivF(FloatBinary):
    """Quotient."""

    name = "arith.divf"
    numpy = staticmethod(scalar.divf)


@dialect.op
class RemF(FloatBinary):
    """Remainder of the quotient rounded towards zero, as C's fmod; exact."""

    name = "arith.remf"
    numpy = staticmethod(scalar.remf)


@dialect.op
class NegF(FloatUnary):
    """The sign flipped, of zeros too."""

    name = "arith.negf"
    numpy = staticmethod(scalar.negf)


@dialect.op
class MaximumF(CommutativeFloatBinary):
    """The greater; NaN if either is; -0.0 is below +0.0."""

    name = "arith.maximumf"
    numpy = staticmethod(scalar.maximumf)


@dialect.op
class MinimumF(CommutativeFloatBinary):
    """The lesser; NaN if either is; -0.0 is below +0.0."""

    name = "arith.minimumf"
    numpy = staticmethod(scalar.minimumf)


@dialect.op
class MaxNumF(CommutativeFloatBinary):
    """The greater; where one is NaN, the other; -0.0 is below +0.0."""

    name = "arith.maxnumf"
    numpy = staticmethod(scalar.maxnumf)


@dialect.op
class MinNumF(CommutativeFloatBinary):
    """The lesser; where one is NaN, the other; -0.0 is below +0.0."""

    name = "arith.minnumf"
    numpy = staticmethod(scalar.minnumf)


# ---------------------------------------------------------------- comparison and choice


def _comparable(op: Operation) -> None:
    lhs, rhs = op.operands
    if lhs.type is not rhs.type:
        raise op.error(f"requires all operands to have the same type, but has '{lhs.type}' and '{rhs.type}'")
    wanted = with_element(lhs.type, i1)
    if op.result.type is not wanted:
        raise op.error(f"result #0 must be '{wanted}', but got '{op.result.type}'")


def _predicate(names: Sequence[str]) -> Any:
    last = len(names) - 1
    holds = Constraint(
        f"a number from 0 to {last}", lambda a: isinstance(a, IntegerAttr) and a.type is i64 and 0 <= a.value <= last
    )
    return attribute(holds, doc=f"a number: {', '.join(names)}")


_ORDERS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOAT_ORDERS = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip


class _Compare(ScalarOp):
    """`predicate` is MLIR's number; `op.relation` its name."""

    traits = (Pure, Trait("SameTypeOperands", _comparable, types_only=True))
    predicates: ClassVar[tuple[str, ...]]
    reflexive: ClassVar[dict[str, bool]]  # what a predicate says of a value and itself, where that is known
    out = result(BoolLike)

    @property
    def relation(self) -> str:
        """The predicate's name, such as slt."""
        return self.predicates[self.predicate]

    @classmethod
    def code(cls, relation: str) -> int:
        """The number of a predicate."""
        return cls.predicates.index(relation)

    def infer_types(self) -> list[Type]:
        return [with_element(self.operands[0].type, i1)]

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        relation = p.keyword(*cls.predicates)
        p.expect(",")
        op = super().parse_items(p)
        op.set("predicate", cls.code(relation))
        return op

    def print_items(self, p: Printer) -> None:
        p.write(" ", self.relation, ", ", p.names(self.operands))
        p.attr_dict(self, ["predicate", *print_flags(p, self)])
        p.write(" : ", self.operands[0].type)

    def evaluate(self, *arrays: Any) -> Any:
        return type(self).numpy(self.relation, *arrays)

    def fold(self, constants: Sequence[Attribute | None]) -> Folded:
        lhs, rhs = self.operands
        if lhs is rhs and self.relation in self.reflexive:
            return scalar.try_constant(self.reflexive[self.relation], self.result.type)
        return super().fold(constants)


@dialect.op
class CmpI(_Compare):
    """Comparison of integers: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge."""

    name = "arith.cmpi"
    predicates = _ORDERS
    predicate = _predicate(_ORDERS)
    reflexive = {p: p[-2:] in ("eq", "le", "ge") for p in predicates}
    lhs = operand(SignlessIntegerLike)
    rhs = operand(SignlessIntegerLike)
    numpy = staticmethod(scalar.cmpi)


@dialect.op
class CmpF(_Compare):
    """Comparison of floats: o... is false and u... true where an operand is NaN; ord, uno ask just that."""

    name = "arith.cmpf"
    predicates = _FLOAT_ORDERS
    predicate = _predicate(_FLOAT_ORDERS)
    reflexive = {
        "false": False, "true": True, "ogt": False, "olt": False, "one": False, "ueq": True, "uge": True, "ule": True,
    }  # fmt: skip
    lhs = operand(FloatLike)
    rhs = operand(FloatLike)
    fastmath = attribute(AnyAttr, default=NO_FASTMATH)
    numpy = staticmethod(scalar.cmpf)


def _selectable(op: Operation) -> None:
    condition, true_value, false_value = op.operands
    if not true_value.type is false_value.type is op.result.type:
        raise op.error("failed to verify that all of {true_value, false_value, result} have same type")
    wanted = with_element(op.result.type, i1)
    if condition.type is not i1 and condition.type is not wanted:
        raise op.error("expected condition type to have the same shape as the result type, expected "
                       f"'{wanted}', but got '{condition.type}'")  # fmt: skip


@dialect.op
class Select(ScalarOp):
    """The first value where the condition is true, else the second. The condition may be one i1 for all elements."""

    name = "arith.select"
    traits = (Pure, Trait("Selectable", _selectable, types_only=True))
    condition = operand(BoolLike)
    true_value = operand()
    false_value = operand()
    out = result()
    numpy = staticmethod(scalar.select)

    def infer_types(self) -> list[Type]:
        return [self.operands[1].type]

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        names, attributes = p.values(), p.attr_dict()
        p.expect(":")
        types = p.types()
        if len(names) != 3 or len(types) > 2:
            raise p.error("expected three operands and one type, or two")
        condition = types[0] if len(types) == 2 else i1
        return p.make([p.resolve(n, t) for n, t in zip(names, (condition, types[-1], types[-1]))], None, {}, attributes)

    def print_items(self, p: Printer) -> None:
        condition, true_value, _ = self.operands
        p.write(" ", p.names(self.operands))
        p.attr_dict(self)
        p.write(" : ", *([] if condition.type is i1 else [condition.type, ", "]), true_value.type)

    def fold(self, constants: Sequence[Attribute | None]) -> Folded:
        condition, true_value, false_value = self.operands
        if true_value is false_value:
            return true_value
        known = scalar.splat_of(constants[0])
        if known is not None:
            return true_value if known else false_value
        same_shape = condition.type is with_element(self.result.type, i1)
        return super().fold(constants) if same_shape and scalar.has_dtype(self.result.type) else None


# ---------------------------------------------------------------- conversions


def _bits(type: Type) -> int:
    return 64 if isinstance(type, IndexType) else getattr(element_of(type), "width", 0)


def _castable(op: Operation) -> None:
    source, target = op.operands[0].type, op.result.type
    same_shape = with_element(source, element_of(target)) is target
    if not same_shape or not op.compatible(element_of(source), element_of(target)):  # type: ignore[attr-defined]
        raise op.error(f"operand type '{source}' and result type '{target}' are cast incompatible")


class _Cast(ScalarOp):
    """A conversion; the result type must be given."""

    traits = (Pure, Trait("CastOpInterface", _castable, types_only=True))

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        name, flags, attributes = p.value(), parse_flags(p, cls), p.attr_dict()
        p.expect(":")
        source = p.type()
        p.expect("to")
        return p.make([p.resolve(name, source)], [p.type()], flags, attributes)

    def print_items(self, p: Printer) -> None:
        p.write(" ", p.name(self.operands[0]))
        p.attr_dict(self, print_flags(p, self))
        p.write(" : ", self.operands[0].type, " to ", self.results[0].type)

    def infer_types(self) -> list[Type]:
        raise self.error("needs its result type")

    def evaluate(self, *arrays: Any) -> Any:
        return type(self).numpy(*arrays, scalar.dtype_of(self.result.type))

    def compatible(self, source: Type, target: Type) -> bool:
        """Whether the element types fit the cast."""
        return True


class _Widening(_Cast):
    def compatible(self, source: Type, target: Type) -> bool:
        return _bits(source) < _bits(target)


class _Narrowing(_Cast):
    def compatible(self, source: Type, target: Type) -> bool:
        return _bits(source) > _bits(target)


_FixedWidth = like("signless-fixed-width-integer-like", lambda t: isinstance(t, IntegerType) and not t.signedness)


@dialect.op
class ExtF(_Widening):
    """To a wider float type; exact."""

    name = "arith.extf"
    value = operand(FloatLike)
    fastmath = attribute(AnyAttr, optional=True)
    out = result(FloatLike)
    numpy = staticmethod(scalar.round_to)


@dialect.op
class TruncF(_Narrowing):
    """To a narrower float type, rounded to nearest even."""

    name = "arith.truncf"
    value = operand(FloatLike)
    roundingmode = attribute(AnyAttr, optional=True)
    fastmath = attribute(AnyAttr, optional=True)
    out = result(FloatLike)
    numpy = staticmethod(scalar.round_to)

    def fold(self, constants: Sequence[Attribute | None]) -> Folded:
        return super().fold(constants) if self.get("roundingmode") is None else None


@dialect.op
class ExtSI(_Widening):
    """To a wider integer type, filled with the sign."""

    name = "arith.extsi"
    value = operand(_FixedWidth)
    out = result(_FixedWidth)
    numpy = staticmethod(scalar.extend_signed)


@dialect.op
class ExtUI(_Widening):
    """To a wider integer type, filled with zeros."""

    name = "arith.extui"
    value = operand(_FixedWidth)
    out = result(_FixedWidth)
    numpy = staticmethod(scalar.extend_unsigned)


@dialect.op
class TruncI(_Narrowing):
    """To a narrower integer type: the low bits."""

    name = "arith.trunci"
    value = operand(_FixedWidth)
    overflowFlags = attribute(AnyAttr, default=NO_OVERFLOW)
    out = result(_FixedWidth)
    numpy = staticmethod(scalar.resize)


@dialect.op
class SIToFP(_Cast):
    """Signed integer to float, rounded to nearest even."""

    name = "arith.sitofp"
    value = operand(_FixedWidth)
    out = result(FloatLike)
    numpy = staticmethod(scalar.sitofp)


@dialect.op
class UIToFP(_Cast):
    """Unsigned integer to float, rounded to nearest even."""

    name = "arith.uitofp"
    value = operand(_FixedWidth)
    out = result(FloatLike)
    numpy = staticmethod(scalar.uitofp)


@dialect.op
class FPToSI(_Cast):
    """Float to signed integer: truncated, saturated; NaN gives 0."""

    name = "arith.fptosi"
    value = operand(FloatLike)
    out = result(_FixedWidth)
    numpy = staticmethod(scalar.fptosi)


@dialect.op
class FPToUI(_Cast):
    """Float to unsigned integer: truncated, saturated; NaN gives 0."""

    name = "arith.fptoui"
    value = operand(FloatLike)
    out = result(_FixedWidth)
    numpy = staticmethod(scalar.fptoui)


class _IndexCast(_Cast):
    def compatible(self, source: Type, target: Type) -> bool:
        return isinstance(source, IndexType) != isinstance(target, IndexType)


@dialect.op
class IndexCast(_IndexCast):
    """Between index and an integer type, as signed."""

    name = "arith.index_cast"
    value = operand(SignlessIntegerLike)
    out = result(SignlessIntegerLike)
    numpy = staticmethod(scalar.extend_signed)


@dialect.op
class IndexCastUI(_IndexCast):
    """Between index and an integer type, as unsigned."""

    name = "arith.index_castui"
    value = operand(SignlessIntegerLike)
    out = result(SignlessIntegerLike)
    numpy = staticmethod(scalar.extend_unsigned)


_Bits = like("signless-integer-or-float-like", lambda t: isinstance(t, FloatType) or _FixedWidth.holds(t))


@dialect.op
class Bitcast(_Cast):
    """The same bits in another type of the same width."""

    name = "arith.bitcast"
    value = operand(_Bits)
    out = result(_Bits)
    numpy = staticmethod(scalar.bitcast)

    def compatible(self, source: Type, target: Type) -> bool:
        return _bits(source) == _bits(target)
