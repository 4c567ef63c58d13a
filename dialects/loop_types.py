"""The `loop` dialect's types: buffers, and which scalars and vectors a kernel computes with."""

from __future__ import annotations

import re
from typing import Any

from ..ir.attributes import FloatType, IndexType, IntegerType, Type, VectorType, _define, comma, index
from ..ir.core import Value
from ..ir.definition import Constraint
from ..ir.floats import FLOAT_FORMATS
from ..ir.registry import Dialect
from .scalar import has_dtype

SPACES = ("global", "shared", "register", "param")



@_define
class BufferType(Type):
    """`!loop.buffer<f32, shared, 1024>`: flat memory of `element`s; `size` is None where not static.

    `constant` (text: `const`) promises that the kernel does not write it. The element is a scalar type, which
    may be unsigned, or, in registers, a vector.
    """

    element: Type
    space: str = "global"
    size: int | None = None
    constant: bool = False

    def parts(self) -> Any:
        yield "!loop.buffer<"
        size = () if self.size is None else (str(self.size),)
        yield from comma((self.element, self.space, *size, *(("const",) if self.constant else ())))
        yield ">"

    @property
    def scalar(self) -> Type:
        """The type of an element as a value: integers without their sign."""
        return signless(self.element)

    @property
    def bytes(self) -> int:
        """Size in memory; raises TypeError where it is not static."""
        if self.size is None:
            raise TypeError(f"{self} has no static size")
        return self.size * byte_width(self.element)


def signless(type: Type) -> Type:
    """`ui8` -> `i8`; other types as they are."""
    return IntegerType(type.width) if isinstance(type, IntegerType) else type


def byte_width(type: Type) -> int:
    """Bytes of a scalar (`i1` takes one, `index` eight) or vector in memory."""
    if isinstance(type, VectorType):
        return type.shape[0] * byte_width(type.element)
    if isinstance(type, IndexType):
        return 8
    if isinstance(type, (IntegerType, FloatType)):
        return (type.width + 7) // 8
    raise TypeError(f"'{type}' has no size in memory")


def scalar_type(text: str) -> Type | None:
    """The scalar type that `text` spells, or None."""
    if text in FLOAT_FORMATS:
        return FloatType(text)
    found = re.fullmatch(r"([su]?)i(\d{1,3})", text)
    if found:
        return IntegerType(int(found[2]), found[1])
    return index if text == "index" else None


def parse_type(text: str) -> Type | None:
    """`!loop.buffer<...>` as a BufferType; None for any other text."""
    found = re.fullmatch(r"\s*!?(?:loop\.)?buffer\s*<(.*)>\s*", text, re.S)
    words = [word.strip() for word in found[1].split(",")] if found else []
    if len(words) < 2 or words[1] not in SPACES:
        return None
    constant = words[-1] == "const"
    rest = words[2:-1] if constant else words[2:]
    element = _element_type(words[0])
    if element is None or len(rest) > 1 or not all(word.isdigit() for word in rest):
        return None
    return BufferType(element, words[1], int(rest[0]) if rest else None, constant)


def _element_type(text: str) -> Type | None:
    vector = re.fullmatch(r"vector\s*<\s*(\d+)\s*x\s*(\w+)\s*>", text)
    if vector is None:
        return scalar_type(text)
    element = scalar_type(vector[2])
    return None if element is None else VectorType((int(vector[1]),), element)


loop = Dialect(
    "loop", "Kernels as loops over buffers, printed as CUDA C and as C.", closed=True, parse_type=parse_type
)

Buffer = Constraint("a buffer", lambda t: isinstance(t, BufferType))


def is_scalar(type: Type) -> bool:
    """Whether values of `type` are scalars of this level."""
    signed = isinstance(type, IntegerType) and type.signedness
    return isinstance(type, (FloatType, IndexType, IntegerType)) and not signed and has_dtype(type)


def is_vector(type: Type) -> bool:
    """`vector<WxT>` with W a power of two from 2 up and T a scalar other than index."""
    if not isinstance(type, VectorType) or len(type.shape) != 1 or any(type.scalable):
        return False
    width = type.shape[0]
    return width >= 2 and width & (width - 1) == 0 and is_scalar(type.element) and type.element is not index


Scalar = Constraint("a signless scalar", is_scalar)
Vector = Constraint("a vector with a power of two of elements", is_vector)
ScalarOrVector = Scalar | Vector


def widened(element: Type, width: int) -> Type:
    """`width` consecutive elements as one value: a scalar when it is 1."""
    return element if width == 1 else VectorType((width,), element)


def buffer_type(value: Value) -> BufferType:
    """The type of a buffer; TypeError for another value."""
    if not isinstance(value.type, BufferType):
        raise TypeError(f"{value!r} is not a buffer")
    return value.type
