"""The conversions of `arith`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.attributes import Attribute, FloatType, IndexType, IntegerType, Type
from ..ir.core import Operation
from ..ir.definition import (
    AnyAttr,
    FloatLike,
    SignlessIntegerLike,
    Trait,
    attribute,
    element_of,
    like,
    operand,
    result,
)
from ..ir.registry import Dialect, Pure
from . import scalar, scalar_numpy
from .scalar_ops import NO_OVERFLOW, Folded, ScalarOp, parse_flags, print_flags, with_element

if TYPE_CHECKING:
    from ..ir.item_parser import ItemParser
    from ..ir.printer import Printer

dialect = Dialect("arith", "Arithmetic on integers and floats.")


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


_FixedWidth = like(
    "signless-fixed-width-integer-like", lambda t: isinstance(t, IntegerType) and not t.signedness
)


@dialect.op
class ExtF(_Widening):
    """To a wider float type; exact."""

    name = "arith.extf"
    value = operand(FloatLike)
    fastmath = attribute(AnyAttr, optional=True)
    out = result(FloatLike)
    numpy = staticmethod(scalar_numpy.round_to)


@dialect.op
class TruncF(_Narrowing):
    """To a narrower float type, rounded to nearest even."""

    name = "arith.truncf"
    value = operand(FloatLike)
    roundingmode = attribute(AnyAttr, optional=True)
    fastmath = attribute(AnyAttr, optional=True)
    out = result(FloatLike)
    numpy = staticmethod(scalar_numpy.round_to)

    def fold(self, constants: Sequence[Attribute | None]) -> Folded:
        return super().fold(constants) if self.get("roundingmode") is None else None


@dialect.op
class ExtSI(_Widening):
    """To a wider integer type, filled with the sign."""

    name = "arith.extsi"
    value = operand(_FixedWidth)
    out = result(_FixedWidth)
    numpy = staticmethod(scalar_numpy.extend_signed)


@dialect.op
class ExtUI(_Widening):
    """To a wider integer type, filled with zeros."""

    name = "arith.extui"
    value = operand(_FixedWidth)
    out = result(_FixedWidth)
    numpy = staticmethod(scalar_numpy.extend_unsigned)


@dialect.op
class TruncI(_Narrowing):
    """To a narrower integer type: the low bits."""

    name = "arith.trunci"
    value = operand(_FixedWidth)
    overflowFlags = attribute(AnyAttr, default=NO_OVERFLOW)
    out = result(_FixedWidth)
    numpy = staticmethod(scalar_numpy.resize)


@dialect.op
class SIToFP(_Cast):
    """Signed integer to float, rounded to nearest even."""

    name = "arith.sitofp"
    value = operand(_FixedWidth)
    out = result(FloatLike)
    numpy = staticmethod(scalar_numpy.sitofp)


@dialect.op
class UIToFP(_Cast):
    """Unsigned integer to float, rounded to nearest even."""

    name = "arith.uitofp"
    value = operand(_FixedWidth)
    out = result(FloatLike)
    numpy = staticmethod(scalar_numpy.uitofp)


@dialect.op
class FPToSI(_Cast):
    """Float to signed integer: truncated, saturated; NaN gives 0."""

    name = "arith.fptosi"
    value = operand(FloatLike)
    out = result(_FixedWidth)
    numpy = staticmethod(scalar_numpy.fptosi)


@dialect.op
class FPToUI(_Cast):
    """Float to unsigned integer: truncated, saturated; NaN gives 0."""

    name = "arith.fptoui"
    value = operand(FloatLike)
    out = result(_FixedWidth)
    numpy = staticmethod(scalar_numpy.fptoui)


class _IndexCast(_Cast):
    def compatible(self, source: Type, target: Type) -> bool:
        return isinstance(source, IndexType) != isinstance(target, IndexType)


@dialect.op
class IndexCast(_IndexCast):
    """Between index and an integer type, as signed."""

    name = "arith.index_cast"
    value = operand(SignlessIntegerLike)
    out = result(SignlessIntegerLike)
    numpy = staticmethod(scalar_numpy.extend_signed)


@dialect.op
class IndexCastUI(_IndexCast):
    """Between index and an integer type, as unsigned."""

    name = "arith.index_castui"
    value = operand(SignlessIntegerLike)
    out = result(SignlessIntegerLike)
    numpy = staticmethod(scalar_numpy.extend_unsigned)


_Bits = like("signless-integer-or-float-like", lambda t: isinstance(t, FloatType) or _FixedWidth.holds(t))


@dialect.op
class Bitcast(_Cast):
    """The same bits in another type of the same width."""

    name = "arith.bitcast"
    value = operand(_Bits)
    out = result(_Bits)
    numpy = staticmethod(scalar_numpy.bitcast)

    def compatible(self, source: Type, target: Type) -> bool:
        return _bits(source) == _bits(target)
