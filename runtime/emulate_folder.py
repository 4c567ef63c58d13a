"""One call on the emulator as a C++ program: `stepwell emit FILE --emulate FOLDER`.

The folder holds the printed kernels, the emulator, the inputs, and a `main.cpp` that launches what the call
launched. A plain `g++` builds it and gdb steps through it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np

from ..dialects import loop
from ..ir.diagnostics import Diagnostic, IRError
from ..lowering.emulate.printer import FOLDER, Printed, print_emulated
from ..lowering.names import comment
from .emulate import Call, extent, stack_bytes

COPIED = ("emulator.h", "emulator.cpp", "replay.h")
_MAIN = """// {title}
// Build and run it in this folder:
//     g++ -g *.cpp -o emulated && ./emulated
// With -DSW_EMU_PLAIN nothing is checked. In gdb: break {first} if sw_emu_self->linear == 3
#include "replay.h"

{entries}
static const std::vector<sw_place> places = {{
{places}}};

int main() {{
{memories}    int faults = 0;
{launches}{results}    return faults != 0;
}}
"""
_CHECKED = "#ifndef SW_EMU_PLAIN\n#define SW_EMU_CHECKED\n#endif\n"


@attrs.define
class Memory:
    """An array of the call; `content` is what an input held when it was first seen, None for one that kernels write."""

    number: int
    name: str
    array: np.ndarray
    content: bytes | None
    valid: np.ndarray | None

    @property
    def variable(self) -> str:
        return f"m{self.number}"

    def files(self) -> dict[str, bytes]:
        """Its data, by file name."""
        made = {} if self.content is None else {f"{self.variable}.bin": self.content}
        return made if self.valid is None else {**made, f"{self.variable}.valid": self.valid.tobytes()}

    def declaration(self) -> str:
        low, high, _ = extent(self.array)
        data = "nullptr" if self.content is None else quoted(f"{self.variable}.bin")
        valid = "nullptr" if self.valid is None else quoted(f"{self.variable}.valid")
        places = f"{self.array.itemsize}, {low}, {high}"
        return f"    sw_memory {self.variable}({quoted(self.name)}, {data}, {valid}, {places});\n"


def quoted(text: str) -> str:
    """A C string: printable ASCII, all else as octal escapes."""
    plain = "".join(
        chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in text.encode("utf-8", "surrogateescape")
    )
    return f'"{plain}"'


class Recording:
    """The launches of a call, and the memory they use."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.memories: dict[object, Memory] = {}

    def note(self, call: Call) -> None:
        """Keep a launch, and what its inputs hold."""
        self.calls.append(call)
        for array, argument in zip(call.arrays, call.kernel.buffers, strict=True):
            key = self._key(array)
            if key not in self.memories:
                self.memories[key] = _memory(len(self.memories), argument.hint or "buffer", array)

    def _key(self, array: np.ndarray) -> object:
        """Views of what kernels write share its memory; an input is what its strides make of it."""
        start = array.__array_interface__["data"][0]
        return start if _writable(array) else (start, array.shape, array.strides)

    def memory(self, array: np.ndarray) -> Memory:
        """The memory of an array of a launch."""
        return self.memories[self._key(array)]

    def result(self, array: np.ndarray) -> Memory | None:
        """The memory that a kernel wrote a result to; None where the result is an argument."""
        return self.memories.get(array.__array_interface__["data"][0])

    @property
    def kernels(self) -> list[loop.Kernel]:
        """Those that were launched, once each."""
        return list({c.kernel.sym_name: c.kernel for c in self.calls}.values())


def _writable(array: np.ndarray) -> bool:
    return getattr(array, "written", None) is not None


def _memory(number: int, name: str, array: np.ndarray) -> Memory:
    if _writable(array):
        return Memory(number, name, array, None, None)
    low, high, valid = extent(array)
    lowest = array[tuple(slice(-1, None) if s < 0 else slice(0, 1) for s in array.strides)]
    span = np.lib.stride_tricks.as_strided(lowest, (high - low,), (array.itemsize,))
    return Memory(number, name, array, span.tobytes(), valid)


def write_folder(folder: str, title: str, recorded: Recording, results: Sequence[np.ndarray]) -> None:
    """Write the program, whole or not at all; IRError where the folder holds something already."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise IRError(f"--emulate {folder}: exists and is not an empty folder")
    if not recorded.calls:
        raise IRError("the call launches no kernel: nothing to emulate")
    printed = print_emulated(recorded.kernels)
    texts = {"kernels.cpp": _CHECKED + printed.source, "main.cpp": _main(title, recorded, printed, results)}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as place:
            made = Path(place, "folder")
            made.mkdir()
            _fill(made, texts, recorded)
            if target.exists():
                target.rmdir()
            os.replace(made, target)
    except OSError as error:  # which names what lies beside the folder
        raise OSError(error.errno, error.strerror or str(error), folder) from None


def _fill(folder: Path, texts: Mapping[str, str], recorded: Recording) -> None:
    for name, text in texts.items():
        Path(folder, name).write_text(text, encoding="utf-8")
    for name in COPIED:
        shutil.copyfile(FOLDER / name, folder / name)
    for memory in recorded.memories.values():
        for name, data in memory.files().items():
            Path(folder, name).write_bytes(data)


def _main(title: str, recorded: Recording, printed: Printed, results: Sequence[np.ndarray]) -> str:
    names = list(printed.names.values())
    return _MAIN.format(
        title=comment(title), first=names[0], places=_places(printed),
        entries="".join(f'extern "C" void sw_entry_{n}(const sw_emu_argument *);\n' for n in names),
        memories="".join(m.declaration() for m in recorded.memories.values()),
        launches="".join(_launch(c, recorded, printed.names[c.kernel.sym_name]) for c in recorded.calls),
        results="".join(_result(n, r, recorded) for n, r in enumerate(results)),
    )  # fmt: skip


def _places(printed: Printed) -> str:
    """The IR of each printed line, in the numbering of the folder's file."""
    before = _CHECKED.count("\n")
    made = []
    for line, op in printed.places.items():
        place = Diagnostic("", op.location).place
        where = f"'{op.op_name}'" + (f" at {place.file}:{place.line}:{place.column}" if place else "")
        made.append(f"    {{{line + before}, {quoted(where)}}},\n")
    return "".join(made)


def _launch(call: Call, recorded: Recording, name: str) -> str:
    memories = [recorded.memory(a) for a in call.arrays]
    arguments = ", ".join([*(f"&{m.variable}.buffer" for m in memories), *(f"{v}ll" for v in call.scalars)])
    written = ", ".join(dict.fromkeys(f"&{m.variable}" for m in memories if m.content is None))
    grid, block = (", ".join(map(str, sizes)) for sizes in (call.grid, call.kernel.block))
    shared = f"{call.kernel.dynamic_shared}, {stack_bytes(call.kernel)}"
    return (f"    faults += sw_replay({quoted(name)}, sw_entry_{name}, {{{arguments}}},\n"
            f"                        {{{grid}}}, {{{block}}}, {shared}, {{{written}}}, places);\n")  # fmt: skip


def _result(number: int, result: np.ndarray, recorded: Recording) -> str:
    memory = recorded.result(result)
    return "" if memory is None else f'    faults += {memory.variable}.save("result{number}.bin");\n'
