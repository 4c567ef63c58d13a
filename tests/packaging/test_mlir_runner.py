"""The runner of RUN lines: what passes, what fails, and what a failure shows."""

import sys
from pathlib import Path

import pytest
from mlir_runner import RunFailure, run_file, run_lines

from stepwell.runtime import driver


@pytest.fixture(autouse=True)
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that prints its arguments and its input; `fail` among them gives status 1."""

    def main(arguments: list[str]) -> int:
        if "raise" in arguments:
            raise KeyError("a fault of the driver")
        print(*arguments, sys.stdin.read())
        print("to stderr", file=sys.stderr)
        return int("fail" in arguments)

    monkeypatch.setattr(driver, "main", main)


def run(folder: Path, text: str) -> None:
    path = folder / "case.mlir"
    path.write_text(text)
    run_file(path)


@pytest.mark.parametrize(
    "text",
    [
        "// RUN: stepwell opt --p='a,b{c=1 d=2}' | filecheck %s\n// CHECK: opt --p=a,b{c=1 d=2}",
        "// RUN: stepwell a | stepwell b - | filecheck %s --check-prefix=X\n// X: b - a",
        "// RUN: not stepwell fail 2>&1 | filecheck %s\n// CHECK: fail\n// CHECK: to stderr",
        "// RUN: stepwell %S > %t && filecheck %s --input-file=%t\n// CHECK: {{[a-z/]+}}",
        "// RUN: stepwell a \\\n// RUN:   | filecheck %s\n// CHECK: a",
    ],
)
def test_passes(tmp_path: Path, text: str) -> None:
    run(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("// RUN: stepwell a b | filecheck %s\n// CHECK: c", ["filecheck", "case.mlir:2", "--- stdin\na b"]),
        ("// RUN: stepwell fail", ["$ stepwell fail", "status 1", "--- stderr\nto stderr"]),
        ("// RUN: not stepwell a", ["status 0, a failure was expected"]),
        ("// RUN: not stepwell raise", ["raised an exception", "a fault of the driver"]),
        ("// RUN: rm a", ["not 'rm'"]),
        ("// RUN: stepwell a\n// RUN: stepwell fail | stepwell b", ["$ stepwell fail"]),
    ],
)
def test_fails(tmp_path: Path, text: str, shown: list[str]) -> None:
    with pytest.raises(RunFailure) as caught:
        run(tmp_path, text)
    assert [part for part in shown if part not in str(caught.value)] == []


def test_only_comments_that_say_run() -> None:
    assert run_lines("// RUN: a\n//RUN:b\n// RUNS: c\n// CHECK: RUN: d") == ["a", "b"]
