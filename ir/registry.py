"""Which operations exist: dialects register their classes here."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from .core import Operation
from .definition import Trait, define

C = TypeVar("C", bound=type[Operation])
OPERATIONS: dict[str, type[Operation]] = {}
DIALECTS: dict[str, Dialect] = {}


@attrs.define
class Dialect:
    """A namespace of operations. Use `dialect.op` as a class decorator to register one."""

    name: str
    doc: str = ""
    open: bool = False  # unknown operations of the dialect are kept as they are
    closed: bool = False  # its operations take no discardable attribute without a prefix: a misspelt one is an error
    operations: dict[str, type[Operation]] = attrs.field(factory=dict)
    # parse(text) -> Attribute of `#name.…` and `!name.…` texts; None leaves them opaque
    parse_attribute: Callable[[str], Any] | None = None
    parse_type: Callable[[str], Any] | None = None

    _module: str = attrs.field(init=False, repr=False, eq=False)  # that made it

    def __attrs_post_init__(self) -> None:
        self._module = _caller()
        old = DIALECTS.get(self.name)
        if old is not None and old._module != self._module:
            raise ValueError(
                f"there is a dialect '{self.name}' already, of module {old._module}; choose another name, or add to "
                f"it: from stepwell.ir.registry import DIALECTS; DIALECTS['{self.name}'].op"
            )
        DIALECTS[self.name] = self  # a module that is run again takes the place of its first run

    def op(self, cls: C) -> C:
        """Register an operation class: collects its declared fields."""
        if not isinstance(getattr(cls, "name", None), str):
            raise ValueError(f'class {cls.__qualname__} needs its name: name = "{self.name}.{cls.__name__.lower()}"')
        if not cls.name.startswith(self.name + "."):
            raise ValueError(f"operation '{cls.name}' does not belong to dialect '{self.name}'")
        if cls.__doc__ is None or "definition" in vars(cls):
            raise ValueError(f"operation '{cls.name}' needs a docstring and may be registered once")
        old = self.operations.get(cls.name)
        if old is not None and (old.__module__, old.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(
                f"operation '{cls.name}' is registered already, by class {old.__module__}.{old.__qualname__}; "
                f"give {cls.__qualname__} another name"
            )
        check = getattr(cls, "check_class", None)
        if check is not None:
            check()
        define(cls)
        if self.closed and cls.discardable is None:
            cls.discardable = ()
        self.operations[cls.name] = OPERATIONS[cls.name] = cls
        return cls


def _caller() -> str:
    """The module that makes a dialect."""
    frame = inspect.currentframe()
    while frame is not None and (frame.f_globals.get("__name__") == __name__ or "<attrs" in frame.f_code.co_filename):
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals.get("__name__"))


def load(module: str) -> None:
    """Import a module that registers dialects."""
    importlib.import_module(module)


# Traits. The verifier runs the check of those that have one.
Pure = Trait("Pure")  # no side effects: may be removed when unused, merged, moved
Terminator = Trait("Terminator")
Commutative = Trait("Commutative")
IsolatedFromAbove = Trait("IsolatedFromAbove")
SymbolTable = Trait("SymbolTable")
NoTerminator = Trait("NoTerminator")
Graph = Trait("Graph")  # regions without dominance order
ReadOnly = Trait("ReadOnly")  # reads memory, writes none


def _same_types(op: Operation) -> None:
    types = [v.type for v in (*op.operands, *op.results)]
    for other in types[1:]:
        if other is not types[0]:
            raise op.error(f"requires the same type for all operands and results, but has '{types[0]}' and '{other}'")


SameOperandsAndResultType = Trait("SameOperandsAndResultType", _same_types, types_only=True)
