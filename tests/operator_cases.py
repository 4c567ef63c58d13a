"""Shared by the operator tests: one operator in a function, evaluated; and the corpus of public reports."""

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
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
# The right values of the cases of public bug reports that the operators cover, by the id of the case.
EXPECTED = {
    "A01": {
        "4,8": [[1.0, 4.0, 9.0, 16.0], [5.0, 12.0, 21.0, 32.0]],
        "8,8": [[1.0, 4.0, 9.0, 16.0], [25.0, 36.0, 49.0, 64.0]],
        "8,4": [[1.0, 4.0, 9.0, 16.0], [5.0, 12.0, 21.0, 32.0]],
        "4,4": [[1.0, 4.0, 9.0, 16.0]],
    },
    "B01": [
        [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0],
        [0.19803, 0.39606, 0.59409, 0.79212, 0.99015, 1.18818, 1.38621, 1.58424],
    ],
    "B05": [[1.10333, -1.10333, 0.91945, -0.91945, 1.01139, -1.01139, 0.95622, -0.95622]],
    "B06": {"sum": 0.0, "rows_f32": [128000.0, -128000.0], "mean": 0.0},
    "B08": {"bf16_sum": 4096.0, "f16_sum": 4096.0, "prod_bf16": 1.6484375},
    "B10": {
        "min": [[math.nan], [1.0], [10.0]],
        "max": [[math.nan], [10.0], [20.0]],
        "rmin": [[math.nan], [1.0], [10.0]],
        "ones": [[math.nan, math.nan], [math.nan, math.nan]],
    },
    "B11": {"C": [[17821, -25535], [22737, -32517]], "bigK": 1129030000},
    "B13": {"first_row": [0, 0, 0], "second_row": [21, 14, 7], "third_row": [42, 63, 84]},
    "B18": {
        "cumprod": [20000, 400000000, 8000000000000],
        "cumsum": [100, 200, 300, 400],
        "sum": 400,
        "prod": 8000000000000,
    },
    "B20": {"add": [4294967296], "gt": [True], "max": [4294967295], "u8i8": [240], "u8u8": [4]},
    "B25": {"q": 2},
    "B26": [
        "0x40490000", "0xc0490000", "0x3e8a0000", "0x3f800000", "0x3f820000", "0x7f800000", "0x10000",
        "0x80000000", "0x7f800000",
    ],
    "B28": {
        "f": [0.0, -0.0, math.nan, math.nan, math.nan, 0.0],
        "g": [0.0, 0.0, math.nan, math.nan, math.nan, 0.0],
        "h": [1.0, -2.0, math.nan, math.nan, math.nan, 0.0],
        "k": [1.0, 1.0, math.nan, math.nan, math.nan, math.nan],
    },
    "B31": {"max": [math.nan, math.nan, -5.0], "min": [math.nan, math.nan, -math.inf], "all": math.nan},
    "C08": [[1.0, 2.0], [1.0, 2.0], [], [[3.0], [4.0]]],
    "C15": {
        "x": [[8, 6, 4, 2], [9, 5, 1], [5, 4, 3, 2, 1], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0], [7, 5, 3]],
        "a1": [[4, 2], [9, 7], [14, 12]],
        "a0": [[10, 11, 12, 13, 14], [5, 6, 7, 8, 9]],
        "rev": [[14, 13, 12, 11, 10], [9, 8, 7, 6, 5], [4, 3, 2, 1, 0]],
    },
    "C18": [[0, 4], [0, 4], [0, 4], [0, 2]],
    "C21": {"v": [5, 8, 6, 7], "i": [1, 2, 0, 2]},
    "C23": [0, 1, 1, 1],
    "C25": [
        [math.nan, -1.0, 0.5, 2.0, 2.0, -1.0, -0.0], [math.nan, -1.0, 0.5, 7.0, math.inf, -1.0, -0.0],
        [math.nan, -5.0, 0.5, 2.0, 2.0, -math.inf, -0.0],
    ],
    "C26": [[1.0, 1.0, 1.0], [-4, -4, -4]],
    "C28": [
        [-1.49988, -0.99992, -0.49996, 0.0, 0.49996, 0.99992, 1.49988],
        [-0.99992, -0.49996, 0.0, 0.49996, 0.99992, 1.49988, -1.49988],
    ],
    "C30": {
        "(2, 3, 4)x(4,)": [2, 3],
        "(4,)x(2, 4, 3)": [2, 3],
        "(1, 3, 4)x(5, 4, 2)": [5, 3, 2],
        "(4,)x(4,)": [],
        "(2, 3, 4)x(2, 4)": "error",
        "(2, 1, 3, 4)x(5, 4, 2)": [2, 5, 3, 2],
    },
    "C31": {
        "exact": [-0.0, -0.0, -0.00405, -0.158655, -0.154269, 0.0, 0.345731, 0.841345, 2.99595, 50.0],
        "tanh": [-0.0, -0.0, -0.003637, -0.158808, -0.154286, 0.0, 0.345714, 0.841192, 2.996363, 50.0],
    },
    "C35": [[0.090031, 0.244728, 0.665241], [0.422319, 0.422319, 0.155362]],
    "C36": [-1.5666, -1.21847, -0.87034, -0.5222, -0.17407, 0.17407, 0.5222, 0.87034, 1.21847, 1.5666],
    "C38": [[1.0, 1.0, 1.0, 1.0], [2.0, 4.0, 5.0, 5.0], [2.0, 4.0, 6.0, 7.0]],
}  # fmt: skip


def expected_value(case):
    """The right value of a corpus case."""
    return EXPECTED[case]


def check(actual, expected, tolerance=0.0):
    np.testing.assert_allclose(np.asarray(actual, np.float64), expected, rtol=0, atol=tolerance, equal_nan=True)


def F(*values):
    return np.array(values, np.float32)
