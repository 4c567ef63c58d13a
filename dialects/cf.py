"""MLIR's `cf`: branches between the blocks of a region (for interchange and tests)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.attributes import Attribute, DenseArrayAttr, IntegerAttr, i1, i32
from ..ir.core import Block, Operation, Value
from ..ir.definition import Constraint, Ints, attribute, operand, successor
from ..ir.diagnostics import IRError
from ..ir.registry import Dialect, Terminator
from ..ir.rewriter import PatternRewriter, constant_of, pattern

if TYPE_CHECKING:
    from ..ir.item_parser import ItemParser
    from ..ir.printer import Printer

dialect = Dialect("cf", "Branches.")
Bool = Constraint("1-bit signless integer", lambda t: t is i1)


class Branch(Operation):
    """A terminator that passes values to its successors."""

    def successor_operands(self, number: int) -> tuple[Value, ...]:
        """The values for the arguments of successor `number`."""
        raise NotImplementedError

    def targets(self) -> list[tuple[Block, tuple[Value, ...]]]:
        """Each successor with its values."""
        return [(b, self.successor_operands(i)) for i, b in enumerate(self.successors)]

    def verify_op(self) -> None:
        for number, (block, values) in enumerate(self.targets()):
            if len(values) != len(block.arguments):
                raise IRError(
                    f"branch has {len(values)} operands for successor #{number}, "
                    f"but target block has {len(block.arguments)}",
                    self.location,
                )
            for at, (value, argument) in enumerate(zip(values, block.arguments)):
                if value.type is not argument.type:
                    raise IRError(
                        f"type mismatch for bb argument #{at} of successor #{number}", self.location
                    )


def forwarded(block: Block, values: Sequence[Value]) -> tuple[Block, tuple[Value, ...]] | None:
    """Where a branch to `block` ends up, if all that the block does is branch on."""
    op = block.first
    if not isinstance(op, BranchOp) or op.dest is block:
        return None
    if any(user is not op for a in block.arguments for user in a.uses):
        return None
    mapping = dict(zip(block.arguments, values))
    return op.dest, tuple(mapping.get(v, v) for v in op.operands)  # type: ignore[call-overload]


@pattern()
def branch_through(op: Any, rewriter: PatternRewriter) -> bool:
    """A branch to a block that only branches on goes there directly."""
    targets = op.targets()
    onward = [forwarded(b, v) for b, v in targets]
    if all(o is None for o in onward):
        return False
    op.retarget([o or t for o, t in zip(onward, targets)], rewriter)
    return True


@dialect.op
class BranchOp(Branch):
    """Goes to a block."""

    name = "cf.br"
    traits = (Terminator,)
    values = operand(variadic=True)
    dest = successor()
    canonicalization = [branch_through]

    def successor_operands(self, number: int) -> tuple[Value, ...]:
        return self.operands

    def retarget(self, targets: Sequence[tuple[Block, tuple[Value, ...]]], rewriter: PatternRewriter) -> None:
        """Go to another block."""
        self.successors = (targets[0][0],)
        rewriter.set_operands(self, targets[0][1])

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        block, values = p.successor(), p.successor_operands()
        return p.make(values, (), {}, p.attr_dict(), successors=[block])

    def print_items(self, p: Printer) -> None:
        p.write(" ")
        p.successor(self.dest, self.operands)
        p.attr_dict(self)


@pattern()
def known_condition(op: Any, rewriter: PatternRewriter) -> bool:
    """A conditional branch on a constant, or with equal targets, is a branch."""
    targets = op.targets()
    condition = constant_of(op.condition)
    if isinstance(condition, IntegerAttr):
        target = targets[0] if condition.value else targets[1]
    elif targets[0] == targets[1]:
        target = targets[0]
    else:
        return False
    made = BranchOp(target[1], (), successors=(target[0],), location=op.location)
    rewriter.insert(made)
    rewriter.erase(op)
    return True


@dialect.op
class CondBranchOp(Branch):
    """Goes to one of two blocks."""

    name = "cf.cond_br"
    traits = (Terminator,)
    condition = operand(Bool)
    true_values = operand(variadic=True)
    false_values = operand(variadic=True)
    branch_weights = attribute(Ints, optional=True)
    true_dest = successor()
    false_dest = successor()
    canonicalization = [known_condition, branch_through]

    @staticmethod
    def sizes(true_values: Sequence[Value], false_values: Sequence[Value]) -> dict[str, Attribute]:
        """The property that says how many values each successor gets."""
        return {"operandSegmentSizes": DenseArrayAttr(i32, (1, len(true_values), len(false_values)))}

    def successor_operands(self, number: int) -> tuple[Value, ...]:
        return self.false_values if number else self.true_values  # type: ignore[no-any-return]

    def retarget(self, targets: Sequence[tuple[Block, tuple[Value, ...]]], rewriter: PatternRewriter) -> None:
        """Go to other blocks."""
        (true_dest, true_values), (false_dest, false_values) = targets
        self.successors = (true_dest, false_dest)
        condition = self.condition
        self.properties = {**self.properties, **self.sizes(true_values, false_values)}
        rewriter.set_operands(self, (condition, *true_values, *false_values))

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        condition = p.resolve(p.value(), i1)
        p.expect(",")
        true_dest, true_values = p.successor(), p.successor_operands()
        p.expect(",")
        false_dest, false_values = p.successor(), p.successor_operands()
        operands = [condition, *true_values, *false_values]
        sizes = cls.sizes(true_values, false_values)
        return p.make(operands, (), sizes, p.attr_dict(), successors=[true_dest, false_dest])

    def print_items(self, p: Printer) -> None:
        p.write(" ", p.name(self.condition))
        for block, values in self.targets():
            p.write(", ")
            p.successor(block, values)
        p.attr_dict(self, ["operandSegmentSizes"])
