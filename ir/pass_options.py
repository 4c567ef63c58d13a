"""The options of a pass: its attrs fields, read from text and written back by their declared types."""

from __future__ import annotations

import difflib
import enum
import types
import typing
from collections.abc import Iterable
from typing import Any

import attrs

from .attributes import Type


class OptionError(Exception):
    """Why a text is no value of an option; ends a sentence that begins with the option."""


_RESOLVED: set[type] = set()


def option_fields(cls: type) -> dict[str, attrs.Attribute[Any]]:
    """The option fields of a pass class, with their types resolved."""
    if not attrs.has(cls):
        return {}
    if cls not in _RESOLVED:
        attrs.resolve_types(cls)
        _RESOLVED.add(cls)
    return {field.name: field for field in attrs.fields(cls) if field.init}


def near(name: str, names: Iterable[str]) -> str:
    """A question that names what `name` was probably meant to be; empty where nothing is near."""
    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"; did you mean '{found[0]}'?" if found else ""


def option_value(field: attrs.Attribute[Any], text: str | None) -> Any:
    """The value that `text` (None: nothing after the name) gives an option."""
    kind = field.type
    if text is None:
        if kind is bool:
            return True
        raise OptionError(f"needs a value: {field.name.replace('_', '-')}={expected(kind)}")
    return _value(kind, text)


def _value(kind: Any, text: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if text == "none" and type(None) in arguments:
            return None
        return _value(next(a for a in arguments if a is not type(None)), text)
    if origin in (tuple, list):
        return origin(_value(arguments[0], part) for part in text.split(",") if part)
    if origin is typing.Literal:
        return _choice({str(a): a for a in arguments}, text)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _choice({member.name.lower(): member for member in kind}, text)
    if kind is bool:
        return _choice({"true": True, "false": False, "1": True, "0": False}, text)
    if isinstance(kind, type) and issubclass(kind, Type):
        return _type(kind, text)
    try:
        return kind(text) if callable(kind) and kind is not Any else text
    except ValueError:
        raise OptionError(f"must be {expected(kind)}, not '{text}'") from None


def _choice(values: dict[str, Any], text: str) -> Any:
    if text not in values:
        raise OptionError(f"must be {' or '.join(values)}, not '{text}'{near(text, values)}")
    return values[text]


def _type(kind: type[Type], text: str) -> Type:
    from .diagnostics import IRError
    from .parser import parse_type

    try:
        found = parse_type(text)
    except IRError:
        raise OptionError(f"must be a type such as f16, not '{text}'") from None
    if not isinstance(found, kind):
        raise OptionError(f"must be {expected(kind)}, not '{text}'")
    return found


def expected(kind: Any) -> str:
    """What a value of this type looks like, in words."""
    words: dict[Any, str] = {int: "an integer", float: "a number", str: "a word", bool: "true or false"}
    if kind in words:
        return words[kind]
    if isinstance(kind, type) and issubclass(kind, Type):
        return "a type" if kind is Type else f"a {kind.__name__.removesuffix('Type').lower()} type"
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (tuple, list):
        return f"{expected(arguments[0])}, or several with commas"
    inner = [a for a in arguments if a is not type(None)]
    return expected(inner[0]) if origin in (typing.Union, types.UnionType) else "a value"


def option_text(step: Any) -> str:
    """`{name=value name=value}` of the options that differ from their defaults; empty where none does."""
    parts = []
    for name, field in option_fields(type(step)).items():
        value = getattr(step, name)
        default = field.default.factory() if isinstance(field.default, attrs.Factory) else field.default  # type: ignore
        if value != default:
            parts.append(f"{name.replace('_', '-')}={_written(value)}")
    return "{" + " ".join(parts) + "}" if parts else ""


def _written(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, (tuple, list)):
        return ",".join(map(_written, value))
    text = str(value)
    return f'"{text}"' if not text or any(c.isspace() or c in "{}" for c in text) else text
