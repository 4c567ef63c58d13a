"""resolve: each group becomes a choice between the variants that accept it, guarded, the generic one last."""

from __future__ import annotations

import attrs

from ..dialects import func, rt
from ..dialects.operator import Operator
from ..ir.attributes import ArrayAttr, StringAttr
from ..ir.builder import Builder
from ..ir.core import Block, BlockArgument, Operation, Region, Value
from ..ir.facts import Truth
from ..ir.passes import Pass
from .fused import Fused
from .variants import VARIANTS, Candidate, Variant, candidates


@attrs.define
class Resolve(Pass):
    """Give each group an rt.choose. An operator's `variant` attribute forces one; one that does not accept the
    operator is an error."""

    name = "resolve"
    target: str = "cpu"

    def run(self, module: Operation) -> None:
        for group in [op for op in module.walk() if isinstance(op, rt.Group)]:
            resolve_group(group, self.target)


def candidate_of(group: rt.Group | rt.Choose, block: Block, target: str) -> Candidate:
    """What variants are asked about: the definition of `block`, with the facts of the function around it."""
    function = group.ancestor(func.FuncOp)
    assert function is not None
    fused = Fused(block, group.anchor)
    pairs = list(zip(fused.inputs, group.operands, strict=False))
    return Candidate(
        fused, target, function.facts, tuple(function.symbols), frozenset(v for v, o in pairs if is_external(o)),
        frozenset(v for v, o in pairs if is_external(memory_of(o))),
    )  # fmt: skip


def is_external(value: Value) -> bool:
    """Whether a buffer comes from the caller: it may have any strides and any alignment."""
    return isinstance(value, BlockArgument)


def memory_of(value: Value) -> Value:
    """The buffer whose memory `value` is, through views and copies that may not be needed."""
    op = value.defining_op
    while isinstance(op, (rt.View, rt.Contiguous)):
        value = op.operands[0]
        op = value.defining_op
    return value


def resolve_group(group: rt.Group, target: str) -> None:
    candidate = candidate_of(group, group.body, target)
    chosen: list[tuple[Variant, rt.Guard]] = []
    for variant in _variants(group, candidate):
        guard = variant.guard(candidate)
        if guard is not None and not any(earlier.implied_by(guard) for _, earlier in chosen):
            chosen.append((variant, guard))
    names = [StringAttr(variant.name) for variant, _ in chosen]
    guards = [guard.attribute() for _, guard in chosen]
    builder = Builder(before=group)
    choose = builder.create(
        rt.Choose, list(group.operands), result_types=[r.type for r in group.results],
        regions=[_copy(group.regions[0]) for _ in chosen], anchor=group.get("anchor"), variants=ArrayAttr(tuple(names)),
        guards=ArrayAttr(tuple(guards)), location=group.location,
    )  # fmt: skip
    for old, new in zip(group.results, choose.results, strict=True):
        new.hint = old.hint
        old.replace_all_uses_with(new)
    group.erase()


def _copy(region: Region) -> Region:
    old = region.blocks[0]
    block = Block([a.type for a in old.arguments], [a.hint for a in old.arguments])
    mapping: dict[Value, Value] = dict(zip(old.arguments, block.arguments, strict=True))
    for op in old.ops:
        block.append(op.clone(mapping))
    return Region([block])


def _variants(group: rt.Group, candidate: Candidate) -> list[Variant]:
    forced = _forced(group)
    if forced is None:
        return candidates(candidate)
    op, name = forced
    found = VARIANTS.get(name)
    if found is None:
        from ..ir.pass_options import near

        raise op.error(f"asks for variant '{name}', which does not exist{near(name, VARIANTS)}")
    refusal = found.refusal(candidate)
    if refusal is not None:
        raise op.error(f"cannot take variant '{name}': {refusal}")
    if found.guard(candidate) is None:
        raise op.error(f"cannot take variant '{name}': {_never(found, candidate)}")
    last = [v for v in candidates(candidate) if v.guard(candidate) == rt.Guard()][-1:]
    return [found, *last]


def _never(variant: Variant, candidate: Candidate) -> str:
    """Why a variant's guard cannot hold."""
    for relation in variant.prefer(candidate):
        if candidate.facts.prove(relation) is Truth.NO:
            return f"it needs {relation}, which is never so"
    wide = ", or its 32-bit indices are too narrow" if variant.index_bits == 32 else ""
    return f"what it needs of the sizes contradicts itself or the function's facts{wide}"


def _forced(group: rt.Group) -> tuple[Operation, str] | None:
    forced = [op for op in group.body.ops if isinstance(op, Operator) and isinstance(op.get("variant"), StringAttr)]
    for op in forced[1:]:
        if op.get("variant") is not forced[0].get("variant"):
            first = f"'{forced[0].op_name}' at {forced[0].location}"
            raise op.error(
                f"asks for variant '{op.get('variant').value}', but {first}, which is fused with it, for "
                f"'{forced[0].get('variant').value}': one kernel has one variant; give both the same, or one none"
            )
    return (forced[0], forced[0].get("variant").value) if forced else None
