"""Passes and pipelines.

    @attrs.define
    class Amp(Pass):
        \"\"\"Run what may run in low precision in `dtype`; signatures stay.\"\"\"
        name = "amp"
        dtype: FloatType = f16          # options are fields
        keep: tuple[str, ...] = ()

        def run(self, module): ...

    PassManager.parse("canonicalize,amp{dtype=f16 keep=exp,softmax},cse").run(module)

A class that is defined with a `name` is registered in `PASSES`. Options are bool, int, float, str, an enum, a
Literal, a type of the IR, a tuple of such, or one of these or None; they are separated by spaces, values may
hold commas, and `-` and `_` are the same in their names. MLIR's `builtin.module(func.func(cse))` is
understood: the passes inside run on each such operation. Text that is wrong is an IRError with its place in
the pipeline."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TextIO

import attrs

from .attributes import FileLoc
from .core import Operation
from .diagnostics import Diagnostic, IRError, remember_source
from .pass_options import OptionError, near, option_fields, option_text, option_value

PASSES: dict[str, type[Pass]] = {}
FILE = "<pipeline>"


class Pass:
    """A transformation of one operation and what is nested in it. Subclasses are attrs classes with a
    docstring."""

    name: ClassVar[str] = ""
    anchor: ClassVar[str | None] = "builtin.module"  # the operation that it runs on; None: any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.name:
            PASSES[cls.name] = cls

    def run(self, module: Any) -> None:
        """Change `module` in place; raise IRError where the input is wrong."""
        raise NotImplementedError

    def __str__(self) -> str:
        """The text that `PassManager.parse` reads back: the name and the options that differ from their
        defaults."""
        return self.name + option_text(self)


@attrs.define
class Nested:
    """Passes that run on each operation named `anchor` directly inside the operation at hand."""

    anchor: str
    items: list[Pass | Nested] = attrs.field(factory=list)

    def __str__(self) -> str:
        return f"{self.anchor}({','.join(map(str, self.items))})"


# ---------------------------------------------------------------- timing


@attrs.define
class Timing:
    """Wall time by pass, as a tree."""

    label: str = "total"
    seconds: float = 0.0
    children: list[Timing] = attrs.field(factory=list)

    @contextmanager
    def scope(self, label: str) -> Iterator[Timing]:
        """Measure what runs inside as an entry below this one; equal labels next to each other add up."""
        last = self.children[-1] if self.children else None
        entry = last if last is not None and last.label == label else Timing(label)
        if entry is not last:
            self.children.append(entry)
        start = time.perf_counter()
        try:
            yield entry
        finally:
            entry.seconds += time.perf_counter() - start

    def report(self) -> str:
        """The tree as a table: seconds, share of the total, name."""
        total = self.seconds or sum(c.seconds for c in self.children)
        rows = ["  seconds  share  pass"]
        stack = [(self, 0)]
        while stack:
            entry, depth = stack.pop()
            seconds = entry.seconds if depth else total
            rows.append(f"{seconds:9.4f} {seconds / total if total else 0:6.1%}  {'  ' * depth}{entry.label}")
            stack += [(child, depth + 1) for child in reversed(entry.children)]
        return "\n".join(rows)


# ---------------------------------------------------------------- running


@attrs.define
class PassManager:
    """A pipeline: passes in order, some for nested operations."""

    items: list[Pass | Nested] = attrs.field(factory=list)

    @staticmethod
    def parse(text: str) -> PassManager:
        """Read a pipeline. IRError with a place, and the nearest names, for anything unknown."""
        return PassManager(_Reader(text).read())

    def __str__(self) -> str:
        return ",".join(map(str, self.items))

    def run(
        self, module: Operation, verify_each: bool = True, print_after_all: TextIO | None = None,
        timing: Timing | None = None, observers: Sequence[Observer] = (),
    ) -> None:  # fmt: skip
        """Run the passes on `module`, verifying before the first and after each, printing to
        `print_after_all`
        after each. A pass that leaves IR that does not verify is named in the error."""
        _Run(verify_each, print_after_all, observers).run(self.items, module, timing or Timing())


class Observer:
    """Is told of each pass; subclasses check, print or record."""

    def before(self, step: Pass, op: Operation) -> None:
        """Called before `step` runs on `op`."""

    def after(self, step: Pass, op: Operation) -> None:
        """Called after `step` has run on `op`."""


class _Run:
    def __init__(self, verify_each: bool, stream: TextIO | None, observers: Sequence[Observer]) -> None:
        self.verify_each, self.stream, self.observers = verify_each, stream, observers

    def run(self, items: Sequence[Pass | Nested], op: Operation, timing: Timing) -> None:
        if self.verify_each:
            with timing.scope("verify"):
                _verify(op)
        self._items(items, op, timing)

    def _items(self, items: Sequence[Pass | Nested], op: Operation, timing: Timing) -> None:
        for item in items:
            if isinstance(item, Pass):
                self._pass(item, op, timing)
                continue
            with timing.scope(item.anchor) as inner:
                for nested in _children(op, item.anchor):
                    self._items(item.items, nested, inner)

    def _pass(self, step: Pass, op: Operation, timing: Timing) -> None:
        if step.anchor is not None and op.op_name != step.anchor:
            raise IRError(f"pass '{step.name}' runs on '{step.anchor}', not on '{op.op_name}'", op.location)
        for observer in self.observers:
            observer.before(step, op)
        with timing.scope(step.name):
            try:
                step.run(op)
            except Exception as error:
                error.add_note(f"in pass '{step}'")
                raise
        if self.stream is not None:
            self.stream.write(f"// ----- after {step} -----\n{op}\n")
        if self.verify_each:
            self._verify_after(step, op, timing)
        for observer in self.observers:
            observer.after(step, op)

    def _verify_after(self, step: Pass, op: Operation, timing: Timing) -> None:
        with timing.scope("verify"):
            try:
                _verify(op)
            except IRError as error:
                note = Diagnostic(f"the IR was legal before pass '{step}'", severity="note")
                error.diagnostics[0].notes.append(note)
                raise IRError(error.diagnostics) from None


def _verify(op: Operation) -> None:
    from .verifier import verify

    verify(op)


def _children(op: Operation, anchor: str) -> list[Operation]:
    inside = (inner for region in op.regions for block in region.blocks for inner in block.ops)
    return [inner for inner in inside if anchor in ("any", inner.op_name)]


def describe_passes() -> str:
    """All passes: name, options with their defaults, and what they do."""
    rows = []
    for name, cls in sorted(PASSES.items()):
        options = [f"{field.name.replace('_', '-')}={_default(field)}" for field in option_fields(cls).values()]
        rows.append(f"{name}{'{' + ' '.join(options) + '}' if options else ''}")
        rows += [f"    {line}" for line in inspect.cleandoc(cls.__doc__ or "").splitlines()]
    return "\n".join(rows)


def _default(field: attrs.Attribute[Any]) -> str:
    value = field.default
    return ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


# ---------------------------------------------------------------- reading a pipeline

_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_ANCHORS = {"module": "builtin.module", "func": "func.func"}


class _Reader:
    """Reads `a,b{x=1},builtin.module(func.func(c))`; nested parentheses are a stack of lists."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        remember_source(FILE, text)

    def error(self, message: str, at: int | None = None, notes: Sequence[str] = ()) -> IRError:
        at = self.at if at is None else at
        line = self.text.count("\n", 0, at) + 1
        return IRError(message, FileLoc(FILE, line, at - (self.text.rfind("\n", 0, at) + 1) + 1), notes)

    def read(self) -> list[Pass | Nested]:
        top = Nested("")
        open_lists, starts = [top], [0]
        if self._peek():
            self._sequence(open_lists, starts)
        if len(open_lists) > 1:
            raise self.error(f"expected ')' to close '{open_lists[-1].anchor}('", starts[-1])
        alone = top.items[0] if len(top.items) == 1 else None
        return alone.items if isinstance(alone, Nested) and alone.anchor == "builtin.module" else top.items

    def _sequence(self, open_lists: list[Nested], starts: list[int]) -> None:
        """Items and the marks between them, to the end of the text."""
        comma: int | None = None
        while True:
            if self._opens(open_lists, starts, comma):
                if self._peek() != ")":
                    continue
            while self._peek() == ")":
                if len(open_lists) == 1:
                    raise self.error("')' without '('")
                self.at += 1
                open_lists.pop(), starts.pop()
            if self._peek() == "":
                return
            if self._peek() != ",":
                raise self.error("expected ',' or ')'" if len(open_lists) > 1 else "expected ',' or the end")
            comma = self.at
            self.at += 1

    def _opens(self, open_lists: list[Nested], starts: list[int], comma: int | None) -> bool:
        """Read one pass, or the `anchor(` of a list: then True."""
        self._peek()
        start, found = self.at, _NAME.match(self.text, self.at)
        if found is None:
            trailing = comma is not None and self._peek() in ("", ")")
            raise self.error("expected a pass after ','" if trailing else "expected the name of a pass",
                             comma if trailing else None)  # fmt: skip
        self.at = found.end()
        if self._peek() == "(":
            self.at += 1
            nested = Nested(_ANCHORS.get(found[0], found[0]))
            open_lists[-1].items.append(nested)
            open_lists.append(nested)
            starts.append(start)
            return True
        open_lists[-1].items.append(self._pass(found[0], start))
        return False

    def _peek(self) -> str:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _pass(self, name: str, start: int) -> Pass:
        cls = PASSES.get(name)
        if cls is None:
            raise self.error(f"unknown pass '{name}'{near(name, PASSES)}", start,
                             [f"the passes are: {', '.join(sorted(PASSES))}"])  # fmt: skip
        given = self._options(name) if self._peek() == "{" else []
        values: dict[str, Any] = {}
        for option, value, at in given:
            key = self._option_name(cls, option, at)
            if key in values:
                raise self.error(f"option '{option}' of pass '{name}' is given twice", at)
            try:
                values[key] = option_value(option_fields(cls)[key], value)
            except OptionError as error:
                raise self.error(f"option '{option}' of pass '{name}' {error}", at) from None
        return cls(**values)

    def _option_name(self, cls: type[Pass], option: str, at: int) -> str:
        fields = option_fields(cls)
        key = option.replace("-", "_")
        if key in fields:
            return key
        shown = [name.replace("_", "-") for name in fields]
        has = f"its options are: {', '.join(shown)}" if shown else f"pass '{cls.name}' has no options"
        raise self.error(f"unknown option '{option}' of pass '{cls.name}'{near(option, shown)}", at, [has])

    def _options(self, name: str) -> list[tuple[str, str | None, int]]:
        """(name, value, place) of each option in `{...}`; brackets and quotes protect spaces."""
        start = self.at
        end = _closing(self.text, start)
        if end is None:
            raise self.error(f"expected '}}' after the options of '{name}'", start)
        self.at = end + 1
        return [_option(word, at) for word, at in _words(self.text, start + 1, end)]


