"""What the emulator found, as diagnostics: kernel, thread, block, the printed line and the place in the IR."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from ..dialects import loop
from ..ir.diagnostics import Diagnostic
from ..lowering.emulate.printer import Printed

CAPACITY = 16  # reports of a launch, one for each kind and line


class Report(ctypes.Structure):
    """`sw_emu_report`."""

    _fields_ = [
        ("kind", ctypes.c_int), ("line", ctypes.c_int), ("access", ctypes.c_int), ("count", ctypes.c_int),
        ("thread", ctypes.c_int * 3), ("block", ctypes.c_int * 3), ("other_thread", ctypes.c_int),
        ("other_line", ctypes.c_int), ("align", ctypes.c_int), ("width", ctypes.c_int),
        ("other_block", ctypes.c_longlong), ("index", ctypes.c_longlong), ("low", ctypes.c_longlong),
        ("high", ctypes.c_longlong), ("address", ctypes.c_longlong), ("name", ctypes.c_char * 64),
    ]  # fmt: skip

    kind: int
    line: int
    access: int
    count: int
    other_thread: int
    other_line: int
    align: int
    width: int
    other_block: int
    index: int
    low: int
    high: int
    address: int

    @property
    def element(self) -> str:
        return f"'{self.name.decode(errors='replace')}[{self.index}]'"

    @property
    def verb(self) -> str:
        return ("reads", "writes", "updates")[self.access]


_ORDER = "with nothing in between that orders them (a barrier, or in one warp a warp barrier)"


def _out_of_bounds(r: Report) -> str:
    exist = f"elements {r.low} to {r.high - 1} exist" if r.high > r.low else "the buffer is empty"
    inside = "; this one lies between those of a strided array" if r.low <= r.index < r.high else ""
    return f"{r.verb} {r.element} out of bounds: {exist}{inside}"


def _misaligned(r: Report) -> str:
    return (f"{r.verb} {r.width} elements from {r.element} at an address that is {r.address % r.align} bytes past a "
            f"multiple of {r.align}")  # fmt: skip


def _other(r: Report) -> str:
    if r.other_thread < 0:
        return "another thread"
    here = r.other_block == _flat_block(r)
    return f"thread {r.other_thread} of {'this' if here else f'block {r.other_block}'}{' block' if here else ''}"


def _flat_block(r: Report) -> int:
    return int(r.block[0]) if not (r.block[1] or r.block[2]) else -1


def _elsewhere(r: Report) -> str:
    return f"thread {r.other_thread} {f'waits at line {r.other_line}' if r.other_line else 'has ended'}"


_TEXTS: dict[int, Callable[[Report], str]] = {
    1: _out_of_bounds,
    2: _misaligned,
    3: lambda r: f"writes {r.element}, which is an input",
    4: lambda r: f"reads {r.element}, which nothing wrote",
    5: lambda r: f"writes {r.element}, which {_other(r)} writes too, {_ORDER}: a race",
    6: lambda r: f"reads {r.element}, which {_other(r)} writes, {_ORDER}: a race",
    7: lambda r: f"writes {r.element}, which {_other(r)} reads, {_ORDER}: a race",
    8: lambda r: f"writes {r.element} again, although nothing read what it held: a row that runs into the next?",
    9: lambda r: f"waits at a barrier that not all threads of the block reach: {_elsewhere(r)}",
    10: lambda r: f"waits for the lanes of its warp, but {_elsewhere(r)}: stuck",
    11: lambda r: f"takes part in a shuffle with thread {r.other_thread}, which is not there",
    13: lambda r: "has no memory for the stacks of its threads on this machine",
    12: lambda r: "does not end: its threads are stuck, or wait for something that never comes",
}


def diagnostic(report: Report, kernel: loop.Kernel, printed: Printed) -> Diagnostic:
    """A report, placed at the operation that the printed line came from."""
    op = printed.places.get(report.line, kernel)
    who = ""
    if report.line:
        who = f"thread {_position(report.thread)} of block {_position(report.block)} "
    text = f"kernel '{kernel.sym_name}' on the emulator: {who}{_TEXTS[report.kind](report)}"
    if report.count > 1:
        text += f" (and {report.count - 1} more at this line)"
    notes = [
        Diagnostic(f"line {line} of the printed text: {printed.line(line)}", severity="note")
        for line in (report.line, report.other_line) if line
    ]  # fmt: skip
    return Diagnostic(f"'{op.op_name}': {text}", op.location, notes=notes)


def _position(at: ctypes.Array[ctypes.c_int]) -> str:
    return f"({', '.join(str(v) for v in at)})"
