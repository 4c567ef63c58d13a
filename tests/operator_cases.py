"""Shared by the operator tests: one operator in a function, evaluated; and the corpus of public reports."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

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
        "f",
        types,
        [],
        symbols=symbols,
        relations=parse_facts(facts),
        names=[f"x{n}" for n in range(len(types))],
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


def apply(
    cls: type[Operation],
    *arrays: Any,
    dims: Sequence[str] | None = None,
    floats: Any = "declared",
    **attributes: Any,
) -> Any:
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


# ---------------------------------------------------------------- the corpus

BF16 = ml_dtypes.bfloat16
CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "corpus_public.json"


def expected_value(case):
    """The right value of a corpus case, with "nan" and "inf" as floats."""
    if not CORPUS.exists():
        pytest.skip("the corpus is not here")
    found = next(c for c in json.loads(CORPUS.read_text()) if c["id"] == case)
    return _numbers(found["expected_value"])


def _numbers(value):
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    if isinstance(value, dict):
        return {k: _numbers(v) for k, v in value.items()}
    return float(value) if value in ("nan", "inf", "-inf") else value


def check(actual, expected, tolerance=0.0):
    np.testing.assert_allclose(np.asarray(actual, np.float64), expected, rtol=0, atol=tolerance, equal_nan=True)


def F(*values):
    return np.array(values, np.float32)
