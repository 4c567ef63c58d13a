"""plan: what is left of a function is the order of its launches, with asserts first."""

from __future__ import annotations

import attrs

from ..dialects import dim, func, rt
from ..ir.builder import Builder
from ..ir.core import Block, Operation, Value
from ..ir.passes import Pass
from .uncompiled import refuse_uncompiled


@attrs.define
class Plan(Pass):
    """Asserts move to the start, each once; a choice with one arm becomes that arm; unused buffers go. What cannot be
    compiled is an error, save in private functions, which nothing compiled calls."""

    name = "plan"

    def run(self, module: Operation) -> None:
        for function in [op for op in module.walk() if isinstance(op, func.FuncOp) and op.regions[0].blocks]:
            if function.sym_visibility != "private":
                refuse_uncompiled(function)
            for block in function.regions[0].blocks:
                _asserts_first(block)
                for op in list(block.ops):
                    if isinstance(op, rt.Choose) and len(op.regions) == 1:
                        _inline(op)
                _drop_unused(block)


def _asserts_first(block: Block) -> None:
    seen: set[tuple[object, ...]] = set()
    first = block.first
    for op in list(block.ops):
        if not isinstance(op, dim.AssertOp):
            continue
        key = (op.get("relation"), op.get("message"))
        if key in seen:
            op.erase()
        elif op is not first:
            op.detach()
            block.insert_before(op, first)
        seen.add(key)


def _inline(choose: rt.Choose) -> None:
    arm = choose.regions[0].blocks[0]
    mapping: dict[Value, Value] = dict(zip(arm.arguments, choose.operands, strict=True))
    builder = Builder(before=choose)
    for op in arm.ops:
        if not isinstance(op, rt.Yield):
            builder.insert(op.clone(mapping))
    choose.erase()


def _drop_unused(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if isinstance(op, (rt.Empty, rt.View, rt.Contiguous)) and not op.result.uses:
            op.erase()
