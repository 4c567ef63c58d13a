"""Lowering: operators to loops to source text, and kernels to a plan. `load_all` registers the passes."""

from __future__ import annotations

from ..ir.registry import load

MODULES = ("canonicalize", "cse", "amp", "assert_shapes", "fuse", "resolve", "schedule", "simplify_loops", "plan")


def load_all() -> None:
    """Import every pass of the project, so that pipelines find it by name."""
    for name in MODULES:
        load(f"{__name__}.{name}")
