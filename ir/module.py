"""`builtin.module`, the operation that every text is wrapped in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .core import Block, Operation, Region
from .definition import String, attribute, region
from .registry import Dialect, Graph, IsolatedFromAbove, NoTerminator, SymbolTable

if TYPE_CHECKING:
    from .item_parser import ItemParser
    from .printer import Printer

builtin = Dialect("builtin", "What every module has.")


@builtin.op
class ModuleOp(Operation):
    """A list of operations, mostly functions, and a table of their symbols."""

    name = "builtin.module"
    default_dialect = "builtin"
    traits = (Graph, IsolatedFromAbove, NoTerminator, SymbolTable)
    sym_name = attribute(String, optional=True)
    sym_visibility = attribute(String, optional=True)
    contents = region(doc="its operations, in one block")

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        properties = {"sym_name": p.symbol_attribute()} if p.at_symbol() else {}
        attributes = p.attr_dict("attributes")
        made = p.region()
        p.default_block(made)
        return p.make((), (), properties, attributes, [made])

    def print_items(self, p: Printer) -> None:
        if self.sym_name is not None:
            p.write(" ").symbol(self.sym_name)
        p.attr_dict(self, elide=("sym_name",), keyword="attributes")
        p.write(" ").region(self.region)


def empty_module() -> ModuleOp:
    """A module without operations."""
    return ModuleOp(regions=[Region([Block()])])
