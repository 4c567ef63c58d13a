"""Attributes and locations. Types are attributes too: what types.py defines can be had from here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from .attribute_base import Attribute, _define, attribute_text, comma
from .dims import Dim
from .floats import decode_float, encode_float, float_text
from .types import (
    ComplexType,
    DimsAttr,
    FloatType,
    FunctionType,
    IndexType,
    IntegerType,
    NoneType,
    OpaqueType,
    Shape,
    TensorType,
    TupleType,
    Type,
    UnrankedTensorType,
    VectorType,
    bf16,
    f8E4M3FN,
    f8E5M2,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    index,
    none,
    ui8,
    ui16,
    ui32,
    ui64,
)  # fmt: skip


@_define
class UnitAttr(Attribute):
    def parts(self) -> Iterator[str]:
        yield "unit"


@_define
class IntegerAttr(Attribute):
    """`-1 : i64`; `i1` prints as true and false, `i64` prints its type too, as MLIR does."""

    value: int
    type: Type

    def parts(self) -> Iterator[str | Attribute]:
        if self.type is i1:
            yield "true" if self.value else "false"
            return
        yield f"{self.value} : "
        yield self.type


@_define
class FloatAttr(Attribute):
    """A float constant, held as the bits of its type: -0.0 and each nan are values of their own."""

    bits: int
    type: FloatType

    @staticmethod
    def of(value: float, type: FloatType) -> FloatAttr:
        """The constant of `type` nearest to `value` (ties to even; overflow gives infinity or nan)."""
        return FloatAttr(encode_float(value, type.name), type)

    @property
    def value(self) -> float:
        return decode_float(self.bits, self.type.name)

    def parts(self) -> Iterator[str | Attribute]:
        yield float_text(self.bits, self.type.name)
        yield " : "
        yield self.type


@_define
class StringAttr(Attribute):
    """A byte string; bytes outside printable ASCII are held as surrogates (PEP 383) and printed as \\XX."""

    value: str
    type: Type | None = None

    def parts(self) -> Iterator[str | Attribute]:
        yield quote(self.value)
        if self.type is not None:
            yield " : "
            yield self.type


def quote(text: str) -> str:
    """MLIR's string literal of `text`: printable ASCII as it is, everything else as two hex digits."""
    out = []
    for byte in text.encode("utf-8", "surrogateescape"):
        char = chr(byte)
        if char == "\\":
            out.append("\\\\")
        elif char == '"' or not 32 <= byte < 127:
            out.append(f"\\{byte:02X}")
        else:
            out.append(char)
    return '"' + "".join(out) + '"'


@_define
class ArrayAttr(Attribute):
    elements: tuple[Attribute, ...]

    def parts(self) -> Iterator[str | Attribute]:
        yield "["
        yield from comma(self.elements)
        yield "]"


@_define
class MemRefType(Type):
    """`memref<4x?xf32, #layout, space>`; None is `?`."""

    shape: tuple[int | None, ...]
    element: Type
    layout: Attribute | None = None
    space: Attribute | None = None
    ranked: bool = True

    def parts(self) -> Iterator[str | Attribute]:
        dims = "".join("?x" if n is None else f"{n}x" for n in self.shape) if self.ranked else "*x"
        yield "memref<" + dims
        yield self.element
        for extra in (self.layout, self.space):
            if extra is not None:
                yield ", "
                yield str(extra.value) if isinstance(extra, IntegerAttr) and extra.type is i64 else extra
        yield ">"


@_define
class DictAttr(Attribute):
    """Sorted (name, attribute) pairs."""

    entries: tuple[tuple[str, Attribute], ...] = attrs.field(converter=lambda e: tuple(sorted(e, key=lambda p: p[0])))

    def parts(self) -> Iterator[str | Attribute]:
        return dict_parts(self.entries)


def bare(name: str) -> str:
    """An attribute name: as it is where the grammar allows, else quoted."""
    plain = name[:1].isalpha() or name[:1] == "_"
    return name if plain and name.isascii() and all(c.isalnum() or c in "_$." for c in name) else quote(name)


def dict_parts(entries: Iterable[tuple[str, Attribute]]) -> Iterator[str | Attribute]:
    yield "{"
    for number, (name, value) in enumerate(entries):
        yield (", " if number else "") + bare(name)
        if not isinstance(value, UnitAttr):
            yield " = "
            yield value
    yield "}"


@_define
class TypeAttr(Attribute):
    type: Type

    def parts(self) -> Iterator[str | Attribute]:
        yield self.type

    def generic_parts(self) -> Iterator[str | Attribute]:
        yield self.type


@_define
class SymbolRefAttr(Attribute):
    """`@f` or `@module::@f`."""

    path: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path[-1]

    def parts(self) -> Iterator[str]:
        yield "::".join(symbol_text(name) for name in self.path)


def symbol_text(name: str) -> str:
    return "@" + (name if bare(name) == name else quote(name))


@_define
class DenseArrayAttr(Attribute):
    """`array<i64: 1, 2>`: values are ints, or the bits of floats."""

    element: Type
    values: tuple[int, ...]

    def parts(self) -> Iterator[str | Attribute]:
        yield "array<"
        yield self.element
        if self.values:
            yield ": " + ", ".join(self._element_text(v) for v in self.values)
        yield ">"

    def _element_text(self, value: int) -> str:
        if isinstance(self.element, FloatType):
            return float_text(value, self.element.name)
        return ("true" if value else "false") if self.element is i1 else str(value)


