"""Target `emulate`: the printed CUDA text, compiled by g++ over the host's prelude, run by fibres and checked.

`checked` builds report races, bad accesses, memory that nothing wrote, barriers and shuffles that not all reach;
plain builds only run. Both refuse what a device would refuse to launch.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from .. import __version__
from ..dialects import loop
from ..ir.core import Operation
from ..ir.diagnostics import Diagnostic, IRError
from ..lowering.emulate.printer import HEADER, RUNTIME, Printed, print_emulated
from .arrays import HostArrays, Progress
from .cache import Cache, key_of
from .cpu import LOG_LINES, WORKERS, slot
from .emulate_report import CAPACITY, Report, diagnostic
from .launch_limits import check_launch, cut_grid

ARCH = "sm_90a"  # whose limits hold where none is named
TOGETHER = 32  # kernels to a source
# A launch in which no block ends or meets for so long is stuck.
SECONDS = float(os.environ.get("STEPWELL_EMULATE_SECONDS", "60"))
# As NVRTC gets it: no contraction. Printed text casts between types of one size, which C++ would call aliasing.
FLAGS = (
    "-std=c++17", "-shared", "-fPIC", "-pthread", "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv",
    "-Wno-unknown-pragmas", "-Wno-psabi",
)  # fmt: skip
PLAIN = ("-O2",)
CHECKED = ("-O1", "-DSW_EMU_CHECKED")


class Unavailable(IRError):
    """The target cannot run on this machine."""

    status = 2


def compiler() -> tuple[str, ...] | None:
    """The command of the C++ compiler: $CXX, g++ or clang++; None where there is none."""
    return _find(os.environ.get("CXX", ""))


@functools.cache
def _find(chosen: str) -> tuple[str, ...] | None:
    try:
        given = shlex.split(chosen)
    except ValueError as error:
        raise Unavailable(f"CXX is {chosen!r}, which is no command: {error}") from None
    for command in ([given] if given else [["g++"], ["clang++"]]):
        path = shutil.which(command[0])
        if path:
            return (path, *command[1:])
    if given:
        raise Unavailable(f"CXX names '{given[0]}', which is not found; unset it to use g++")
    return None


def required_compiler() -> tuple[str, ...]:
    """As `compiler`; Unavailable where there is none."""
    command = compiler()
    if command is None:
        raise Unavailable("target 'emulate' needs a C++ compiler: install g++ (or clang++), or set CXX")
    return command


@functools.cache
def _version(command: tuple[str, ...]) -> str:
    made = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return made.stdout + made.stderr


def _library(source: str, flags: Sequence[str]) -> Path:
    """The shared object of a source: from the cache, or compiled."""
    command = required_compiler()
    header = HEADER.read_text(encoding="utf-8")
    key = key_of(source, header, "\n".join(flags), _version(command), "\n".join(command), __version__)
    cache = Cache()
    return cache.get(key, ".so") or cache.put(key, ".so", _compile(command, source, flags))


def _compile(command: Sequence[str], source: str, flags: Sequence[str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="stepwell-") as place:
        code, made = Path(place, "kernel.cpp"), Path(place, "kernel.so")
        code.write_text(source, encoding="utf-8")
        run = subprocess.run(
            [*command, *FLAGS, *flags, f"-I{HEADER.parent}", "-o", str(made), str(code), "-lstdc++"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if run.returncode or not made.exists():
            log = "\n".join(run.stderr.replace(str(code), "kernel.cpp").splitlines()[:LOG_LINES])
            raise IRError(f"'{Path(command[0]).name}' refused a printed kernel:\n{log}")
        return made.read_bytes()


@functools.cache
def emulator() -> Any:
    """The emulator itself, compiled once; kernels find its functions in the process."""
    return _load(_library(RUNTIME.read_text(encoding="utf-8"), ("-O2",)), ctypes.RTLD_GLOBAL)


def _load(path: Path, mode: int = ctypes.DEFAULT_MODE) -> Any:
    try:
        return ctypes.CDLL(str(path), mode=mode)
    except OSError as error:
        raise IRError(f"what {required_compiler()[0]} made cannot be loaded: {error}") from None


# ---------------------------------------------------------------- memory


class EmulatedArray(np.ndarray):
    """An array that kernels may write; `written` has a 1 for each element that one did. Views share it."""

    written: np.ndarray | None = None

    def __array_finalize__(self, source: Any) -> None:
        self.written = getattr(source, "written", None)


class Address(int):
    """A pointer that knows its array."""

    array: np.ndarray

    @classmethod
    def of(cls, array: np.ndarray) -> Address:
        made = cls(array.__array_interface__["data"][0])
        made.array = array
        return made


class EmulatedArrays(HostArrays):
    """NumPy arrays for the emulator, which needs to know what is in them."""

    def __init__(self, checked: bool) -> None:
        self.checked = checked

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Memory that nothing wrote, filled with NaN or -1 so that plain builds show it too."""
        made = super().empty(shape, dtype)
        made.reshape(-1).view(np.uint8)[...] = 0xFF
        return self._tracked(made)

    def _tracked(self, array: np.ndarray) -> np.ndarray:
        made = array.view(EmulatedArray)
        made.written = np.zeros(array.size, np.uint8)
        return made

    def accept_output(self, *given: Any) -> Any:
        made = super().accept_output(*given)
        return None if made is None else self._tracked(made)

    def give(self, result: Any, kind: str) -> Any:
        return super().give(result.view(np.ndarray) if isinstance(result, np.ndarray) else result, kind)

    def pointer(self, array: np.ndarray) -> Address:
        return Address.of(array)

    def finish(self, results: Sequence[Any], op: Operation) -> None:
        """Every element of every result was written."""
        if self.checked:
            found = [text for number, result in enumerate(results) if (text := _unwritten(number, result))]
            if found:
                raise Unwritten(results, [Diagnostic(f"on the emulator: {text}", op.location) for text in found])

    def build(self, kernels: Sequence[loop.Kernel], arch: str | None, progress: Progress | None) -> Mapping[str, Any]:
        return build_kernels(kernels, arch or ARCH, self.checked, progress)


