"""What every test shares: .mlir files with RUN lines are tests, and gpu tests need a device."""

import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# At the end, so that nothing here can shadow a package: importlib mode adds no folder of its own.
sys.path.append(str(Path(__file__).parent))

import mlir_runner

collect_ignore = ["_typing"]  # symlinks to the packages

# Time limits a case fail on a busy machine; CI draws the same cases each time.
hypothesis.settings.register_profile("stepwell", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("stepwell")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "MlirFile | None":
    if file_path.suffix == ".mlir" and mlir_runner.RUN.search(file_path.read_text(encoding="utf-8")):
        return MlirFile.from_parent(parent, path=file_path)
    return None


class MlirFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        item = MlirItem.from_parent(self, name="RUN")
        if "// REQUIRES: gpu" in self.path.read_text(encoding="utf-8"):
            item.add_marker("gpu")
        yield item


class MlirItem(pytest.Item):
    def runtest(self) -> None:
        mlir_runner.run_file(self.path)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> object:
        if isinstance(excinfo.value, mlir_runner.RunFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.path.name


@pytest.fixture(autouse=True, scope="session")
def note_emulated_kernels() -> Iterator[None]:
    """With STEPWELL_KERNEL_DUMP set, what a test runs on the emulator is noted there for emulate_all.py."""
    folder = os.environ.get("STEPWELL_KERNEL_DUMP")
    if not folder:
        yield
        return
    import emulate_all

    from stepwell.runtime import emulate

    with emulate.recording(emulate_all.Note(Path(folder))):
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and (reason := no_gpu()):
        pytest.skip(reason)


@functools.cache
def no_gpu() -> str:
    """Why gpu tests cannot run here; empty where they can."""
    try:
        import cupy
    except ImportError:
        return "cupy is not installed"
    return "" if cupy.cuda.is_available() else "no CUDA device"
