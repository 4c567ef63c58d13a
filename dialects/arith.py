"""MLIR's `arith`: integer and float arithmetic, comparisons and conversions, on scalars, vectors and
tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.attributes import Attribute, DenseAttr, FloatAttr, IndexType, IntegerAttr, IntegerType, Type, i1
from ..ir.core import Operation
from ..ir.definition import Constraint, attribute, build, result
from ..ir.registry import Pure
from ..ir.rewriter import ConstantLike, materializes_constants
from . import scalar, scalar_numpy
from .arith_casts import (
    Bitcast,
    ExtF,
    ExtSI,
    ExtUI,
    FPToSI,
    FPToUI,
    IndexCast,
    IndexCastUI,
    SIToFP,
    TruncF,
    TruncI,
    UIToFP,
    dialect,
)
from .arith_compare import CmpF, CmpI, Select
from .scalar_ops import (
    CommutativeFloatBinary,
    CommutativeIntegerBinary,
    FloatBinary,
    FloatUnary,
    IntegerBinary,
    IntegerDivision,
    OverflowBinary,
    UnsignedDivision,
)

if TYPE_CHECKING:
    from ..ir.item_parser import ItemParser
    from ..ir.printer import Printer

__all__ = [
    "ExtF",
    "TruncF",
    "ExtSI",
    "ExtUI",
    "TruncI",
    "SIToFP",
    "UIToFP",
    "FPToSI",
    "FPToUI",
    "IndexCast",
    "IndexCastUI",
    "Bitcast",
    "CmpI",
    "CmpF",
    "Select",
    "Constant",
    "constant",
    "dialect",
    "AddI",
    "SubI",
    "MulI",
    "DivSI",
    "DivUI",
    "CeilDivSI",
    "CeilDivUI",
    "FloorDivSI",
    "RemSI",
    "RemUI",
    "AndI",
    "OrI",
    "XOrI",
    "ShLI",
    "ShRSI",
    "ShRUI",
    "MaxSI",
    "MaxUI",
    "MinSI",
    "MinUI",
    "AddF",
    "SubF",
    "MulF",
    "DivF",
    "RemF",
    "NegF",
    "MaximumF",
    "MinimumF",
    "MaxNumF",
    "MinNumF",
]


def _is_constant(attribute: Attribute) -> bool:
    return (
        isinstance(attribute, (IntegerAttr, FloatAttr, DenseAttr))
        or getattr(attribute, "type", None) is not None
    )


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
    numpy = staticmethod(scalar_numpy.addi)


@dialect.op
class SubI(OverflowBinary):
    """Difference, wrapping around."""

    name = "arith.subi"
    numpy = staticmethod(scalar_numpy.subi)


@dialect.op
class MulI(OverflowBinary, CommutativeIntegerBinary):
    """Product, wrapping around."""

    name = "arith.muli"
    numpy = staticmethod(scalar_numpy.muli)


@dialect.op
class DivSI(IntegerDivision):
    """Signed quotient, rounded towards zero."""

    name = "arith.divsi"
    numpy = staticmethod(scalar_numpy.divsi)


@dialect.op
class DivUI(UnsignedDivision):
    """Unsigned quotient, rounded towards zero."""

    name = "arith.divui"
    numpy = staticmethod(scalar_numpy.divui)


@dialect.op
class CeilDivSI(IntegerDivision):
    """Signed quotient, rounded up."""

    name = "arith.ceildivsi"
    numpy = staticmethod(scalar_numpy.ceildivsi)


@dialect.op
class CeilDivUI(UnsignedDivision):
    """Unsigned quotient, rounded up."""

    name = "arith.ceildivui"
    numpy = staticmethod(scalar_numpy.ceildivui)


@dialect.op
class FloorDivSI(IntegerDivision):
    """Signed quotient, rounded down: -7 by 2 is -4."""

    name = "arith.floordivsi"
    numpy = staticmethod(scalar_numpy.floordivsi)


@dialect.op
class RemSI(IntegerDivision):
    """Signed remainder, with the sign of the dividend."""

    name = "arith.remsi"
    numpy = staticmethod(scalar_numpy.remsi)


@dialect.op
class RemUI(UnsignedDivision):
    """Unsigned remainder."""

    name = "arith.remui"
    numpy = staticmethod(scalar_numpy.remui)


@dialect.op
class AndI(CommutativeIntegerBinary):
    """Bitwise and."""

    name = "arith.andi"
    numpy = staticmethod(scalar_numpy.andi)


@dialect.op
class OrI(CommutativeIntegerBinary):
    """Bitwise or."""

    name = "arith.ori"
    numpy = staticmethod(scalar_numpy.ori)


@dialect.op
class XOrI(CommutativeIntegerBinary):
    """Bitwise exclusive or."""

    name = "arith.xori"
    numpy = staticmethod(scalar_numpy.xori)


@dialect.op
class ShLI(OverflowBinary):
    """Shift to the left; by the width or more gives 0."""

    name = "arith.shli"
    numpy = staticmethod(scalar_numpy.shli)


@dialect.op
class ShRSI(IntegerBinary):
    """Shift to the right, filled with the sign; by the width or more gives the sign."""

    name = "arith.shrsi"
    numpy = staticmethod(scalar_numpy.shrsi)


@dialect.op
class ShRUI(IntegerBinary):
    """Shift to the right, filled with zeros; by the width or more gives 0."""

    name = "arith.shrui"
    numpy = staticmethod(scalar_numpy.shrui)


@dialect.op
class MaxSI(CommutativeIntegerBinary):
    """The greater, as signed integers."""

    name = "arith.maxsi"
    numpy = staticmethod(scalar_numpy.maxsi)


@dialect.op
class MaxUI(CommutativeIntegerBinary):
    """The greater, as unsigned integers."""

    name = "arith.maxui"
    numpy = staticmethod(scalar_numpy.maxui)


@dialect.op
class MinSI(CommutativeIntegerBinary):
    """The lesser, as signed integers."""

    name = "arith.minsi"
    numpy = staticmethod(scalar_numpy.minsi)


@dialect.op
class MinUI(CommutativeIntegerBinary):
    """The lesser, as unsigned integers."""

    name = "arith.minui"
    numpy = staticmethod(scalar_numpy.minui)


# ---------------------------------------------------------------- floats


@dialect.op
class AddF(CommutativeFloatBinary):
    """Sum."""

    name = "arith.addf"
    numpy = staticmethod(scalar_numpy.addf)


@dialect.op
class SubF(FloatBinary):
    """Difference."""

    name = "arith.subf"
    numpy = staticmethod(scalar_numpy.subf)


@dialect.op
class MulF(CommutativeFloatBinary):
    """Product."""

    name = "arith.mulf"
    numpy = staticmethod(scalar_numpy.mulf)


@dialect.op
class DivF(FloatBinary):
    """Quotient."""

    name = "arith.divf"
    numpy = staticmethod(scalar_numpy.divf)


@dialect.op
class RemF(FloatBinary):
    """Remainder of the quotient rounded towards zero, as C's fmod; exact."""

    name = "arith.remf"
    numpy = staticmethod(scalar_numpy.remf)


@dialect.op
class NegF(FloatUnary):
    """The sign flipped, of zeros too."""

    name = "arith.negf"
    numpy = staticmethod(scalar_numpy.negf)


@dialect.op
class MaximumF(CommutativeFloatBinary):
    """The greater; NaN if either is; -0.0 is below +0.0."""

    name = "arith.maximumf"
    numpy = staticmethod(scalar_numpy.maximumf)


@dialect.op
class MinimumF(CommutativeFloatBinary):
    """The lesser; NaN if either is; -0.0 is below +0.0."""

    name = "arith.minimumf"
    numpy = staticmethod(scalar_numpy.minimumf)


@dialect.op
class MaxNumF(CommutativeFloatBinary):
    """The greater; where one is NaN, the other; -0.0 is below +0.0."""

    name = "arith.maxnumf"
    numpy = staticmethod(scalar_numpy.maxnumf)


@dialect.op
class MinNumF(CommutativeFloatBinary):
    """The lesser; where one is NaN, the other; -0.0 is below +0.0."""

    name = "arith.minnumf"
    numpy = staticmethod(scalar_numpy.minnumf)
