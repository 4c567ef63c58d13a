"""Vectors in kernels: `loop.splat`, `extract`, `insert`, `reduce_vector`."""

from __future__ import annotations

from ..ir.attributes import FloatType, Type, VectorType
from ..ir.core import Operation
from ..ir.definition import Int, attribute, one_of, operand, result
from ..ir.registry import Pure
from .loop_types import Scalar, Vector, loop

COMBINERS = (
    "addf", "mulf", "maximumf", "minimumf",
    "addi", "muli", "maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori",
)  # fmt: skip


@loop.op
class Splat(Operation):
    """A vector with `width` times the same scalar."""

    name = "loop.splat"
    traits = (Pure,)
    scalar = operand(Scalar)
    width = attribute(Int)
    vector = result(Vector)
    assembly = "$scalar attr-dict `:` type($scalar) `->` type($vector)"

    def infer_types(self) -> list[Type]:
        return [VectorType((self.width,), self.scalar.type)]

    def verify_op(self) -> None:
        if [self.vector.type] != self.infer_types():
            raise self.error(f"has width = {self.width}, but gives '{self.vector.type}'")


def _verify_lane(op: Extract | Insert) -> None:
    if not 0 <= op.lane < op.vector.type.shape[0]:
        raise op.error(f"has lane = {op.lane}, outside of '{op.vector.type}'")


@loop.op
class Extract(Operation):
    """Element `lane` of a vector."""

    name = "loop.extract"
    traits = (Pure,)
    vector = operand(Vector)
    lane = attribute(Int)
    scalar = result(Scalar)
    assembly = "$vector attr-dict `:` type($vector) `->` type($scalar)"

    def infer_types(self) -> list[Type]:
        return [self.vector.type.element]

    def verify_op(self) -> None:
        _verify_lane(self)


@loop.op
class Insert(Operation):
    """The vector with element `lane` replaced by a scalar."""

    name = "loop.insert"
    traits = (Pure,)
    scalar = operand(Scalar)
    vector = operand(Vector)
    lane = attribute(Int)
    updated = result(Vector)
    assembly = "$scalar `,` $vector attr-dict `:` type($scalar) `,` type($vector)"

    def infer_types(self) -> list[Type]:
        return [self.vector.type]

    def verify_op(self) -> None:
        _verify_lane(self)


@loop.op
class ReduceVector(Operation):
    """All elements combined by the `arith` op named `kind`: element i with element i + W/2 until one is left,
    in this order on every target."""

    name = "loop.reduce_vector"
    traits = (Pure,)
    vector = operand(Vector)
    kind = attribute(one_of(*COMBINERS))
    scalar = result(Scalar)
    assembly = "$vector attr-dict `:` type($vector) `->` type($scalar)"

    def infer_types(self) -> list[Type]:
        return [self.vector.type.element]

    def verify_op(self) -> None:
        if self.kind.endswith("f") != isinstance(self.scalar.type, FloatType):
            raise self.error(f"cannot combine '{self.scalar.type}' by '{self.kind}'")
