"""From text to operations: `parse_module`, `parse_file`, `parse_type`, `parse_attribute`.

The grammar (syntax.py) makes nodes; `_Builder` walks them and makes operations: scopes, forward references,
blocks. It does not recurse: each region is a generator, and one loop runs them.
"""

from __future__ import annotations

import difflib
import gc
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .attribute_parser import Scope, loc_text
from .attributes import Attribute, DictAttr, FunctionType, Location, Type
from .core import Block, Operation, Region, UnregisteredOp, Value
from .definition import without_defaults
from .diagnostics import Diagnostic, IRError, Source, keep_source, remember_source
from .dims import parse_dim
from .item_parser import ItemParser, Region_
from .lexer import SHORT_NAMES, Tok, blank_comments, decode_source
from .literals import InnerError
from .module import ModuleOp, empty_module
from .registry import DIALECTS, OPERATIONS, IsolatedFromAbove
from .syntax import RegionNode, Tail, parse_file_text
from .value_names import Forward, ValueNames, hint_of

__all__ = ["parse_attribute", "parse_dim", "parse_file", "parse_module", "parse_type"]

_VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_LARGE = 1 << 16  # characters; below, the garbage collector is not worth stopping
_MAX_ERRORS = 200  # of one text; the reading stops after as many
_NOTHING: Mapping[str, Attribute] = {}
Work = Generator[Any, None, None]


def parse_module(
    text: str, file: str = "<text>", allow_unregistered: bool = False, recover: bool = True
) -> Operation:
    """The module of a text. Several operations, or one that is not a module, are wrapped in one. Raises
    IRError: with all errors that were found, or with `recover=False` the first."""
    source = Source(file, text)
    if not text.isascii():
        _check_encoding(source)
    keep_source(file, text)
    with _collector_stopped(len(text) > _LARGE):
        return _Builder(source, allow_unregistered, recover).module()


def _check_encoding(source: Source) -> None:
    try:
        source.text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise source.error(error.start, "not a character: a lone surrogate") from None


def parse_file(path: str | Path, allow_unregistered: bool = False, recover: bool = True) -> Operation:
    """As `parse_module`, of a file."""
    text = decode_source(Path(path).read_bytes(), str(path))
    return parse_module(text, str(path), allow_unregistered, recover)


def parse_type(text: str) -> Type:
    """`tensor<[m, n], f16>`"""
    return _parse("type", text)  # type: ignore[no-any-return]


def parse_attribute(text: str) -> Attribute:
    """`1.5 : f32`, `#arith.overflow<none>`, `[1, 2]`, ..."""
    return _parse("attribute", text)  # type: ignore[no-any-return]


def _parse(start: str, text: str) -> Any:
    try:
        return Scope().read(start, blank_comments(text))
    except InnerError as error:
        raise Source("<text>", text).error(error.offset, error.message) from None


@contextmanager
def _collector_stopped(stop: bool) -> Iterator[None]:
    stop = stop and gc.isenabled()
    if stop:
        gc.disable()
    try:
        yield
    finally:
        if stop:
            gc.enable()


