"""Which facts exclude each other, and the sizes that facts allow."""

from itertools import islice

import pytest

from stepwell.ir.dims import parse_facts
from stepwell.ir.facts import Facts, conflict


@pytest.mark.parametrize(
    "facts, wanted",
    [
        ("n < 0", "n < 0"),
        ("m > 1, n == n+1", "n == n + 1"),
        ("2*n == 7", "2*n == 7"),
        ("m > 1, n >= 5, n <= 9, n <= 3", "5 <= n, n <= 3"),
        ("n mod 8 == 0, m == 2, n mod 8 == 1", "n mod 8 == 0, n mod 8 == 1"),
        ("a < b, b < c, d < 4, c < a", "a < b, b < c, c < a"),
        ("m*n >= 4, m == 0", "4 <= m*n, m == 0"),
        ("n floordiv m == 3, m == 0", "n floordiv m == 3, m == 0"),
        ("n*n == 2", ""),
        ("n >= 5, n <= 9", ""),
    ],
)
def test_conflict_names_as_few_as_possible(facts, wanted):
    assert ", ".join(map(str, conflict(parse_facts(facts)))) == wanted


@pytest.mark.parametrize("facts, wanted", [("n >= 0", [7, 8, 9]), ("n mod 8 == 0, n <= 20", [8, 16, 0]), ("n <= 4", [4, 3, 2]),
                                           ("n*n == 2", [])])  # fmt: skip
def test_sizes_from_7_up_and_then_down(facts, wanted):
    assert list(islice(Facts(parse_facts(facts)).sizes("n"), 3)) == wanted
