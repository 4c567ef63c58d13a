"""Shared by the operator tests: one operator in a function, evaluated."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from stepwell.dialects import func
from stepwell.dialects.evaluate import evaluate_function
from stepwell.dialects.scalar import type_of
from stepwell.ir.attributes import DimsAttr, FunctionType, TensorType, Type, TypeAttr
from stepwell.ir.core import Operation
from stepwell.ir.definition import build
from stepwell.ir.dims import parse_facts


def tensor(text: str, element: Type) -> TensorType:
    """`tensor("m, 4*n", f32)`."""
    return TensorType(tuple(d.strip() for d in text.split(",") if d.strip()), element)


def dims(text: str) -> DimsAttr:
    return DimsAttr(tuple(d.strip() for d in text.split(",") if d.strip()))


def function_of(
    cls: type[Operation], types: Sequence[Type], facts: str = "", result_types: Sequence[Type] | None = None,
    **attributes: Any,
) -> func.FuncOp:  # fmt: skip
    """A verified function that applies one operator to its arguments, in order."""
    symbols = sorted(frozenset().union(*(t.symbols for t in types if isinstance(t, TensorType))))
    function = func.FuncOp.make(
        "f", types, [], symbols=symbols, relations=parse_facts(facts), names=[f"x{n}" for n in range(len(types))]
    )
    groups = _groups(cls, list(function.arguments))
    op = function.body.append(build(cls, *groups, result_types=result_types, **attributes)) or function.body.last
    function.body.append(func.ReturnOp(op.results))
    function.set("function_type", TypeAttr(FunctionType(tuple(types), tuple(r.type for r in op.results))))
    for inner in function.walk():
        inner.verify_op()
    return function


def _groups(cls: type[Operation], values: list[Any]) -> list[Any]:
    groups: list[Any] = []
    for field in cls.definition.operands.values():
        groups.append(values if field.variadic else values.pop(0) if values else None)
    return groups


def apply(cls: type[Operation], *arrays: Any, dims: Sequence[str] | None = None, floats: Any = "declared", **attributes: Any) -> Any:
    """The result of an operator on arrays, with dynamic dims a0_0, a0_1... (or those given)."""
    arrays = tuple(map(np.asarray, arrays))
    texts = dims or [", ".join(f"a{n}_{k}" for k in range(a.ndim)) for n, a in enumerate(arrays)]
    types = [tensor(text, type_of(a.dtype)) for text, a in zip(texts, arrays)]
    results = evaluate_function(function_of(cls, types, **attributes), arrays, floats=floats)
    return results[0] if len(results) == 1 else results


def static(cls: type[Operation], *arrays: Any, **attributes: Any) -> Any:
    """As `apply`, with constant dims."""
    texts = [", ".join(map(str, np.shape(a))) for a in arrays]
    return apply(cls, *arrays, dims=texts, **attributes)
