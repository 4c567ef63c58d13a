"""Types, and the dims that stand in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from .attribute_base import Attribute, _define, comma
from .dims import Dim, as_dim
from .floats import FLOAT_FORMATS


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


@_define
class DimsAttr(Attribute):
    """`#stepwell.dims<[m, 4*n]>`: a list of symbolic dims; None is `?`."""

    dims: Shape = attrs.field(converter=_shape)

    def parts(self) -> Iterator[str]:
        yield f"#stepwell.dims<[{', '.join('?' if d is None else str(d) for d in self.dims)}]>"


i1, i8, i16, i32, i64 = (IntegerType(n) for n in (1, 8, 16, 32, 64))
ui8, ui16, ui32, ui64 = (IntegerType(n, "u") for n in (8, 16, 32, 64))
f16, bf16, f32, f64 = (FloatType(n) for n in ("f16", "bf16", "f32", "f64"))
f8E4M3FN, f8E5M2 = FloatType("f8E4M3FN"), FloatType("f8E5M2")
index, none = IndexType(), NoneType()
