"""What the definition of an operator takes for granted about dims, found by tracing it.

Each axis that is broadcast to another must be as long or 1; each result must have its declared sizes; and an
element that is read must be there, as far as its index is linear in the indices of the map or reduction. What
an index is beyond that (a gather, a guarded read) the operator's `shape_requirements` has to say.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from ..ir.builder import Builder
from ..ir.core import Block, BlockArgument, Value
from ..ir.dims import Bcast, Dim, DimError, Relation, as_dim, dim_max, product
from ..ir.facts import Facts, Truth
from .compute import Map, Read, Reduce, reads
from .operator import ONE, Operator, Requirement, trace

ZERO = as_dim(0)
_DERIVED: OrderedDict[Any, tuple[_Need, ...]] = OrderedDict()
_MOST_DERIVED = 1024


@attrs.frozen
class _Need:
    """One of `relations` holds, all of them as the one `relation`; the message depends on the names of operands."""

    relations: tuple[Relation, ...]
    message: Callable[[Operator], str]
    whole: Relation | None = None  # where it is not the product of the differences

    def requirement(self, op: Operator) -> Requirement:
        if self.whole is not None:
            return Requirement(self.whole, self.message(op), self.relations)
        return Requirement.any_of(self.relations, self.message(op))


def derived_requirements(op: Operator, stated: Sequence[Requirement], bounds: bool) -> list[Requirement]:
    """The requirements of the definition of `op` that `stated` does not cover; those of reads where `bounds`."""
    key = (
        type(op), tuple(sorted(op.properties.items())), tuple(v.type for v in op.operands), bounds,
    )  # fmt: skip
    if key not in _DERIVED:
        _DERIVED[key] = _derive(op, bounds)
        if len(_DERIVED) > _MOST_DERIVED:
            _DERIVED.popitem(last=False)
    known, found = list(stated), []
    for need in _DERIVED[key]:
        requirement = need.requirement(op)
        if not _covered(requirement, known):
            known.append(requirement)
            found.append(requirement)
    return found


def _covered(requirement: Requirement, known: Sequence[Requirement]) -> bool:
    """Whether one of `known` is the same equation, or those of them that are one relation imply it."""
    relation = requirement.relation
    if relation.kind == "==":
        same = (relation.difference, -relation.difference)
        if any(k.relation.kind == "==" and _among(k.relation.difference, same) for k in known):
            return True
    facts = [k.relation for k in known if not k.alternatives]
    try:
        return bool(facts) and requirement.prove(Facts(facts)) is Truth.YES
    except DimError:  # they exclude each other: one of them is an error already
        return False


def _derive(op: Operator, bounds: bool) -> tuple[_Need, ...]:
    met = _Met()
    block = Block([v.type for v in op.operands], [v.hint for v in op.operands])
    try:
        results = trace(op, block.arguments, Builder(block), Facts(), met)
    except DimError:
        if not met.needs:
            raise
        results = []
    needs = dict(met.needs)
    if bounds and results:
        for inner in block.ops:
            if isinstance(inner, (Map, Reduce)):
                needs.update((n.relations, n) for n in _bounds(inner, block, met))
    for inner in reversed(list(block.ops)):
        inner.erase()
    return tuple(needs.values())


class _Met:
    """Takes down where axes of two sizes meet in a definition; `needs` by their relations."""

    def __init__(self) -> None:
        self.needs: dict[tuple[Relation, ...], _Need] = {}
        self.pairs: set[tuple[Dim, Dim]] = set()  # what met
        self.indices: list[tuple[BlockArgument, Dim]] = []  # with the size that each must stay below
        self.results: set[tuple[Dim, Dim]] = set()  # one is 1 or the other, a size of the result: says more

    def __call__(self, d: Dim, r: Dim, back: int | None, index: Value | None) -> None:
        """An axis of size d is broadcast to one of size r, and read at an index of that."""
        parts = bcast_parts(r)
        if isinstance(index, BlockArgument):
            self.indices.append((index, r))
        self.pairs.add((d, r))
        for other in parts if _among(d, parts) else (r,):
            if other is not d and (other, d) not in self.pairs and not {(d, other), (other, d)} & self.results:
                self.pairs.add((d, other))
                either = (d, other) if len(parts) > 1 else (d,)
                self._need(d, other, [x for x in either if not x.is_constant], _broadcast(d, other, back))

    def result(self, d: Dim, r: Dim, axis: int, n: int) -> None:
        """An axis of result n has size d where the shape rule gives r."""
        if d is r:
            return
        parts = bcast_parts(d)
        said = f"is defined with size {d} of axis {axis} of result {n}, but its shape rule gives {r}"
        for part in parts if _among(r, parts) else [d]:
            if part is d:
                self._need(part, r, [], _fixed(said))
            elif part is not r:
                self.results.add((part, r))
                self._need(part, r, [] if part.is_constant else [part], _broadcast(part, r, None))

    def _need(self, d: Dim, other: Dim, ones: Sequence[Dim], message: Callable[[Operator], str]) -> None:
        relations = _relations(d, other, ones)
        self.needs.setdefault(relations, _Need(relations, message))


def _relations(d: Dim, other: Dim, ones: Sequence[Dim]) -> tuple[Relation, ...]:
    return (d.eq(other), *(x.eq(ONE) for x in ones))


def bcast_parts(d: Dim) -> list[Dim]:
    """The dims that `d` is the broadcast of; itself where it is none."""
    atom = d.terms[0][1][0][0] if len(d.terms) == 1 and d.terms[0][1] else None
    if isinstance(atom, Bcast) and len(d.terms[0][1]) == 1 and d.terms[0][0] == d.terms[0][1][0][1] == 1:
        return bcast_parts(atom.lhs) + bcast_parts(atom.rhs)
    return [d]


def _among(d: Dim, dims: Sequence[Dim]) -> bool:
    return any(d is x for x in dims)  # dims are interned; their == is a relation


# ---------------------------------------------------------------- reads


def _bounds(op: Map | Reduce, block: Block, met: _Met) -> Iterator[_Need]:
    """What the reads of a map or reduction need in order to be in bounds."""
    extents: dict[Any, Dim] = dict(zip(op.body.arguments, op.space))
    for index, r in met.indices:
        extent = extents.get(index)
        if extent is not None and not _among(extent, bcast_parts(r)) and Facts().prove(extent <= r) is not Truth.YES:
            text = f"reads what is broadcast to size {r} at 0 to {extent - 1}"
            yield _Need((extent <= r,), _fixed(text), extent <= r)
    for read in reads(op):
        if not isinstance(read, Read):
            continue
        for axis, (index, size) in enumerate(zip(read.indices, read.source.type.dims)):
            terms = _linear(index)
            if terms is None:
                continue
            used = [extents.get(v) for v in terms if v is not None]
            if any(e is None for e in used) or (len(used) == 1 and used[0] is size and _plain(terms)):
                continue
            if _plain(terms) and (size, used[0]) in met.pairs:
                continue
            span = _span(terms, extents)
            if span is not None:
                yield from _inside(block, read.source, axis, size, span, used if not _plain(terms) else [])


def _plain(terms: dict[Value | None, Dim]) -> bool:
    """Whether it is an index of the space and nothing else."""
    return len(terms) == 1 and None not in terms and next(iter(terms.values())) is ONE


def _inside(
    block: Block, source: Value, axis: int, size: Dim, span: tuple[Dim, Dim], extents: Sequence[Any]
) -> Iterator[_Need]:
    """0 <= span[0] and span[1] < size, or one of `extents` is 0 (then nothing is read)."""
    position = source.index if isinstance(source, BlockArgument) and source.owner is block else None
    low, high = span

    def said(op: Operator) -> str:
        name = "a tensor inside" if position is None else op.value_name(op.operands[position])
        return f"reads axis {axis} of {name} at {low} to {high}, but its size is {size}"

    for over, holds in ((-low, low >= ZERO), (high + 1 - size, high + 1 <= size)):
        if Facts().prove(holds) is Truth.YES:
            continue
        empty = [e.eq(ZERO) for e in extents]
        whole = (dim_max(over, 0) * product(extents)).eq(ZERO) if empty else holds
        yield _Need((holds, *empty), said, whole)


def _linear(value: Value) -> dict[Value | None, Dim] | None:
    """An index as dims times indices, the constant under None; None where it is not linear."""
    if isinstance(value, BlockArgument):
        return {value: ONE}
    op: Any = value.defining_op
    if op.op_name == "arith.constant":
        return {None: as_dim(int(op.value_of("value")))}
    if op.op_name == "dim.value":
        return {None: op.expression}
    if op.op_name not in ("arith.addi", "arith.subi", "arith.muli"):
        return None
    left, right = map(_linear, op.operands)
    if left is None or right is None:
        return None
    if op.op_name == "arith.muli":
        if set(left) != {None} and set(right) != {None}:
            return None
        factor, terms = (left[None], right) if set(left) == {None} else (right[None], left)
        return {v: c * factor for v, c in terms.items()}
    sign = -1 if op.op_name == "arith.subi" else 1
    return {v: left.get(v, ZERO) + right.get(v, ZERO) * sign for v in (*left, *(v for v in right if v not in left))}


def _span(terms: dict[Value | None, Dim], extents: dict[Any, Dim]) -> tuple[Dim, Dim] | None:
    """The least and greatest value of an index; None where the sign of a factor is not known."""
    low = high = terms.get(None, ZERO)
    for value, factor in terms.items():
        if value is None:
            continue
        least, most = Facts().bounds(factor)
        step = factor * (extents[value] - 1)
        if least is not None and least >= 0:
            high = high + step
        elif most is not None and most <= 0:
            low = low + step
        else:
            return None
    return low, high


# ---------------------------------------------------------------- words


def _fixed(text: str) -> Callable[[Operator], str]:
    return lambda op: text


def _broadcast(d: Dim, other: Dim, back: int | None) -> Callable[[Operator], str]:
    def said(op: Operator) -> str:
        first, second = _place(op, d, back), _place(op, other, back)
        types = " and ".join(f"'{v.type}'" for v in op.operands)
        return f"cannot broadcast: {first}, {second} ({types})"

    return said


def _place(op: Operator, d: Dim, back: int | None) -> str:
    """`axis 1 of %q is k`: an axis of an operand of that size, where there is one as far from the right that."""
    found = [
        (axis - len(dims) != -(back or 0), n, axis)
        for n, dims in enumerate(v.type.dims for v in op.operands if hasattr(v.type, "dims"))
        for axis, size in enumerate(dims)
        if size is d
    ]
    if not found:
        return f"a size is {d}"
    _, n, axis = min(found)
    tensors = [v for v in op.operands if hasattr(v.type, "dims")]
    return f"axis {axis} of {op.value_name(tensors[n])} is {d}"
