"""What setuptools is told, the symlinks for type checkers, and what is installed agree with the disk."""

import ast
import importlib.metadata
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE_FOLDERS = ("ir", "dialects", "lowering", "runtime")
PACKAGED = {".py", ".typed", ".lark", ".h", ".cuh"}

SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def files_on_disk() -> list[Path]:
    """The files that belong in the wheel, relative to the root."""
    found = (path for folder in CODE_FOLDERS for path in (ROOT / folder).rglob("*"))
    return [path.relative_to(ROOT) for path in found if path.suffix in PACKAGED]


def folder_of(package: str) -> Path:
    """Where setuptools looks for a package: its own entry of package-dir, or else its parent's folder."""
    if package in SETUPTOOLS["package-dir"]:
        return Path(SETUPTOOLS["package-dir"][package])
    parent, _, name = package.rpartition(".")
    return folder_of(parent) / name


def test_listed_packages_are_those_on_disk() -> None:
    listed = {folder_of(package) for package in SETUPTOOLS["packages"]}
    assert listed == {path.parent for path in files_on_disk()}
    assert [folder for folder in listed if not (ROOT / folder / "__init__.py").is_file()] == []


def test_symlinks_are_relative_and_name_the_packages() -> None:
    links = {path.name: path for path in (ROOT / "tests/_typing/stepwell").iterdir()}
    assert links.keys() == {*CODE_FOLDERS, "__init__.py", "py.typed"}
    for name, link in links.items():
        assert link.is_symlink() and not link.readlink().is_absolute()
        folder = "runtime/_toplevel" if "." in name else "."
        assert link.resolve() == (ROOT / folder / name).resolve()


def test_installed_wheel_holds_every_file_and_no_other() -> None:
    # A stepwell.egg-info at the root is a distribution too: the installed one has a RECORD.
    installed = [d for d in importlib.metadata.distributions(name="stepwell") if d.read_text("RECORD")]
    held = {str(file) for d in installed for file in d.files or () if file.suffix in PACKAGED}
    if "stepwell/__init__.py" not in held:
        pytest.skip("stepwell is not installed, or it is editable")
    names = {folder_of(package): package.replace(".", "/") for package in SETUPTOOLS["packages"]}
    assert held == {f"{names[path.parent]}/{path.name}" for path in files_on_disk()}, "install again"


def bare_imports(source: str) -> list[str]:
    """The lines that import a code folder by itself: a second copy of every class, where it works at all."""
    modules = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules.append((node.lineno, node.module or ""))
    return [f"{line}: {module}" for line, module in modules if module.split(".")[0] in CODE_FOLDERS]


def test_no_bare_imports() -> None:
    files = [path for folder in (*CODE_FOLDERS, "tests", "docs") for path in (ROOT / folder).rglob("*.py")]
    found = {str(f.relative_to(ROOT)): bare_imports(f.read_text(encoding="utf-8")) for f in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize("source", ["import ir", "import ir.types as t", "from dialects import nn",
                                    "def f():\n  from lowering.cuda import printer"])  # fmt: skip
def test_bare_import_is_found(source: str) -> None:
    assert bare_imports(source)
    assert not bare_imports("import stepwell.ir\nfrom . import ir\nfrom stepwell import dialects")


def test_readme_has_the_two_commands_that_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("main", "test"):
        _, _, rest = readme.partition(f"<!-- ci: {name} -->\n```sh\n")
        command, closed, _ = rest.partition("\n```\n")
        assert closed and len(command.replace("\\\n", "").splitlines()) == 1, name
