"""The blocks of a region as a graph: order, dominators, and simplification."""

from __future__ import annotations

from collections.abc import Iterator

from ..dialects.cf import BranchOp
from ..ir.core import Block, Operation, Region
from ..ir.rewriter import PatternRewriter


def successors_of(block: Block) -> tuple[Block, ...]:
    """Where control may go from a block."""
    return block.last.successors if block.last is not None else ()


def reverse_postorder(region: Region) -> list[Block]:
    """The reachable blocks; each after all its predecessors, save those that come back to it."""
    entry = region.blocks[0]
    seen, order = {entry}, []
    stack = [(entry, iter(successors_of(entry)))]
    while stack:
        block, following = stack[-1]
        for target in following:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(successors_of(target))))
                break
        else:
            order.append(block)
            stack.pop()
    return order[::-1]


def predecessors_of(blocks: list[Block]) -> dict[Block, list[Block]]:
    """The predecessors among `blocks`, one entry for each edge."""
    found: dict[Block, list[Block]] = {block: [] for block in blocks}
    for block in blocks:
        for target in successors_of(block):
            found[target].append(block)
    return found


def immediate_dominators(order: list[Block], predecessors: dict[Block, list[Block]]) -> dict[Block, Block]:
    """Of blocks in reverse postorder; the entry is its own (Cooper, Harvey, Kennedy 2001)."""
    position = {block: i for i, block in enumerate(order)}
    above = {order[0]: order[0]}

    def common(a: Block, b: Block) -> Block:
        while a is not b:
            while position[a] > position[b]:
                a = above[a]
            while position[b] > position[a]:
                b = above[b]
        return a

    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [p for p in predecessors[block] if p in above]
            best = known[0]
            for other in known[1:]:
                best = common(best, other)
            if above.get(block) is not best:
                above[block] = best
                changed = True
    return above


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
