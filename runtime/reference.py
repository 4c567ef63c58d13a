"""The `reference` target: the evaluator of definitions, in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dialects import func
from ..dialects.evaluate import evaluate_function


class Reference:
    """Runs a function of operators by their definitions, at the declared dtypes."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.symbols = tuple(function.symbols)

    def run(
        self, symbols: tuple[int, ...], arguments: Sequence[Any], out: Mapping[int, Any] | None = None
    ) -> list[Any]:
        """The results, at the declared dtypes."""
        del out  # results are copied by the caller
        return list(evaluate_function(self.function, list(arguments), dict(zip(self.symbols, symbols, strict=True))))
