"""What is seen of index values in a kernel: which are dims, and which are not negative or not zero."""

from __future__ import annotations

from typing import Any

from ..dialects import loop
from ..ir.attributes import DimsAttr, IndexType
from ..ir.core import Block, BlockArgument, Operation, Value
from ..ir.dims import Dim


def nonnegative(value: Value, depth: int = 12) -> bool:
    """Whether an index is seen to be at least 0: dims, positions, and sums, products and quotients of such. Strides
    and other index arguments may be negative, and so may a dim with a difference in it."""
    dim, owner = dim_of(value), value.owner
    if dim is not None:
        return nonnegative_tree(dim.display_tree())
    if isinstance(owner, Block):
        parent = owner.parent_op
        return isinstance(parent, loop.For) and depth > 0 and nonnegative(parent.lo, depth - 1)
    if owner.op_name == "loop.id":
        return True
    simple = ("addi", "muli", "divui", "remui", "divsi", "remsi", "floordivsi", "ceildivsi", "minsi", "maxsi")
    inside = owner.op_name.partition(".")[2] in simple and depth > 0
    return inside and all(nonnegative(v, depth - 1) for v in owner.operands)


def nonnegative_tree(tree: tuple[Any, ...]) -> bool:
    """The same of a dim as it is printed."""
    kind, *rest = tree
    if kind == "const":
        return bool(rest[0] >= 0)
    return kind == "sym" or (kind != "sub" and all(map(nonnegative_tree, rest)))


def dim_of(value: Value) -> Dim | None:
    """The dim that `value` is, where it says so."""
    op = value.defining_op
    if op is not None and op.op_name == "dim.value":
        return next((a.dims[0] for a in op.properties.values() if isinstance(a, DimsAttr)), None)
    if op is not None and op.op_name == "arith.constant" and isinstance(value.type, IndexType):
        return Dim.constant(op.value_of("value"))
    kernel = value.owner.parent_op if isinstance(value.owner, Block) else None
    if isinstance(kernel, loop.Kernel) and isinstance(value, BlockArgument):
        symbols = [s for s, a in kernel.symbol_arguments.items() if a is value]
        return Dim.symbol(symbols[0]) if symbols else None
    return None


def factors(dim: Dim | None) -> frozenset[str] | None:
    """The symbols of a product of symbols and a positive number; None for other dims."""
    if dim is None or len(dim.terms) != 1 or dim.terms[0][0] <= 0:
        return None
    names = [str(atom) for atom, _ in dim.terms[0][1]]
    return frozenset(names) if set(names) <= dim.symbols else None


def positive(value: Value, op: Operation) -> bool:
    """Whether a divisor is seen to be at least 1: its symbols are factors of what a loop round `op` runs to."""
    wanted = factors(dim_of(value))
    inner = op.parent_op
    while wanted and inner is not None:
        if isinstance(inner, loop.For) and nonnegative(inner.lo):
            wanted -= factors(dim_of(inner.hi)) or frozenset()
        inner = inner.parent_op
    return wanted is not None and not wanted
