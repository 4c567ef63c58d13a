"""The `reference` target: the evaluator of definitions, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..dialects import dim, func
from ..dialects.evaluate import evaluate_function
from ..dialects.scalar import dtype_of
from ..ir.attributes import TensorType
from ..ir.core import Operation
from ..ir.diagnostics import IRError
from ..ir.dims import DimError
from .arrays import LARGE, check_memory
from .executor import assert_of, check_asserts, sizes_text


class Reference:
    """Runs a function of operators by their definitions, at the declared dtypes."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.symbols = tuple(function.symbols)
        self.asserts = [a for op in function.body.ops if isinstance(op, dim.AssertOp) for a in assert_of(op)]

    def check(self, symbols: tuple[int, ...]) -> None:
        """Run the asserts; all that fail are reported together."""
        check_asserts(self.asserts, dict(zip(self.symbols, symbols, strict=True)))

    def run(
        self, symbols: tuple[int, ...], arguments: Sequence[Any], out: Mapping[int, Any] | None = None
    ) -> list[Any]:
        """The results, at the declared dtypes."""
        del out  # results are copied by the caller
        values = dict(zip(self.symbols, symbols, strict=True))
        try:
            for op in self.function.body.ops:
                self._check_sizes(op, values)
            results = evaluate_function(self.function, list(arguments), values)
            types = self.function.type.results
            return [r if isinstance(t, TensorType) else r.item() for r, t in zip(results, types, strict=True)]
        except DimError as error:  # a size that no assert speaks of
            message = f"@{self.function.sym_name} cannot be run at these sizes: {error.message}"
            raise IRError(message + sizes_text(values.items()), self.function.location) from None

    def _check_sizes(self, op: Operation, values: Mapping[str, int]) -> None:
        """The results of an operation have shapes, and there is memory for them."""
        for type in (r.type for r in op.results):
            if not isinstance(type, TensorType):
                continue
            shape = tuple(d.evaluate(values) for d in type.dims)
            if shape and min(shape) < 0:
                message = f"@{self.function.sym_name} needs a tensor of shape {shape} ('{type}')"
                raise IRError(message + sizes_text(values.items()), op.location)
            size = math.prod(shape) * dtype_of(type.element).itemsize
            if size >= LARGE:
                check_memory(size, f"an array of shape {shape} and dtype {dtype_of(type.element)}")
