"""`stepwell ops`: the reference of operations, made from their definitions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from ..dialects.operator import Operator
from ..ir.core import Operation
from ..ir.diagnostics import IRError
from ..ir.registry import DIALECTS, OPERATIONS


def list_operations() -> str:
    """Each dialect with its operations and the first line of what each does."""
    lines: list[str] = []
    for name in sorted(DIALECTS):
        dialect = DIALECTS[name]
        lines.append(f"{name}: {_first_line(dialect.doc)}")
        lines += [f"  {op:28} {_first_line(cls.__doc__)}" for op, cls in sorted(dialect.operations.items())]
    return "\n".join(lines)


def _first_line(text: str | None) -> str:
    return inspect.cleandoc(text or "").split("\n")[0]


def page(name: str) -> str:
    """The page of an operation, or of all of a dialect; IRError for an unknown name."""
    if name in DIALECTS:
        return "\n\n".join(page(op) for op in sorted(DIALECTS[name].operations))
    if name not in OPERATIONS:
        from ..ir.pass_options import near

        raise IRError(f"no operation or dialect '{name}'{near(name, [*OPERATIONS, *DIALECTS])}; see `stepwell ops`")
    return "\n".join(_lines(name, OPERATIONS[name]))


def _lines(name: str, cls: type[Operation]) -> Iterator[str]:
    definition = cls.definition
    yield f"{name}\n{'=' * len(name)}"
    yield inspect.cleandoc(cls.__doc__ or "")
    yield f"\nsyntax: {name} {definition.assembly or 'operands attr-dict `:` functional-type(operands, results)'}"
    for title, fields in (("operands", definition.operands), ("attributes", definition.attributes),
                          ("results", definition.results), ("regions", definition.regions)):  # fmt: skip
        if fields:
            yield f"\n{title}:"
            yield from (f"  {n}: {_field(f)}" for n, f in fields.items())
    if definition.traits:
        yield f"\ntraits: {', '.join(t.name for t in definition.traits)}"
    if issubclass(cls, Operator):
        yield f"\nprecision: {cls.precision}"
        yield f"\ndefinition:\n{inspect.getsource(cls.define)}".rstrip()


def _field(field: Any) -> str:
    words = [field.constraint.description]
    words += ["(any number)"] if field.variadic else []
    words += ["(optional)"] if field.optional and getattr(field, "default", None) is None else []
    default = getattr(field, "default", None)
    words += [f"(default {default})"] if default is not None else []
    return " ".join(words + ([f"- {field.doc}"] if field.doc else []))


def precision_table() -> str:
    """The precision rule of every operator."""
    rows = [(n, c.precision) for n, c in sorted(OPERATIONS.items()) if issubclass(c, Operator)]
    return "\n".join(f"{name:24} {rule}" for name, rule in rows)
