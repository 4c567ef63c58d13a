"""From operations to text: `print_operation`, `print_module`. Does not recurse on nesting.

A whole region is named when it is entered, as MLIR does: hints are kept and made unique, other values are
numbered, entry block arguments are %arg0, %arg1, ...; names are free again where the region ends.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any

import attrs

from .attributes import Attribute, FunctionType, Location, Type, attribute_text, bare, symbol_text, unit
from .core import Block, BlockArgument, Operation, Region, UnregisteredOp, Value
from .dims import Dim
from .lexer import SHORT_NAMES
from .registry import IsolatedFromAbove, Terminator

_SHORT = {full: short for short, full in SHORT_NAMES.items()}
_MAX_INDENT = 64  # levels; deeper ones would make the text quadratic in the depth
Work = Generator[Any, None, None]


def print_operation(op: Operation, generic: bool = False, locations: bool = False, hints: bool = True) -> str:
    """The text of an operation with everything in it, without a newline at its end. Without `hints` its
    results are numbered."""
    return Printer(generic, locations).text_of(op, hints)


def print_module(module: Operation, generic: bool = False, locations: bool = False) -> str:
    """The text of a file that holds `module`."""
    return print_operation(module, generic, locations) + "\n"


@functools.cache
def value_name(hint: str) -> str:
    """`%` and the hint, with what a name cannot hold replaced."""
    text = re.sub(r"[^A-Za-z0-9_$.\-]", "_", hint)
    return f"%{text}" if text and not text[0].isdigit() else f"%_{text}"


class _Texts(dict[Any, str]):
    """Texts of attributes and types, by identity."""

    def __init__(self, generic: bool) -> None:
        super().__init__()
        self.generic = generic

    def __missing__(self, attribute: Attribute) -> str:
        text = self[attribute] = attribute_text(attribute, self.generic)
        return text


class _Names(dict[Any, str]):
    """Names of values. Asked for one of outside what is printed, it makes one."""

    def __init__(self, unique: Callable[[str], str]) -> None:
        super().__init__()
        self.unique = unique

    def __missing__(self, value: Value) -> str:
        name = self[value] = self.unique(value_name(value.hint or "outer"))
        return name


@attrs.define
class _RegionPart:
    """A region in the output that is still to be written."""

    region: Region
    entry_arguments: bool
    terminator: bool
    empty_block: bool


class Printer:
    """What `print_items` writes to; see assembly.py for its calls."""

    def __init__(self, generic: bool = False, locations: bool = False) -> None:
        self.generic = generic
        self.locations = locations
        self.out: list[Any] = []
        self.texts = _Texts(generic)
        self.used: set[str] = set()
        self.added: list[str] = []  # names of the innermost region
        self._names = _Names(self._unique)
        self._blocks: dict[Block, str] = {}
        self._next_value = 0
        self._next_argument = 0
        self._pending = False
        self._dialects = ["builtin"]
        self._dictionaries: dict[Any, str] = {}  # by identity of what the operations hold
        self._defaults: dict[type[Operation], dict[str, Any]] = {}
        self._levels = 0

    def text_of(self, op: Operation, hints: bool = True) -> str:
        for index, result in enumerate(op.results):
            if hints:
                self._name_result(op, index, result)
            else:
                self._names[result] = f"%0#{index}" if len(op.results) > 1 else "%0"
        self._operation(op)
        stack = [self._regions(op, 0, "")] if self._pending else []
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(inner)
        return "".join(self.out)

    # -- names

    def _unique(self, name: str) -> str:
        used = self.used
        if name in used:
            number = 0
            while f"{name}_{number}" in used:
                number += 1
            name = f"{name}_{number}"
        used.add(name)
        self.added.append(name)
        return name

    def _numbered(self) -> str:
        while True:
            name = f"%{self._next_value}"
            self._next_value += 1
            if name not in self.used:
                return name

    def _name_result(self, op: Operation, index: int, result: Value) -> None:
        names, hint = self._names, result.hint
        if hint is None and index == 0:
            suggest = getattr(op, "asm_result_name", None)
            hint = suggest() if suggest is not None else None
        if hint is not None or index == 0:
            name = self._numbered() if hint is None else self._unique(value_name(hint))
            pack = index + 1 < len(op.results) and op.results[index + 1].hint is None
            names[result] = name + "#0" if pack else name
        else:
            base, _, number = names[op.results[index - 1]].rpartition("#")
            names[result] = f"{base}#{int(number) + 1}"

    def _name_region(self, region: Region) -> None:
        names, used = self._names, self.used
        for position, block in enumerate(region.blocks):
            self._blocks[block] = f"^bb{position}"
            for argument in block.arguments:
                names[argument] = self._argument_name(argument, position == 0)
            op = block.first
            while op is not None:
                results = op.results
                if len(results) == 1 and results[0].hint is not None:
                    name = value_name(results[0].hint)
                    if name in used:
                        name = self._unique(name)
                    else:
                        used.add(name)
                        self.added.append(name)
                    names[results[0]] = name
                else:
                    for index, result in enumerate(results):
                        self._name_result(op, index, result)
                op = op.next

    def _hides_names(self, op: Operation) -> bool:
        """Whether names outside may be used again inside. In generic form only for the operations that MLIR, too,
        knows to be isolated: it takes those of our dialects for ordinary ones."""
        known = not self.generic or op.op_name.startswith(("builtin.", "func."))
        return known and op.definition.has(IsolatedFromAbove)

    def _name_entry_arguments(self, op: Operation) -> None:
        """Name them as entering the regions will: an operation may write them before."""
        saved = self.used, self.added, self._next_argument
        for region in op.regions:
            self.added = []
            if self._hides_names(op):
                self.used, self._next_argument = set(), 0
            for argument in region.blocks[0].arguments if region.blocks else ():
                self._names[argument] = self._argument_name(argument, True)
            self.used.difference_update(self.added)
            self.used, self.added, self._next_argument = saved

    def _argument_name(self, argument: BlockArgument, entry: bool) -> str:
        if argument.hint is not None:
            return self._unique(value_name(argument.hint))
        if not entry:
            return self._numbered()
        self._next_argument += 1
        return self._unique(f"%arg{self._next_argument - 1}")

    # -- operations and regions

    def _operation(self, op: Operation) -> None:
        """Writes `op`, its regions as parts that are still to be written."""
        out, results = self.out, op.results
        if results:
            out.append(self._names[results[0]] + " = " if len(results) == 1 else self._result_list(op))
        if self.generic or type(op) is UnregisteredOp:
            self._generic(op)
        else:
            self._custom_if_legal(op)
        if self.locations:
            out.append(f" {self.location_text(op.location)}")

    def _regions(self, op: Operation, begin: int, indent: str) -> Work:
        """Writes the regions among the output since `begin`."""
        self._pending = False
        out = self.out
        parts = out[begin:]
        del out[begin:]
        self._dialects.append(getattr(op, "default_dialect", ""))
        isolated = self._hides_names(op)
        for part in parts:
            if type(part) is _RegionPart:
                yield self._region(part, indent, isolated)
            else:
                out.append(part)
        self._dialects.pop()

    def _result_list(self, op: Operation) -> str:
        starts = [i for i, r in enumerate(op.results) if i == 0 or r.hint is not None]
        ends = [*starts[1:], len(op.results)]
        groups = [
            self._names[op.results[a]].removesuffix("#0") + (f":{b - a}" if b - a > 1 else "")
            for a, b in zip(starts, ends)
        ]
        return ", ".join(groups) + " = "

    def _custom_if_legal(self, op: Operation) -> None:
        """In custom form; an operation that its own printer cannot write, being illegal, in generic form."""
        begin = len(self.out)
        try:
            self._custom(op)
        except Exception:
            from .verifier import has_legal_fields

            if has_legal_fields(op):
                raise
            del self.out[begin:]
            self._generic(op)

    def _custom(self, op: Operation) -> None:
        name = op.name
        if name in _SHORT and name.startswith(self._dialects[-1] + "."):
            name = _SHORT[name]
        self.out.append(name)
        own = getattr(op, "print_items", None)
        if own is not None:
            if op.regions:
                self._name_entry_arguments(op)
            own(self)
        else:
            from .assembly import format_of

            format_of(type(op)).print(op, self)

    def _generic(self, op: Operation) -> None:
        names, texts, operands, results = self._names, self.texts, op.operands, op.results
        text = f'"{op.op_name}"({", ".join([names[v] for v in operands])})'
        if op.successors:
            text += f"[{', '.join([self._blocks.get(b, '^unknown') for b in op.successors])}]"
        text += self._properties(op)
        out = self.out
        if op.regions:
            out.append(text + " (")
            for index, region in enumerate(op.regions):
                if index:
                    out.append(", ")
                self.region(region, empty_block=True)
            text = ")"
        if op.attributes:
            text += " " + self._dictionary(op.attributes)
        if len(results) == 1 and not isinstance(results[0].type, FunctionType):
            outputs = texts[results[0].type]
        else:
            outputs = f"({', '.join([texts[v.type] for v in results])})"
        out.append(f"{text} : ({', '.join([texts[v.type] for v in operands])}) -> {outputs}")

    def _properties(self, op: Operation) -> str:
        """` <{...}>`: the properties, and the defaults of those that are absent."""
        defaults = self._defaults.get(type(op))
        if defaults is None:
            fields = op.definition.attributes.values()
            defaults = {f.name: f.default_attribute for f in fields if f.default is not None}
            self._defaults[type(op)] = defaults
        if not defaults:
            return f" <{self._dictionary(op.properties)}>" if op.properties else ""
        key = type(op), id(op.properties)
        text = self._dictionaries.get(key)
        if text is None:
            text = self._dictionaries[key] = f" <{self.entries_text({**defaults, **op.properties}.items())}>"
        return text

    def _dictionary(self, entries: Mapping[str, Attribute]) -> str:
        text = self._dictionaries.get(id(entries))
        if text is None:
            text = self._dictionaries[id(entries)] = self.entries_text(entries.items())
        return text

    def entries_text(self, entries: Iterable[tuple[str, Attribute]]) -> str:
        """`{a = 1, b}`, by name."""
        parts = [bare(n) if a is unit else f"{bare(n)} = {self.texts[a]}" for n, a in sorted(entries)]
        return f"{{{', '.join(parts)}}}"

    def _region(self, part: _RegionPart, indent: str, isolated: bool) -> Work:
        region, out = part.region, self.out
        saved = self.used, self.added, self._next_value, self._next_argument
        self.added = []
        if isolated:
            self.used, self._next_value, self._next_argument = set(), 0, 0
        self._name_region(region)
        predecessors = _predecessors(region)
        self._levels += 1
        inner = indent + "  " if self._levels < _MAX_INDENT else indent
        line = "\n" + inner
        out.append("{")
        for position, block in enumerate(region.blocks):
            if position or self._needs_label(part, block, predecessors):
                out.append(f"\n{indent}{self._label(block)}{_comment(predecessors.get(block, []), position)}")
            op = block.first
            while op is not None:
                if part.terminator or op.next is not None or not op.definition.has(Terminator):
                    out.append(line)
                    begin = len(out)
                    self._operation(op)
                    if self._pending:
                        yield self._regions(op, begin, inner)
                op = op.next
        out.append(f"\n{indent}}}")
        self._levels -= 1
        if not isolated:
            self.used.difference_update(self.added)
        self.used, self.added, self._next_value, self._next_argument = saved

    def _needs_label(self, part: _RegionPart, block: Block, predecessors: Mapping[Block, list[str]]) -> bool:
        if predecessors.get(block):
            return True
        if block.first is None and (part.empty_block or len(part.region.blocks) > 1):
            return True
        return part.entry_arguments and bool(block.arguments)

    def _label(self, block: Block) -> str:
        name = self._blocks[block]
        if block.arguments:
            parts = [self._argument(a) for a in block.arguments]
            return f"{name}({', '.join(parts)}):"
        return name + ":"

    def _argument(self, argument: BlockArgument) -> str:
        text = f"{self._names[argument]}: {self.texts[argument.type]}"
        return f"{text} {self.location_text(argument.location)}" if self.locations else text

    def location_text(self, location: Location) -> str:
        return f"loc({self.texts[location]})"

    # -- what print_items calls

    def write(self, *parts: str | Attribute) -> Printer:
        for part in parts:
            self.out.append(part if isinstance(part, str) else self.texts[part])
        return self

    def ends_with(self, *ends: str) -> bool:
        last = self.out[-1] or self.out[-2]
        return isinstance(last, str) and last.endswith(ends)

    def name(self, value: Value) -> str:
        return self._names[value]

    def names(self, values: Sequence[Value]) -> str:
        return ", ".join([self._names[v] for v in values])

    def symbol(self, name: str) -> Printer:
        self.out.append(symbol_text(name))
        return self

    def types(self, types: Sequence[Type]) -> Printer:
        self.out.append(", ".join([self.texts[t] for t in types]))
        return self

    def result_types(self, types: Sequence[Type]) -> Printer:
        alone = len(types) == 1 and not isinstance(types[0], FunctionType)
        text = ", ".join([self.texts[t] for t in types])
        self.out.append(text if alone else f"({text})")
        return self

    def function_type(self, inputs: Sequence[Type], results: Sequence[Type]) -> Printer:
        self.out.append(f"({', '.join([self.texts[t] for t in inputs])}) -> ")
        return self.result_types(results)

    def attr_dict(self, op: Operation, elide: Sequence[str] = (), keyword: str | None = None) -> Printer:
        """The attributes that are neither in `elide` nor at their default, with a blank before; or
        nothing."""
        if not op.properties and not op.attributes:
            return self
        fields = op.definition.attributes
        shown = [
            (name, value)
            for entries in (op.properties, op.attributes)
            for name, value in entries.items()
            if name not in elide and not (name in fields and value is fields[name].default_attribute)
        ]
        if shown:
            self.out.append(f" {keyword} " if keyword else " ")
            self.out.append(self.entries_text(shown))
        return self

    def region(
        self, region: Region, entry_arguments: bool = True, terminator: bool = True, empty_block: bool = False
    ) -> Printer:
        """`{...}`. `empty_block`: an empty only block gets a label, to tell it from no block."""
        self._pending = True
        self.out.append(_RegionPart(region, entry_arguments, terminator, empty_block))
        return self

    def argument(self, argument: BlockArgument, attributes: Mapping[str, Attribute] | None = None) -> Printer:
        """`%x: f32 {a = 1}`"""
        text = f"{self._names[argument]}: {self.texts[argument.type]}"
        if attributes:
            text += " " + self.entries_text(attributes.items())
        self.out.append(f"{text} {self.location_text(argument.location)}" if self.locations else text)
        return self

    def successor(self, block: Block, operands: Sequence[Value] = ()) -> Printer:
        self.out.append(self._blocks.get(block, "^unknown"))
        if operands:
            self.out.append(f"({self.names(operands)} : {', '.join([self.texts[v.type] for v in operands])})")
        return self

    def dims(self, dims: Sequence[Dim | None]) -> Printer:
        self.out.append(f"[{', '.join('?' if d is None else str(d) for d in dims)}]")
        return self


def _predecessors(region: Region) -> dict[Block, list[str]]:
    """The names of each block's predecessors; nothing for one block without a branch."""
    blocks = region.blocks
    if len(blocks) == 1 and (blocks[0].last is None or not blocks[0].last.successors):
        return {}
    found: dict[Block, list[str]] = {block: [] for block in blocks}
    for position, block in enumerate(blocks):
        for successor in dict.fromkeys(block.last.successors) if block.last is not None else ():
            if successor in found:
                found[successor].append(f"^bb{position}")
    return found


def _comment(names: list[str], position: int) -> str:
    """`  // pred: ^bb0`, as MLIR writes behind a label."""
    if not position:
        return ""
    if not names:
        return "  // no predecessors"
    return f"  // {'pred' if len(names) == 1 else f'{len(names)} preds'}: {', '.join(names)}"
