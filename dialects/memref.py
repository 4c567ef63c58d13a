"""The part of MLIR's `memref` that tests of effects need: allocation, loads and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.attributes import MemRefType, Type
from ..ir.core import Operation
from ..ir.definition import Bool, Constraint, Index, Int, attribute, operand, result
from ..ir.effects import Allocates, WriteOnly
from ..ir.registry import Dialect, ReadOnly

if TYPE_CHECKING:
    from ..ir.item_parser import ItemParser
    from ..ir.printer import Printer

dialect = Dialect("memref", "Buffers.")
MemRef = Constraint("memref of any type values", lambda t: isinstance(t, MemRefType) and t.ranked)


class _Allocation(Operation):
    """Fresh memory; operands are the sizes of the `?` dims, then the symbols of the layout."""

    traits = (Allocates,)
    dynamic_sizes = operand(Index, variadic=True)
    symbol_operands = operand(Index, variadic=True)
    alignment = attribute(Int, optional=True)
    memref = result(MemRef)

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        p.expect("(")
        sizes = p.values()
        p.expect(")")
        attributes = p.attr_dict()
        p.expect(":")
        type = p.type()
        from ..ir.attributes import DenseArrayAttr, i32

        segments = {"operandSegmentSizes": DenseArrayAttr(i32, (len(sizes), 0))}
        return p.make(p.resolve_all(sizes), [type], segments, attributes)

    def print_items(self, p: Printer) -> None:
        p.write("(", p.names(self.dynamic_sizes), ")")
        if self.symbol_operands:
            p.write("[", p.names(self.symbol_operands), "]")
        p.attr_dict(self, ["operandSegmentSizes"])
        p.write(" : ", self.results[0].type)

    def verify_op(self) -> None:
        wanted = sum(n is None for n in self.memref.type.shape)
        if len(self.dynamic_sizes) != wanted:
            raise self.error("dimension operand count does not equal memref dynamic dimension count")


@dialect.op
class AllocOp(_Allocation):
    """Memory on the heap."""

    name = "memref.alloc"


@dialect.op
class AllocaOp(_Allocation):
    """Memory on the stack."""

    name = "memref.alloca"


@dialect.op
class DeallocOp(Operation):
    """Gives memory back."""

    name = "memref.dealloc"
    memref = operand(MemRef)
    assembly = "$memref attr-dict `:` type($memref)"


@dialect.op
class LoadOp(Operation):
    """Reads one element."""

    name = "memref.load"
    traits = (ReadOnly,)
    memref = operand(MemRef)
    indices = operand(Index, variadic=True)
    nontemporal = attribute(Bool, optional=True)
    out = result()
    assembly = "$memref `[` $indices `]` attr-dict `:` type($memref)"

    def infer_types(self) -> list[Type]:
        return [self.memref.type.element]

    def verify_op(self) -> None:
        _verify_indices(self)
        if self.out.type is not self.memref.type.element:
            raise self.error("failed to verify that result type matches element type of 'memref'")


@dialect.op
class StoreOp(Operation):
    """Writes one element."""

    name = "memref.store"
    traits = (WriteOnly,)
    value = operand()
    memref = operand(MemRef)
    indices = operand(Index, variadic=True)
    nontemporal = attribute(Bool, optional=True)
    assembly = "$value `,` $memref `[` $indices `]` attr-dict `:` type($memref)"

    def verify_op(self) -> None:
        _verify_indices(self)
        if self.value.type is not self.memref.type.element:
            raise self.error("failed to verify that type of 'value' matches element type of 'memref'")


def _verify_indices(op: LoadOp | StoreOp) -> None:
    rank = len(op.memref.type.shape)
    if len(op.indices) != rank:
        raise op.error(f"incorrect number of indices, expected {rank} but got {len(op.indices)}")
