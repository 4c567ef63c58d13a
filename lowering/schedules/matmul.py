"""Matrix products: what a tiled schedule needs to know about one."""

from __future__ import annotations

import attrs

from ...dialects import compute
from ...ir.core import Block, Operation, Value
from ...ir.dims import Dim
from ..combiners import ORDERED, in_any_order, simple_combiner
from ..emit import Emitter, zero_of
from ..fused import Fused, enclosing

PRODUCTS = ("arith.mulf", "arith.muli")
SUMS = ("addf", "addi")


@attrs.define(eq=False)
class Product:
    """sum over k of left(batch, i, k) * right(batch, k, j): `left` and `right` are scalars in the reduction's
    body, and the result is what the reduction and the maps after it give at (batch, i, j)."""

    reduce: compute.Reduce
    left: Value
    right: Value
    result: Value

    @property
    def batch(self) -> tuple[Dim, ...]:
        return self.reduce.shape[:-2]

    @property
    def sizes(self) -> tuple[Dim, Dim, Dim]:
        """m, n, k."""
        m, n = self.reduce.shape[-2:]
        return m, n, self.reduce.extents[0]


def product_form(fused: Fused) -> Product | str:
    """The matrix product in a definition, or why it is none that can be tiled."""
    if len(fused.reductions) != 1 or len(fused.outputs) != 1:
        return "it is not one reduction with one result"
    reduce = fused.reductions[0]
    if len(reduce.extents) != 1 or len(reduce.shape) < 2 or len(reduce.results) != 1:
        return "it is not a product of matrices"
    made = reduce.body.terminator.operands[0].defining_op
    starts_at_zero = reduce.get("inits").elements[0] is zero_of(reduce.result.tensor.element)
    if made is None or made.op_name not in PRODUCTS or simple_combiner(reduce) not in SUMS or not starts_at_zero:
        return "it is not a sum of products"
    if not in_any_order(reduce):
        return ORDERED
    i, j, _ = reduce.body.arguments[-3:]
    for left, right in (made.operands, made.operands[::-1]):
        if j not in sources(left) and i not in sources(right):
            problem = _check_epilogue(fused, reduce)
            return problem or Product(reduce, left, right, fused.outputs[0])
    return "a factor depends on both the row and the column"


def sources(value: Value) -> set[Value]:
    """The block arguments from which a scalar in a body is computed."""
    found: set[Value] = set()
    stack = [value]
    while stack:
        at = stack.pop()
        if isinstance(at.owner, Block):
            found.add(at)
        else:
            stack.extend(at.owner.operands)
    return found


def _check_epilogue(fused: Fused, reduce: compute.Reduce) -> str | None:
    value = fused.outputs[0]
    if value is reduce.result:
        return None
    for op in fused.block.ops:
        for read in compute.reads(op) if _after(op, reduce) else ():
            if read.source in fused.inputs or not _after(read.source.defining_op, reduce, True):
                continue
            if isinstance(read, compute.ReadIf) or [*read.indices] != [*enclosing(read).body.arguments]:
                return "its result is read at other indices than its own"
    return None


def _after(op: Operation | None, reduce: compute.Reduce, itself: bool = False) -> bool:
    """Whether `op` uses the result of `reduce`, directly or not."""
    stack, seen = [op], set()
    while stack:
        at = stack.pop()
        if at is None or at in seen:
            continue
        seen.add(at)
        if at is reduce:
            return itself or op is not reduce
        stack.extend(v.defining_op for v in at.operands)
    return False


def factor(emit: Emitter, product: Product, value: Value, indices: dict[Value, Value]) -> Value:
    """The scalar `value` of the product's body, computed here; `indices` gives the body's arguments."""
    body = product.reduce.body
    needed = _slice(value)
    mapping = dict(indices)
    for op in body.ops:
        if op in needed:
            emit.step(op, mapping, body)
    return mapping[value]


def _slice(value: Value) -> set[Operation]:
    found: set[Operation] = set()
    stack = [value.defining_op]
    while stack:
        op = stack.pop()
        if op is not None and op not in found:
            found.add(op)
            stack.extend(v.defining_op for v in op.operands)
    return found


def innermost(value: Value) -> set[Value]:
    """The body arguments that are the last index of a read: those along which memory is contiguous."""
    return {
        op.indices[-1] for op in _slice(value)
        if isinstance(op, (compute.Read, compute.ReadIf)) and op.indices and isinstance(op.indices[-1].owner, Block)
    }  # fmt: skip
