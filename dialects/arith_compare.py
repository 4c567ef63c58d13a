"""The comparisons of `arith`, and the choice between two values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..ir.attributes import Attribute, IntegerAttr, Type, i1, i64
from ..ir.core import Operation
from ..ir.definition import (
    AnyAttr,
    BoolLike,
    Constraint,
    FloatLike,
    SignlessIntegerLike,
    Trait,
    attribute,
    operand,
    result,
)
from ..ir.registry import Pure
from . import scalar, scalar_numpy
from .arith_casts import dialect
from .scalar_ops import NO_FASTMATH, Folded, ScalarOp, print_flags, with_element

if TYPE_CHECKING:
    from ..ir.item_parser import ItemParser
    from ..ir.printer import Printer


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
        f"a number from 0 to {last}",
        lambda a: isinstance(a, IntegerAttr) and a.type is i64 and 0 <= a.value <= last,
    )
    return attribute(holds, doc=f"a number: {', '.join(names)}")


_ORDERS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOAT_ORDERS = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno",
    "true",
)  # fmt: skip


class _Compare(ScalarOp):
    """`predicate` is MLIR's number; `op.relation` its name."""

    traits = (Pure, Trait("SameTypeOperands", _comparable, types_only=True))
    predicates: ClassVar[tuple[str, ...]]
    predicate: Any
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
    numpy = staticmethod(scalar_numpy.cmpi)


@dialect.op
class CmpF(_Compare):
    """Comparison of floats: o... is false and u... true where an operand is NaN; ord, uno ask just that."""

    name = "arith.cmpf"
    predicates = _FLOAT_ORDERS
    predicate = _predicate(_FLOAT_ORDERS)
    reflexive = {
        "false": False, "true": True, "ogt": False, "olt": False, "one": False, "ueq": True, "uge": True,
        "ule": True,
    }  # fmt: skip
    lhs = operand(FloatLike)
    rhs = operand(FloatLike)
    fastmath = attribute(AnyAttr, default=NO_FASTMATH)
    numpy = staticmethod(scalar_numpy.cmpf)


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
    """The first value where the condition is true, else the second. The condition may be one i1 for all
    elements."""

    name = "arith.select"
    traits = (Pure, Trait("Selectable", _selectable, types_only=True))
    condition = operand(BoolLike)
    true_value = operand()
    false_value = operand()
    out = result()
    numpy = staticmethod(scalar_numpy.select)

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
        return p.make(
            [p.resolve(n, t) for n, t in zip(names, (condition, types[-1], types[-1]))], None, {}, attributes
        )

    def print_items(self, p: Printer) -> None:
        condition, true_value, _ = self.operands
        p.write(" ", p.names(self.operands))
        p.attr_dict(self)
        p.write(" : ")
        if condition.type is not i1:
            p.write(condition.type, ", ")
        p.write(true_value.type)

    def fold(self, constants: Sequence[Attribute | None]) -> Folded:
        condition, true_value, false_value = self.operands
        if true_value is false_value:
            return true_value
        known = scalar.splat_of(constants[0])
        if known is not None:
            return true_value if known else false_value
        same_shape = condition.type is with_element(self.result.type, i1)
        return super().fold(constants) if same_shape and scalar.has_dtype(self.result.type) else None
