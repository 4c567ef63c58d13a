"""Element types as NumPy dtypes, constants as arrays, and the evaluation of one scalar operation.

The functions themselves are in scalar_numpy.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..ir.attributes import (
    Attribute,
    DenseAttr,
    FloatAttr,
    FloatType,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    Type,
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
    ui8,
    ui16,
    ui32,
    ui64,
)  # fmt: skip
from ..ir.definition import element_of
from ..ir.floats import decode_float, encode_float
from .scalar_numpy import Array, integer_to_float, np, resize, round_to, sitofp, uitofp

if TYPE_CHECKING:
    import numpy

    from ..ir.core import Operation

__all__ = [
    "array_of", "constant", "convert", "dtype_of", "evaluate", "has_dtype", "rounded", "same_integer", "sitofp",
    "splat_of", "try_constant", "type_of", "uitofp", "unsupported",
]  # fmt: skip

# ---------------------------------------------------------------- types

_NAMES: dict[Type, str] = {
    i1: "bool_", i8: "int8", i16: "int16", i32: "int32", i64: "int64", index: "int64",
    ui8: "uint8", ui16: "uint16", ui32: "uint32", ui64: "uint64",
    f16: "float16", f32: "float32", f64: "float64",
}  # fmt: skip
_EXTENSIONS: dict[Type, str] = {bf16: "bfloat16", f8E4M3FN: "float8_e4m3fn", f8E5M2: "float8_e5m2"}
_DTYPES: dict[Type, Any] = {}
_TYPES: dict[Any, Type] = {}


def _load() -> None:
    import ml_dtypes
    import numpy

    _DTYPES.update((t, numpy.dtype(getattr(numpy, name))) for t, name in _NAMES.items())
    _DTYPES.update((t, numpy.dtype(getattr(ml_dtypes, name))) for t, name in _EXTENSIONS.items())
    _TYPES.update((dtype, t) for t, dtype in _DTYPES.items() if t is not index)


def has_dtype(type: Type) -> bool:
    """Whether NumPy can hold elements of `type` (a scalar type, or the element type of a shaped one)."""
    element = element_of(type)
    return element in _NAMES or element in _EXTENSIONS


def unsupported(type: Type, also: tuple[Type, ...] = ()) -> str | None:
    """Why no array or kernel has elements of `type`, and which it may have; None where it may. `index` has no fixed
    size and is an element only where `also` says so."""
    element = element_of(type)
    if element in also or (has_dtype(element) and element is not index):
        return None
    names = ", ".join(str(t) for t in (*_NAMES, *_EXTENSIONS) if t is not index)
    return f"'{element}' is not supported; use one of {names}"


def dtype_of(type: Type) -> numpy.dtype[Any]:
    """The NumPy dtype of the elements of `type`; bf16 and the f8 types come from ml_dtypes. TypeError for
    others."""
    if not _DTYPES:
        _load()
    try:
        return _DTYPES[element_of(type)]
    except KeyError:
        raise TypeError(f"no NumPy dtype holds '{type}'") from None


def type_of(dtype: Any) -> Type:
    """The scalar type of a NumPy dtype: unsigned dtypes give `ui8`...; int64 gives i64. TypeError for
    others."""
    if not _DTYPES:
        _load()
    try:
        return _TYPES[np.dtype(dtype)]
    except KeyError:
        raise TypeError(f"no element type for NumPy dtype '{dtype}'") from None


# ---------------------------------------------------------------- constants


def constant(value: Any, type: Type) -> Attribute:
    """The attribute of a Python number, NumPy scalar or array as a constant of `type`, wrapped or rounded to
    it.

    For a vector or tensor type a number (or 0-d array) gives a splat."""
    element = element_of(type)
    if element is type and not hasattr(value, "dtype"):
        return _plain_constant(value, element)
    array = convert(np.asarray(value), element)
    if element is type:
        return _scalar(_words(array).item(), element)
    words = _words(array).ravel().tolist()
    splat = len(set(words)) == 1
    values = words[:1] if splat else words
    return DenseAttr(type, tuple(_read(w, element) for w in values), splat)


def _plain_constant(value: Any, element: Type) -> Attribute:
    if isinstance(element, FloatType):
        return FloatAttr.of(float(value), element)
    return IntegerAttr(_wrap(int(value), element), element)


def _scalar(word: int, element: Type) -> Attribute:
    value = _read(word, element)
    return FloatAttr(value, element) if isinstance(element, FloatType) else IntegerAttr(value, element)


def _read(word: int, element: Type) -> int:
    return int(word) if isinstance(element, FloatType) else _wrap(int(word), element)


def _wrap(value: int, type: Type) -> int:
    """`value` modulo 2**width, in the reading that attributes hold: 0 or 1 for i1, signed unless the type is
    `ui`."""
    width = type.width if isinstance(type, IntegerType) else 64
    value &= (1 << width) - 1
    unsigned = type is i1 or (isinstance(type, IntegerType) and type.signedness == "u")
    return value if unsigned or not value >> (width - 1) else value - (1 << width)


def _words(array: Array) -> Array:
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind not in "iu" else array


def rounded(value: float | int, type: Type) -> float:
    """`value` as `type` holds it: where it overflows infinite, or NaN in a format without infinities. A type that is
    no float's rounds as f64."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    name = type.name if isinstance(type, FloatType) else "f64"
    return decode_float(encode_float(number, name), name)


