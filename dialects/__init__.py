"""Dialects: what operations mean. `load_all` registers them."""

from __future__ import annotations

from ..ir.registry import load

MODULES = (
    "builtin",
    "func",
    "arith",
    "math",
    "dim",
    "cf",
    "scf",
    "memref",
    "nd",
    "nn",
    "compute",
    "loop",
    "rt",
)


def load_all() -> None:
    """Import every dialect of the project, so that its operations are known."""
    for name in MODULES:
        load(f"{__name__}.{name}")
