"""Dominators of the blocks of a region: the iterative algorithm of Cooper, Harvey and Kennedy."""

from __future__ import annotations

from .core import Block


def _successors(block: Block) -> tuple[Block, ...]:
    return block.last.successors if block.last is not None else ()


def postorder(entry: Block) -> list[Block]:
    """The blocks that can be reached from `entry`, each after those that only it leads to."""
    order: list[Block] = []
    seen = {entry}
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, rest = stack[-1]
        following = next((b for b in rest if b not in seen and b.parent is entry.parent), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(_successors(following))))
    return order


def immediate_dominators(entry: Block) -> dict[Block, Block]:
    """The immediate dominator of each block that can be reached; the entry is its own."""
    order = postorder(entry)
    number = {block: i for i, block in enumerate(order)}
    predecessors: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for successor in _successors(block):
            if successor in predecessors:
                predecessors[successor].append(block)
    found = {entry: entry}
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [p for p in predecessors[block] if p in found]
            best = known[0]
            for other in known[1:]:
                best = _meet(best, other, found, number)
            if found.get(block) is not best:
                found[block] = best
                changed = True
    return found


def _meet(a: Block, b: Block, found: dict[Block, Block], number: dict[Block, int]) -> Block:
    while a is not b:
        while number[a] < number[b]:
            a = found[a]
        while number[b] < number[a]:
            b = found[b]
    return a


def dominator_tree(entry: Block) -> dict[Block, list[Block]]:
    """For each block that can be reached, the blocks that it dominates immediately."""
    parents = immediate_dominators(entry)
    children: dict[Block, list[Block]] = {block: [] for block in parents}
    for block, parent in parents.items():
        if block is not entry:
            children[parent].append(block)
    return children