class _Builder(ValueNames):
    """The state of reading one text."""

    def __init__(self, source: Source, allow_unregistered: bool, recover: bool) -> None:
        super().__init__(source)
        self.text = blank_comments(source.text)
        self.allow_unregistered = allow_unregistered
        self.recover = recover
        self.scope = Scope()
        self.errors: list[IRError] = []
        self.blocks: dict[str, Block] = {}
        self.undefined: dict[str, int] = {}  # blocks that were only referred to
        self.deferred: list[Region_] = []
        self.dialects = ["builtin"]
        self.classes: dict[str, type[Operation]] = {}
        self.signatures: dict[str, FunctionType] = {}
        self.dictionaries: dict[Any, Any] = {}

    # -- the whole

    def module(self) -> Operation:
        try:
            nodes = parse_file_text(self.text, self.source, self.report)
            wrapper = empty_module()
            self._aliases(nodes)
            self._run(self._top(nodes, wrapper.body))
        except IRError as error:
            self.errors.append(error)
        if self.errors:
            raise self._all_errors()
        first = wrapper.body.first
        if isinstance(first, ModuleOp) and first.next is None:
            first.detach()
            return first
        wrapper.location = self.source.location(0)
        return wrapper

    def _all_errors(self) -> IRError:
        remember_source(self.source.file, self.source.text)
        found = [d for error in self.errors for d in error.diagnostics]
        found.sort(key=lambda d: (d.place.line, d.place.column) if d.place else (0, 0))
        unique: list[Diagnostic] = []
        for diagnostic in found:
            if diagnostic not in unique[-1:]:
                unique.append(diagnostic)
        return IRError(unique if self.recover else unique[:1])

    def _aliases(self, nodes: list[Any]) -> None:
        tokens = [n for n in nodes if type(n) is Tok and n.type == "ALIAS"]
        for token in tokens:
            name, _, value = token.text.partition("=")
            self._at(token, self.scope.define, name.strip(), value)
        for token in tokens:  # each once and in order: long chains are not followed from their end
            self._at(token, self.scope.alias, token.text.partition("=")[0].strip(), 0)

    def _at(self, token: Tok, action: Callable[..., Any], *arguments: Any) -> None:
        try:
            action(*arguments)
        except InnerError as error:
            self.report(self.error(token.start, error.message))

    def _run(self, work: Work) -> None:
        stack = [work]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(inner)

    def _top(self, nodes: list[Any], block: Block) -> Work:
        yield from self._ops([n for n in nodes if type(n) is not Tok or n.type != "ALIAS"], block)
        for forward in self.forwards.values():
            meant = forward.meant or self._meant(forward.key, self.values)
            self.report(self.error(forward.offset, self._undeclared(forward.key, meant)))

    def report(self, error: IRError) -> None:
        if not self.recover or len(self.errors) >= _MAX_ERRORS:
            raise error
        self.errors.append(error)

    def read(self, start: str, text: str, offset: int) -> Any:
        """The value of the text of a token that stands at `offset`."""
        try:
            return self.scope.read(start, text)
        except InnerError as error:
            raise self.error(offset + error.offset, error.message) from None

    # -- operations

    def _ops(self, nodes: list[Any], block: Block) -> Work:
        for node in nodes:
            if type(node) is Tok:
                self._not_an_operation(node)
                continue
            try:
                op = self._generic(*node) if node[1].type == "GENERIC" else self._custom(*node)
                block.append(op)
                if self.deferred:
                    regions, self.deferred = self.deferred, []
                    self.dialects.append(getattr(op, "default_dialect", ""))
                    isolated = op.definition.has(IsolatedFromAbove)
                    for region in regions:
                        yield self._region(region, isolated)
                    self.dialects.pop()
                if node[0] is not None:
                    self._define_results(op, node[0])
            except IRError as error:
                self.deferred = []
                self.report(error)
                if node[0] is not None:
                    self._define_unknown(node[0])

    def _generic(self, results: Tok | None, head: Tok, tail: Tail) -> Operation:
        _, name, rest = head.text.split('"', 2)
        cls = self.classes.get(name) or self._class_of(name, head)
        text = tail.type.text
        signature = self.signatures.get(text)
        if signature is None:
            skip = len(text) - len(text[1:].lstrip())
            signature = self.signatures[text] = self.read("function", text[skip:], tail.type.start + skip)
        operands: list[Value] = []
        if len(rest) > 2:
            keys = _VALUE.findall(rest)
            if len(keys) != len(signature.inputs):
                raise self._count_error(keys, signature, tail.type)
            known = self.values
            for key, type in zip(keys, signature.inputs):
                value = known.get(key)
                if value is None or value.type is not type:
                    value = self.use(key, type, self._operand_offset(head, len(operands)))
                operands.append(value)
        elif signature.inputs:
            raise self._count_error((), signature, tail.type)
        properties: Any = ()
        attributes: Any = ()
        if tail.properties is not None or tail.attributes is not None:
            properties, attributes = self._attributes(cls, tail)
        regions: Any = [self._deferred_region(node) for node in tail.regions] if tail.regions else ()
        successors: Any = [self.block(t.text, t.start) for t in tail.successors] if tail.successors else ()
        location: Any = (self.source, head.start)
        if tail.location is not None:
            location = self.location(tail.location)
        if cls is UnregisteredOp:
            return UnregisteredOp(
                name, operands, signature.results, properties, attributes, regions, successors, location
            )
        return cls(operands, signature.results, properties, attributes, regions, successors, location)

    def _count_error(self, keys: Any, signature: FunctionType, token: Tok) -> IRError:
        offset = token.start + token.text.index("(")
        plural = "" if len(keys) == 1 else "s"
        return self.error(
            offset, f"expected {len(keys)} operand type{plural}  but had {len(signature.inputs)}"
        )

    def _operand_offset(self, head: Tok, position: int) -> int:
        found = [m.start() for m in _VALUE.finditer(head.text, head.text.index("(", head.text.index('"', 1)))]
        return head.start + found[position]

    def _class_of(self, name: str, head: Tok) -> type[Operation]:
        cls = OPERATIONS.get(name)
        if cls is None:
            self._check_unregistered(name, head)
            cls = UnregisteredOp
        self.classes[name] = cls
        return cls

    def _check_unregistered(self, name: str, head: Tok) -> None:
        dialect = name.partition(".")[0]
        known = DIALECTS.get(dialect)
        if known is not None and not known.open and known.operations:
            raise self.error(
                head.start, f"unregistered operation '{name}' found in dialect ('{dialect}') that does "
                             f"not allow unknown operations{suggestion(name)}")  # fmt: skip
        if not self.allow_unregistered and not (known and known.open):
            raise self.error(
                head.start,
                f"operation being parsed with an unregistered dialect: '{name}'. If this is intended, allow "
                f"unregistered dialects (--allow-unregistered-dialect){suggestion(name)}",
            )

    def _attributes(self, cls: type[Operation], tail: Tail) -> tuple[Any, Any]:
        """Properties and discardable attributes. Operations with equal texts share one dictionary."""
        given, rest = tail.properties, tail.attributes
        key = cls, given and given.text, rest and rest.text
        found = self.dictionaries.get(key)
        if found is None:
            entries = self._dictionary(rest, 0) if rest is not None else _NOTHING
            inherent = cls.definition.attributes
            own = (
                {n: a for n, a in entries.items() if n in inherent}
                if given is None
                else self._dictionary(given, 1)
            )
            found = self.dictionaries[key] = (
                without_defaults(own, inherent), {n: a for n, a in entries.items() if n not in inherent},
            )  # fmt: skip
        return found  # type: ignore[no-any-return]

    def _dictionary(self, token: Tok, skip: int) -> Mapping[str, Attribute]:
        text = token.text[skip : len(token.text) - skip].strip()
        read: DictAttr = self.read("dictionary", text, token.start + skip)
        return dict(read.entries)

    def location(self, token: Tok) -> Location:
        text = loc_text(token.text)
        return self.read("location", text, token.end_pos - len(text) - 1)  # type: ignore[no-any-return]

    def _custom(self, results: Tok | None, head: Tok, items: list[Any]) -> Operation:
        cls = self._custom_class(head)
        location: Any = (self.source, head.start)
        if items and items[-1].type == "LOC":
            location = self.location(items.pop())
        return ItemParser(self, cls, head, items, location, results).operation()

    def _custom_class(self, head: Tok) -> type[Operation]:
        name = head.text
        for full in (name, f"{self.dialects[-1]}.{name}", SHORT_NAMES.get(name, "")):
            if full in OPERATIONS:
                return OPERATIONS[full]
        dialect = SHORT_NAMES.get(name, name).partition(".")[0]
        if dialect in DIALECTS:
            raise self.error(head.start, f"custom op '{name}' is unknown{suggestion(name)}")
        raise self.error(
            head.start, f"Dialect `{dialect}' not found for custom op '{name}' {suggestion(name)}"
        )

    # -- regions and blocks

    def _deferred_region(self, node: RegionNode) -> Region:
        made = Region_(Region(), node)
        self.deferred.append(made)
        return made.region

    def _region(self, work: Region_, isolated: bool) -> Work:
        saved = self.values, self.forwards, self.local, self.blocks, self.undefined
        self.local, self.blocks, self.undefined = [], {}, {}
        if isolated:
            self.values, self.forwards = {}, {}
        try:
            yield from self._blocks(work)
            for name, offset in self.undefined.items():
                self.report(self.error(offset, f"reference to an undefined block '{name}'"))
        except IRError as error:
            self.report(error)
        own_values, own_forwards, local = self.values, self.forwards, self.local
        if isolated:
            for forward in own_forwards.values():
                forward.meant = forward.meant or self._meant(forward.key, own_values)
        self.values, self.forwards, self.local, self.blocks, self.undefined = saved
        if isolated:
            self._leave_isolated(own_forwards)
        else:
            for key in local:
                own_values.pop(key, None)

    def _leave_isolated(self, forwards: dict[str, Forward]) -> None:
        """What the region does not define may still be named outside: the verifier says why that is wrong."""
        for forward in forwards.values():
            try:
                outer = self.use(forward.key, forward.type, forward.offset)
                if isinstance(outer, Forward):
                    outer.meant = outer.meant or forward.meant
                forward.replace_all_uses_with(outer)
            except IRError as error:
                self.report(error)

    def _blocks(self, work: Region_) -> Work:
        node, region = work.node, work.region
        if node.body or work.arguments or (work.entry and not node.blocks):
            entry = Block()
            region.append(entry)
            for argument in work.arguments:
                self._add_argument(entry, *argument)
            yield from self._ops(node.body, entry)
            if work.arguments and node.blocks and not node.body:
                raise self.error(node.blocks[0][0].start, "invalid block name in region with named arguments")
        for label, body in node.blocks:
            block = self._define_block(label)
            region.append(block)
            for name, offset, type, location in self.read("label", label.text, label.start):
                self._add_argument(block, name, label.start + offset, type, location)
            yield from self._ops(body, block)
        if work.terminator is not None and region.blocks:
            self._terminate(work, region.blocks[-1])

    def _terminate(self, work: Region_, block: Block) -> None:
        from .registry import Terminator

        last = block.last  # an unregistered operation may be a terminator
        if last is None or not (type(last) is UnregisteredOp or last.definition.has(Terminator)):
            assert work.terminator is not None
            block.append(work.terminator())

    def _add_argument(self, block: Block, name: str, offset: int, type: Type, location: Location | None) -> None:
        value = block.add_argument(type, None, location or (self.source, offset))
        if name:
            value.hint = hint_of(name)
            self.define(name, value, offset)

    def block(self, name: str, offset: int) -> Block:
        """The block that a successor names."""
        found = self.blocks.get(name)
        if found is None:
            found = self.blocks[name] = Block()
            self.undefined[name] = offset
        return found

    def _define_block(self, label: Tok) -> Block:
        name = label.text.partition("(")[0].rstrip(" \t\r\n:")
        block = self.blocks.get(name)
        if block is None:
            block = self.blocks[name] = Block()
        elif self.undefined.pop(name, None) is None:
            raise self.error(label.start, f"redefinition of block '{name}'")
        block.hint = name[1:]
        return block

    def _not_an_operation(self, token: Tok) -> None:
        if token.type == "ERROR":
            self._define_unknown(token)
        else:
            self.report(self.error(token.start, "aliases are defined at the top of a file"))


def suggestion(name: str) -> str:
    """` (did you mean 'nd.add'?)`, or nothing."""
    near = difflib.get_close_matches(name, OPERATIONS, 1, 0.75)
    return f" (did you mean '{near[0]}'?)" if near else ""
