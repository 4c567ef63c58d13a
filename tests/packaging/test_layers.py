"""The layers contract is kept, and a planted upward import breaks it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    # Through the module: the script may not be on the path of the venv that runs the tests.
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "tests/_typing")},
        text=True,
        capture_output=True,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for folder in ("ir", "dialects", "lowering", "runtime", "tests/_typing"):
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True)
    return tmp_path


def test_layers_are_kept() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("importer", "line"),
    [
        ("ir", "import stepwell.dialects"),
        ("dialects", "from ..lowering import cuda"),
        ("lowering", "from stepwell.runtime import driver"),
    ],
)
def test_planted_import_is_caught(copy: Path, importer: str, line: str) -> None:
    (copy / importer / "planted.py").write_text(f"{line}\n")
    done = lint_imports(copy)
    assert done.returncode == 1
    assert f"stepwell.{importer} is not allowed to import" in done.stdout
    assert f"stepwell.{importer}.planted" in done.stdout