_BRACKETS = {"{": "}", "[": "]", "<": ">", "(": ")"}


def _closing(text: str, start: int) -> int | None:
    """The place of the bracket that closes the one at `start`; text in quotes does not count."""
    depth, quoted = 0, ""
    for at in range(start, len(text)):
        char = text[at]
        if quoted:
            quoted = "" if char == quoted else quoted
        elif char in "\"'":
            quoted = char
        elif char in _BRACKETS:
            depth += 1
        elif char in _BRACKETS.values():
            depth -= 1
            if depth == 0:
                return at
    return None


def _words(text: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    """The blank-separated words of text[start:end], with their places."""
    at = start
    while at < end:
        if text[at].isspace():
            at += 1
            continue
        first = at
        while at < end and not text[at].isspace():
            skip = (
                _closing(text, at)
                if text[at] in _BRACKETS
                else text.find(text[at], at + 1)
                if text[at] in "\"'"
                else at
            )
            at = (at if skip is None or skip < 0 else skip) + 1
        yield text[first:at], first


def _option(word: str, at: int) -> tuple[str, str | None, int]:
    name, equals, value = word.partition("=")
    if len(value) > 1 and value[0] in "\"'{" and value[-1] == {"{": "}"}.get(value[0], value[0]):
        value = value[1:-1]
    return name, value if equals else None, at
