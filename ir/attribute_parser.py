"""Types, attributes and locations from text. Results are memoised by their text: texts without aliases for
the whole process (bounded), others by file."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from . import literals
from .attributes import (
    ArrayAttr,
    Attribute,
    ComplexType,
    DenseArrayAttr,
    DictAttr,
    DimsAttr,
    FactsAttr,
    FileLoc,
    FloatType,
    FunctionType,
    IndexType,
    IntegerType,
    Location,
    MemRefType,
    NoneType,
    OpaqueAttr,
    OpaqueLoc,
    OpaqueType,
    StringAttr,
    TensorType,
    TupleType,
    Type,
    TypeAttr,
    UnrankedTensorType,
    VectorType,
    f64,
    i1,
    i64,
    unit,
    unknown,
)  # fmt: skip
from .dims import DimError, as_dim, parse_dim, parse_facts
from .floats import FLOAT_FORMATS
from .lexer import Tok, inner_tokens
from .literals import InnerError, number_attribute, unquote
from .registry import DIALECTS

_ALIAS = re.compile(r'"(?:[^"\\\n]|\\.)*"|[#!][A-Za-z_][\w$]*(?![\w$]|\.[A-Za-z_])')
_CACHE: dict[tuple[str, str], Any] = {}
_CACHE_LIMIT = 1 << 16
_MAX_ALIAS_DEPTH = 50
_SCALARS: dict[str, Type] = {"index": IndexType(), "none": NoneType()}
Children = list[Any]


def uses_alias(text: str) -> bool:
    return any(found[0] != '"' for found in _ALIAS.findall(text))


class Scope:
    """What the text of one file may name: its aliases, read when first used."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}  # "#name" or "!name" -> the text it stands for
        self.resolved: dict[str, Any] = {}
        self.memo: dict[tuple[str, str], Any] = {}
        self.depth = 0

    def define(self, name: str, text: str) -> None:
        if name in self.aliases:
            raise InnerError(f"redefinition of {_kind(name)} alias id '{name[1:]}'", 0)
        self.aliases[name] = text

    def alias(self, name: str, at: int) -> Any:
        """The attribute, type or location that an alias stands for."""
        if name not in self.resolved:
            if name not in self.aliases:
                raise InnerError(f"undefined symbol alias id '{name[1:]}'", at)
            self.resolved[name] = InnerError(
                f"alias '{name}' is defined by itself", at
            )  # while it is being read
            self.resolved[name] = self._resolve(name)
        found = self.resolved[name]
        if isinstance(found, InnerError):
            raise InnerError(found.message, at)
        return found

    def _resolve(self, name: str) -> Any:
        text = self.aliases[name].strip()
        self.depth += 1
        try:
            if self.depth > _MAX_ALIAS_DEPTH:
                return InnerError("aliases that are used before their definition nest too deeply", 0)
            if re.match(r"loc\s*\(.*\)$", text, re.S):
                return self.read("location", loc_text(text))
            return self.read("type" if name[0] == "!" else "attribute", text)
        except InnerError as error:
            inside = error.message.startswith(("in alias", "alias"))
            return InnerError(error.message if inside else f"in alias '{name}': {error.message}", 0)
        finally:
            self.depth -= 1

    def expand(self, text: str) -> str:
        """`text` with its aliases written out."""
        if not self.aliases:
            return text
        return _ALIAS.sub(lambda m: str(self.alias(m[0], 0)) if m[0] in self.aliases else m[0], text)

    def read(self, start: str, text: str) -> Any:
        """Parse `text` by the grammar's rule `start`. Raises InnerError, with an offset into `text`."""
        key = (start, text)
        found = _CACHE.get(key)
        if found is None:
            found = self.memo.get(key)
        if found is None:
            found = self._parse(start, text)
            if uses_alias(text):
                self.memo[key] = found
            else:
                if len(_CACHE) >= _CACHE_LIMIT:
                    _CACHE.clear()
                _CACHE[key] = found
        return found

    def read_literal(self, token: Tok) -> literals.Literal:
        """The inside of `dense<...>`, token by token."""
        from .syntax import parse_tokens

        try:
            return parse_tokens("literal", list(inner_tokens(token.text, False)), token.text, self)  # type: ignore[no-any-return]
        except InnerError as error:
            raise InnerError(error.message, token.start + error.offset) from None

    def _parse(self, start: str, text: str) -> Any:
        from .syntax import parse_inner

        return parse_inner(start, text, self)