class Unwritten(IRError):
    """Some results have elements that no kernel wrote."""

    def __init__(self, results: Sequence[np.ndarray], found: list[Diagnostic]) -> None:
        super().__init__(found)
        self.results = tuple(results)


def _unwritten(number: int, result: np.ndarray) -> str:
    written = getattr(result, "written", None)
    if written is None or written.all():
        return ""
    first = np.unravel_index(int(np.argmin(written)), result.shape)
    at = ", ".join(map(str, first))
    return f"result {number}: {int((written == 0).sum())} of {written.size} elements were never written, first [{at}]"


class Buffer(ctypes.Structure):
    """`sw_emu_buffer`."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("low", ctypes.c_longlong), ("high", ctypes.c_longlong), ("valid", ctypes.c_void_p),
        ("written", ctypes.c_void_p), ("shadow", ctypes.c_void_p), ("name", ctypes.c_char_p), ("bytes", ctypes.c_int),
        ("read_only", ctypes.c_int), ("shared", ctypes.c_int),
    ]  # fmt: skip


@functools.cache
def _shadow_bytes() -> int:
    return int(emulator().sw_emu_shadow_bytes())


def _buffer(array: np.ndarray, name: str, constant: bool, checked: bool) -> tuple[Buffer, list[np.ndarray]]:
    """The descriptor of an array, and the memory that it points to."""
    written = getattr(array, "written", None)
    low, high, valid = extent(array)
    made = Buffer(_data(array), low, high, None, None, None, name.encode(), array.itemsize, written is None, 0)
    kept = [array]
    if valid is not None:
        made.valid = _data(valid)
        kept.append(valid)
    if checked and written is not None:
        made.written = _data(written)
        if not constant:
            shadow = np.zeros(array.size * _shadow_bytes(), np.uint8)
            made.shadow = _data(shadow)
            kept.append(shadow)
    return made, kept


def _data(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def extent(array: np.ndarray) -> tuple[int, int, np.ndarray | None]:
    """The first element's offset, one past the last one's, and which of those between belong to the array."""
    if not array.size:
        return 0, 0, None
    steps = [s // array.itemsize for s in array.strides]
    reach = [(size - 1) * step for size, step in zip(array.shape, steps)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + 1
    if high - low == array.size:
        return low, high, None
    valid = np.zeros(high - low, np.uint8)
    np.lib.stride_tricks.as_strided(valid[-low:], array.shape, steps)[...] = 1
    return low, high, valid


# ---------------------------------------------------------------- launches


class Launch(ctypes.Structure):
    """`sw_emu_launch`."""

    _fields_ = [
        ("call", ctypes.c_void_p), ("arguments", ctypes.c_void_p), ("grid", ctypes.c_int * 3),
        ("block", ctypes.c_int * 3), ("dynamic_shared", ctypes.c_longlong), ("stack", ctypes.c_longlong),
        ("seconds", ctypes.c_double), ("cores", ctypes.c_int), ("checked", ctypes.c_int),
    ]  # fmt: skip


def stack_bytes(kernel: loop.Kernel) -> int:
    """The stack of a thread: its register arrays, with what the checks keep of each, and room for calls."""
    types = map(loop.buffer_type, kernel.allocations("register"))
    held = sum(t.bytes + (t.size or 0) + 128 for t in types)
    return (2 * held + (1 << 17)) // 4096 * 4096


_RUNNING_ON: list[Any] = []  # memory of launches that never ended: their threads may still use it


@attrs.frozen(eq=False)
class Call:
    """A launch: the arrays, the scalars in 8 bytes each, and the grid."""

    kernel: loop.Kernel
    arrays: Sequence[np.ndarray]
    scalars: Sequence[int]
    grid: Sequence[int]


_RECORDINGS: list[Callable[[Call], None]] = []


@contextlib.contextmanager
def recording(note: Callable[[Call], None]) -> Iterator[None]:
    """Tell `note` of every launch, before it runs."""
    _RECORDINGS.append(note)
    try:
        yield
    finally:
        _RECORDINGS.remove(note)


@attrs.frozen(eq=False)
class Runner:
    """A kernel as the executor calls it."""

    kernel: loop.Kernel
    printed: Printed
    function: Any
    checked: bool

    def __call__(self, pointers: Sequence[int], scalars: Sequence[Any], grid: Sequence[int]) -> None:
        """Run it over `grid`; IRError with everything that a checked build found."""
        arrays = [p.array for p in pointers]  # type: ignore[attr-defined]
        self._check_overlap(arrays)
        numbers = [slot(value, a.type) for value, a in zip(scalars, self.kernel.scalars, strict=True)]
        call = Call(self.kernel, arrays, numbers, cut_grid(self.kernel, grid))
        for note in _RECORDINGS:
            note(call)
        self._run(call)

    def _run(self, call: Call) -> None:
        made = [
            _buffer(array, a.hint or f"argument {n}", loop.buffer_type(a).constant, self.checked)
            for n, (array, a) in enumerate(zip(call.arrays, self.kernel.buffers, strict=True))
        ]
        slots = [*(ctypes.addressof(b) for b, _ in made), *call.scalars]
        arguments = (ctypes.c_longlong * len(slots))(*slots)
        count, reports = self._launch(arguments, call.grid)
        if count < 0:
            _RUNNING_ON.append((arguments, made))
            count = -1 - count
        if count:
            raise IRError([diagnostic(r, self.kernel, self.printed) for r in reports[: min(count, CAPACITY)]])

    def _check_overlap(self, arrays: Sequence[np.ndarray]) -> None:
        """Every pointer promises (`__restrict__`) that what it writes is reached through no other."""
        for at, (array, argument) in enumerate(zip(arrays, self.kernel.buffers)):
            others = [b for n, b in enumerate(arrays) if n != at]
            if not loop.buffer_type(argument).constant and any(np.may_share_memory(array, b) for b in others):
                raise self.kernel.error(f"writes '%{argument.hint}', whose memory another argument shares")

    def _launch(self, arguments: Any, grid: Sequence[int]) -> tuple[int, Any]:
        launch = Launch(
            ctypes.cast(self.function, ctypes.c_void_p), ctypes.addressof(arguments), tuple(grid),
            tuple(self.kernel.block), self.kernel.dynamic_shared, stack_bytes(self.kernel), SECONDS,
            os.cpu_count() or 1, self.checked,
        )  # fmt: skip
        reports = (Report * CAPACITY)()
        return emulator().sw_emu_run(ctypes.byref(launch), len(arguments), reports, CAPACITY), reports


def build_kernels(
    kernels: Sequence[loop.Kernel], arch: str = ARCH, checked: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
) -> Mapping[str, Runner]:  # fmt: skip
    """Every kernel compiled, several to a source, by its `sym_name`."""
    emulator()
    parts = [print_emulated(kernels[at : at + TOGETHER]) for at in range(0, len(kernels), TOGETHER)]
    flags = CHECKED if checked else PLAIN
    runners: dict[str, Runner] = {}
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        paths = pool.map(lambda p: _library(p.source, flags), parts)
        for done, (printed, path) in enumerate(zip(parts, paths), 1):
            handle = _load(path)
            for kernel in kernels[(done - 1) * TOGETHER : done * TOGETHER]:
                name = printed.names[kernel.sym_name]
                check_launch(kernel, arch, printed.threads(name))
                runners[kernel.sym_name] = Runner(kernel, printed, handle[f"sw_entry_{name}"], checked)
            if progress is not None:
                progress("compiling for the emulator", done, len(parts))
    return runners
