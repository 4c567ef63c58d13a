"""Errors that name a place: file, line, column, the source line and a caret."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence

import attrs

from .attributes import FileLoc, Location, OpaqueLoc, UnknownLoc, unknown

_SOURCES: dict[str, str] = {}  # file name -> text, so that a diagnostic can show the line


def remember_source(file: str, text: str) -> None:
    """Keep `text` so that diagnostics in `file` show their line."""
    _SOURCES[file] = text


def keep_source(file: str, text: str) -> None:
    """As `remember_source`, for diagnostics that come later. Texts that share a name which is no file's (`<text>`)
    are told apart by none of their locations: then no line is shown, rather than one of the wrong text."""
    if file.startswith("<") and _SOURCES.get(file, text) != text:
        text = ""
    remember_source(file, text)


def find_source(location: Location, pattern: re.Pattern[str]) -> Location | None:
    """Where the group `at` of `pattern` is first found from `location` on, in the kept text; None where it is not, or
    no text is kept."""
    text = _SOURCES.get(location.file) if isinstance(location, FileLoc) else None
    if text is None or not isinstance(location, FileLoc):
        return None
    starts = [0, *(i + 1 for i, char in enumerate(text) if char == "\n")]
    if not 0 < location.line <= len(starts):
        return None
    found = pattern.finditer(text, starts[location.line - 1] + location.column - 1)
    at = next((m.start("at") for m in found if m["at"] is not None), None)
    if at is None:
        return None
    line = bisect_right(starts, at)
    return FileLoc(location.file, line, at - starts[line - 1] + 1)


class Source:
    """A text that is being read: makes locations and errors from offsets into it."""

    __slots__ = ("_lines", "file", "text")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._lines: list[int] = []

    def location(self, offset: int) -> FileLoc:
        if not self._lines:
            self._lines = [0, *(i + 1 for i, char in enumerate(self.text) if char == "\n")]
        line = bisect_right(self._lines, offset)
        return FileLoc(self.file, line, offset - self._lines[line - 1] + 1)

    def error(self, offset: int, message: str, *notes: Diagnostic) -> IRError:
        remember_source(self.file, self.text)
        return IRError(message, self.location(offset), notes)


@attrs.define
class Diagnostic:
    """One message. `severity` is error, warning or note."""

    message: str
    location: Location = unknown
    severity: str = "error"
    notes: list[Diagnostic] = attrs.field(factory=list)

    @property
    def place(self) -> FileLoc | None:
        loc = self.location
        return loc if isinstance(loc, FileLoc) else loc.inner if isinstance(loc, OpaqueLoc) else None

    def render(self) -> str:
        """`f.mlir:3:7: error: message`, the source line and a caret, then the notes."""
        place = self.place
        head = f"{place.file}:{place.line}:{place.column}: " if place else ""
        lines = [f"{head}{self.severity}: {self.message}"]
        source = _SOURCES.get(place.file) if place else None
        if place and source:
            rows = source.split("\n")
            if 0 < place.line <= len(rows):
                row = rows[place.line - 1].rstrip("\r")
                start = max(0, place.column - 60) if len(row) > 200 else 0  # a long line is cut around the caret
                shown = row[start : start + 160]
                pad = "".join("\t" if c == "\t" else " " for c in row[start : place.column - 1])
                lines += [f"  {shown}", f"  {pad}^"]
        return "\n".join(lines + [note.render() for note in self.notes])

    def as_json(self) -> str:
        """One line of JSON: severity, message, file, line, column, notes."""
        return json.dumps(self._plain())

    def _plain(self) -> dict[str, object]:
        place = self.place
        where = {"file": place.file, "line": place.line, "column": place.column} if place else {}
        return {"severity": self.severity, "message": self.message, **where, "notes": [n._plain() for n in self.notes]}


class IRError(Exception):
    """An error in the input, to be shown to the user: one diagnostic or several."""

    status = 1  # that the driver exits with

    def __init__(
        self, message: str | list[Diagnostic], location: Location = unknown, notes: Sequence[str | Diagnostic] = ()
    ) -> None:
        if isinstance(message, str):
            made = [n if isinstance(n, Diagnostic) else Diagnostic(n, severity="note") for n in notes]
            message = [Diagnostic(message, location, notes=made)]
        self.diagnostics = message
        super().__init__("\n".join(d.render() for d in message))

    def at(self, location: Location) -> IRError:
        """The same error, placed at `location` where it had no place."""
        for diagnostic in self.diagnostics:
            if isinstance(diagnostic.location, UnknownLoc):
                diagnostic.location = location
        return IRError(self.diagnostics)