@_define
class DenseAttr(Attribute):
    """`dense<...> : tensor<2x2xf32>`: one value (a splat) or all, row-major; floats as bits, ints as ints,
    strings as StringAttr. Complex elements take two values each."""

    type: Type
    values: tuple[Any, ...]
    splat: bool = False

    def parts(self) -> Iterator[str | Attribute]:
        yield "dense<"
        shape = [d.value if isinstance(d, Dim) else d for d in self.type.shape]  # type: ignore[attr-defined]
        texts = [self._element_text(v) for v in self.values]
        if isinstance(self.type.element, ComplexType):  # type: ignore[attr-defined]
            texts = [f"({a},{b})" for a, b in zip(texts[::2], texts[1::2], strict=True)]
        if self.splat:
            yield texts[0]
        elif texts:
            yield nest(texts, shape)
        yield "> : "
        yield self.type

    def _element_text(self, value: Any) -> str:
        element = self.type.element  # type: ignore[attr-defined]
        element = element.element if isinstance(element, ComplexType) else element
        if isinstance(element, FloatType):
            return float_text(value, element.name)
        if isinstance(value, Attribute):
            return str(value)
        return ("true" if value else "false") if element is i1 else str(value)


def nest(texts: list[str], shape: Sequence[int]) -> str:
    """Row-major element texts with a bracket a dim: `[[1, 2], [3, 4]]`."""
    if not shape:
        return texts[0]
    for extent in reversed(shape):
        texts = [f"[{', '.join(texts[i : i + extent])}]" for i in range(0, len(texts), extent)]
    return texts[0]


@_define
class OpaqueAttr(Attribute):
    """An attribute of a dialect that is not loaded, or one that only travels: its text, untouched."""

    text: str
    type: Type | None = None

    def parts(self) -> Iterator[str | Attribute]:
        yield self.text
        if self.type is not None:
            yield " : "
            yield self.type


@_define
class FactsAttr(Attribute):
    """`#stepwell.facts<"n mod 8 == 0", "s <= 4096">`: relations between dims."""

    relations: tuple[Any, ...]

    def parts(self) -> Iterator[str]:
        yield f"#stepwell.facts<{', '.join(quote(str(r)) for r in self.relations)}>"


# ---------------------------------------------------------------- locations


class Location(Attribute):
    """Where an operation comes from."""

    __slots__ = ()


@_define
class UnknownLoc(Location):
    def parts(self) -> Iterator[str]:
        yield "unknown"


@_define
class FileLoc(Location):
    """`"f.mlir":3:7`; line and column count from 1."""

    file: str
    line: int
    column: int

    def parts(self) -> Iterator[str]:
        yield f"{quote(self.file)}:{self.line}:{self.column}"


@_define
class OpaqueLoc(Location):
    """Named, fused and call-site locations: kept as text, resolved to a file location where one stands inside."""

    text: str
    inner: FileLoc | None = None

    def parts(self) -> Iterator[str]:
        yield self.text


unknown, unit = UnknownLoc(), UnitAttr()


def to_attribute(value: Any) -> Attribute:
    """The attribute of a Python value: bool, int (i64), float (f64), str, Type, Dim, list, dict."""
    if isinstance(value, Type):
        return TypeAttr(value)
    if isinstance(value, Attribute):
        return value
    if isinstance(value, bool):
        return IntegerAttr(int(value), i1)
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    if isinstance(value, float):
        return FloatAttr.of(value, f64)
    if isinstance(value, str):
        return StringAttr(value)
    if isinstance(value, Dim):
        return DimsAttr((value,))
    if isinstance(value, (list, tuple)):
        return ArrayAttr(tuple(map(to_attribute, value)))
    if isinstance(value, dict):
        return DictAttr(tuple((k, to_attribute(v)) for k, v in value.items()))
    raise TypeError(f"no attribute for {value!r} of {type(value).__name__}")


def from_attribute(value: Attribute | None) -> Any:
    """The Python value of a simple attribute; other attributes are returned as they are."""
    if isinstance(value, (IntegerAttr,)):
        return bool(value.value) if value.type is i1 else value.value
    if isinstance(value, (FloatAttr, StringAttr)):
        return value.value
    if isinstance(value, TypeAttr):
        return value.type
    if isinstance(value, ArrayAttr):
        return tuple(map(from_attribute, value.elements))
    if isinstance(value, DimsAttr):
        return value.dims
    if isinstance(value, DenseArrayAttr):
        return value.values
    return True if isinstance(value, UnitAttr) else value


__all__ = [
    "ArrayAttr", "Attribute", "ComplexType", "DenseArrayAttr", "DenseAttr", "DictAttr", "DimsAttr", "FactsAttr",
    "FileLoc", "FloatAttr", "FloatType", "FunctionType", "IndexType", "IntegerAttr", "IntegerType", "Location",
    "MemRefType", "NoneType", "OpaqueAttr", "OpaqueLoc", "OpaqueType", "Shape", "StringAttr", "SymbolRefAttr",
    "TensorType", "TupleType", "Type", "TypeAttr", "UnitAttr", "UnknownLoc", "UnrankedTensorType", "VectorType",
    "_define", "attribute_text", "bare", "bf16", "comma", "dict_parts", "f16", "f32", "f64", "f8E4M3FN", "f8E5M2",
    "from_attribute", "i1", "i16", "i32", "i64", "i8", "index", "nest", "none", "quote", "symbol_text",
    "to_attribute", "ui16", "ui32", "ui64", "ui8", "unit", "unknown",
]  # fmt: skip
