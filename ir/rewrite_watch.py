"""Ends rewriting that does not end by itself, and says which patterns undo each other."""

from __future__ import annotations

from typing import Any

from .core import Operation
from .diagnostics import IRError


def fingerprint(root: Operation) -> int:
    """A hash of everything nested in `root` that does not depend on names: equal IR has equal hashes."""
    numbers: dict[Any, int] = {}
    state: list[Any] = []
    for op in root.walk():
        for result in op.results:
            numbers.setdefault(result, len(numbers))
        for block in (b for region in op.regions for b in region.blocks):
            for thing in (block, *block.arguments):
                numbers.setdefault(thing, len(numbers))
        used = [numbers.setdefault(v, len(numbers)) for v in (*op.operands, *op.successors)]
        types = [str(r.type) for r in op.results]
        named = [(k, str(v)) for slot in (op.properties, op.attributes) for k, v in slot.items()]
        state.append((op.op_name, numbers.get(op.parent, -1), *used, *types, *sorted(named)))
    return hash(tuple(state))


MARGIN = 1_000  # rewrites that are always allowed
WATCHED = 200  # rewrites looked at closely once there were too many


class Watch:
    """Ends a rewrite that does not end: too many rewrites are looked at one by one for a state seen
    before."""

    def __init__(self, root: Operation, operations: int) -> None:
        self.root = root
        self.count = 0
        self.limit = MARGIN + 4 * operations
        self.final = 64 * self.limit
        self.history: list[str] = []
        self.seen: dict[int, int] = {}
        self.scope = root

    def rewrote(self, pattern: Any) -> None:
        """Count one rewrite by `pattern` (None: a fold)."""
        self.count += 1
        if self.count > self.limit:
            self._look("folding" if pattern is None else pattern.label)

    def _look(self, label: str) -> None:
        self.history.append(label)
        state = fingerprint(self.root)
        if state in self.seen:
            raise self._undone(self.history[self.seen[state] :])
        self.seen[state] = len(self.history)
        if self.count > self.final:
            raise IRError(
                f"rewriting did not end after {self.count} rewrites", self.root.location, self._often()
            )
        if len(self.history) >= WATCHED:
            self.history, self.seen, self.limit = [], {}, 2 * self.limit

    def _undone(self, cycle: list[str]) -> IRError:
        names = list(dict.fromkeys(cycle))
        what = " and ".join(names[:2]) + (" undo each other" if len(names) > 1 else " undoes itself")
        notes = [f"in the cycle: {name}" for name in names]
        return IRError(f"rewriting does not end: {what}", self.root.location, notes)

    def _often(self) -> list[str]:
        return [f"lately: {label}" for label in list(dict.fromkeys(reversed(self.history)))[:5]]
