"""assert-shapes: what an operator needs of its dims and no fact proves becomes a dim.assert."""

from __future__ import annotations

import attrs

from ..dialects import dim
from ..dialects.operator import Operator, facts_of
from ..ir.attributes import FactsAttr, FileLoc
from ..ir.builder import Builder
from ..ir.core import Operation
from ..ir.facts import Truth
from ..ir.passes import Pass


@attrs.define
class AssertShapes(Pass):
    """Make the checks of dims that have to run explicit."""

    name = "assert-shapes"

    def run(self, module: Operation) -> None:
        for op in [op for op in module.walk() if isinstance(op, Operator)]:
            facts = facts_of(op)
            for requirement in op.requirements():
                if requirement.prove(facts) is Truth.UNKNOWN:
                    Builder(before=op).create(
                        dim.AssertOp, relation=FactsAttr((requirement.relation,)), location=op.location,
                        message=f"'{op.op_name}' {requirement.message}{_line(op)}",
                    )  # fmt: skip


def _line(op: Operation) -> str:
    place = op.location
    return f" at {place.file}:{place.line}" if isinstance(place, FileLoc) else ""
