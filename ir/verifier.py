"""Is IR legal? `verify` raises with all that is wrong, `verify_all` returns it.

Checked are, for each operation, its declared fields, its traits and its `verify_op`; for each region its
blocks, terminators and, walking the dominator tree with the set of values that are visible, dominance; for
each symbol table that names are defined once. Checks of a class are compiled once; a pair of class and types
is checked once. Nothing recurses on nesting.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from .attributes import Attribute, IntegerAttr, StringAttr
from .core import Block, BlockArgument, Operation, OpResult, Region, UnregisteredOp, Value
from .definition import SEGMENTS, Float, OpDefinition, _Field
from .diagnostics import Diagnostic, IRError
from .dominance import dominator_tree
from .pass_options import near
from .registry import OPERATIONS, Graph, IsolatedFromAbove, NoTerminator, SymbolTable, Terminator

Work = Generator[Any, None, None]


def verify(op: Operation) -> None:
    """Raise IRError, with a diagnostic for each fault of `op` and what is nested in it."""
    found = verify_all(op)
    if found:
        raise IRError(found)


def verify_all(op: Operation) -> list[Diagnostic]:
    """All faults of `op` and what is nested in it; empty when it is legal."""
    return _Verifier().all(op)


class _Class:
    """What is checked of every operation of a class."""

    def __init__(self, cls: type[Operation]) -> None:
        definition = cls.definition
        self.open = cls is UnregisteredOp
        self.definition = definition
        self.terminator = definition.has(Terminator)
        self.isolated = definition.has(IsolatedFromAbove)
        self.graph = self.open or definition.has(Graph)
        self.may_end = self.terminator or self.open
        self.needs_terminator = not (self.open or definition.has(NoTerminator))
        self.symbol_table = definition.has(SymbolTable)
        self.signatures: set[tuple[Any, ...]] = set()  # found legal in this run
        self.properties: dict[
            int, Mapping[str, Any]
        ] = {}  # likewise; held, so that an id stays that of one object
        self.closed = cls.discardable is not None
        self.memoised = not any(name in definition.attributes for name in SEGMENTS)
        traits = [t for t in definition.traits if t.verify is not None]
        self.type_checks: list[Any] = [t.verify for t in traits if t.types_only]
        self.checks: list[Any] = [t.verify for t in traits if not t.types_only]
        if cls.verify_op is not Operation.verify_op:
            self.checks.append(cls.verify_op)
        if getattr(cls, "check_inferred", False):
            self.checks.append(_check_inferred)
        self.counted = bool(definition.regions or definition.successors)


def _check_inferred(op: Operation) -> None:
    inferred = op.infer_types()  # type: ignore[attr-defined]
    for index, (result, type) in enumerate(zip(op.results, inferred)):
        if result.type is not type:
            raise op.error(
                f"inferred type '{type}' of result #{index}, but it is declared as '{result.type}'"
            )


class _Verifier:
    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self.visible: set[Value] = set()
        self.classes: dict[type[Operation], _Class] = {}

    def all(self, op: Operation) -> list[Diagnostic]:
        for value in op.operands:
            self.visible.add(value)
        self._check(op, self._class(type(op)))
        stack = [self._regions(op)]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(inner)
        return self.found

    def _class(self, cls: type[Operation]) -> _Class:
        found = self.classes.get(cls)
        if found is None:
            found = self.classes[cls] = _Class(cls)
        return found

    def _fault(self, op: Operation, message: str) -> None:
        self.found.append(Diagnostic(message, op.location))

    # -- one operation

    def _check(self, op: Operation, known: _Class) -> None:
        """The declared fields, traits and own check of `op`."""
        try:
            if not known.open:
                key = (len(op._operands), *[v.type for v in op._operands], *[v.type for v in op.results])
                if key not in known.signatures:
                    check_values(op, known.definition)
                    for check in known.type_checks:
                        check(op)
                    if known.memoised:
                        known.signatures.add(key)
                if known.closed and op.attributes:
                    check_names(op, op.attributes)
                if id(op.properties) not in known.properties:
                    if known.closed:
                        check_names(op, op.properties)
                    check_attributes(op, known.definition)
                    known.properties[id(op.properties)] = op.properties
                if known.counted or op.regions or op.successors:
                    check_counts(op, known.definition)
            for check in known.checks:
                check(op)
        except IRError as error:
            self.found.extend(error.at(op.location).diagnostics)
        except Exception:
            if not self.found:  # else it may rely on what was found to be wrong
                raise

    # -- regions

    def _regions(self, op: Operation) -> Work:
        known = self._class(type(op))
        if known.symbol_table:
            self._symbols(op)
        outside = self.visible
        if known.isolated:
            self.visible = set()
        for region in op.regions:
            yield from self._region(op, region, known)
        self.visible = outside

    def _region(self, op: Operation, region: Region, known: _Class) -> Work:
        blocks = region.blocks
        self._structure(op, blocks, known)
        if known.graph:
            added = [v for block in blocks for v in _values_of(block)]
            self.visible.update(added)
            for block in blocks:
                yield from self._block(block, known, None)
            self.visible.difference_update(added)
        elif len(blocks) == 1:
            added = []
            yield from self._block(blocks[0], known, added)
            self.visible.difference_update(added)
        elif blocks:
            yield from self._tree(blocks, known)

    def _tree(self, blocks: list[Block], known: _Class) -> Work:
        """Blocks in the order of their dominator tree; a block's values are visible in its subtree."""
        children = dominator_tree(blocks[0])
        stack: list[Any] = [blocks[0]]
        while stack:
            block = stack.pop()
            if isinstance(block, list):
                self.visible.difference_update(block)
                continue
            added: list[Value] = []
            stack.append(added)
            yield from self._block(block, known, added)
            stack.extend(children.get(block, ()))
        unreachable = [b for b in blocks if b not in children]
        if unreachable:  # everything dominates what is never reached
            added = [v for block in blocks for v in _values_of(block)]
            self.visible.update(added)
            for block in unreachable:
                yield from self._block(block, known, None)
            self.visible.difference_update(added)

    def _block(self, block: Block, parent: _Class, added: list[Value] | None) -> Work:
        """The operations of a block. `added` gains the values that it defines, as they become visible;
        without it they are visible already."""
        visible, classes = self.visible, self.classes
        if added is not None:
            added += block.arguments
            visible.update(block.arguments)
        last = block.last
        op = block.first
        while op is not None:
            known = classes.get(type(op)) or self._class(type(op))
            for value in op._operands:
                if value not in visible:
                    self._invisible(op, value)
            if known.terminator and op is not last:
                self._fault(op, f"'{op.op_name}' op must be the last operation in the parent block")
            self._check(op, known)
            if op.regions:
                yield self._regions(op)
            if added is not None:
                for result in op.results:
                    visible.add(result)
                    added.append(result)
            op = op.next

    def _invisible(self, op: Operation, value: Value) -> None:
        if not _in_scope(op, value):
            message = f"'{op.op_name}' op using value defined outside the region"
        else:
            message = f"operand #{op.operands.index(value)} does not dominate this use"
        diagnostic = Diagnostic(message, op.location)
        if isinstance(value, OpResult):
            diagnostic.notes.append(Diagnostic("operand defined here", value.op.location, "note"))
        self.found.append(diagnostic)

    def _structure(self, op: Operation, blocks: list[Block], known: _Class) -> None:
        """Terminators, and no branch to the entry block or out of the region."""
        for block in blocks:
            last = block.last
            if last is None:
                if known.needs_terminator:
                    self._fault(op, f"'{op.op_name}' op: empty block: expect at least a terminator")
                continue
            if known.needs_terminator and not self._class(type(last)).may_end:
                self._fault(last, f"{_does_not_end(op)}: block with no terminator, has {_text(last)}")
            for successor in last.successors:
                if successor is blocks[0]:
                    self._fault(op, "entry block of region may not have predecessors")
                elif successor.parent is not block.parent:
                    self._fault(last, "branching to block of a different region")

    def _symbols(self, op: Operation) -> None:
        seen: dict[str, Operation] = {}
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    name = inner.properties.get("sym_name") or inner.attributes.get("sym_name")
                    if not isinstance(name, StringAttr):
                        continue
                    first = seen.setdefault(name.value, inner)
                    if first is not inner:
                        self.found.append(Diagnostic(
                            f"redefinition of symbol named '{name.value}'", inner.location,
                            notes=[Diagnostic("see existing symbol definition here", first.location, "note")],
                        ))  # fmt: skip


