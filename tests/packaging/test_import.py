"""Importing stepwell: cheap, complete, and possible with nothing installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import stepwell

ROOT = Path(__file__).parents[2]


def python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=ROOT / "docs",  # not the root: nothing may depend on it
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_is_light() -> None:
    heavy = "attr attrs cupy lark ml_dtypes numpy torch"
    assert python(f"import sys, stepwell; print(*sys.modules.keys() & set('{heavy}'.split()))") == ""


def test_every_public_name_resolves() -> None:
    for name in stepwell.__all__:
        assert getattr(stepwell, name) is not None
        assert name in dir(stepwell)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'stepwell' has no attribute 'compil'"):
        stepwell.compil  # noqa: B018


def test_runs_with_nothing_installed() -> None:
    code = """
import numpy, stepwell
f = stepwell.compile('''
func.func @twice<n>(%x: tensor<[n], f32>) -> tensor<[n], f32> {
  %y = nd.add %x, %x : (tensor<[n], f32>, tensor<[n], f32>) -> tensor<[n], f32>
  func.return %y : tensor<[n], f32>
}''', target="reference")
print(stepwell.__file__, *f(numpy.arange(3, dtype="f4")))
"""
    links = ROOT / "tests/_typing"
    assert python(code, PYTHONPATH=str(links)) == f"{links / 'stepwell/__init__.py'} 0.0 2.0 4.0"
