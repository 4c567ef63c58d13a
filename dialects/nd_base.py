"""The `nd` dialect object, and the base of elementwise operators."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.attributes import IntegerType, TensorType, Type, i1
from ..ir.core import Value
from ..ir.definition import is_float, tensor_of
from ..ir.registry import Dialect
from .operator import Operator, Requirement, broadcast_requirements

nd = Dialect("nd", "Operators on tensors: elementwise, shape and movement, reduction.")


def is_number(type: Type) -> bool:
    return is_float(type) or (isinstance(type, IntegerType) and type is not i1)


NumberTensor = tensor_of("tensor of floats or integers (not i1)", is_number)
OrderedTensor = tensor_of("tensor of floats or integers", lambda t: is_float(t) or isinstance(t, IntegerType))
SignedTensor = tensor_of(
    "tensor of floats or signed integers", lambda t: is_number(t) and getattr(t, "signedness", "") != "u"
)


class Elementwise(Operator):
    """Operands broadcast to one shape. `data` are those that must have one element type, the result's."""

    __slots__ = ()

    @property
    def data(self) -> tuple[Value, ...]:
        return self.operands

    def element(self) -> Type:
        """The element type of the result."""
        return self.same_element(self.data)

    def infer_types(self) -> list[Type]:
        return [TensorType(self.broadcast(self.operands), self.element())]

    def shape_requirements(self) -> Iterable[Requirement]:
        return broadcast_requirements(self, self.operands)
