"""rt: the plan of a function. Groups of operators, choices between variants, buffers and launches.

A tensor value of this level is a buffer; `rt.empty` makes one and launches write into it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.attributes import Attribute, DenseArrayAttr, DictAttr, FactsAttr, TensorType, Type, i64, index
from ..ir.core import Operation, Value
from ..ir.definition import (
    AnyTensor,
    Array,
    Dims,
    Ints,
    String,
    SymbolRef,
    attribute,
    operand,
    region,
    result,
)  # fmt: skip
from ..ir.dims import Dim, Relation
from ..ir.registry import Dialect, IsolatedFromAbove, Terminator
from .func import FuncOp
from .loop import Kernel, buffer_type
from .scalar import unsupported
from .symbols import lookup_symbol

rt = Dialect("rt", doc=__doc__ or "", closed=True)


@rt.op
class Yield(Operation):
    """Ends a group or an arm: its results, in order."""

    name = "rt.yield"
    traits = (Terminator,)
    values = operand(AnyTensor, variadic=True)
    assembly = "($values^ `:` type($values))? attr-dict"


@rt.op
class Group(Operation):
    """Operators that become one piece of work: an anchor, the prologues of its operands, the epilogues of its
    result. Block arguments stand for the operands."""

    name = "rt.group"
    traits = (IsolatedFromAbove,)
    inputs = operand(variadic=True)
    outputs = result(AnyTensor, variadic=True)
    anchor = attribute(String, doc="name of the operator that decides how the group is scheduled")
    body_region = region()

    def verify_op(self) -> None:
        verify_arm(self, 0)


@rt.op
class Choose(Operation):
    """Runs the first arm whose guard holds. `guards` has a dictionary an arm: `facts` relations between dims,
    `contiguous` and `aligned` the operands that must be row-major, or start on 64 bytes. The last arm is the
    generic one and has an empty guard. `variants` names how each arm is scheduled. Before schedule an arm
    yields the results; after it, arms are launches that write into operands, and there are no results."""

    name = "rt.choose"
    traits = (IsolatedFromAbove,)
    inputs = operand(variadic=True)
    outputs = result(AnyTensor, variadic=True)
    anchor = attribute(String)
    variants = attribute(Array)
    guards = attribute(Array)
    arms = region(variadic=True)

    def verify_op(self) -> None:
        if not len(self.regions) == len(self.variants) == len(self.get("guards").elements) or not self.regions:
            raise self.error(
                f"has {len(self.regions)} arms, {len(self.variants)} variants and "
                f"{len(self.get('guards').elements)} guards; these numbers must agree and be at least 1"
            )
        if self.get("guards").elements[-1] is not DictAttr(()):
            raise self.error("must end with an arm that has no guard, so that every call finds one")
        for position in range(len(self.regions)):
            verify_arm(self, position)
        for guard in self.get("guards").elements:
            self._verify_guard(guard)

    def _verify_guard(self, guard: Attribute) -> None:
        entries = dict(guard.entries) if isinstance(guard, DictAttr) else {"": guard}
        for name, value in entries.items():
            operands = value.values if isinstance(value, DenseArrayAttr) else None
            known = isinstance(value, FactsAttr) if name == "facts" else name in ("contiguous", "aligned")
            if not known or (name != "facts" and operands is None):
                raise self.error(f"has a guard {guard}; it may hold 'facts', 'contiguous' and 'aligned'")
            for n in operands or ():
                if not (0 <= n < len(self.operands) and isinstance(self.operands[n].type, TensorType)):
                    raise self.error(f"has a guard on operand {n}, which is not one of its tensors")
            verify_symbols(self, [f.difference for f in value.relations] if isinstance(value, FactsAttr) else [])


def verify_symbols(op: Operation, dims: Sequence[Dim]) -> None:
    """Dims are over symbols of the function."""
    function = op.ancestor(FuncOp)
    declared = function.symbols if function is not None else ()
    for dim in dims:
        for symbol in sorted(dim.symbols - set(declared)):
            raise op.error(f"uses symbol '{symbol}', which the function does not declare")


def verify_arm(op: Operation, position: int) -> None:
    """An arm has one block whose arguments are the operands' types and whose yield gives the results."""
    blocks = op.regions[position].blocks
    if len(blocks) != 1 or [a.type for a in blocks[0].arguments] != [v.type for v in op.operands]:
        raise op.error(f"arm {position} must have one block whose arguments have the types of the operands")
    last = blocks[0].last
    if not isinstance(last, Yield) or [v.type for v in last.operands] != [r.type for r in op.results]:
        raise op.error(f"arm {position} must end with an rt.yield of the types of the results")


