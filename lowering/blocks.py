"""The blocks of a region as a graph: order, predecessors, and simplification."""

from __future__ import annotations

from collections.abc import Iterator

from ..dialects.cf import BranchOp
from ..ir.core import Block, Operation, Region
from ..ir.dominance import postorder
from ..ir.rewriter import PatternRewriter


def reverse_postorder(region: Region) -> list[Block]:
    """The reachable blocks; each after all its predecessors, save those that come back to it."""
    return postorder(region.blocks[0])[::-1]


def predecessors_of(blocks: list[Block]) -> dict[Block, list[Block]]:
    """The predecessors among `blocks`, one entry for each edge."""
    found: dict[Block, list[Block]] = {block: [] for block in blocks}
    for block in blocks:
        for target in block.last.successors if block.last is not None else ():
            found[target].append(block)
    return found


def regions_with_branches(root: Operation) -> Iterator[Region]:
    """All regions nested in `root` that have several blocks."""
    for op in list(root.walk()):
        for region in op.regions:
            if len(region.blocks) > 1:
                yield region


def simplify_blocks(root: Operation, rewriter: PatternRewriter | None = None) -> bool:
    """Erase unreachable blocks and merge a block into its only predecessor where that can go nowhere else.
    Returns whether anything changed."""
    rewriter = rewriter or PatternRewriter()
    rewriter.changed = False
    for region in regions_with_branches(root):
        _erase_unreachable(region, rewriter)
        _merge_chains(region, rewriter)
    return rewriter.changed


def _erase_unreachable(region: Region, rewriter: PatternRewriter) -> None:
    reachable = set(reverse_postorder(region))
    dead = [block for block in region.blocks if block not in reachable]
    if dead:
        rewriter.erase_blocks(dead)


def _merge_chains(region: Region, rewriter: PatternRewriter) -> None:
    predecessors = predecessors_of(region.blocks)
    into: dict[Block, Block] = {}  # merged block -> where it went
    for block in list(region.blocks)[1:]:
        if len(predecessors[block]) != 1:
            continue
        above = predecessors[block][0]
        while above in into:
            above = into[above]
        branch = above.last
        if above is not block and isinstance(branch, BranchOp):
            into[block] = above
            values = branch.operands
            rewriter.erase(branch)
            rewriter.inline_block(block, None, above, values)
            region.blocks.remove(block)