def _values_of(block: Block) -> list[Value]:
    return [*block.arguments, *(r for op in block.ops for r in op.results)]


_OF_MLIR = ("builtin", "func", "arith", "math", "cf", "scf", "memref")


def _text(op: Operation) -> str:
    """The first line of an operation; of one that MLIR has, as mlir-opt shows it."""
    from .printer import print_operation

    same = op.op_name.partition(".")[0] in _OF_MLIR
    return print_operation(op, generic=same, hints=not same).split("\n")[0]


def _does_not_end(op: Operation) -> str:
    """`@f does not end in 'func.return'`"""
    dialect = op.op_name.partition(".")[0]
    ends = [n for n, cls in OPERATIONS.items() if n.startswith(f"{dialect}.") and cls.definition.has(Terminator)]
    name = op.get("sym_name")
    shown = f"@{name.value}" if isinstance(name, StringAttr) else f"the body of '{op.op_name}'"
    return f"{shown} does not end in {repr(ends[0]) if len(ends) == 1 else 'a terminator'}"


def _in_scope(op: Operation, value: Value) -> bool:
    """Is the value of a region around `op`, with no isolated operation between?"""
    block = value.block if isinstance(value, BlockArgument) else value.op.parent  # type: ignore[attr-defined]
    home = block.parent if block is not None else None
    region = op.parent.parent if op.parent is not None else None
    while region is not None and region is not home:
        parent = region.parent
        if parent is None or parent.definition.has(IsolatedFromAbove) or parent.parent is None:
            return False
        region = parent.parent.parent
    return region is not None


