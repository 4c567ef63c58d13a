"""schedule: every arm of every choice becomes kernels and their launches."""

from __future__ import annotations

import attrs

from ..dialects import func, loop, rt
from ..ir.attributes import TensorType
from ..ir.builder import Builder
from ..ir.core import Block, Operation, Region, Value
from ..ir.passes import Pass
from .fused import Arm
from .resolve import candidate_of, is_external
from .variants import VARIANTS


@attrs.define
class Schedule(Pass):
    """Turn the operators of each rt.choose arm into loop kernels and launches that write into new buffers."""

    name = "schedule"

    def run(self, module: Operation) -> None:
        taken = {op.sym_name for op in module.walk() if isinstance(op, (loop.Kernel, func.FuncOp))}
        for choose in [op for op in module.walk() if isinstance(op, rt.Choose) and op.results]:
            schedule_choice(choose, taken)


def schedule_choice(choose: rt.Choose, taken: set[str]) -> None:
    function = choose.ancestor(func.FuncOp)
    assert function is not None
    builder = Builder(before=choose)
    made: list[Value] = []
    for result in choose.results:
        buffer = builder.create(rt.Empty, result_types=[result.type], location=choose.location).result
        buffer.hint = result.hint
        made.append(buffer)
    operands = [*choose.operands, *made]
    arms = [
        Region([_arm(choose, function, position, operands, taken)]) for position in range(len(choose.regions))
    ]
    builder.create(
        rt.Choose, operands, result_types=[], regions=arms, anchor=choose.get("anchor"),
        variants=choose.get("variants"), guards=choose.get("guards"), location=choose.location,
    )  # fmt: skip
    for old, new in zip(choose.results, made, strict=True):
        old.replace_all_uses_with(new)
    choose.erase()


def _arm(
    choose: rt.Choose, function: func.FuncOp, position: int, operands: list[Value], taken: set[str]
) -> Block:
    variant = VARIANTS[choose.variants[position]]
    candidate = candidate_of(choose, choose.regions[position].blocks[0], variant.target)
    refusal = variant.refusal(candidate)
    if refusal is not None:
        raise choose.error(f"cannot take variant '{variant.name}' for '{choose.anchor}': {refusal}")
    fused = candidate.fused
    block = Block([v.type for v in operands], [v.hint for v in operands])
    buffers: dict[Value, Value] = dict(zip([*fused.inputs, *fused.outputs], block.arguments, strict=True))
    name = _free(f"{function.sym_name}_{choose.anchor.rpartition('.')[2]}_{variant.name}", taken)
    strided = frozenset() if variant.contiguous else frozenset(
        v for v, o in zip(fused.inputs, operands, strict=False)
        if is_external(o) and isinstance(v.type, TensorType) and v.type.rank
    )  # fmt: skip
    arm = Arm(
        fused, variant.target, name, candidate.symbols, candidate.facts, Builder(block, location=choose.location),
        Builder(before=function), buffers, strided, variant.index_bits,
    )  # fmt: skip
    variant.schedule(arm)
    arm.builder.create(rt.Yield, [])
    return block


def _free(name: str, taken: set[str]) -> str:
    """A kernel's name: `name`, numbered when another function or kernel has it."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}{number}"
    taken.add(found)
    return found



