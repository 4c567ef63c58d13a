"""shared/mlir_cases: each text has the verdict of its README. Cases of a pass are only read, printed and read
again here; what the pass makes of them is tested with the pass."""

import re
from pathlib import Path

import pytest

from stepwell.ir.diagnostics import IRError
from stepwell.ir.parser import parse_module
from stepwell.ir.printer import print_operation
from stepwell.ir.registry import load
from stepwell.ir.verifier import verify

CASES = Path(__file__).parents[3] / "shared" / "mlir_cases"


def rows() -> list[tuple[str, str]]:
    if not CASES.exists():
        return []
    lines = (CASES / "README.md").read_text(encoding="utf-8").splitlines()
    cells = [[c.strip() for c in line.split("|")[1:-1]] for line in lines if line.startswith("|")][2:]
    return [(name, verdict if not of_pass else "ok") for name, of_pass, verdict in cells]


@pytest.fixture(scope="module", autouse=True)
def dialects() -> None:
    for name in ("builtin", "func", "arith", "math", "cf", "scf", "memref"):
        load(f"stepwell.dialects.{name}")


@pytest.mark.skipif(not CASES.exists(), reason="../shared is not here")
def test_there_are_cases() -> None:
    assert len(rows()) == 78


@pytest.mark.parametrize(("name", "verdict"), rows())
def test_case(name: str, verdict: str) -> None:
    text = (CASES / f"{name}.mlir").read_text(encoding="utf-8")
    if verdict == "ok":
        round_trip(text)
        return
    message, _, place = verdict.removeprefix("error: ").rpartition(" at ")
    with pytest.raises(IRError) as caught:
        verify(parse_module(text, allow_unregistered=True))
    first = caught.value.diagnostics[0]
    assert plain(message) in plain(first.message)
    assert first.place is not None
    assert f"{first.place.line}:{first.place.column}" == place


def plain(message: str) -> str:
    """Without control characters: mlir-opt writes a NUL in one message."""
    return re.sub(r"[\s\0]+", " ", message).strip()


def round_trip(text: str) -> None:
    module = parse_module(text, allow_unregistered=True)
    verify(module)
    for generic in (False, True):
        printed = print_operation(module, generic)
        again = parse_module(printed, allow_unregistered=True)
        verify(again)
        assert print_operation(again, generic) == printed
        assert print_operation(again, True) == print_operation(module, True)
