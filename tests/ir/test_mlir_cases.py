"""Small MLIR texts, each about one thing that public tools got or get wrong, with the verdict of mlir-opt 22 (or what
is right where it errs): `ok`, or the error and its line and column. Those of a pass are only read, printed and read
again; what the pass makes of them is tested with the pass."""

import re
from pathlib import Path

import pytest

from stepwell.ir.diagnostics import IRError
from stepwell.ir.parser import parse_module
from stepwell.ir.printer import print_operation
from stepwell.ir.registry import load
from stepwell.ir.verifier import verify

CASES = Path(__file__).parent / "mlir_cases"
VERDICTS = [line.split(": ", 1) for line in (CASES / "verdicts.txt").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module", autouse=True)
def dialects() -> None:
    for name in ("builtin", "func", "arith", "math", "cf", "scf", "memref"):
        load(f"stepwell.dialects.{name}")


def test_each_case_has_a_verdict() -> None:
    assert len(VERDICTS) == 78
    assert sorted(name for name, _ in VERDICTS) == sorted(p.stem for p in CASES.glob("*.mlir"))


@pytest.mark.parametrize(("name", "verdict"), VERDICTS)
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
