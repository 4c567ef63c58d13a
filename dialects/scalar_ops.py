"""What the operations of `arith` and `math` share: families by operand kinds, evaluation, constant
folding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..ir.attributes import Attribute, OpaqueAttr, TensorType, Type, VectorType, i1
from ..ir.core import Operation, Value
from ..ir.definition import AnyAttr, BoolLike, FloatLike, SignlessIntegerLike, attribute, operand, result
from ..ir.registry import Commutative, Pure, SameOperandsAndResultType
from . import scalar, scalar_numpy

if TYPE_CHECKING:
    from ..ir.item_parser import ItemParser
    from ..ir.printer import Printer

Folded = Value | Attribute | None
SAME = (Pure, SameOperandsAndResultType)
NO_FASTMATH = OpaqueAttr("#arith.fastmath<none>")
NO_OVERFLOW = OpaqueAttr("#arith.overflow<none>")


def with_element(type: Type, element: Type) -> Type:
    """`type` with another element type: the same shape, or the scalar `element`."""
    if isinstance(type, TensorType):
        return TensorType(type.shape, element, type.encoding)
    return VectorType(type.shape, element, type.scalable) if isinstance(type, VectorType) else element


FLAGS = (("fastmath", "fastmath", ","), ("overflowFlags", "overflow", ", "))  # property, keyword, separator


def parse_flags(p: ItemParser, cls: type[Operation]) -> dict[str, Any]:
    """`fastmath<contract>` or `overflow<nsw>`, where the operation has such a property."""
    found = {}
    for name, word, separator in FLAGS:
        if name in cls.definition.attributes and p.optional(word):
            found[name] = OpaqueAttr(f"#arith.{word}<{separator.join(p.angle_names())}>")
    return found


def print_flags(p: Printer, op: Operation) -> list[str]:
    """Write the flags that are set; the names of the properties that are dealt with."""
    written = []
    for name, word, _ in FLAGS:
        value = op.properties.get(name)
        if isinstance(value, OpaqueAttr) and value.text.startswith(f"#arith.{word}<"):
            written.append(name)
            if value not in (NO_FASTMATH, NO_OVERFLOW):
                p.write(" ", value.text.removeprefix("#arith."))
    return written


class ScalarOp(Operation):
    """An operation on scalars, or elementwise on vectors and tensors. `numpy` is its meaning.

    Its text is `op %a, %b flags {attributes} : type`, the type being that of all operands."""

    numpy: ClassVar[Callable[..., Any]]
    traits: ClassVar[tuple[Any, ...]] = SAME

    def infer_types(self) -> list[Type]:
        return [self.operands[0].type]

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        names, flags, attributes = p.values(), parse_flags(p, cls), p.attr_dict()
        p.expect(":")
        type = p.type()
        return p.make([p.resolve(n, type) for n in names], None, flags, attributes)

    def print_items(self, p: Printer) -> None:
        p.write(" ", p.names(self.operands))
        p.attr_dict(self, print_flags(p, self))
        p.write(" : ", self.operands[0].type)

    def evaluate(self, *arrays: Any) -> Any:
        """The result on arrays of the operands' element types; see scalar.evaluate."""
        return type(self).numpy(*arrays)

    def folds(self, *arrays: Any) -> bool:
        """Whether constant operands may be replaced by the result; not where MLIR leaves the result
        undefined."""
        return True

    def fold(self, constants: Sequence[Attribute | None]) -> Folded:
        """The result for constant operands; None where it is not known. `constants` follow the operands."""
        if None in constants or not scalar.has_dtype(self.result.type):
            return None
        arrays = [scalar.array_of(c) for c in constants if c is not None]
        if any(a is None for a in arrays) or not self.folds(*arrays):
            return None
        return scalar.constant(scalar.evaluate(self, *arrays), self.result.type)


class IntegerBinary(ScalarOp):
    """Two integers of one type."""

    lhs = operand(SignlessIntegerLike)
    rhs = operand(SignlessIntegerLike)
    out = result(SignlessIntegerLike)


class CommutativeIntegerBinary(IntegerBinary):
    traits = (*SAME, Commutative)


class OverflowBinary(IntegerBinary):
    """An integer operation that may promise not to overflow; results wrap all the same."""

    overflowFlags = attribute(AnyAttr, default=NO_OVERFLOW)


class IntegerDivision(IntegerBinary):
    """Folded only where C defines it: not by zero, not the smallest integer by -1."""

    def folds(self, a: Any, b: Any) -> bool:
        low = -1 if a.dtype.kind == "b" else -(1 << (8 * a.dtype.itemsize - 1))
        a, b = scalar_numpy.signed(a), scalar_numpy.signed(b)
        return not ((b == 0) | ((a == low) & (b == -1))).any()


class UnsignedDivision(IntegerBinary):
    def folds(self, a: Any, b: Any) -> bool:
        return bool((b != 0).all())


class FloatBinary(ScalarOp):
    """Two floats of one type."""

    lhs = operand(FloatLike)
    rhs = operand(FloatLike)
    fastmath = attribute(AnyAttr, default=NO_FASTMATH)
    out = result(FloatLike)


class CommutativeFloatBinary(FloatBinary):
    traits = (*SAME, Commutative)


class FloatUnary(ScalarOp):
    """One float."""

    value = operand(FloatLike)
    fastmath = attribute(AnyAttr, default=NO_FASTMATH)
    out = result(FloatLike)


class IntegerUnary(ScalarOp):
    """One integer."""

    value = operand(SignlessIntegerLike)
    out = result(SignlessIntegerLike)


class FloatTest(ScalarOp):
    """A question about a float, answered in i1."""

    traits = (Pure,)
    value = operand(FloatLike)
    fastmath = attribute(AnyAttr, default=NO_FASTMATH)
    out = result(BoolLike)

    def infer_types(self) -> list[Type]:
        return [with_element(self.operands[0].type, i1)]
