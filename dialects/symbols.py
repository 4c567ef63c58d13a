"""Symbols: names of operations in the nearest symbol table."""

from __future__ import annotations

from ..ir.attributes import StringAttr, SymbolRefAttr
from ..ir.core import Operation
from ..ir.registry import SymbolTable


def symbol_name(op: Operation) -> str | None:
    """The symbol that an operation defines."""
    found = op.properties.get("sym_name") or op.attributes.get("sym_name")
    return found.value if isinstance(found, StringAttr) else None


def is_symbol_table(op: Operation) -> bool:
    return SymbolTable in getattr(getattr(op, "definition", None), "traits", ())


def lookup_symbol(near: Operation, reference: SymbolRefAttr) -> Operation | None:
    """The operation that `reference` names, seen from `near`: from its symbol table outwards."""
    table = near.parent_op
    while table is not None:
        if is_symbol_table(table) or table.parent is None:
            found = _walk_path(table, reference.path)
            if found is not None:
                return found
        table = table.parent_op
    return None


def _walk_path(table: Operation, path: tuple[str, ...]) -> Operation | None:
    found: Operation | None = table
    for name in path:
        found = _child(found, name) if found is not None else None
    return found


def _child(table: Operation, name: str) -> Operation | None:
    blocks = table.regions[0].blocks if table.regions else ()
    return next((op for block in blocks for op in block.ops if symbol_name(op) == name), None)
