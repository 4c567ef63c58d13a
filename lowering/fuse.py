"""fuse: operators become groups, each an anchor with the prologues of its operands and the epilogues of its
result. Nothing else changes: what a group computes is what its operators computed."""

from __future__ import annotations

import attrs

from ..dialects import compute, func, nd, nd_base, nn, rt
from ..dialects.operator import Operator, trace
from ..ir.attributes import StringAttr
from ..ir.builder import Builder
from ..ir.core import Block, BlockArgument, Operation, Region, Value
from ..ir.passes import Pass
from .sources import same_shape

LARGEST = 48  # operators of a group: longer chains make kernels that nobody can read, and deep recursion
MOVEMENT = ("nd.transpose", "nd.broadcast", "nd.cast", "nd.slice")


@attrs.define(eq=False)
class Draft:
    """A group that grows: its operators in order, and the one that decides its schedule."""

    ops: list[Operator]
    anchor: Operator
    reduces: bool


@attrs.define
class Fuse(Pass):
    """Group operators: elementwise ones join the operator that uses their result, or whose result they use."""

    name = "fuse"

    def run(self, module: Operation) -> None:
        for op in module.walk():
            if isinstance(op, func.FuncOp) and op.regions[0].blocks:
                for block in op.regions[0].blocks:
                    fuse_block(block)


def fuse_block(block: Block) -> None:
    """Group the operators of one block."""
    for op in list(block.ops):
        if isinstance(op, nd.Reshape):
            _as_view(op)
    drafts: dict[Operator, Draft] = {}
    for op in block.ops:
        if isinstance(op, Operator):
            _place(op, drafts)
    for draft in dict.fromkeys(drafts.values()):
        _emit(draft)


def _as_view(op: Operator) -> None:
    """A reshape is the same memory under another shape; an argument of the function may need a copy for that."""
    builder = Builder(before=op)
    source = op.operands[0]
    if isinstance(source, BlockArgument):
        source = builder.create(rt.Contiguous, source, location=op.location).result
    view = builder.create(rt.View, source, result_types=[op.result.type], location=op.location).result
    view.hint = op.result.hint
    op.result.replace_all_uses_with(view)
    op.erase()


def reduces(op: Operator) -> bool:
    """Whether the definition of `op` has a reduction."""
    scratch = Block([v.type for v in op.operands])
    trace(op, scratch.arguments, Builder(scratch))
    return any(isinstance(inner, compute.Reduce) for inner in scratch.ops)


def is_constant(op: Operation | None) -> bool:
    """Whether an operator computes its elements from nothing: it is copied to each group that uses it."""
    return isinstance(op, Operator) and not op.operands


def _place(op: Operator, drafts: dict[Operator, Draft]) -> None:
    own = Draft([op], op, reduces(op))
    if is_constant(op) and all(isinstance(u, Operator) for u in op.result.uses):
        return  # each group that uses it has a copy
    for value in dict.fromkeys(op.operands):
        producer = value.defining_op
        other = drafts.get(producer) if isinstance(producer, Operator) else None
        if other is not None and list(value.uses) == [op] and _joins(other, op, own):
            own.ops = [*other.ops, *own.ops]
            if other.reduces:
                own.reduces, own.anchor = True, other.anchor
    for member in own.ops:
        drafts[member] = own


def _joins(draft: Draft, op: Operator, own: Draft) -> bool:
    """Whether the group `draft`, one of whose results only `op` uses, joins the group of `op`."""
    producer = draft.ops[-1]
    if len(producer.results) != 1 or len(draft.ops) + len(own.ops) > LARGEST:
        return False
    if draft.reduces:  # an epilogue: same shape, element by element, and one reduction a group
        same = same_shape(producer.result.tensor.dims, op.result.tensor.dims)
        return same and not own.reduces and isinstance(op, nd_base.Elementwise)
    if isinstance(op, nn.Matmul):  # each element is read many times: computing it each time costs too much
        return all(member.op_name in MOVEMENT for member in draft.ops)
    return True


def _emit(draft: Draft) -> None:
    last = draft.ops[-1]
    ops = _with_constants(draft.ops)
    inside = set(ops)
    inputs = list(dict.fromkeys(v for op in ops for v in op.operands if v.defining_op not in inside))
    block = Block([v.type for v in inputs], [v.hint for v in inputs])
    mapping: dict[Value, Value] = dict(zip(inputs, block.arguments, strict=True))
    for op in ops:
        block.append(op.clone(mapping))
    Builder(block).create(rt.Yield, [mapping[r] for r in last.results], location=last.location)
    builder = Builder(before=last)
    group = builder.create(
        rt.Group, inputs, result_types=[r.type for r in last.results], regions=[Region([block])],
        anchor=StringAttr(draft.anchor.op_name), location=draft.anchor.location,
    )  # fmt: skip
    for old, new in zip(last.results, group.results, strict=True):
        new.hint = old.hint
        old.replace_all_uses_with(new)
    for op in reversed(draft.ops):
        op.erase()
    for op in reversed(ops):
        if op.parent is not None and is_constant(op) and not op.result.uses:
            op.erase()


def _with_constants(ops: list[Operator]) -> list[Operator]:
    made: dict[Operator, None] = {}
    for op in ops:
        for value in op.operands:
            producer = value.defining_op
            if is_constant(producer) and isinstance(producer, Operator):
                made[producer] = None
        made[op] = None
    return list(made)
