"""Attributes and types: immutable, interned values, so that equality is identity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar, dataclass_transform
from weakref import WeakValueDictionary

import attrs

from .dims import Dim, as_dim
from .floats import FLOAT_FORMATS, decode_float, encode_float, float_text

Part = "str | Attribute"
T = TypeVar("T", bound="Attribute")


class _Interning(type):
    """Calling a class twice with equal fields gives the same object."""

    _table: WeakValueDictionary[Any, Any]

    def __call__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        table = cls.__dict__.get("_table")
        if table is None:
            table = cls._table = WeakValueDictionary()
        return table.setdefault(made._key(), made)


class Attribute(metaclass=_Interning):
    """A compile-time constant attached to an operation. Subclasses are `@attribute` classes."""

    __slots__ = ("__weakref__", "_text")
    _fields: ClassVar[tuple[str, ...]] = ()

    def _key(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._fields)

    def parts(self) -> Iterator[str | Attribute]:
        """The textual form, in pieces; nested attributes stand for themselves (no recursion on depth)."""
        raise NotImplementedError(type(self).__name__)

    def generic_parts(self) -> Iterator[str | Attribute]:
        """As `parts`, in the form that mlir-opt reads; differs where a type has symbolic dims."""
        return self.parts()

    def __str__(self) -> str:
        return attribute_text(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def __reduce__(self) -> Any:
        return type(self), self._key()


def attribute_text(attribute: Attribute, generic: bool = False) -> str:
    """Text of an attribute or type; `generic` writes symbolic tensor types as MLIR encodings."""
    cached = getattr(attribute, "_text", None)
    if cached is None:
        cached = {}
        object.__setattr__(attribute, "_text", cached)
    text = cached.get(generic)
    if text is None:
        text = cached[generic] = "".join(_flatten(attribute, generic))
    return text


def _flatten(attribute: Attribute, generic: bool) -> Iterator[str]:
    stack: list[Iterator[str | Attribute]] = [iter((attribute,))]
    while stack:
        part = next(stack[-1], None)
        if part is None:
            stack.pop()
        elif isinstance(part, str):
            yield part
        else:
            stack.append(part.generic_parts() if generic else part.parts())


@dataclass_transform(frozen_default=True, field_specifiers=(attrs.field,))
def _define(cls: type[T]) -> type[T]:
    made = attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False, cache_hash=False)(cls)
    made._fields = tuple(field.name for field in attrs.fields(made))  # type: ignore[arg-type,misc]
    return made


def comma(parts: Iterable[Any]) -> Iterator[Any]:
    for index, part in enumerate(parts):
        if index:
            yield ", "
        yield part


# ---------------------------------------------------------------- types


class Type(Attribute):
    """The type of a value."""

    __slots__ = ()


@_define
class IntegerType(Type):
    """`i32`, `si8`, `ui64`: `width` bits; `signedness` is "", "s" or "u"."""

    width: int
    signedness: str = ""

    def parts(self) -> Iterator[str]:
        yield f"{self.signedness}i{self.width}"

    def range(self) -> tuple[int, int]:
        """The values that a literal of this type may have (signless takes both readings, as in MLIR)."""
        if self.signedness == "u":
            return 0, (1 << self.width) - 1
        low = -(1 << (self.width - 1)) if self.width else 0
        return low, (1 << self.width) - 1 if self.signedness == "" else -low - 1


@_define
class IndexType(Type):
    """The type of sizes and subscripts."""

    def parts(self) -> Iterator[str]:
        yield "index"


@_define
class NoneType(Type):
    def parts(self) -> Iterator[str]:
        yield "none"


@_define
class FloatType(Type):
    """`f16`, `bf16`, `f32`, `f64`, `f8E4M3FN`, ...: a name of `floats.FLOAT_FORMATS`."""

    name: str

    @property
    def width(self) -> int:
        return FLOAT_FORMATS[self.name].width

    def parts(self) -> Iterator[str]:
        yield self.name


@_define
class FunctionType(Type):
    inputs: tuple[Type, ...]
    results: tuple[Type, ...]

    def parts(self) -> Iterator[str | Attribute]:
        yield "("
        yield from comma(self.inputs)
        yield ") -> "
        alone = len(self.results) == 1 and not isinstance(self.results[0], FunctionType)
        if not alone:
            yield "("
        yield from comma(self.results)
        if not alone:
            yield ")"


Shape = tuple[Dim | None, ...]


def _shape(dims: Sequence[Dim | int | str | None]) -> Shape:
    return tuple(None if dim is None else as_dim(dim) for dim in dims)


@_define
class TensorType(Type):
    """`tensor<[m, 4*n], f16>`: a ranked tensor whose dims are expressions over symbols; None is `?`."""

    shape: Shape = attrs.field(converter=_shape)
    element: Type
    encoding: Attribute | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dims, when none is `?`."""
        if None in [d for d in self.shape if d is None]:
            raise TypeError(f"{self} has a '?' dim; name it first")
        return self.shape  # type: ignore[return-value]

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset().union(*[d.symbols for d in self.shape if d is not None])

    def with_element(self, element: Type) -> TensorType:
        return TensorType(self.shape, element, self.encoding)

    def _plain(self) -> bool:
        return all(d is None or d.is_constant for d in self.shape)

    def parts(self) -> Iterator[str | Attribute]:
        if self._plain():
            yield from self._mlir_parts(self.encoding)
            return
        yield f"tensor<[{', '.join('?' if d is None else str(d) for d in self.shape)}], "
        yield self.element
        if self.encoding is not None:
            yield ", "
            yield self.encoding
        yield ">"

    def generic_parts(self) -> Iterator[str | Attribute]:
        plain = self._plain() or self.encoding is not None
        encoding = self.encoding if plain else DimsAttr(self.shape)
        return self._mlir_parts(encoding)

    def _mlir_parts(self, encoding: Attribute | None) -> Iterator[str | Attribute]:
        yield "tensor<" + "".join(
            f"{d.value}x" if d is not None and d.is_constant else "?x" for d in self.shape
        )
        yield self.element
        if encoding is not None:
            yield ", "
            yield encoding
        yield ">"


