"""Memory in kernels: `loop.alloc`, `load`, `store`, `atomic`."""

from __future__ import annotations

from ..ir.attributes import Type, VectorType, i32, i64, index
from ..ir.core import Operation
from ..ir.definition import Bool, Index, Int, attribute, build, caller_location, one_of, operand, result
from ..ir.effects import Allocates, WriteOnly
from ..ir.registry import ReadOnly
from .arith import Constant
from .loop_types import Buffer, BufferType, Scalar, ScalarOrVector, is_scalar, is_vector, loop, widened
from .scalar import unsupported

ATOMICS = ("addi", "maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori", "exchange")


def verify_element(op: Operation, name: str, type: BufferType) -> None:
    reason = unsupported(type.scalar, (index,))
    if reason is not None:
        raise op.error(f"has {name} of type '{type}': {reason}")


@loop.op
class Alloc(Operation):
    """A buffer in shared memory or in registers, not initialised."""

    name = "loop.alloc"
    traits = (Allocates,)
    buffer = result(Buffer)
    assembly = "attr-dict `:` type($buffer)"

    @classmethod
    def make(cls, element: Type, space: str, size: int, hint: str | None = None) -> Alloc:
        """An allocation of `size` elements."""
        made = build(cls, result_types=[BufferType(element, space, size)], location=caller_location())
        made.result.hint = hint
        return made

    def verify_op(self) -> None:
        type = self.buffer.type
        verify_element(self, "the result", type)
        if type.space not in ("shared", "register") or not type.size:
            raise self.error(f"needs a shared or register buffer with a size, not '{type}'")


class _Access(Operation):
    """What load and store share: `aligned` and the agreement of types."""

    __slots__ = ()
    name = "loop.access"

    def check_access(self, type: BufferType, value: Type) -> None:
        vectors = isinstance(type.element, VectorType)
        held = value.element if isinstance(value, VectorType) and not vectors else value
        if held is not type.scalar or not (is_scalar(value) or is_vector(value)):
            raise self.error(f"moves '{value}' but the buffer holds '{type.element}'")
        self.check_index(type, value)

    def check_index(self, type: BufferType, value: Type) -> None:
        """A constant index lies inside a buffer whose size is known."""
        at = self.index.defining_op.value_of("value") if isinstance(self.index.defining_op, Constant) else None  # type: ignore[attr-defined]
        width = value.shape[0] if isinstance(value, VectorType) and not isinstance(type.element, VectorType) else 1
        if at is not None and type.size is not None and not 0 <= at <= type.size - width:
            raise self.error(f"reaches elements {at} to {at + width - 1}, but '{type}' has {type.size}")


@loop.op
class Load(_Access):
    """Element `index` of a buffer, or `width` consecutive ones as a vector. `aligned` promises that the
    address is a multiple of the vector's size."""

    name = "loop.load"
    traits = (ReadOnly,)
    buffer = operand(Buffer)
    index = operand(Index)
    width = attribute(Int, default=1)
    aligned = attribute(Bool, default=False)
    cache = attribute(one_of("stream", "keep"), optional=True, doc="a hint: read once, or read again soon")
    value = result(ScalarOrVector)
    assembly = "$buffer `[` $index `]` attr-dict `:` type($buffer) `->` type($value)"

    def infer_types(self) -> list[Type]:
        return [widened(self.buffer.type.scalar, self.width)]

    def verify_op(self) -> None:
        self.check_access(self.buffer.type, self.value.type)
        if self.value.type is not widened(self.buffer.type.scalar, self.width):
            raise self.error(f"has width = {self.width}, but gives '{self.value.type}'")


@loop.op
class Store(_Access):
    """Writes a scalar to element `index`, or a vector to the elements from there. `aligned` as for load."""

    name = "loop.store"
    traits = (WriteOnly,)
    value = operand(ScalarOrVector)
    buffer = operand(Buffer)
    index = operand(Index)
    aligned = attribute(Bool, default=False)
    cache = attribute(one_of("stream", "keep"), optional=True)
    assembly = "$value `,` $buffer `[` $index `]` attr-dict `:` type($value) `,` type($buffer)"

    def verify_op(self) -> None:
        self.check_access(self.buffer.type, self.value.type)
        if self.buffer.type.constant:
            raise self.error("writes a buffer that is declared const")


@loop.op
class Atomic(_Access):
    """Combines element `index` with a value, as one step that no other thread sees the middle of, and gives what it
    held before. Integers only: a sum of floats would depend on the order."""

    name = "loop.atomic"
    value = operand(Scalar)
    buffer = operand(Buffer)
    index = operand(Index)
    kind = attribute(one_of(*ATOMICS))
    old = result(Scalar)
    assembly = "$value `,` $buffer `[` $index `]` attr-dict `:` type($value) `,` type($buffer)"

    def infer_types(self) -> list[Type]:
        return [self.value.type]

    def verify_op(self) -> None:
        self.check_access(self.buffer.type, self.value.type)
        if self.value.type not in (i32, i64):
            raise self.error(f"takes i32 or i64, not '{self.value.type}'")
        if self.buffer.type.space not in ("global", "shared") or self.buffer.type.constant:
            raise self.error(f"needs global or shared memory that the kernel may write, not '{self.buffer.type}'")
