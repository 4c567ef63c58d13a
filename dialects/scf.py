"""MLIR's `scf`: structured loops and conditions (for interchange and tests)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.attributes import IndexType, IntegerAttr, IntegerType, i1, index
from ..ir.core import Operation, Region
from ..ir.definition import Constraint, Unit, attribute, operand, region, result
from ..ir.effects import Recursive
from ..ir.registry import Dialect, Terminator
from ..ir.rewriter import PatternRewriter, constant_of, pattern

if TYPE_CHECKING:
    from ..ir.item_parser import ItemParser
    from ..ir.printer import Printer

dialect = Dialect("scf", "Structured control flow.")
Bool = Constraint("1-bit signless integer", lambda t: t is i1)
LoopIndex = Constraint(
    "signless integer or index",
    lambda t: isinstance(t, IndexType) or (isinstance(t, IntegerType) and not t.signedness),
)


@dialect.op
class YieldOp(Operation):
    """Gives the results of a region."""

    name = "scf.yield"
    traits = (Terminator,)
    values = operand(variadic=True)
    assembly = "attr-dict ($values^ `:` type($values))?"


def _inline(region: Region, op: Operation, arguments: Any, rewriter: PatternRewriter) -> None:
    """Put a region of one block in the place of `op`; its yielded values become the results."""
    block = region.block
    yielded = block.terminator
    rewriter.inline_block(block, op, op.parent, arguments)  # type: ignore[arg-type]
    values = yielded.operands
    rewriter.erase(yielded)
    rewriter.replace(op, values)


@pattern()
def known_branch(op: Any, rewriter: PatternRewriter) -> bool:
    """`scf.if` on a constant is the region that it takes."""
    condition = constant_of(op.condition)
    if not isinstance(condition, IntegerAttr):
        return False
    taken = op.regions[0] if condition.value else op.regions[1]
    if taken.blocks:
        _inline(taken, op, (), rewriter)
    else:
        rewriter.erase(op)
    return True


@dialect.op
class IfOp(Operation):
    """Runs one of two regions; the second may be empty where there are no results."""

    name = "scf.if"
    traits = (Recursive,)
    condition = operand(Bool)
    out = result(variadic=True)
    then = region()
    otherwise = region(optional=True)
    canonicalization = [known_branch]

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        condition = p.resolve(p.value(), i1)
        types = p.result_types() if p.optional("->") else []
        regions = [p.region()]
        regions.append(p.region() if p.optional("else") else Region())
        for part in regions:
            p.finish(part, YieldOp)
        return p.make([condition], types, {}, p.attr_dict(), regions)

    def print_items(self, p: Printer) -> None:
        p.write(" ", p.name(self.condition))
        if self.results:
            p.write(" -> (")
            p.types([r.type for r in self.results])
            p.write(")")
        p.write(" ")
        p.region(self.regions[0], terminator=bool(self.results))
        if len(self.regions) > 1 and self.regions[1].blocks:
            p.write(" else ")
            p.region(self.regions[1], terminator=bool(self.results))
        p.attr_dict(self)

    def verify_op(self) -> None:
        if self.results and not (len(self.regions) > 1 and self.regions[1].blocks):
            raise self.error("must have an else block if defining values")
        for part in self.regions:
            _verify_yield(self, part)


def _verify_yield(op: Operation, part: Region) -> None:
    last = part.blocks[-1].last if part.blocks else None
    if not isinstance(last, YieldOp):
        return
    if len(last.operands) != len(op.results):
        raise op.error(
            "region control flow edge from Operation scf.yield to parent results: source has "
            f"{len(last.operands)} operands, but target successor needs {len(op.results)}"
        )
    for number, (value, wanted) in enumerate(zip(last.operands, op.results)):
        if value.type is not wanted.type:
            raise op.error(
                "along control flow edge from Operation scf.yield to parent results: source type "
                f"#{number} '{value.type}' should match input type #{number} '{wanted.type}'"
            )


@pattern()
def loop_without_iterations(op: Any, rewriter: PatternRewriter) -> bool:
    """`scf.for` from a constant to one that is not greater does nothing."""
    lower, upper = constant_of(op.lower), constant_of(op.upper)
    if op.lower is not op.upper:
        if (
            not (isinstance(lower, IntegerAttr) and isinstance(upper, IntegerAttr))
            or upper.value > lower.value
        ):
            return False
    if op.unsignedCmp and op.lower is not op.upper:
        return False
    rewriter.replace(op, op.init)
    return True


@pattern()
def loop_with_one_iteration(op: Any, rewriter: PatternRewriter) -> bool:
    """`scf.for` whose constants give one iteration is its body."""
    bounds = [constant_of(v) for v in (op.lower, op.upper, op.step)]
    if not all(isinstance(b, IntegerAttr) for b in bounds) or op.unsignedCmp:
        return False
    lower, upper, step = (b.value for b in bounds)  # type: ignore[union-attr]
    if not (step > 0 and lower < upper <= lower + step):
        return False
    _inline(op.region, op, (op.lower, *op.init), rewriter)
    return True


@dialect.op
class ForOp(Operation):
    """A loop from `lower` up to `upper`, exclusive; carries values from one iteration to the next."""

    name = "scf.for"
    traits = (Recursive,)
    lower = operand(LoopIndex)
    upper = operand(LoopIndex)
    step = operand(LoopIndex)
    init = operand(variadic=True)
    unsignedCmp = attribute(Unit, optional=True)
    out = result(variadic=True)
    code = region()
    canonicalization = [loop_without_iterations, loop_with_one_iteration]

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        variable = p.value()
        bounds = []
        for word in ("=", "to", "step"):
            p.expect(word)
            bounds.append(p.value())
        carried, initial = _parse_carried(p) if p.optional("iter_args") else ([], [])
        types = list(p.result_types()) if p.optional("->") else []
        kind = p.type() if p.optional(":") else index
        arguments = [(variable, kind), *zip(carried, types)]
        code = p.region(arguments)
        p.finish(code, YieldOp)
        values = [*(p.resolve(b, kind) for b in bounds), *p.resolve_all(initial, types)]
        return p.make(values, types, {}, p.attr_dict(), [code])

    def print_items(self, p: Printer) -> None:
        variable, *carried = self.body.arguments
        lower, upper, step, *initial = self.operands
        p.write(
            " ", p.name(variable), " = ", p.name(lower), " to ", p.name(upper), " step ", p.name(step), " "
        )
        if carried:
            p.write(
                "iter_args(",
                ", ".join(f"{p.name(c)} = {p.name(i)}" for c, i in zip(carried, initial)),
                ") -> (",
            )
            p.types([r.type for r in self.results])
            p.write(") ")
        if not isinstance(variable.type, IndexType):
            p.write(": ", variable.type, " ")
        p.region(self.region, entry_arguments=False, terminator=bool(carried))
        p.attr_dict(self)

    def verify_op(self) -> None:
        lower, upper, step, *initial = self.operands
        if not lower.type is upper.type is step.type:
            raise self.error("failed to verify that all of {lowerBound, upperBound, step} have same type")
        arguments = self.body.arguments
        if not arguments or arguments[0].type is not lower.type:
            raise self.error("expected induction variable to be same type as bounds and step")
        if len(initial) != len(self.results):
            raise self.error("mismatch in number of loop-carried values and defined values")
        self._verify_carried(initial)

    def _verify_carried(self, initial: list[Any]) -> None:
        yielded = self.body.last
        carried = self.body.arguments[1:]
        last = yielded.operands if isinstance(yielded, YieldOp) else None
        if len(carried) != len(initial) or (last is not None and len(last) != len(initial)):
            raise self.error("mismatch in number of basic block args and defined values")
        for n, (start, argument, out) in enumerate(zip(initial, carried, self.results)):
            for what, value in (("iter_arg and defined value", out), ("iter_arg", argument)):
                if start.type is not value.type:
                    raise self.error(f"types mismatch between {n}th {what}")
            if last is not None and last[n].type is not argument.type:
                raise self.error(f"{n}-th region iter_arg and {n}-th yielded value have different type: "
                                 f"'{argument.type}' != '{last[n].type}'")  # fmt: skip


def _parse_carried(p: ItemParser) -> tuple[list[Any], list[Any]]:
    p.expect("(")
    carried, initial = [], []
    while not p.optional(")"):
        carried.append(p.value())
        p.expect("=")
        initial.append(p.value())
        p.optional(",")
    return carried, initial


@dialect.op
class ConditionOp(Operation):
    """Ends the first region of `scf.while`: go on with these values, or leave with them."""

    name = "scf.condition"
    traits = (Terminator,)
    condition = operand(Bool)
    values = operand(variadic=True)
    assembly = "`(` $condition `)` attr-dict ($values^ `:` type($values))?"


@dialect.op
class WhileOp(Operation):
    """A loop: the first region decides whether to run the second."""

    name = "scf.while"
    init = operand(variadic=True)
    out = result(variadic=True)
    before = region()
    after = region()

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        carried, initial = _parse_carried(p) if p.at("(") else ([], [])
        p.expect(":")
        type = p.function_type()
        before = p.region(list(zip(carried, type.inputs)))
        p.expect("do")
        after = p.region()
        return p.make(
            p.resolve_all(initial, type.inputs), type.results, {}, p.attr_dict("attributes"), [before, after]
        )

    def print_items(self, p: Printer) -> None:
        carried = self.body.arguments
        if carried:
            p.write(
                " (", ", ".join(f"{p.name(c)} = {p.name(i)}" for c, i in zip(carried, self.operands)), ")"
            )
        p.write(" : ")
        p.function_type([v.type for v in self.operands], [r.type for r in self.results])
        p.write(" ")
        p.region(self.regions[0], entry_arguments=False)
        p.write(" do ")
        p.region(self.regions[1])
        p.attr_dict(self, keyword="attributes")


@dialect.op
class ExecuteRegionOp(Operation):
    """Runs a region, which may have several blocks, once."""

    name = "scf.execute_region"
    traits = (Recursive,)
    out = result(variadic=True)
    code = region()

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        types = p.result_types() if p.optional("->") else []
        code = p.region()
        return p.make((), types, {}, p.attr_dict(), [code])

    def print_items(self, p: Printer) -> None:
        if self.results:
            p.write(" -> ")
            p.result_types([r.type for r in self.results])
        p.write(" ")
        p.region(self.region)
        p.attr_dict(self)
