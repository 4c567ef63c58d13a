"""The text that `emit` prints for CUDA, word for word, behind the prelude of the host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import attrs

from ...dialects import loop
from ...ir.core import Operation
from ..cuda.printer import CudaPrinter
from ..printer_base import function_names, print_parts
from .prelude import PRELUDE

FOLDER = Path(__file__).parent
HEADER, RUNTIME = FOLDER / "emulator.h", FOLDER / "emulator.cpp"


class HostPrinter(CudaPrinter):
    """The CUDA printer; only the prelude differs."""

    prelude = PRELUDE


@attrs.frozen
class Printed:
    """A C++ source of kernels, the name of each, and the operation that stands on a line (from 1)."""

    source: str
    names: dict[str, str]  # sym_name -> function
    places: dict[int, Operation]

    def line(self, number: int) -> str:
        """The text of a line."""
        lines = self.source.split("\n")
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def threads(self, name: str) -> int:
        """The launch bound that the text states for a function."""
        found = re.search(rf"SW_KERNEL\((\d+)\) {name}\(", self.source)
        assert found is not None
        return int(found[1])


def print_emulated(kernels: Sequence[loop.Kernel]) -> Printed:
    """Kernels, and for each an entry that the emulator calls."""
    prelude, body, places = print_parts(kernels, HostPrinter)
    head = f'#include "emulator.h"\n\n{prelude}\n'
    names = function_names(kernels)
    entries = "".join(f"SW_EMU_ENTRY({name})\n" for name in names)
    first = head.count("\n") + 1
    moved = {first + line: op for line, op in places.items()}
    return Printed(f"{head}{body}\n{entries}", {k.sym_name: n for k, n in zip(kernels, names)}, moved)
