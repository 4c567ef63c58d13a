"""Making operations at an insertion point.

b = Builder(block)                 # at the end of a block; also Builder(before=op), Builder(after=op)
x = b.create(arith.AddI, x, y).result
with b.at(Builder(before=x.op)):   # somewhere else for a while
    ...
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from .attributes import Location
from .core import Block, Operation
from .definition import build

Op = TypeVar("Op", bound=Operation)


class Builder:
    """Inserts operations one after the other at a point: before `anchor` in `block`, at its end when that is
    None.

    `location`, where it is set, is given to the operations created; else they have the caller's file and
    line."""

    def __init__(
        self, block: Block | None = None, *, before: Operation | None = None, after: Operation | None = None,
        location: Location | None = None,
    ) -> None:  # fmt: skip
        near = before or after
        if near is not None and near.parent is None:
            raise ValueError(f"'{near.op_name}' is in no block")
        found = near.parent if near is not None else block
        if found is None:
            raise ValueError("a builder needs a block or an operation to insert at")
        self.block: Block = found
        self.anchor = before if before is not None else after.next if after is not None else None
        self.location = location

    @classmethod
    def at_start(cls, block: Block) -> Builder:
        """At the start of `block`."""
        return cls(block) if block.first is None else cls(before=block.first)

    def insert(self, op: Op) -> Op:
        """Put a new operation at the insertion point; the next one goes behind it."""
        self.block.insert_before(op, self.anchor)
        return op

    def create(self, cls: type[Op], *operands: Any, location: Location | None = None, **arguments: Any) -> Op:
        """Build and insert; arguments as for `definition.build`."""
        return self.insert(build(cls, *operands, location=location or self.location, **arguments))

    @contextmanager
    def at(self, place: Builder | Block) -> Iterator[Builder]:
        """Insert at another place inside the `with` block, then go on here."""
        saved = self.block, self.anchor
        self.block, self.anchor = (place, None) if isinstance(place, Block) else (place.block, place.anchor)
        try:
            yield self
        finally:
            self.block, self.anchor = saved
