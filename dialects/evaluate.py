"""The evaluator: runs functions of operators, definitions and scalars in NumPy. It is the reference.

    [y] = evaluate_function(func, [x], floats="f64")

An operator is evaluated through its definition, which is traced once for its attributes and types. Floats are
held as declared (an operator's result rounds once), or all in f64 with no rounding in between."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.attributes import FloatType, TensorType, Type
from ..ir.builder import Builder
from ..ir.core import Block, Operation
from ..ir.diagnostics import Diagnostic, IRError
from ..ir.dims import DimError
from ..ir.facts import Facts
from . import func
from .compute import Map, Reduce, Yield
from .dim import AssertOp, OfOp
from .evaluate_compute import Array, Context, Floats, evaluate_map, evaluate_reduce, evaluate_scalar
from .operator import Operator, facts_of, trace
from .signature import Signature

_DEFINITIONS: OrderedDict[Any, Block] = OrderedDict()
_MOST_DEFINITIONS = 1024


def definition_of(op: Operator) -> Block:
    """The definition of an operator as a block: arguments as its operands, ending in `compute.yield` of its
    results. Kept, and shared by operators of the same attributes, types and facts."""
    facts = facts_of(op)
    key = (
        type(op), tuple(sorted(op.properties.items())), tuple(v.type for v in op.operands),
        tuple(r.type for r in op.results), facts.relations,
    )  # fmt: skip
    if key not in _DEFINITIONS:
        _DEFINITIONS[key] = _traced(op, facts)
        if len(_DEFINITIONS) > _MOST_DEFINITIONS:
            _DEFINITIONS.popitem(last=False)
    return _DEFINITIONS[key]


def _traced(op: Operator, facts: Facts) -> Block:
    block = Block([v.type for v in op.operands], [v.hint for v in op.operands])
    block.append(Yield(trace(op, block.arguments, Builder(block), facts)))
    return block


def evaluate_function(
    function: func.FuncOp, arrays: Sequence[Any], symbols: Mapping[str, int] | None = None,
    floats: Floats = "declared",
) -> list[Array]:  # fmt: skip
    """The results of a function on arrays and Python scalars. `symbols` are bound from the arrays unless
    given. Raises IRError for arguments that do not fit, and for checks between dims that do not hold."""
    if symbols is None:
        symbols = bind_symbols(function, arrays)
    context = Context({}, symbols, floats)
    with np.errstate(all="ignore"):  # infinities and NaN are results as others are
        for argument, array in zip(function.arguments, arrays, strict=True):
            context.values[argument] = _held(array, argument.type, context)
        return evaluate_block(function.body, context)


def bind_symbols(function: func.FuncOp, arrays: Sequence[Any]) -> dict[str, int]:
    """The dim symbols of a function for these arguments; IRError names what does not fit."""
    signature = Signature.of(function)
    given = [np.shape(a) if isinstance(p.type, TensorType) else a for p, a in zip(signature.parameters, arrays)]
    return dict(zip(signature.symbols, signature.bind(given)))


def _held(array: Any, type: Type, context: Context) -> Array:
    """An argument in the dtype that its type is held in. Floats of any format are taken; integers must be exact."""
    held, wanted = np.asarray(array), context.dtype(type)
    if held.dtype == wanted:
        return held
    floats = isinstance(getattr(type, "element", type), FloatType)
    if not hasattr(array, "dtype") or (floats and held.dtype.kind not in "iub"):
        return held.astype(wanted)
    raise IRError(f"an argument of type '{type}' needs dtype {wanted}, not {held.dtype}")


def evaluate_compute(
    block: Block, arrays: Sequence[Array], symbols: Mapping[str, int], floats: Floats = "declared"
) -> list[Array]:
    """The values that the last operation of a block takes, with arrays for its arguments."""
    context = Context({}, symbols, floats)
    with np.errstate(all="ignore"):
        context.values.update((a, _held(x, a.type, context)) for a, x in zip(block.arguments, arrays, strict=True))
        return evaluate_block(block, context)


def evaluate_block(block: Block, context: Context) -> list[Array]:
    """Run the operations of a block; the values that its terminator takes."""
    last = block.terminator
    for op in block.ops:
        if op is last:
            break
        context.values.update(zip(op.results, _evaluate(op, context), strict=True))
    return [context.values[v] for v in last.operands]


def _evaluate(op: Operation, context: Context) -> Iterable[Array]:
    if isinstance(op, Operator):
        return _evaluate_operator(op, context)
    if isinstance(op, Map):
        return evaluate_map(op, context)
    if isinstance(op, Reduce):
        return evaluate_reduce(op, context)
    if isinstance(op, AssertOp):
        return _check(op, context)
    if isinstance(op, OfOp):
        return [np.asarray(context.values[op.tensor].shape[op.axis], np.int64)]
    if isinstance(op, func.CallOp):
        return evaluate_function(op.target(), [context.values[v] for v in op.operands], {}, context.floats)
    if op.op_name == "dim.value" or op.op_name.partition(".")[0] in ("arith", "math"):
        return [evaluate_scalar(op, context, [context.values[v] for v in op.operands])]
    raise op.error("cannot be evaluated: it is no operator, definition or scalar operation")


def _evaluate_operator(op: Operator, context: Context) -> list[Array]:
    check_requirements(op, context.symbols)
    block = definition_of(op)
    inner = Context(
        dict(zip(block.arguments, (context.values[v] for v in op.operands))), context.symbols, context.floats
    )
    return evaluate_block(block, inner)


def check_requirements(op: Operator, symbols: Mapping[str, int]) -> None:
    """Raise an IRError of all requirements that do not hold for these sizes."""
    failed = [r for r in op.requirements() if not _holds(r.relation, symbols)]
    if failed:
        values = ", ".join(f"{s} = {symbols[s]}" for s in sorted(failed[0].relation.symbols) if s in symbols)
        raise IRError([Diagnostic(f"'{op.op_name}' op {r.message} (with {values})", op.location) for r in failed])


def _holds(relation: Any, symbols: Mapping[str, int]) -> bool:
    try:
        return bool(relation.evaluate(symbols))
    except DimError:
        return False


def _check(op: Any, context: Context) -> list[Array]:
    for relation in op.get("relation").relations:
        if not _holds(relation, context.symbols):
            raise op.error(f"does not hold: {op.message or relation}")
    return []