class Guard:
    """When an arm may run: relations between dims, and what its operands' memory must be like."""

    def __init__(
        self, facts: tuple[Relation, ...] = (), contiguous: tuple[int, ...] = (), aligned: tuple[int, ...] = ()
    ) -> None:
        self.facts, self.contiguous, self.aligned = facts, contiguous, aligned

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guard) and str(self.attribute()) == str(other.attribute())

    def __hash__(self) -> int:
        return hash(str(self.attribute()))

    def implied_by(self, other: Guard) -> bool:
        """Whether this guard holds wherever `other` does."""
        return (
            set(self.facts) <= set(other.facts)
            and set(self.contiguous) <= set(other.contiguous)
            and set(self.aligned) <= set(other.aligned)
        )

    @staticmethod
    def of(op: Choose, arm: int) -> Guard:
        """The guard of one arm."""
        entries = dict(op.get("guards").elements[arm].entries)
        facts = entries["facts"].relations if "facts" in entries else ()
        lists = [tuple(entries[k].values) if k in entries else () for k in ("contiguous", "aligned")]
        return Guard(tuple(facts), lists[0], lists[1])

    def attribute(self) -> DictAttr:
        made: list[tuple[str, Attribute]] = []
        if self.facts:
            made.append(("facts", FactsAttr(self.facts)))
        for name, which in (("contiguous", self.contiguous), ("aligned", self.aligned)):
            if which:
                made.append((name, DenseArrayAttr(i64, tuple(which))))
        return DictAttr(tuple(made))


@rt.op
class Empty(Operation):
    """A new row-major buffer; its elements are undefined until a launch writes them."""

    name = "rt.empty"
    buffer = result(AnyTensor)
    assembly = "attr-dict `:` type($buffer)"

    def verify_op(self) -> None:
        reason = unsupported(self.buffer.type)
        if reason is not None:
            raise self.error(f"cannot make '{self.buffer.type}': {reason}")


@rt.op
class View(Operation):
    """The same row-major memory under another shape with as many elements. Nothing is copied."""

    name = "rt.view"
    source = operand(AnyTensor)
    view = result(AnyTensor)
    assembly = "$source attr-dict `:` type($source) `->` type($view)"

    def verify_op(self) -> None:
        if self.source.type.element is not self.view.type.element:
            raise self.error(f"cannot change the element type, but has '{self.source.type}' and '{self.view.type}'")


@rt.op
class Contiguous(Operation):
    """The same elements in row-major memory: the operand itself where it is so already, else a copy."""

    name = "rt.contiguous"
    source = operand(AnyTensor)
    buffer = result(AnyTensor)
    assembly = "$source attr-dict `:` type($source)"

    def infer_types(self) -> list[TensorType]:
        return [self.source.type]


@rt.op
class Launch(Operation):
    """Runs a kernel on buffers. `sizes` are the values of its index arguments that are dims; the strides, in
    elements, of the operands numbered in `strides` follow, axis by axis. An empty grid is no launch."""

    name = "rt.launch"
    kernel = attribute(SymbolRef)
    sizes = attribute(Dims, optional=True)
    strides = attribute(Ints, optional=True)
    buffers = operand(variadic=True)
    assembly = "$kernel `(` $buffers `)` attr-dict `:` type($buffers)"

    def verify_op(self) -> None:
        kernel = lookup_symbol(self, self.kernel)
        if not isinstance(kernel, Kernel):
            raise self.error(f"'{self.kernel}' is not a kernel of this module")
        tensors = [v for v in self.operands if isinstance(v.type, TensorType)]
        if len(tensors) != len(kernel.buffers):
            raise self.error(f"passes {len(tensors)} buffers, but {self.kernel} takes {len(kernel.buffers)}")
        for number, (value, buffer) in enumerate(zip(tensors, kernel.buffers, strict=True)):
            if value.tensor.element is not buffer_type(buffer).element:
                raise self.error(f"passes '{value.type}' as buffer {number}, but {self.kernel} takes '{buffer.type}'")
        self._verify_numbers(kernel, tensors)

    def _verify_numbers(self, kernel: Kernel, tensors: list[Value]) -> None:
        """The index arguments: as many as the kernel takes, from symbols of this function."""
        strides = self.strides or ()
        if any(not 0 <= n < len(tensors) for n in strides):
            raise self.error(f"names the strides of operands {list(strides)}, but has {len(tensors)} tensors")
        passed: list[Type] = [index] * (len(self.sizes or ()) + sum(tensors[n].tensor.rank for n in strides))
        passed += [v.type for v in self.operands if not isinstance(v.type, TensorType)]
        if passed != [a.type for a in kernel.scalars] or len(self.sizes or ()) != len(kernel.symbols):
            raise self.error(
                f"passes {len(self.sizes or ())} sizes and {len(passed)} numbers, but {self.kernel} takes "
                f"{len(kernel.symbols)} and {len(kernel.scalars)}"
            )
        verify_symbols(self, [d for d in self.sizes or () if d is not None])


__all__ = [
    "Choose", "Contiguous", "Empty", "Group", "Guard", "Launch", "View", "Yield", "rt", "verify_arm",
]  # fmt: skip
