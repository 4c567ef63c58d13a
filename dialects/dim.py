"""`dim`: symbolic sizes as values, and the checks that they need at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.attributes import Attribute, IntegerAttr, Type, i64, index
from ..ir.core import Operation
from ..ir.definition import AnyTensor, Dims, Facts, Index, Int, String, attribute, operand, result
from ..ir.dims import Dim
from ..ir.registry import Dialect, Pure
from ..ir.rewriter import PatternRewriter, pattern
from . import scalar

if TYPE_CHECKING:
    from ..ir.item_parser import ItemParser
    from ..ir.printer import Printer

dialect = Dialect("dim", "Symbolic sizes.", closed=True)


@dialect.op
class ValueOp(Operation):
    """The value of a dim expression."""

    name = "dim.value"
    traits = (Pure,)
    value = attribute(Dims, doc="one dim")
    out = result(Index)
    assembly = "$value attr-dict `:` type($out)"

    @property
    def expression(self) -> Dim:
        """The dim."""
        dim: Dim = self.value[0]
        return dim

    def infer_types(self) -> list[Type]:
        return [index]

    def fold(self, constants: Sequence[Attribute | None]) -> Attribute | None:
        dim = self.expression
        return scalar.constant(dim.value, index) if dim.is_constant else None

    def verify_op(self) -> None:
        if len(self.value) != 1 or self.value[0] is None:
            raise self.error(f"needs one dim, not {self.get('value')}")


@pattern()
def size_of_known_dim(op: Any, rewriter: PatternRewriter) -> bool:
    """`dim.of` of an axis whose dim the type names is `dim.value`."""
    dim = op.tensor.type.shape[op.axis]
    if dim is None:
        return False
    rewriter.replace(op, rewriter.create(ValueOp, value=dim))
    return True


@dialect.op
class OfOp(Operation):
    """The size of a tensor along one axis."""

    name = "dim.of"
    traits = (Pure,)
    tensor = operand(AnyTensor)
    axis = attribute(Int)
    out = result(Index)
    canonicalization = [size_of_known_dim]

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        tensor = p.resolve(p.value())
        p.expect(",")
        axis, attributes = p.integer(), p.attr_dict()
        p.expect(":")
        return p.make([tensor], [p.type()], {"axis": IntegerAttr(axis, i64)}, attributes)

    def print_items(self, p: Printer) -> None:
        p.write(" ", p.name(self.tensor), f", {self.axis}")
        p.attr_dict(self, ["axis"])
        p.write(" : ", index)

    def infer_types(self) -> list[Type]:
        return [index]

    def verify_op(self) -> None:
        rank = self.tensor.type.rank
        if not 0 <= self.axis < rank:
            raise self.error(f"axis {self.axis} is not one of the {rank} axes of '{self.tensor.type}'")


@dialect.op
class AssertOp(Operation):
    """Stops the program with a message where a relation between dims does not hold; later code may rely on
    it."""

    name = "dim.assert"
    relation = attribute(Facts)
    message = attribute(String)
    assembly = "attr-dict"
