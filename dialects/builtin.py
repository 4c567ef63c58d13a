"""MLIR's `builtin`: modules, and casts between the types of two levels."""

from __future__ import annotations

from ..ir.core import Operation
from ..ir.definition import operand, result
from ..ir.module import ModuleOp
from ..ir.registry import DIALECTS, Pure

__all__ = ["ModuleOp", "UnrealizedConversionCastOp"]

dialect = DIALECTS["builtin"]


@dialect.op
class UnrealizedConversionCastOp(Operation):
    """Values of one type system as values of another, until a lowering makes it real."""

    name = "builtin.unrealized_conversion_cast"
    traits = (Pure,)
    inputs = operand(variadic=True)
    out = result(variadic=True)
    assembly = "($inputs^ `:` type($inputs))? `to` type($out) attr-dict"
