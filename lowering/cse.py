"""Common subexpressions: an operation equal to one that dominates it is replaced by it."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

import attrs

from ..ir.core import Block, Operation, Region, UnregisteredOp
from ..ir.dominance import dominator_tree
from ..ir.effects import Effects, is_pure, is_terminator, only_reads, removable_kind
from ..ir.passes import Pass
from ..ir.registry import Commutative, IsolatedFromAbove
from .blocks import predecessors_of

Steps = Generator[Any, None, None]  # a step that is not done yet; what it yields is to be done first


@attrs.define
class Cse(Pass):
    """Replace an operation by an equal one that dominates it, and remove operations whose results are unused.

    Loads merge only where nothing can have written between them. An operation that is used only by one
    removed later stays, as in mlir-opt; `dce` or `canonicalize` takes it."""

    name = "cse"
    anchor = None
    commutative: bool = True  # a + b equals b + a

    def run(self, op: Operation) -> None:
        _Eliminator(self.commutative).run(op)


class _Eliminator:
    def __init__(self, commutative: bool) -> None:
        self.commutative = commutative
        self.known: dict[Any, Operation] = {}
        self.added: list[Any] = []  # the keys of `known` in order, to leave scopes
        self.effects = Effects(settled=True)
        self.memory = 0  # equal numbers: nothing was written in between
        self.states = 0
        self.kinds: dict[type[Operation], int] = {}

    def run(self, root: Operation) -> None:
        stack: list[Steps] = [self._regions(root, True)]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(inner)

    # -- scopes

    def _regions(self, op: Operation, fresh_memory: bool) -> Steps:
        isolated = _is_isolated(op)
        saved = self.known, self.added
        if isolated:
            self.known, self.added = {}, []
        for region in op.regions:
            if fresh_memory:
                self._forget_memory()
            if len(region.blocks) == 1:
                mark = len(self.added)
                yield self._block(region.blocks[0])
                self._leave(mark)
            elif region.blocks:
                yield self._graph(region)
        self.known, self.added = saved

    def _graph(self, region: Region) -> Steps:
        """Blocks in the order of the dominator tree; each sees what the blocks above it hold."""
        children = dominator_tree(region.blocks[0])
        predecessors = predecessors_of(list(children))
        at_end: dict[Block, int] = {}
        stack: list[Block | int] = [region.blocks[0]]
        while stack:
            block = stack.pop()
            if isinstance(block, int):
                self._leave(block)
                continue
            states = {at_end.get(p) for p in predecessors[block]}
            if len(states) == 1 and None not in states:
                self.memory = states.pop()  # type: ignore[assignment]
            elif states:
                self._forget_memory()
            stack.append(len(self.added))
            stack.extend(reversed(children[block]))
            yield self._block(block)
            at_end[block] = self.memory

    def _leave(self, mark: int) -> None:
        for key in self.added[mark:]:
            del self.known[key]
        del self.added[mark:]

    def _forget_memory(self) -> None:
        self.states += 1
        self.memory = self.states

    # -- operations

    def _block(self, block: Block) -> Steps:
        kinds = self.kinds
        for op in block.ops:
            kind = kinds.get(type(op))
            if kind is None:
                kind = kinds[type(op)] = _kind_of(op)
            if kind & _REMOVABLE and self._remove_dead(op):
                continue
            if op.regions:
                writes = self.effects.writes(op)
                yield self._regions(op, writes)
                if writes:
                    self._forget_memory()
            elif kind & _WRITES:
                self._forget_memory()
            if kind & _MERGEABLE or (op.regions and kind & _REMOVABLE):
                self._merge(op, kind)

    def _remove_dead(self, op: Operation) -> bool:
        for result in op.results:
            if result.uses:
                return False
        if op.regions and self.effects.writes(op):
            return False
        op.erase()
        return True

    def _merge(self, op: Operation, kind: int) -> None:
        operands = op.operands
        if (
            kind & _COMMUTATIVE
            and self.commutative
            and len(operands) == 2
            and id(operands[0]) > id(operands[1])
        ):
            operands = operands[::-1]
        key: Any = (
            type(op), operands, frozenset(op.properties.items()), tuple([r.type for r in op.results]),
            frozenset(op.attributes.items()), self.memory if kind & _READS else None,
        )  # fmt: skip
        known = self.known.get(key)
        if known is None:
            self.known[key] = op
            self.added.append(key)
        elif not op.regions or (_only_pure(op) and same_regions(known, op)):
            for old, new in zip(op.results, known.results):
                old.replace_all_uses_with(new)
                new.hint = new.hint or old.hint
            op.erase()


_REMOVABLE, _MERGEABLE, _READS, _WRITES, _COMMUTATIVE = 1, 2, 4, 8, 16


def _kind_of(op: Operation) -> int:
    """The flags of an operation's class."""
    kind = _REMOVABLE if removable_kind(type(op)) else 0
    kind |= _WRITES if not op.regions and Effects().writes(op) else 0
    kind |= _READS if only_reads(op) else 0
    kind |= _MERGEABLE if (is_pure(op) or only_reads(op)) and not is_terminator(op) else 0
    return kind | (
        _COMMUTATIVE if Commutative in getattr(getattr(op, "definition", None), "traits", ()) else 0
    )


