"""Where a schedule takes the elements of a tensor from: a buffer of the kernel, or a value that it has."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..ir.core import Value
from ..ir.dims import Dim, product
from .emit import Emitter, NotVectorisable, Point, Source


def known(value: Value) -> Source:
    """A source that is one value, whatever the point."""
    return lambda emitter, point: value


def row_major(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """The strides, in elements, of a row-major tensor."""
    return tuple(product(shape[axis + 1 :]) for axis in range(len(shape)))


@attrs.define(eq=False)
class BufferSource:
    """Elements of `tensor` from a kernel's buffer: row-major, or with run-time strides where they are given."""

    buffer: Value
    shape: tuple[Dim, ...]
    strides: tuple[Value, ...] | None = None

    def __call__(self, emitter: Emitter, point: Point) -> Value:
        key = (self.buffer, *point.key)
        found = emitter.remembered(key)
        if found is None:
            found = (self._load(emitter, point),)
            emitter.remember(key, found)
        return found[0]

    def address(self, emitter: Emitter, point: Point) -> Value:
        """The flat offset of an element."""
        if self.strides is None and point.flat is not None and same_shape(point.shape, self.shape):
            return point.flat
        return emitter.offset(point.indices, self.strides or row_major(self.shape))

    def _load(self, emitter: Emitter, point: Point) -> Value:
        lanes = emitter.lanes
        if lanes is None:
            return emitter.load(self.buffer, self.address(emitter, point))
        if point.flat is lanes.base and self.strides is None and same_shape(point.shape, self.shape):
            return emitter.load(self.buffer, point.flat, lanes.width)
        varying = [i for i in point.indices if i in emitter.varying]
        if varying and (self.strides is not None or varying != [lanes.base] or point.indices[-1] is not lanes.base):
            raise NotVectorisable
        width = lanes.width if varying else 1
        return emitter.load(self.buffer, self.address(emitter, point), width)


def same_shape(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Equal shapes. Dims are interned; comparing them by value would ask the prover."""
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
