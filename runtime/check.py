"""`--check`: a result against the definitions of its operators.

A float result holds when its error against f64 is at most 4 times the error of the reference evaluated at the
declared dtypes, plus 2 units in the last place of the result's type at its magnitude, in maximum and in RMS;
infinities and nans must stand at the same places. Integers must be equal to the reference's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..dialects.evaluate import evaluate_function
from ..ir.attributes import FloatType, TensorType
from ..ir.floats import FLOAT_FORMATS
from .api import Function, entry_of


@attrs.frozen
class Comparison:
    """Errors of a result and what is allowed; in units of the result."""

    maximum: float
    allowed_maximum: float
    rms: float
    allowed_rms: float
    places: int = 0  # elements that are not finite in one and differ in the other, or integers that differ

    @property
    def holds(self) -> bool:
        return self.places == 0 and self.maximum <= self.allowed_maximum and self.rms <= self.allowed_rms

    def __str__(self) -> str:
        word = "agrees" if self.holds else "DIFFERS"
        places = f"; {self.places} elements differ in kind or value" if self.places else ""
        return (
            f"{word}: max error {self.maximum:.3g} (allowed {self.allowed_maximum:.3g}), "
            f"RMS {self.rms:.3g} (allowed {self.allowed_rms:.3g}){places}"
        )


def compare(
    function: Function, arrays: Sequence[Any], symbols: Mapping[str, int], results: Sequence[np.ndarray]
) -> list[Comparison]:
    """Compare the results of a call with its definition. The module must be at operator level."""
    assert function.source is not None, "a lowered module has no definitions to compare with"
    source = entry_of(function.source, function.signature.name)
    plain = list(arrays)
    exact = evaluate_function(source, plain, dict(symbols), floats="f64")
    declared = evaluate_function(source, plain, dict(symbols))
    types = [t for t in function.signature.results if isinstance(t, TensorType)]
    return [compare_one(*four) for four in zip(results, exact, declared, types, strict=True)]


def compare_one(result: np.ndarray, exact: np.ndarray, declared: np.ndarray, type: TensorType) -> Comparison:
    if not isinstance(type.element, FloatType):
        wrong = (result != declared) & (result != exact)
        return Comparison(0, 0, 0, 0, int(np.count_nonzero(wrong)))
    got, want, low = (np.asarray(a).astype(np.float64) for a in (result, exact, declared))
    finite = np.isfinite(low)
    special = ~finite & ~((got == low) | (np.isnan(got) & np.isnan(low)))
    places = int(np.count_nonzero(special | (finite & ~np.isfinite(got))))
    use = finite & np.isfinite(want) & np.isfinite(got)
    error, reference, size = np.abs(got - want)[use], np.abs(low - want)[use], np.abs(want)[use]
    if not error.size:
        return Comparison(0, 0, 0, 0, places)
    ulp = 2.0 ** -FLOAT_FORMATS[type.element.name].mantissa

    def rms(values: np.ndarray) -> float:
        return float(np.sqrt(np.mean(values * values)))

    return Comparison(
        float(error.max()), float(4 * reference.max() + 2 * ulp * size.max()),
        rms(error), 4 * rms(reference) + 2 * ulp * rms(size), places,
    )  # fmt: skip



