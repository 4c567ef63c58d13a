"""What a device refuses to launch."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..dialects import loop

THREADS = 1024
BLOCK = (1024, 1024, 64)
GRID = (2**31 - 1, 65535, 65535)
STATIC_SHARED = loop.STATIC_SHARED_LIMIT
# Bytes of shared memory that a block may opt in to, by compute capability (CUDA C Programming Guide, table of
# technical specifications); the least of them for one that is not here.
_OPT_IN = {80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 120: 99}


def shared_limit(arch: str) -> int:
    """Bytes of shared memory that a block can have on `arch` (`sm_90a`)."""
    digits = "".join(c for c in arch if c.isdigit())
    return _OPT_IN.get(int(digits or 0), 99) * 1024


def cut_grid(kernel: loop.Kernel, grid: Sequence[int]) -> tuple[int, ...]:
    """The grid within the limits of the device: loops over blocks take the rest in strides. IRError for a kernel
    that asks which block it is by itself, and so would leave out what was cut."""
    if min(grid) < 0:
        raise kernel.error(f"has a grid of {_text(grid)} blocks at these sizes")
    cut = tuple(map(min, grid, GRID))
    short = [f"{what}_{axis}" for what in ("block", "grid_dim") for axis, a, b in zip("xyz", cut, grid) if a != b]
    if short:
        for op in kernel.walk():
            if isinstance(op, loop.Id) and op.which in short:
                raise kernel.error(
                    f"needs a grid of {_text(grid)} blocks, but a device takes {_text(GRID)}, and the kernel uses "
                    f"'{op.which}', which a smaller grid would change; loop over 'block' instead"
                )
    return cut


def check_launch(kernel: loop.Kernel, arch: str, bound: int | None = None) -> None:
    """IRError where a device of `arch` would refuse the kernel's block or its shared memory. `bound` is the number
    of threads that the printed text promises not to exceed."""
    threads = prod(kernel.block)
    if threads > THREADS or any(map(int.__gt__, kernel.block, BLOCK)):
        raise kernel.error(
            f"has blocks of {_text(kernel.block)} = {threads} threads; a device takes {THREADS}, {_text(BLOCK)} an axis"
        )
    if bound is not None and threads > bound:
        raise kernel.error(f"has blocks of {threads} threads, but its text has launch bounds of {bound}")
    check_shared(kernel, kernel.shared_bytes, kernel.dynamic_shared, arch)


def check_shared(kernel: loop.Kernel, total: int, dynamic: int, arch: str) -> None:
    """IRError where `total` bytes of shared memory, `dynamic` of them asked for at the launch, are too many."""
    if total - dynamic > STATIC_SHARED:
        raise kernel.error(
            f"declares {total - dynamic} bytes of static shared memory; more than {STATIC_SHARED} need dynamic shared "
            "memory and the opt-in of the launcher"
        )
    if total > shared_limit(arch):
        raise kernel.error(f"needs {total} bytes of shared memory a block; {arch} has {shared_limit(arch)}")


def _text(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


__all__ = ["GRID", "check_launch", "check_shared", "cut_grid", "shared_limit"]
