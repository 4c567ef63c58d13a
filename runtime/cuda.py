"""Printed CUDA C as kernels: NVRTC and launches through cupy, which is imported when first used."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs

from .. import __version__
from ..dialects import loop
from ..dialects.scalar import dtype_of
from ..ir.attributes import IndexType
from ..ir.diagnostics import IRError
from ..lowering.cuda.printer import print_module_source
from ..lowering.printer_base import function_names
from .cache import Cache, key_of
from .launch_limits import check_launch, cut_grid

# No contraction of a*b + c: fused and unfused kernels must agree bit for bit; math.fma asks for it by name.
OPTIONS = ("--fmad=false",)
LOG_LINES = 25
TOGETHER, WORKERS = 8, 2  # kernels to a source; compilations at a time


def available() -> bool:
    """Whether cupy is installed and there is a device."""
    try:
        import cupy
    except ImportError:
        return False
    return bool(cupy.cuda.is_available())


def current_arch() -> str:
    """The architecture of the current device; from sm_90 on with its own features (`sm_90a`)."""
    import cupy

    capability = str(cupy.cuda.Device().compute_capability)
    return f"sm_{capability}" + ("a" if int(capability) >= 90 else "")


@attrs.define(eq=False)
class Kernel:
    """A kernel of a module. Python ints are passed as 8 bytes, NumPy scalars by their size."""

    name: str
    raw: Any  # cupy.RawKernel
    shared: int = loop.STATIC_SHARED_LIMIT  # dynamic shared memory that has been asked for

    def launch(
        self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared: int = 0, stream: Any = None
    ) -> None:
        """Launch on `stream` (a cupy stream; None: the current one). A grid with a 0 in it is no launch."""
        if 0 in grid:
            return
        if shared > self.shared:
            self.raw.max_dynamic_shared_size_bytes = self.shared = shared
        if stream is None:
            self.raw(tuple(grid), tuple(block), tuple(args), shared_mem=shared)
            return
        with stream:
            self.raw(tuple(grid), tuple(block), tuple(args), shared_mem=shared)


@attrs.define(eq=False)
class Module:
    """A compiled source."""

    path: Path
    raw: Any  # cupy.RawModule
    _kernels: dict[str, Kernel] = attrs.field(factory=dict)

    def kernel(self, name: str) -> Kernel:
        """The kernel `name`, loaded on first use."""
        if name not in self._kernels:
            self._kernels[name] = Kernel(name, self.raw.get_function(name))
        return self._kernels[name]


_LOADED: dict[str, Module] = {}


def compile_source(source: str, arch: str | None = None) -> Module:
    """The module of a CUDA source for `arch` (None: the current device): from this process, the disk cache, or
    NVRTC. Raises IRError, with NVRTC's log, where it does not compile."""
    import cupy

    arch = arch or current_arch()
    key = key_of(source, arch, "\n".join(OPTIONS), str(_nvrtc_version()), __version__)
    if key not in _LOADED:
        cache = Cache()
        path = cache.get(key, ".cubin") or cache.put(key, ".cubin", compile_cubin(source, arch))
        _LOADED[key] = Module(path, cupy.RawModule(path=str(path)))
    return _LOADED[key]


def compile_sources(sources: Sequence[str], arch: str | None = None, workers: int = WORKERS) -> list[Module]:
    """Several modules, compiled side by side."""
    chosen = arch or current_arch()
    with ThreadPoolExecutor(max_workers=workers) as pool:
        return list(pool.map(lambda source: compile_source(source, chosen), sources))


@functools.cache
def _nvrtc_version() -> tuple[int, int]:
    from cupy.cuda import nvrtc

    return tuple(nvrtc.getVersion())  # type: ignore[return-value]


def compile_cubin(source: str, arch: str) -> bytes:
    """The cubin of a source; needs NVRTC but no device."""
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(source, "kernel.cu", [], [])
    try:
        nvrtc.compileProgram(program, [f"--gpu-architecture={arch}", *OPTIONS])
        return bytes(nvrtc.getCUBIN(program))
    except nvrtc.NVRTCError as error:
        log = "\n".join(nvrtc.getProgramLog(program).splitlines()[:LOG_LINES])
        raise IRError(f"NVRTC refused a printed kernel for {arch}: {error}\n{log}") from None
    finally:
        nvrtc.destroyProgram(program)


@attrs.frozen
class Runner:
    """A kernel as the executor calls it; `typed` are the positions of scalars that are no index, with their type."""

    kernel: Kernel
    definition: loop.Kernel
    block: tuple[int, ...]
    shared: int
    typed: tuple[tuple[int, Any], ...]

    def __call__(self, pointers: Sequence[int], scalars: Sequence[Any], grid: Sequence[int]) -> None:
        """Launch it on cupy's current stream."""
        numbers = list(scalars)
        for at, dtype in self.typed:
            numbers[at] = dtype.type(numbers[at])
        self.kernel.launch(cut_grid(self.definition, grid), self.block, (*pointers, *numbers), self.shared)


def _runner(kernel: loop.Kernel, compiled: Kernel, arch: str) -> Runner:
    check_launch(kernel, arch)
    types = [a.type for a in kernel.scalars]
    typed = tuple((at, dtype_of(t)) for at, t in enumerate(types) if not isinstance(t, IndexType))
    return Runner(compiled, kernel, tuple(kernel.block), kernel.dynamic_shared, typed)


def build_kernels(
    kernels: Sequence[loop.Kernel], arch: str | None = None, progress: Callable[[str, int, int], None] | None = None
) -> Mapping[str, Runner]:
    """Every kernel compiled, several to a source, by its `sym_name`."""
    parts = [kernels[at : at + TOGETHER] for at in range(0, len(kernels), TOGETHER)]
    chosen = arch or current_arch()
    runners: dict[str, Runner] = {}
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        modules = pool.map(lambda s: compile_source(s, chosen), [print_module_source(part) for part in parts])
        for done, (part, module) in enumerate(zip(parts, modules), 1):
            for kernel, name in zip(part, function_names(part)):
                runners[kernel.sym_name] = _runner(kernel, module.kernel(name), chosen)
            if progress is not None:
                progress("compiling CUDA C", done, len(parts))
    return runners
