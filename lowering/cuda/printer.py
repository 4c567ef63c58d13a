"""Loop kernels as CUDA C without headers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...dialects import loop
from ...ir.core import Operation, Value
from ..c_scalars import ADD, MUL, Expr
from ..printer_base import KernelPrinter, print_source
from .prelude import PRELUDE

_AXES = {"block": "x", "block_y": "y", "block_z": "z", "thread": "x", "thread_y": "y", "thread_z": "z"}


class CudaPrinter(KernelPrinter):
    """A kernel as a `__global__` function; loops bound to blocks and threads stride over them."""

    prelude = PRELUDE
    position = {which: f"sw_{which}()" for which in loop.IDS}

    def __init__(self, kernel: loop.Kernel, name: str) -> None:
        super().__init__(kernel, name)
        self.flat = "_x" if kernel.block[1:] == (1, 1) else ""  # blocks of one dimension have cheaper lanes
        self.position = {**self.position, "lane": f"sw_lane{self.flat}()", "warp": f"sw_warp{self.flat}()"}
        self.offsets = _shared_offsets(kernel)

    def head(self) -> str:
        return f"SW_KERNEL({prod(self.kernel.block)}) {self.name}"

    def pointer(self, element: str, name: str) -> str:
        return f"SW_GLOBAL({element}) {name}"

    def declare_shared(self, op: loop.Alloc, element: str, name: str, size: int) -> str:
        if self.kernel.dynamic_shared:
            return f"SW_DYNAMIC_SHARED({element}, {name}, {self.offsets[op.buffer]}, {size});"
        return f"SW_SHARED({element}, {name}, {size});"

    def declare_register(self, element: str, name: str) -> str:
        return f"SW_REGISTER({element}, {name});"

    def declare_registers(self, element: str, name: str, size: int) -> str:
        return f"SW_REGISTERS({element}, {name}, {size});"

    def bounds(self, op: loop.For, lo: Expr, step: Expr) -> tuple[str, str]:
        found = self.placed(op.binding)
        if found is None:
            return lo.text, step.text
        first, count = found
        start = first if step.text == "1" else f"{first} * {self.widened(step)}"
        if lo.text != "0":
            start = f"{lo.at(ADD)} + {start}"
        return start, self.stride(count, step)

    def stride(self, count: str, step: Expr) -> str:
        if step.text == "1":
            return count
        if count.isdigit() and step.text.isdigit():
            return str(int(count) * int(step.text))
        return f"{count} * {self.widened(step)}"

    def widened(self, step: Expr) -> str:
        """A literal step in the width of index: positions are ints."""
        return f"{step.text}ll" if self.kernel.index_bits == 64 and step.text.isdigit() else step.at(MUL + 1)

    def placed(self, binding: str) -> tuple[str, str] | None:
        """Where this thread, warp or block stands, and how many there are; None for a plain loop."""
        threads = self.kernel.block
        if binding == "lane":
            return f"sw_lane{self.flat}()", "32"
        if binding == "warp":
            return f"sw_warp{self.flat}()", str(max(1, prod(threads) // 32))
        if binding == "global":
            return f"sw_global_i{self.kernel.index_bits}()", f"sw_global_count_i{self.kernel.index_bits}()"
        axis = _AXES.get(binding)
        if axis is None:
            return None
        if binding.startswith("block"):
            return f"sw_block_{axis}()", f"sw_grid_dim_{axis}()"
        return f"sw_thread_{axis}()", str(threads["xyz".index(axis)])

    def joins_user(self, op: Operation, made: Expr) -> bool:
        # A position is an int: it becomes an index when it is assigned.
        return not isinstance(op, loop.Id) and super().joins_user(op, made)

    def shuffle(self, op: loop.Shuffle) -> None:
        args = f"{self.values[op.value].text}, {self.values[op.lane].text}, {op.width}"
        made = Expr(f"sw_shuffle_{op.kind}_{self.c.suffix(op.value.type)}({args})")
        self.values[op.received] = self.variable(op.received, made)

    def ballot(self, op: loop.Ballot) -> None:
        self.values[op.votes] = self.variable(op.votes, Expr(f"sw_ballot({self.values[op.vote].text})"))


def _shared_offsets(kernel: loop.Kernel) -> dict[Value, int]:
    """Where each shared buffer starts in dynamic shared memory."""
    offsets: dict[Value, int] = {}
    total = 0
    for buffer in kernel.allocations("shared"):
        offsets[buffer] = total
        total += -(-buffer.type.bytes // 16) * 16  # type: ignore[attr-defined]
    return offsets


def print_module_source(kernels: Sequence[loop.Kernel]) -> str:
    """Kernels behind one prelude."""
    return print_source(kernels, CudaPrinter, ".cu", f"CUDA C: {', '.join(k.sym_name for k in kernels)}")