def _kind(name: str) -> str:
    return "type" if name[0] == "!" else "attribute"


def dialect_text(token: Tok, scope: Scope, hook: str, make: Callable[[str], Any]) -> Any:
    """`#name…` or `!name…`: an alias, what its dialect makes of it, or text that travels untouched."""
    text = token.text
    dotted = "." in text.partition("<")[0]
    if text in scope.aliases or not (dotted or "<" in text):
        return scope.alias(text, token.start)
    text = scope.expand(text)
    dialect = DIALECTS.get(text[1:].partition("<")[0].partition(".")[0])
    reader = getattr(dialect, hook) if dialect else None
    try:
        found = reader(text) if reader else None
    except (DimError, ValueError) as error:
        raise InnerError(str(error), token.start) from None
    return make(text) if found is None else found


def parse_shape(text: str, token: Tok) -> tuple[Any, ...]:
    """Dims, separated by commas that no bracket holds."""
    parts, depth, begin = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and not depth:
            parts.append(text[begin:at])
            begin = at + 1
    if text[begin:].strip() or parts:
        parts.append(text[begin:])
    try:
        return tuple(None if part.strip() == "?" else parse_dim(part) for part in parts)
    except DimError as error:
        raise InnerError(error.message, token.start) from None
    except RecursionError:
        raise InnerError("dim nested too deeply", token.start) from None


def _simple(token: Tok) -> Type:
    text = token.text
    found = _SCALARS.get(text)
    if found is None:
        if text[0] in "isu" and text[-1].isdigit():
            sign, _, width = text.rpartition("i")
            if len(width) > 8 or int(width) > 16777215:
                raise InnerError("integer bitwidth is limited to 16777215 bits", token.start)
            return IntegerType(int(width), sign)
        found = _SCALARS[text] = FloatType(text) if text in FLOAT_FORMATS else OpaqueType(text)
    return found


def _mlir_dims(token: Tok) -> list[int | None] | None:
    """The dims of `tensor<4x?x`; None for `*x`."""
    texts = [t.strip() for t in token.text.partition("<")[2].split("x")[:-1]]
    if "*" in texts:
        if len(texts) > 1:
            raise InnerError("'*' stands alone", token.start)
        return None
    return [None if t == "?" else _extent(t, token) for t in texts]


def as_shape(dims: list[int | None]) -> tuple[Any, ...]:
    return tuple(None if n is None else as_dim(n) for n in dims)


def _extent(text: str, token: Tok) -> int:
    if len(text) > 19 or int(text) >= 1 << 63:
        raise InnerError("dimension too large", token.start)
    return int(text)


