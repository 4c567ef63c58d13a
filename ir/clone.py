"""Copying operations with everything nested in them, without recursion on depth."""

from __future__ import annotations

from typing import TypeVar

from .attributes import Location
from .core import Block, Operation, Region, UnregisteredOp, Value

OpT = TypeVar("OpT", bound=Operation)


def clone_operation(root: OpT, mapping: dict[Value, Value], location: Location | None) -> OpT:
    """A copy of `root`. Operands are looked up in `mapping` (absent: kept); it gains results and arguments."""
    blocks: dict[Block, Block] = {}
    later: list[tuple[Operation, Operation]] = []
    made = _shell(root, mapping, blocks, location, later)
    work: list[tuple[Operation, Operation]] = [(root, made)]
    while work:
        source, copy = work.pop()
        for old_region, new_region in zip(source.regions, copy.regions, strict=True):
            for old, new in zip(old_region.blocks, new_region.blocks, strict=True):
                for op in old.ops:
                    inner = _shell(op, mapping, blocks, location, later)
                    new.append(inner)
                    if op.regions:
                        work.append((op, inner))
    for source, copy in later:  # operands and successors that were defined after their use
        copy.operands = tuple(mapping.get(v, v) for v in source.operands)
        copy.successors = tuple(blocks.get(b, b) for b in source.successors)
    return made


def _shell(
    op: OpT, mapping: dict[Value, Value], blocks: dict[Block, Block], location: Location | None,
    later: list[tuple[Operation, Operation]],
) -> OpT:  # fmt: skip
    regions = []
    for region in op.regions:
        copies = []
        for block in region.blocks:
            copy = blocks[block] = Block()
            copy.hint = block.hint
            for argument in block.arguments:
                mapping[argument] = copy.add_argument(argument.type, argument.hint, argument._location)
            copies.append(copy)
        regions.append(Region(copies))
    operands = tuple(mapping.get(v, v) for v in op.operands)
    made = type(op).__new__(type(op))
    if isinstance(op, UnregisteredOp):
        made._name = op._name  # type: ignore[attr-defined]
    Operation.__init__(
        made, operands, [r.type for r in op.results], op.properties, op.attributes, regions, op.successors,
        location or op._location,
    )  # fmt: skip
    for old, new in zip(op.results, made.results, strict=True):
        mapping[old] = new
        new.hint = old.hint
    if op.successors or any(v not in mapping for v in op.operands):
        later.append((op, made))
    return made
