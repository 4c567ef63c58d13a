"""`--check`: a result against the definitions of its operators.

A float result holds when its error against f64 is at most 4 times the error of the reference evaluated at the
declared dtypes, plus 2 units in the last place of the result's type at its magnitude, in maximum and in RMS;
infinities and nans must stand at the same places. Where the declared dtypes give a number and f64 does not, a result
must be within 8 units in the last place of that number. Integers must be equal to the reference's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..dialects.evaluate import evaluate_function
from ..ir.attributes import FloatType, Type
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
    types = function.signature.results
    return [compare_one(*four) for four in zip(results, exact, declared, types, strict=True)]


def compare_one(result: np.ndarray, exact: np.ndarray, declared: np.ndarray, type: Type) -> Comparison:
    element = getattr(type, "element", type)
    if not isinstance(element, FloatType):
        wrong = (result != declared) & (result != exact)
        return Comparison(0, 0, 0, 0, int(np.count_nonzero(wrong)))
    with np.errstate(all="ignore"):  # casts of infinities
        got, want, low = (np.asarray(a).astype(np.float64) for a in (result, exact, declared))
    finite = np.isfinite(low)
    special = ~finite & ~((got == low) | (np.isnan(got) & np.isnan(low)))
    ulp = 2.0 ** -FLOAT_FORMATS[element.name].mantissa
    with np.errstate(all="ignore"):  # differences of infinities
        alone = finite & ~np.isfinite(want) & ~(np.abs(got - low) <= 8 * ulp * np.abs(low))  # f64 says nothing of them
    places = int(np.count_nonzero(special | alone | (finite & ~np.isfinite(got))))
    use = finite & np.isfinite(want) & np.isfinite(got)
    got, want, low = got[use], want[use], low[use]
    if not got.size:
        return Comparison(0, 0, 0, 0, places)
    with np.errstate(all="ignore"):  # f64 near its limits: a difference may be infinite, and then is more than allowed
        error, reference, size = np.abs(got - want), np.abs(low - want), np.abs(want)

    def rms(values: np.ndarray) -> float:
        largest = float(values.max())
        if not largest or not np.isfinite(largest):
            return largest
        with np.errstate(under="ignore"):
            return largest * float(np.sqrt(np.mean((values / largest) ** 2)))  # squares of large numbers overflow

    return Comparison(
        float(error.max()), 4 * float(reference.max()) + 2 * ulp * float(size.max()),
        rms(error), 4 * rms(reference) + 2 * ulp * rms(size), places,
    )  # fmt: skip
