"""What a function may hold and no kernel comes of, and what to write in its place."""

from __future__ import annotations

from ..dialects import arith, dim, func, rt
from ..dialects.operator import Operator
from ..dialects.signature import check_types
from ..ir.attributes import IndexType, TensorType
from ..ir.core import Operation
from ..ir.registry import OPERATIONS

# arith and math ops -> the operator, where its name is another
_OPERATORS = {
    **dict.fromkeys(("maximumf", "maxsi", "maxui"), "nd.maximum"),
    **dict.fromkeys(("minimumf", "minsi", "minui"), "nd.minimum"),
    **dict.fromkeys(("extf", "truncf", "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui"), "nd.cast"),
    "floordivsi": "nd.floor_div", "cmpf": "nd.compare", "cmpi": "nd.compare", "roundeven": "nd.round",
    "ipowi": "nd.pow",
}  # fmt: skip
CONTROL = ("scf", "cf")


def refuse_uncompiled(function: func.FuncOp) -> None:
    """Raise an IRError at the first thing in a function that cannot be compiled, with what to write instead."""
    check_types(function)
    for block in function.regions[0].blocks:
        for op in block.ops:
            reason = _reason(op)
            if reason is not None:
                raise op.error(reason)


def _reason(op: Operation) -> str | None:
    """Why no plan holds `op`; None where one does, or where a pass before this one has still to run."""
    dialect, _, name = op.op_name.partition(".")
    if isinstance(op, (Operator, dim.AssertOp, dim.ValueOp, func.ReturnOp)) or dialect == rt.rt.name:
        return None
    tensors = any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results))
    if isinstance(op, arith.Constant):
        return "is a tensor, which a compiled function takes as an argument or from nd.constant" if tensors else None
    if isinstance(op, func.CallOp):
        return f"cannot be compiled yet: write the operators of {op.callee} in its place (target reference runs calls)"
    if dialect in CONTROL:
        return "cannot be compiled yet: a function is one sequence of operators; nd.select chooses element by element"
    if dialect == "compute":
        return "is compiled only as the definition of an operator; docs/extending.md shows how to make one of your own"
    if dialect in ("arith", "math"):
        return _scalar_reason(op, name, tensors)
    return "cannot be compiled: a function holds operators of nd and nn (`stepwell ops` lists them)"


def _scalar_reason(op: Operation, name: str, tensors: bool) -> str:
    if not tensors:
        size = all(isinstance(r.type, IndexType) for r in op.results)
        instead = "dim.value computes sizes, as in dim.value [2 * n]" if size else "pass the number as an argument"
        return f"computes a number, which a compiled function cannot do yet: {instead}"
    short = name[:-1] if name[-1] in "fi" else name  # addf, addi
    known = [_OPERATORS.get(name, ""), *(f"nd.{n}" for n in (name, short))]
    found = next((n for n in known if n in OPERATIONS), None)
    instead = f"did you mean '{found}'?" if found else "`stepwell ops nd` lists the operators"
    return f"is for scalars: on tensors a compiled function has the operators of nd and nn; {instead}"