class Inner:
    """Callbacks of the inner rules. `scope` is that of the text being read."""

    scope: Scope

    # -- lists

    def first(self, c: Children) -> list[Any]:
        return [c[0]]

    def following(self, c: Children) -> list[Any]:
        c[0].append(c[2])
        return c[0]  # type: ignore[no-any-return]

    def second(self, c: Children) -> Any:
        return c[1]

    # -- types

    def simple_type(self, c: Children) -> Type:
        return _simple(c[0])

    def tensor(self, c: Children) -> Type:
        dims, element = _mlir_dims(c[0]), c[1]
        encoding = c[3] if len(c) == 5 else None
        if dims is None:
            return UnrankedTensorType(element)
        if isinstance(encoding, DimsAttr):
            agree = len(dims) == len(encoding.dims) and all(
                n is None or (d is not None and d.is_constant and d.value == n)
                for n, d in zip(dims, encoding.dims, strict=True)
            )
            if not agree:
                raise InnerError(f"{encoding} does not agree with the shape", c[0].start)
            return TensorType(encoding.dims, element)
        return TensorType(as_shape(dims), element, encoding)

    def symbolic(self, c: Children) -> Type:
        text = c[0].text
        dims = parse_shape(text[text.index("[") + 1 : text.rindex("]")], c[0])
        return TensorType(dims, c[1], c[3] if len(c) == 5 else None)

    def vector(self, c: Children) -> Type:
        texts = [t.strip() for t in c[0].text.partition("<")[2].split("x")[:-1]]
        scalable = tuple(t.startswith("[") for t in texts)
        shape = tuple(_extent(t.strip("[] "), c[0]) for t in texts)
        return VectorType(shape, c[1], scalable if any(scalable) else ())

    def memref(self, c: Children) -> Type:
        dims = _mlir_dims(c[0])
        extras = c[3:-1:2]
        layout = extras[0] if extras and _is_layout(extras[0]) else None
        space = extras[-1] if len(extras) > (layout is not None) else None
        if len(extras) == 2 and layout is None:
            raise InnerError("expected a layout, then a memory space", c[0].start)
        return MemRefType(tuple(dims or ()), c[1], layout, space, dims is not None)

    def complex_type(self, c: Children) -> Type:
        return ComplexType(c[1])

    def tuple_type(self, c: Children) -> Type:
        return TupleType(tuple(c[1]) if len(c) == 3 else ())

    def dialect_type(self, c: Children) -> Type:
        found = dialect_text(c[0], self.scope, "parse_type", OpaqueType)
        if isinstance(found, TypeAttr):
            found = found.type
        if not isinstance(found, Type):
            raise InnerError(f"'{c[0].text}' is not a type", c[0].start)
        return found

    def no_types(self, c: Children) -> list[Type]:
        return []

    def function_type(self, c: Children) -> Type:
        results = (c[2],) if isinstance(c[2], Type) else c[2]
        return FunctionType(tuple(c[0]), tuple(results))

    # -- attributes

    def integer(self, c: Children) -> Attribute:
        return number_attribute(c[0], c[2] if len(c) == 3 else i64)

    def floating(self, c: Children) -> Attribute:
        return number_attribute(c[0], c[2] if len(c) == 3 else f64)

    def true(self, c: Children) -> Attribute:
        return number_attribute(c[0], c[2] if len(c) == 3 else i1)

    false = true

    def string(self, c: Children) -> Attribute:
        return StringAttr(unquote(c[0].text), c[2] if len(c) == 3 else None)

    def unit(self, c: Children) -> Attribute:
        return unit

    def symbol(self, c: Children) -> Attribute:
        return literals.symbol_reference(c[0].text)

    def opaque(self, c: Children) -> Attribute:
        return OpaqueAttr(self.scope.expand(c[0].text), c[2] if len(c) == 3 else None)

    def dialect_attribute(self, c: Children) -> Any:
        type = c[2] if len(c) == 3 else None
        head, _, body = c[0].text.partition("<")
        try:
            if head == "#stepwell.dims":
                return DimsAttr(
                    parse_shape(body.strip()[:-1].strip().removeprefix("[").removesuffix("]"), c[0])
                )
            if head == "#stepwell.facts":
                # quoted, because MLIR takes a bare '<' for a bracket; a bare list is read as well
                facts = body[:-1].replace('"', "")
                return FactsAttr(tuple(parse_facts(facts)) if facts.strip() else ())
        except DimError as error:
            raise InnerError(error.message, c[0].start) from None
        found = dialect_text(c[0], self.scope, "parse_attribute", lambda text: OpaqueAttr(text, type))
        return OpaqueAttr(f"loc({found})") if isinstance(found, Location) else found

    def array(self, c: Children) -> Attribute:
        return ArrayAttr(tuple(c[1]) if len(c) == 3 else ())

    def dictionary(self, c: Children) -> Attribute:
        seen: dict[str, Attribute] = {}
        for key, value in c[1] if len(c) == 3 else ():
            name = unquote(key.text) if key.type == "STRING" else key.text
            if name in seen:
                raise InnerError(f"duplicate key '{name}' in dictionary attribute", key.start)
            seen[name] = value
        return DictAttr(tuple(seen.items()))

    def unit_entry(self, c: Children) -> tuple[Tok, Attribute]:
        return c[0], unit

    def entry(self, c: Children) -> tuple[Tok, Attribute]:
        return c[0], c[2]

    def word_entry(self, c: Children) -> tuple[Tok, Attribute]:
        """`dim = m`, of a function's argument that is a dim."""
        if c[0].text != "dim":
            raise InnerError(f"expected attribute value, but found '{c[2].text}'", c[2].start)
        return c[0], StringAttr(c[2].text)

    def key(self, c: Children) -> Tok:
        return c[0]  # type: ignore[no-any-return]

    def number(self, c: Children) -> Tok:
        return c[0]  # type: ignore[no-any-return]

    def dense_array(self, c: Children) -> Attribute:
        numbers = c[3] if len(c) == 5 else ()
        return DenseArrayAttr(c[1], tuple(literals.element_value(t, c[1]) for t in numbers))

    def type_attribute(self, c: Children) -> Attribute:
        return TypeAttr(c[0])

    # -- dense literals: (tokens, shape, offset of the end)

    def element(self, c: Children) -> literals.Literal:
        return literals.Literal([c[0]], (), c[0].end_pos)

    def pair(self, c: Children) -> literals.Literal:
        return literals.Literal([c[1], c[3]], (), c[4].end_pos, True)

    def no_elements(self, c: Children) -> literals.Literal:
        return literals.Literal([], (0,), c[1].end_pos)

    def numbers_literal(self, c: Children) -> literals.Literal:
        return literals.Literal([], (), c[0].end_pos, numbers=c[0])

    def elements(self, c: Children) -> literals.Literal:
        return literals.nested(c[1], c[2])

    def dense(self, c: Children) -> Attribute:
        literal = c[1] if len(c) == 5 else None
        if literal is not None and literal.numbers is not None:
            fast = literals.dense_numbers(literal.numbers.text, c[-1])
            if fast is not None:
                return fast
            literal = self.scope.read_literal(literal.numbers)
        return literals.dense(c[0], literal, c[-1])

    # -- labels and locations

    def label(self, c: Children) -> tuple[Any, ...]:
        return tuple(c[2]) if len(c) == 5 else ()

    def argument(self, c: Children) -> tuple[str, int, Type, Location | None]:
        location = self.scope.read("location", loc_text(c[3].text)) if len(c) == 4 else None
        return c[0].text, c[0].start, c[2], location

    def file_location(self, c: Children) -> Location:
        numbers = [literals.parse_int(t.text) for t in (c[2], c[4])]
        if not all(0 <= n < 1 << 32 for n in numbers):
            raise InnerError("line and column must fit in 32 bits", c[2].start)
        return FileLoc(unquote(c[0].text), *numbers)

    def range_location(self, c: Children) -> Location:
        inner = self.file_location(c)
        tail = "".join(t.text for t in c[6:])
        return OpaqueLoc(f"{inner} to {tail}", inner)  # type: ignore[arg-type]

    def name_location(self, c: Children) -> Location:
        return OpaqueLoc(c[0].text + (f"({c[2]})" if len(c) == 4 else ""), _file(c[2:3]))

    def call_location(self, c: Children) -> Location:
        if c[0].text != "callsite" or c[3].text != "at":
            raise InnerError("expected 'callsite(... at ...)'", c[0].start)
        return OpaqueLoc(f"callsite({c[2]} at {c[4]})", _file([c[2]]))

    def fused_location(self, c: Children) -> Location:
        if not c[0].text.startswith("fused"):
            raise InnerError("expected 'fused[...]'", c[0].start)
        metadata = f"<{c[1]}>" if len(c) == 6 else ""
        return OpaqueLoc(f"fused{metadata}[{', '.join(map(str, c[-2]))}]", _file(c[-2]))

    def unknown_location(self, c: Children) -> Location:
        if c[0].text != "unknown":
            raise InnerError("expected location instance", c[0].start)
        return unknown

    def alias_location(self, c: Children) -> Location:
        found = self.scope.alias(c[0].text, c[0].start)
        if not isinstance(found, Location):
            raise InnerError(f"'{c[0].text}' is not a location", c[0].start)
        return found


def loc_text(text: str) -> str:
    """The inside of `loc(...)`."""
    return text[text.index("(") + 1 : -1]


def _file(locations: list[Location]) -> FileLoc | None:
    for location in locations:
        inner = location if isinstance(location, FileLoc) else getattr(location, "inner", None)
        if inner is not None:
            return inner  # type: ignore[no-any-return]
    return None


def _is_layout(attribute: Attribute) -> bool:
    return isinstance(attribute, OpaqueAttr) and attribute.text.startswith(("strided", "affine_map", "#"))