# ---------------------------------------------------------------- declared fields


def check_values(
    op: Operation, definition: OpDefinition, kinds: Sequence[str] = ("operand", "result")
) -> None:
    """Counts and types of operands and results."""
    for kind in kinds:
        position = 0
        fields: Mapping[str, _Field] = definition.operands if kind == "operand" else definition.results
        groups = definition.operand_groups(op) if kind == "operand" else definition.result_groups(op)
        for name, field in fields.items():
            for value in groups[name]:
                if not field.constraint.holds(value.type):
                    raise op.error(
                        f"{kind} #{position} must be {field.constraint.description}, but got '{value.type}'"
                    )
                position += 1


def has_legal_fields(op: Operation) -> bool:
    """Are operands, results, attributes, regions and successors as declared?"""
    try:
        check_values(op, op.definition)
        check_attributes(op, op.definition)
        check_counts(op, op.definition)
    except IRError:
        return False
    return True


def check_fields(op: Operation) -> None:
    """What `infer_types` may rely on: operands and the attributes that are there are as declared."""
    check_values(op, op.definition, ("operand",))
    check_attributes(op, op.definition, required=False)


def check_attributes(op: Operation, definition: OpDefinition, required: bool = True) -> None:
    """Required attributes are there, and all are what they must be."""
    for name, field in definition.attributes.items():
        value = op.properties.get(name)
        if value is None:
            if required and not field.optional and not name.endswith("SegmentSizes"):
                raise op.error(f"requires attribute '{name}'")
        elif not field.constraint.holds(value):
            raise op.error(
                f"attribute '{name}' failed to satisfy constraint: {field.constraint.description}"
                f"{_as_float(value) if field.constraint is Float else ''}"
            )


def _as_float(value: Attribute) -> str:
    """What an integer would be as a float; nothing of other attributes."""
    number = str(value).partition(" :")[0]
    return f"; '{number}' is an integer, write {number}.0" if isinstance(value, IntegerAttr) else ""


def check_names(op: Operation, names: Iterable[str]) -> None:
    """No attribute is there that means nothing to an operation of ours, unless its name has a prefix."""
    known = [*op.definition.attributes, *(op.discardable or ())]
    for name in names:
        if name not in known and "." not in name:
            meant = near(name, known) or f"; it takes {', '.join(known) or 'none'}"
            raise op.error(f"has no attribute '{name}'{meant} (one of your own needs a prefix: 'my.{name}')")


def check_counts(op: Operation, definition: OpDefinition) -> None:
    """Numbers of regions and successors."""
    _count(op, "region", definition.regions, op.regions)
    _count(op, "successor", definition.successors, op.successors)


def _count(op: Operation, word: str, fields: Mapping[str, _Field], have: Sequence[Any]) -> None:
    least = sum(f.single for f in fields.values())
    most = None if any(f.variadic for f in fields.values()) else len(fields)
    if len(have) < least or (most is not None and len(have) > most):
        wanted = f"{least}" if least == most else f"at least {least}"
        raise op.error(f"requires {wanted} {word}{'' if least == 1 else 's'}, but has {len(have)}")
