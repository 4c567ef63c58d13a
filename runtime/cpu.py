"""Printed C as functions: the system compiler, a disk cache, ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from .. import __version__
from ..dialects import loop
from ..dialects.scalar import dtype_of
from ..ir.attributes import FloatType, Type
from ..ir.diagnostics import IRError
from ..lowering.cpu.printer import print_module_source
from ..lowering.printer_base import function_names
from .cache import Cache, key_of

# Not -ffast-math: it would make isnan false. No contraction: fused and unfused kernels must agree bit for bit.
FLAGS = (
    "-O3", "-march=native", "-shared", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off",
    "-Wno-psabi", "-Wno-unknown-pragmas",
)  # fmt: skip
LOG_LINES = 25
TOGETHER, WORKERS = 8, 2  # kernels to a source; compilers at a time


def compiler() -> tuple[str, ...] | None:
    """The command of the C compiler: $CC, gcc, clang or cc; None where there is none."""
    return _find(os.environ.get("CC", ""))


@functools.cache
def _find(chosen: str) -> tuple[str, ...] | None:
    for command in (shlex.split(chosen), ["gcc"], ["clang"], ["cc"]):
        path = shutil.which(command[0]) if command else None
        if path:
            return (path, *command[1:])
    return None


def available() -> bool:
    """Whether there is a compiler."""
    return compiler() is not None


@functools.cache
def _version(command: tuple[str, ...]) -> str:
    made = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return made.stdout + made.stderr


@functools.cache
def processor() -> str:
    """What -march=native depends on: the model and its features."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        lines = [platform.processor()]
    wanted = ("model name", "flags", "Features", "CPU part", "CPU implementer")
    return "\n".join([platform.machine(), *(line for line in lines if line.startswith(wanted))])


@attrs.frozen
class Entry:
    """A kernel of a library. Buffers are addresses; `sizes` are ints, floats as `slot` makes them."""

    function: Callable[..., None]

    def __call__(self, buffers: Sequence[int], sizes: Sequence[int] = ()) -> None:
        """Run it once."""
        self.function((ctypes.c_void_p * len(buffers))(*buffers), (ctypes.c_longlong * len(sizes))(*sizes))

    def bind(self, buffers: Sequence[int], sizes: Sequence[int] = ()) -> Callable[[], None]:
        """A call with these arguments, made once and cheap to repeat. The caller keeps the memory alive."""
        pointers = (ctypes.c_void_p * len(buffers))(*buffers)
        numbers = (ctypes.c_longlong * len(sizes))(*sizes)
        return functools.partial(self.function, pointers, numbers)


def slot(value: Any, type: Type) -> int:
    """The 8 bytes of a scalar argument, as one integer."""
    if isinstance(type, FloatType):
        bits = np.array(value, dtype_of(type)).tobytes().ljust(8, b"\0")
        return int.from_bytes(bits, "little", signed=True)
    return int(value)


@attrs.frozen(eq=False)
class Library:
    """A loaded shared object."""

    path: Path
    handle: ctypes.CDLL

    def entry(self, name: str) -> Entry:
        """The entry `sw_entry_<name>`; `name` may have that prefix already."""
        function = self.handle["sw_entry_" + name.removeprefix("sw_entry_")]
        function.restype = None
        return Entry(function)


_LOADED: dict[str, Library] = {}


def compile_source(source: str, flags: Sequence[str] = FLAGS) -> Library:
    """The library of a C source: from this process, the disk cache, or the compiler.

    Raises IRError, with the compiler's log, where it does not compile or there is no compiler."""
    command = compiler()
    if command is None:
        raise IRError("no C compiler was found: install gcc or clang, or set CC")
    key = key_of(source, "\n".join(flags), _version(command), "\n".join(command), processor(), __version__)
    if key not in _LOADED:
        cache = Cache()
        path = cache.get(key, ".so") or cache.put(key, ".so", _compile(command, source, flags))
        _LOADED[key] = _load(path, lambda: cache.put(key, ".so", _compile(command, source, flags)))
    return _LOADED[key]


def compile_sources(sources: Sequence[str], workers: int = WORKERS) -> list[Library]:
    """Several libraries, compiled side by side."""
    with ThreadPoolExecutor(max_workers=workers) as pool:
        return list(pool.map(compile_source, sources))


def _load(path: Path, again: Callable[[], Path]) -> Library:
    try:
        return Library(path, ctypes.CDLL(str(path)))
    except OSError:  # another process has just removed it
        path = again()
        return Library(path, ctypes.CDLL(str(path)))


def _compile(command: Sequence[str], source: str, flags: Sequence[str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="stepwell-") as place:
        code, made = Path(place, "kernel.c"), Path(place, "kernel.so")
        code.write_text(source, encoding="utf-8")
        run = subprocess.run(
            [*command, *flags, "-o", str(made), str(code), "-lm"], capture_output=True, text=True, check=False
        )
        if run.returncode:
            log = "\n".join(run.stderr.replace(str(code), "kernel.c").splitlines()[:LOG_LINES])
            raise IRError(f"'{Path(command[0]).name}' refused a printed kernel:\n{log}")
        return made.read_bytes()


@attrs.frozen
class Runner:
    """A kernel as the executor calls it; `floats` are the positions of scalars that are no integers."""

    function: Callable[..., None]
    pointers: Any  # the ctypes array types
    numbers: Any
    floats: tuple[tuple[int, Type], ...]

    def __call__(self, pointers: Sequence[int], scalars: Sequence[Any], grid: Sequence[int]) -> None:
        """Run it; a loop nest of C needs no grid."""
        if self.floats:
            scalars = list(scalars)
            for at, type in self.floats:
                scalars[at] = slot(scalars[at], type)
        self.function(self.pointers(*pointers), self.numbers(*scalars))


def _runner(kernel: loop.Kernel, entry: Entry) -> Runner:
    types = [a.type for a in kernel.scalars]
    floats = tuple((at, t) for at, t in enumerate(types) if isinstance(t, FloatType))
    return Runner(entry.function, ctypes.c_void_p * len(kernel.buffers), ctypes.c_longlong * len(types), floats)


def build_kernels(
    kernels: Sequence[loop.Kernel], progress: Callable[[str, int, int], None] | None = None
) -> Mapping[str, Runner]:
    """Every kernel compiled, several to a source, by its `sym_name`."""
    parts = [kernels[at : at + TOGETHER] for at in range(0, len(kernels), TOGETHER)]
    runners: dict[str, Runner] = {}
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        libraries = pool.map(compile_source, [print_module_source(part) for part in parts])
        for done, (part, library) in enumerate(zip(parts, libraries), 1):
            for kernel, name in zip(part, function_names(part)):
                runners[kernel.sym_name] = _runner(kernel, library.entry(name))
            if progress is not None:
                progress("compiling C", done, len(parts))
    return runners