def _is_isolated(op: Operation) -> bool:
    """Unknown operations may be isolated: nothing is carried into them."""
    return isinstance(op, UnregisteredOp) or IsolatedFromAbove in op.definition.traits


def _only_pure(op: Operation) -> bool:
    return all(is_pure(inner) or is_terminator(inner) or inner.regions for inner in op.walk()) and all(
        not isinstance(inner, UnregisteredOp) for inner in op.walk()
    )


def same_regions(one: Operation, other: Operation) -> bool:
    """Whether two operations have equal regions, up to the names of what is defined inside."""
    mapping: dict[Any, Any] = {}
    first, second = one.walk(), other.walk()
    next(first), next(second)
    if not _pair(_insides(one), _insides(other), mapping):
        return False
    for a, b in zip(first, second):
        if not _same_op(a, b, mapping) or not _pair(_insides(a), _insides(b), mapping):
            return False
    return next(first, None) is None and next(second, None) is None


def _insides(op: Operation) -> list[Any]:
    """What an operation with regions defines inside: blocks and their arguments, region by region."""
    found: list[Any] = []
    for number, region in enumerate(op.regions):
        found.append(number)
        for block in region.blocks:
            found += [block, *block.arguments]
    return found


def _pair(ours: Iterable[Any], theirs: Iterable[Any], mapping: dict[Any, Any]) -> bool:
    ours, theirs = list(ours), list(theirs)
    if len(ours) != len(theirs):
        return False
    for a, b in zip(ours, theirs):
        if type(a) is not type(b) or getattr(a, "type", None) is not getattr(b, "type", None):
            return False
        if isinstance(a, int):
            if a != b:
                return False
        else:
            mapping[a] = b
    return True


def _same_op(a: Operation, b: Operation, mapping: dict[Any, Any]) -> bool:
    return (
        type(a) is type(b)
        and a.properties == b.properties
        and a.attributes == b.attributes
        and mapping.get(a.parent) is b.parent
        and [mapping.get(v, v) for v in a.operands] == list(b.operands)
        and [mapping.get(s, s) for s in a.successors] == list(b.successors)
        and _pair(a.results, b.results, mapping)
    )


@attrs.define
class Dce(Pass):
    """Remove operations whose results are unused and that do nothing else, and what only they used."""

    name = "dce"
    anchor = None

    def run(self, op: Operation) -> None:
        erase_dead(op)


def erase_dead(root: Operation) -> None:
    """Erase everything nested in `root` that is dead, to the end of each chain."""
    effects = Effects()
    work = dict.fromkeys(list(root.walk())[1:])  # popped from the end: users before what they use
    while work:
        op = work.popitem()[0]
        if op.parent is None or not removable_kind(type(op)) or any(r.uses for r in op.results):
            continue
        if effects.writes(op):
            continue
        doomed = list(op.walk())
        above = [v.defining_op for inner in doomed for v in inner.operands]
        op.erase()
        for inner in doomed:
            work.pop(inner, None)
        gone = set(doomed)
        work.update((a, None) for a in above if a is not None and a not in gone)
