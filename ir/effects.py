"""What operations do to memory, as far as removing and merging them must know."""

from __future__ import annotations

from .core import Operation
from .registry import Pure, ReadOnly, Terminator, Trait

Recursive = Trait("RecursiveMemoryEffects")  # its effects are those of the operations nested in it
Allocates = Trait("Allocates")  # gives fresh memory, or anything with identity: may be removed, never merged
WriteOnly = Trait("WriteOnly")  # writes memory, reads none

_NONE, _READ, _WRITE, _ALLOCATE, _NESTED = 0, 1, 2, 4, 8
_UNKNOWN = _READ | _WRITE
_KINDS: dict[type[Operation], int] = {}


def _kind(cls: type[Operation]) -> int:
    definition = getattr(cls, "definition", None)
    traits = definition.traits if definition is not None else ()
    if Recursive in traits:
        kind = _NESTED
    elif Pure in traits:
        kind = _NONE
    elif Allocates in traits:
        kind = _ALLOCATE
    elif Terminator in traits and ReadOnly not in traits:
        kind = _NONE
    else:
        kind = _READ if ReadOnly in traits else _WRITE if WriteOnly in traits else _UNKNOWN
    _KINDS[cls] = kind
    return kind


def own_effects(op: Operation) -> int:
    cls = type(op)
    kind = _KINDS.get(cls)
    return _kind(cls) if kind is None else kind


def is_pure(op: Operation) -> bool:
    """Declared free of effects: may be merged with an equal one. Says nothing of operations nested in it."""
    return own_effects(op) == _NONE and not is_terminator(op)


def is_terminator(op: Operation) -> bool:
    definition = getattr(type(op), "definition", None)
    return definition is not None and Terminator in definition.traits


class Effects:
    """Answers about effects. Remembers, for each operation with regions, one nested operation that writes;
    with `settled` (operations are only removed from now on) also which have none."""

    def __init__(self, settled: bool = False) -> None:
        self._writer: dict[Operation, Operation] = {}
        self._silent: set[Operation] | None = set() if settled else None

    def writes(self, op: Operation) -> bool:
        """Whether `op` or one nested in it may write memory or do something else that must be kept."""
        kind = own_effects(op)
        if kind != _NESTED:
            return bool(kind & _WRITE)
        if self._silent is not None and op in self._silent:
            return False
        known = self._writer.get(op)
        return (known is not None and known.parent is not None) or self._search(op)

    def _search(self, op: Operation) -> bool:
        for inner in op.walk():
            if own_effects(inner) & _WRITE:
                above = inner.parent_op
                while above is not None and above is not op:
                    self._writer[above] = inner
                    above = above.parent_op
                self._writer[op] = inner
                return True
        if self._silent is not None:
            self._silent.update(inner for inner in op.walk() if inner.regions)
        return False


def only_reads(op: Operation) -> bool:
    """Whether reading memory is all that `op` itself does."""
    return own_effects(op) == _READ


def removable_kind(cls: type[Operation]) -> int:
    """0: never removed though unused; 1: removed when unused; 2: when unused and nothing nested writes."""
    kind = _KINDS.get(cls)
    kind = _kind(cls) if kind is None else kind
    definition = getattr(cls, "definition", None)
    if definition is None or Terminator in definition.traits or kind & _WRITE:
        return 0
    return 2 if kind == _NESTED else 1
