"""Numbers, strings and dense literals: from tokens to values, with MLIR's checks of range and shape."""

from __future__ import annotations

import re
from typing import Any

import attrs

from .attributes import (
    Attribute,
    ComplexType,
    DenseAttr,
    FloatAttr,
    FloatType,
    IndexType,
    IntegerAttr,
    IntegerType,
    OpaqueAttr,
    OpaqueType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    Type,
    VectorType,
)  # fmt: skip
from .dims import Dim
from .floats import FLOAT_FORMATS, encode_float
from .lexer import Tok

_ESCAPE = re.compile(r"\\([0-9a-fA-F]{2}|.)")
_SYMBOL_PART = re.compile(r'@(?:([\w$.]+)|("(?:[^"\\\n]|\\.)*"))')
_NUMBER = re.compile(r"(-?\d+)([eE][-+]?\d+)")
_NAMED = {"n": 10, "t": 9, "\\": 92, '"': 34}


class InnerError(Exception):
    """An error at an offset of the text that is being read."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def without_point(text: str, start: int) -> str:
    """What to say where `e-5` at `start` was not expected: `1e-5` is two tokens, as in MLIR."""
    number = next((m for m in _NUMBER.finditer(text, max(0, start - 40)) if m.start(2) == start), None)
    return f" (a float needs a point: write {number[1]}.0{number[2]}, not {number[0]})" if number else ""


def unquote(literal: str) -> str:
    """The string of a literal; bytes that are not UTF-8 become surrogates (PEP 383)."""
    if "\\" not in literal:
        return literal[1:-1]
    raw = literal[1:-1].encode("utf-8", "surrogateescape")
    done = re.sub(rb"\\([0-9a-fA-F]{2}|.)", _unescape, raw, flags=re.S)
    return done.decode("utf-8", "surrogateescape")


def _unescape(match: re.Match[bytes]) -> bytes:
    found = match[1]
    return (
        bytes([int(found, 16)]) if len(found) == 2 else bytes([_NAMED.get(found.decode("latin-1"), found[0])])
    )


def symbol_reference(text: str) -> SymbolRefAttr:
    """`@a::@"b c"`."""
    return SymbolRefAttr(tuple(word or unquote(quoted) for word, quoted in _SYMBOL_PART.findall(text)))


def parse_int(text: str) -> int:
    """A decimal or hexadecimal literal; decimal ones of any length."""
    digits = text.lstrip("-")
    if digits.startswith("0x"):
        value = int(digits, 16)
    else:
        value = 0
        for at in range(0, len(digits), 4000):  # Python refuses longer ones at once
            part = digits[at : at + 4000]
            value = value * 10 ** len(part) + int(part)
    return -value if text.startswith("-") else value


def number_attribute(token: Tok, type: Type) -> Attribute:
    """The attribute of a literal with its type."""
    if isinstance(type, (IntegerType, IndexType)):
        return IntegerAttr(integer_value(token, type), type)
    if isinstance(type, FloatType):
        return FloatAttr(float_bits(token, type), type)
    if isinstance(type, OpaqueType):
        return OpaqueAttr(token.text, type)
    raise InnerError("integer literal not valid for specified type", _digits(token))


def _digits(token: Tok) -> int:
    return token.start + token.text.startswith("-")


def integer_value(token: Tok, type: IntegerType | IndexType) -> int:
    """The value of a literal, in range for `type`; signless ones are held as signed (i1 as 0 and 1)."""
    if token.type == "FLOAT":
        raise InnerError("floating point value not valid for specified type", _digits(token))
    if token.type in ("TRUE", "FALSE"):
        if not (isinstance(type, IntegerType) and type.width == 1):
            raise InnerError("expected a number, 'true' and 'false' are of type i1", token.start)
        return int(token.type == "TRUE")
    if len(token.text) > 3500:  # Python writes no longer ones
        raise InnerError("integer literal too large", _digits(token))
    value = parse_int(token.text)
    if isinstance(type, IndexType):
        type = IntegerType(64)
    if value < 0 and type.signedness == "u":
        raise InnerError("negative integer literal not valid for unsigned integer type", _digits(token))
    low, high = type.range()
    if not low <= value <= high:
        raise InnerError("integer constant out of range for attribute", _digits(token))
    if type.signedness == "":
        if type.width == 1:
            return value & 1
        if value > high >> 1:
            return value - high - 1
    return value


def float_bits(token: Tok, type: FloatType) -> int:
    """The bits of a float literal; a hexadecimal one gives them as they are."""
    if token.type == "FLOAT":
        return encode_float(float(token.text), type.name)
    if token.text.startswith("0x"):
        bits = int(token.text, 16)
        if bits >> FLOAT_FORMATS[type.name].width:
            raise InnerError("hexadecimal float constant out of range for type", token.start)
        return bits
    raise InnerError(
        "unexpected decimal integer literal for a floating point value: add a trailing "
        "dot to make the literal a float",
        _digits(token),
    )


# ---------------------------------------------------------------- dense


@attrs.define
class Literal:
    """The inside of `dense<...>`: tokens in row-major order, the shape of the brackets, the offset of the
    end."""

    tokens: list[Tok]
    shape: tuple[int, ...]
    end: int
    complex: bool = False
    numbers: Tok | None = None  # all of it, where it is a long list of numbers


def nested(parts: list[Literal], close: Tok) -> Literal:
    """`[a, b, ...]`: all parts must have the same shape."""
    for part in parts[1:]:
        if part.shape != parts[0].shape:
            raise InnerError(
                "tensor literal is invalid; ranks are not consistent between elements", close.start
            )
    tokens = [token for part in parts for token in part.tokens]
    return Literal(tokens, (len(parts), *parts[0].shape), close.end_pos, parts[0].complex)


def element_value(token: Tok, type: Type) -> int:
    """What DenseAttr and DenseArrayAttr hold of a literal: an integer, or the bits of a float."""
    if isinstance(type, FloatType):
        return float_bits(token, type)
    if isinstance(type, (IntegerType, IndexType)):
        return integer_value(token, type)
    raise InnerError(f"no literal has element type '{type}'", token.start)


def dense(head: Tok, literal: Literal | None, type: Type) -> Attribute:
    """`dense<...> : type`; all elements equal makes a splat."""
    if not isinstance(type, (TensorType, VectorType)):
        raise InnerError("elements literal must be a shaped type", head.start)
    shape = static_shape(head, type)
    size = 1
    for extent in shape:
        size *= extent
    if literal is None or (not literal.tokens and size == 0):
        if size:
            raise InnerError(
                f"parsed zero elements, but type ({list(shape)}) expected at least 1", head.start
            )
        return DenseAttr(type, ())
    values = _values(literal, type.element, size)
    if literal.shape and literal.shape != shape:
        raise InnerError(
            f"inferred shape of elements literal ({_list(literal.shape)}) does not match type "
            f"({_list(shape)})",
            head.start,
        )
    return _splat_if_equal(type, values, size)


def _list(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _splat_if_equal(type: Type, values: list[Any], size: int) -> DenseAttr:
    step = 2 if isinstance(type.element, ComplexType) else 1  # type: ignore[attr-defined]
    head = values[:step]
    if size and (len(values) == step or head * (len(values) // step) == values):
        return DenseAttr(type, tuple(head), True)
    return DenseAttr(type, tuple(values))


def static_shape(head: Tok, type: TensorType | VectorType) -> tuple[int, ...]:
    if isinstance(type, VectorType):
        return type.shape
    if any(d is None or not d.is_constant for d in type.shape):
        raise InnerError("elements literal type must have static shape", head.start)
    return tuple(d.value for d in type.shape)  # type: ignore[union-attr]


def _values(literal: Literal, element: Type, size: int) -> list[Any]:
    scalar = element.element if isinstance(element, ComplexType) else element
    first = literal.tokens[0]
    if first.type == "STRING" and not literal.shape and not isinstance(scalar, OpaqueType):
        return raw_values(first, scalar, size * (2 if scalar is not element else 1))
    if first.type == "STRING":
        return [StringAttr(unquote(t.text)) for t in literal.tokens]
    if literal.complex != (scalar is not element):
        raise InnerError("expected (real, imaginary) pairs exactly where elements are complex", first.start)
    return [element_value(token, scalar) for token in literal.tokens]


def raw_values(token: Tok, scalar: Type, count: int) -> list[int]:
    """`"0x..."`: the bytes of all elements, little-endian, or of one."""
    text = token.text[1:-1]
    if not re.fullmatch(r"0x(?:[0-9a-fA-F]{2})*", text):
        raise InnerError("elements hex string should start with '0x' and hold bytes", token.start)
    data = bytes.fromhex(text[2:])
    width = 64 if isinstance(scalar, IndexType) else getattr(scalar, "width", 0)
    if isinstance(scalar, FloatType):
        width = FLOAT_FORMATS[scalar.name].width
    step = max(1, (width + 7) // 8)
    if not width or len(data) not in (step, step * count):
        raise InnerError("elements hex data size is invalid for provided type", token.start)
    signed = isinstance(scalar, IndexType) or (
        isinstance(scalar, IntegerType) and scalar.signedness != "u" and scalar.width > 1
    )
    return [int.from_bytes(data[i : i + step], "little", signed=signed) for i in range(0, len(data), step)]


# ---------------------------------------------------------------- long lists of numbers

_INNERMOST = re.compile(r"\[[^\[\]]*\]")
_NUMPY = {"f16": ("float16", "uint16"), "f32": ("float32", "uint32"), "f64": ("float64", "uint64")}


def dense_numbers(text: str, type: Type) -> DenseAttr | None:
    """As `dense`, of a list of numbers; None where anything is unusual, for `dense` to say what."""
    if not isinstance(type, (TensorType, VectorType)):
        return None
    texts = re.sub(r"[\[\],]", " ", text).split()
    values = _numbers(texts, type.element)
    shape = list_shape(text)
    fixed = all(not isinstance(d, Dim) or d.is_constant for d in type.shape) and None not in type.shape
    if values is None or shape is None or not fixed:
        return None
    if shape != tuple(d.value if isinstance(d, Dim) else d for d in type.shape):
        return None
    return _splat_if_equal(type, values, len(values))


def _numbers(texts: list[str], element: Type) -> list[int] | None:
    import numpy  # here, as most programs that read text have no use for it

    floats = isinstance(element, FloatType) and element.name in _NUMPY
    if any(("." in t) is not floats or len(t) > 100 for t in texts):
        return None
    try:
        if isinstance(element, FloatType):
            kind, bits = _NUMPY[element.name]
            with numpy.errstate(over="ignore"):
                return numpy.array([float(t) for t in texts]).astype(kind).view(bits).tolist()  # type: ignore[no-any-return]
        values = [int(t) for t in texts]
    except ValueError:
        return None
    if not isinstance(element, (IntegerType, IndexType)) or not values:
        return None
    width = 64 if isinstance(element, IndexType) else element.width
    fits = width > 1 and -(1 << (width - 1)) <= min(values) and max(values) < 1 << (width - 1)
    return values if fits and (min(values) >= 0 or getattr(element, "signedness", "") != "u") else None


def list_shape(text: str) -> tuple[int, ...] | None:
    """The extents of nested lists; None where they differ or brackets do not match."""
    shape: list[int] = []
    text = text.strip()
    while text != "0":
        lists = _INNERMOST.findall(text)
        counts = {part.count(",") + 1 for part in lists}
        whole = {part.strip("[] ").endswith(",") or not part.strip("[] ") for part in lists}
        if len(counts) != 1 or whole != {False}:
            return None
        shape.insert(0, counts.pop())
        text = _INNERMOST.sub("0", text)
        if len(shape) > 64 or text.strip("[]0, \n\t\r"):
            return None
    return tuple(shape)