@_define
class UnrankedTensorType(Type):
    element: Type

    def parts(self) -> Iterator[str | Attribute]:
        yield "tensor<*x"
        yield self.element
        yield ">"


@_define
class VectorType(Type):
    """`vector<8xf32>`; scalable dims are written in brackets, `vector<[4]xf32>`."""

    shape: tuple[int, ...]
    element: Type
    scalable: tuple[bool, ...] = ()

    def parts(self) -> Iterator[str | Attribute]:
        scalable = self.scalable or (False,) * len(self.shape)
        yield "vector<" + "".join(f"[{n}]x" if s else f"{n}x" for n, s in zip(self.shape, scalable, strict=True))
        yield self.element
        yield ">"


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
class ComplexType(Type):
    element: Type

    def parts(self) -> Iterator[str | Attribute]:
        yield "complex<"
        yield self.element
        yield ">"


@_define
class TupleType(Type):
    types: tuple[Type, ...]

    def parts(self) -> Iterator[str | Attribute]:
        yield "tuple<"
        yield from comma(self.types)
        yield ">"


@_define
class OpaqueType(Type):
    """A type of a dialect that is not loaded: its text, untouched."""

    text: str

    def parts(self) -> Iterator[str]:
        yield self.text


# ---------------------------------------------------------------- attributes


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
    for index, (name, value) in enumerate(entries):
        yield (", " if index else "") + bare(name)
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
class DimsAttr(Attribute):
    """`#stepwell.dims<[m, 4*n]>`: a list of symbolic dims; None is `?`."""

    dims: Shape = attrs.field(converter=_shape)

    def parts(self) -> Iterator[str]:
        yield f"#stepwell.dims<[{', '.join('?' if d is None else str(d) for d in self.dims)}]>"


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


unknown = UnknownLoc()
i1, i8, i16, i32, i64 = (IntegerType(n) for n in (1, 8, 16, 32, 64))
ui8, ui16, ui32, ui64 = (IntegerType(n, "u") for n in (8, 16, 32, 64))
f16, bf16, f32, f64 = (FloatType(n) for n in ("f16", "bf16", "f32", "f64"))
f8E4M3FN, f8E5M2 = FloatType("f8E4M3FN"), FloatType("f8E5M2")
index, none, unit = IndexType(), NoneType(), UnitAttr()


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