def array_of(attribute: Attribute) -> Array | None:
    """The array of a constant: 0-d for a scalar or a splat; None where NumPy has no dtype for it."""
    if isinstance(attribute, DenseAttr):
        return _dense_array(attribute)
    if not isinstance(attribute, (IntegerAttr, FloatAttr)) or not has_dtype(attribute.type):
        return None
    return _from_words(
        attribute.bits if isinstance(attribute, FloatAttr) else attribute.value, attribute.type
    )


def _dense_array(attribute: DenseAttr) -> Array | None:
    if not has_dtype(attribute.type) or not all(isinstance(v, int) for v in attribute.values):
        return None
    if attribute.splat:
        return _from_words(attribute.values[0], element_of(attribute.type))
    shape = [d if isinstance(d, int) else d.value for d in attribute.type.shape]  # type: ignore[attr-defined]
    return _from_words(attribute.values, element_of(attribute.type)).reshape(shape)


def _from_words(words: Any, element: Type) -> Array:
    dtype = dtype_of(element)
    mask = (1 << 8 * dtype.itemsize) - 1
    masked = [w & mask for w in words] if isinstance(words, tuple) else words & mask
    array = np.array(masked, f"u{dtype.itemsize}")
    return array != 0 if dtype.kind == "b" else array.view(dtype)


def try_constant(value: Any, type: Type) -> Attribute | None:
    """As `constant`; None where a constant of `type` cannot be written (odd widths, dynamic dims)."""
    dims = type.shape if isinstance(type, TensorType) else ()
    static = all(d is not None and d.is_constant for d in dims)
    return constant(value, type) if static and has_dtype(type) else None


def splat_of(attribute: Attribute | None) -> int | None:
    """The one word that a constant holds everywhere: an integer, or the bits of a float."""
    if isinstance(attribute, DenseAttr):
        return attribute.values[0] if attribute.splat and isinstance(attribute.values[0], int) else None
    if isinstance(attribute, IntegerAttr):
        return attribute.value
    return attribute.bits if isinstance(attribute, FloatAttr) else None


def same_integer(word: int, value: int, type: Type) -> bool:
    """Whether `word` stands for `value` in an integer type, in the signed or the unsigned reading."""
    if isinstance(type, FloatType):
        return False
    width = type.width if isinstance(type, IntegerType) else 64
    return not (word - value) & ((1 << width) - 1)


def evaluate(op: Operation, *arrays: Array) -> Array:
    """The result of a scalar operation (an `arith` or `math` op) on arrays of its operands' element types."""
    with np.errstate(all="ignore"):
        return op.evaluate(*map(np.asarray, arrays))  # type: ignore[attr-defined]


def convert(a: Array, type: Type) -> Array:
    """Any numeric array as elements of `type`: wrapped to an integer type, rounded once to a float type."""
    dtype = dtype_of(type)
    if a.dtype == dtype:
        return a
    if isinstance(type, FloatType):
        with np.errstate(all="ignore"):
            return integer_to_float(a, dtype) if a.dtype.kind in "iub" else round_to(a, dtype)
    return resize(a, dtype) if isinstance(type, (IntegerType, IndexType)) else a.astype(dtype)
