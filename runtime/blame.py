"""Errors of code that is not ours: dialects, passes and variants that were loaded with `--load`, or installed."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from types import FrameType

from ..ir.attributes import FileLoc
from ..ir.core import Operation
from ..ir.diagnostics import Diagnostic, IRError, remember_source

_OURS = __name__.partition(".")[0]
# What is called from our code, so that an error there says nothing of whose fault it is.
_LIBRARIES = frozenset(["attr", "attrs", "cupy", "importlib_metadata", "lark", "ml_dtypes", "numpy", "torch", "tqdm"])


def fault_of_extension(error: BaseException) -> IRError | None:
    """The error that tells the author of an extension what went wrong, and where in it; None where no code but
    ours was running."""
    frames = [(f, line) for f, line in _frames(error) if _is_extension(f)]
    if not frames:
        return None
    frame, line = frames[-1]
    path = frame.f_code.co_filename
    text = linecache.getline(path, line)
    remember_source(path, "".join(linecache.getlines(path)))
    place = FileLoc(path, line, len(text) - len(text.lstrip()) + 1)
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    notes = [Diagnostic(note, severity="note") for note in getattr(error, "__notes__", ())]
    op = next((op for f, _ in reversed(frames) if (op := _operation(f)) is not None), None)
    op = op or next((op for f, _ in reversed(list(_frames(error))) if (op := _operation(f)) is not None), None)
    if op is not None:
        notes.insert(0, Diagnostic(f"while '{op.op_name}' was worked on", op.location, "note"))
    notes.append(Diagnostic("STEPWELL_TRACEBACK=1 shows the whole way there", severity="note"))
    return IRError(f"in '{frame.f_code.co_qualname}': {message}", place, notes)


def _frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """Frames and their lines, the outermost first."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _is_extension(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__") or ""
    root = name.partition(".")[0]
    known = root in sys.stdlib_module_names or root in _LIBRARIES or root in (_OURS, "__main__", "")
    return not known and os.path.isfile(frame.f_code.co_filename)


def _operation(frame: FrameType) -> Operation | None:
    """The operation that a function works on: its `op`, its `self`, or another of its variables."""
    variables = frame.f_locals
    found = [variables.get(n) for n in ("op", "self")] + list(variables.values())
    return next((v for v in found if isinstance(v, Operation) and v.op_name != "builtin.module"), None)
