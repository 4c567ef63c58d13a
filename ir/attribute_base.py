"""What attributes and types share: immutable, interned values, so that equality is identity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, TypeVar, dataclass_transform
from weakref import WeakValueDictionary

import attrs

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
