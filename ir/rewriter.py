"""Rewriting: patterns, the changes they may make, and the greedy driver.

    class DropDoubleNegation(Pattern):
        root = NegF
        def match_and_rewrite(self, op, rewriter):
            inner = op.value.defining_op
            if not isinstance(inner, NegF):
                return False
            rewriter.replace(op, inner.value)
            return True

    rewrite_greedily(module, [DropDoubleNegation()])

Identities are better written as a table (rules.py). Operations fold themselves: a method `fold(constants)`
gets the constant Attribute of each operand or None, and returns a Value, an Attribute, a list of such (one
for each result), or None. An operation class may list patterns of its own as `canonicalization = [...]`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

from .attributes import Attribute, Location, Type
from .builder import Builder
from .core import Block, Operation, OpResult, Value
from .diagnostics import IRError
from .effects import Effects, removable_kind
from .registry import Commutative, Trait
from .rewrite_watch import Watch, fingerprint

Op = TypeVar("Op", bound=Operation)
ConstantLike = Trait("ConstantLike")  # its property `value` is the constant that its result holds

Materializer = Callable[[Attribute, Type, Location], "Operation | None"]
_MATERIALIZERS: list[Materializer] = []


def materializes_constants(function: Materializer) -> Materializer:
    """Decorator: `function(attribute, type, location)` makes a constant operation, or None if it is not its
    kind."""
    _MATERIALIZERS.append(function)
    return function


def make_constant(value: Attribute, type: Type, location: Location) -> Operation | None:
    """A constant operation, not inserted; None if no dialect has one for this value and type."""
    return next((op for m in _MATERIALIZERS if (op := m(value, type, location)) is not None), None)


_CONSTANT: dict[type[Operation], bool] = {}


def is_constant_class(cls: type[Operation] | None) -> bool:
    """Whether operations of the class are constants."""
    known = _CONSTANT.get(cls)  # type: ignore[arg-type]
    if known is None and cls is not None:
        traits = getattr(getattr(cls, "definition", None), "traits", ())
        known = _CONSTANT[cls] = ConstantLike in traits
    return bool(known)


def constant_of(value: Value) -> Attribute | None:
    """The attribute that `value` is known to be: its defining operation is a constant of the value's type."""
    if type(value) is not OpResult:
        return None
    op = value.op
    if not is_constant_class(type(op)):
        return None
    attribute = op.properties.get("value")
    return attribute if getattr(attribute, "type", None) is value.type else None


class Pattern:
    """One rewrite. `root` is the operation class, or a base of several, that it starts from; None for any."""

    root: ClassVar[type[Operation] | None] = None
    benefit: int = 1  # patterns of greater benefit are tried first

    def match_and_rewrite(self, op: Any, rewriter: PatternRewriter) -> bool:
        """Change the IR through `rewriter` and return True, or change nothing and return False."""
        raise NotImplementedError

    def may_match(self, definers: Sequence[type[Operation] | None], repeated: bool) -> bool:
        """False where it cannot match an operation whose operands are defined by operations of these classes
        (None: a block argument) and which uses one value twice, if `repeated`. Asked once for each
        combination."""
        return True

    @property
    def label(self) -> str:
        """The pattern's name, with file and line, for messages."""
        return f"{type(self).__name__} ({_place(type(self))})"


def _place(thing: Any) -> str:
    try:
        return f"{inspect.getsourcefile(thing)}:{inspect.getsourcelines(thing)[1]}"
    except (OSError, TypeError):
        return "?"


class FunctionPattern(Pattern):
    """A pattern that is a function; made by `pattern`."""

    def __init__(
        self, root: type[Operation] | None, function: Callable[[Any, PatternRewriter], bool], benefit: int
    ):
        self.root = root  # type: ignore[misc]
        self.function = function
        self.benefit = benefit

    def match_and_rewrite(self, op: Any, rewriter: PatternRewriter) -> bool:
        return self.function(op, rewriter)

    @property
    def label(self) -> str:
        return f"{self.function.__name__} ({_place(self.function)})"


def pattern(
    root: type[Operation] | None = None, benefit: int = 1
) -> Callable[[Callable[[Any, PatternRewriter], bool]], FunctionPattern]:
    """Decorator: make a function `(op, rewriter) -> bool` a pattern."""
    return lambda function: FunctionPattern(root, function, benefit)


class PatternRewriter(Builder):
    """All changes that a pattern makes go through here, so that the driver hears of them.

    New operations are inserted before the root and inherit its location."""

    root_op: Operation | None = None

    def __init__(self) -> None:
        self.anchor = None  # a builder without a place until `start` gives it one
        self.changed = False
        self._constants: dict[Any, Operation] = {}
        self._last_constant: dict[Block, Operation] = {}

    @property
    def location(self) -> Any:
        """Where new operations come from: the place of the root (which may not be resolved yet)."""
        return self.root_op._location if self.root_op is not None else None

    @location.setter
    def location(self, location: Any) -> None:
        """The root says it."""

    def start(self, op: Operation) -> None:
        """Make `op` the root: new operations go before it."""
        assert op.parent is not None, "a root stands in a block"
        self.root_op, self.block, self.anchor, self.changed = op, op.parent, op, False

    # What a driver overrides

    def touched(self, op: Operation) -> None:
        """Called for each operation that was inserted or changed."""

    def removed(self, op: Operation) -> None:
        """Called for each operation that is about to be erased, nested ones too."""

    def lost_use(self, value: Value) -> None:
        """Called for each value that an operation no longer uses."""

    # What patterns call

    def insert(self, op: Op) -> Op:
        super().insert(op)
        self.changed = True
        for new in op.walk() if op.regions else (op,):
            self.touched(new)
        return op

    def modified(self, op: Operation) -> None:
        """Say that `op` was changed in place."""
        self.changed = True
        self.touched(op)

    def replace(self, op: Operation, by: Operation | Value | Sequence[Value]) -> None:
        """Give the users of `op` the values `by` and erase it. Raises ValueError, having changed nothing,
        where the
        number or the types differ. Replacing an operation by its own results changes nothing."""
        values = by.results if isinstance(by, Operation) else (by,) if isinstance(by, Value) else tuple(by)
        if values == op.results:
            return
        _check_replacement(op, values)
        for old, new in zip(op.results, values):
            self.replace_value(old, new)
        self.erase(op)

    def replace_value(self, old: Value, new: Value) -> None:
        """Let every user of `old` use `new`."""
        if new.hint is None:
            new.hint = old.hint
        if old is new or not old.uses:
            return
        users = old.users
        old.replace_all_uses_with(new)
        for user in users:
            self.modified(user)

    def erase(self, op: Operation) -> None:
        """Erase `op`, whose results must be unused, with all nested in it."""
        _check_unused(op)
        self.erase_unused(op)

    def erase_unused(self, op: Operation) -> None:
        """As `erase`, where it is known that the results are unused."""
        self.changed = True
        if op.regions:
            doomed = list(op.walk())
            operands: Sequence[Value] = _used_from_outside(doomed)
            for inner in doomed:
                self.removed(inner)
            op.erase()
        else:  # what Operation.erase does, for the common case
            operands = op._operands
            self.removed(op)
            op.detach()
            op.operands = op.successors = ()
        for value in operands:
            self.lost_use(value)

    def erase_blocks(self, blocks: Sequence[Block]) -> None:
        """Erase blocks that nothing outside them uses; they may use each other's values in a circle."""
        doomed = [op for block in blocks for outer in block.ops for op in outer.walk()]
        operands = _used_from_outside(doomed)
        for op in doomed:
            self.removed(op)
            op.operands = op.successors = ()
        for block in blocks:
            for op in block.ops:
                op.erase()
            assert block.parent is not None
            block.parent.blocks.remove(block)
        self.changed = True
        for value in operands:
            self.lost_use(value)

    def set_operands(self, op: Operation, operands: Sequence[Value]) -> None:
        """Change the operands in place."""
        before = op.operands
        op.operands = tuple(operands)
        for value in before:
            self.lost_use(value)
        self.modified(op)

    def inline_block(
        self, block: Block, before: Operation | None, into: Block, arguments: Sequence[Value]
    ) -> None:
        """Move the operations of `block` in front of `before` in `into` (None: to its end); `arguments` stand
        for
        its arguments."""
        if len(arguments) != len(block.arguments):
            raise ValueError(f"the block has {len(block.arguments)} arguments, not {len(arguments)}")
        for argument, value in zip(block.arguments, arguments):
            self.replace_value(argument, value)
        for op in block.ops:
            op.detach()
            into.insert_before(op, before)
            self.modified(op)

    def constant(self, value: Attribute, type: Type) -> Value | None:
        """The constant, at the start of the root's block, where one made before is used again; None where no
        dialect can make it."""
        key = self.block, value, type
        known = self._constants.get(key)
        if known is not None and known.parent is self.block:
            return known.results[0]
        op = make_constant(value, type, self.location)
        if op is None:
            return None
        self._constants[key] = op
        last = self._last_constant.get(self.block)
        follows = last is not None and last.parent is self.block
        self.block.insert_before(op, last.next if follows and last else self.block.first)
        self._last_constant[self.block] = op
        self.changed = True
        self.touched(op)
        return op.results[0]


def _used_from_outside(doomed: Sequence[Operation]) -> list[Value]:
    """The operands of operations that go away together, without the values that go with them."""
    gone = set(doomed)
    return [value for op in doomed for value in op.operands if value.owner not in gone]


def _check_unused(op: Operation) -> None:
    for result in op.results:
        for user in result.uses:
            if not op.is_ancestor_of(user):
                raise ValueError(f"cannot erase '{op.op_name}': a result is used by '{user.op_name}'")


def _check_replacement(op: Operation, values: Sequence[Value]) -> None:
    if len(values) != len(op.results):
        raise ValueError(
            f"cannot replace '{op.op_name}' with {len(op.results)} results by {len(values)} values"
        )
    for number, (old, new) in enumerate(zip(op.results, values)):
        if old.type is not new.type:
            raise ValueError(
                f"cannot replace result #{number} of '{op.op_name}' of type '{old.type}' "
                f"by a value of '{new.type}'"
            )


class _ClassInfo:
    """What the driver does with operations of one class. `choices` holds, by the classes that define the
    operands,
    whether one is a constant and which patterns may match."""

    __slots__ = ("choices", "commutative", "fold", "patterns", "removable")

    def __init__(self, cls: type[Operation], patterns: Sequence[Pattern], fold: bool) -> None:
        traits = getattr(getattr(cls, "definition", None), "traits", ())
        self.removable = removable_kind(cls)
        self.fold = fold and not is_constant_class(cls) and hasattr(cls, "fold")
        self.commutative = fold and Commutative in traits
        chosen = [p for p in patterns if p.root is None or issubclass(cls, p.root)]
        self.patterns = sorted(chosen, key=lambda p: -p.benefit)
        self.choices: dict[Any, tuple[bool, list[Pattern]]] = {}

    def choose(self, key: Any, operands: Sequence[Value]) -> tuple[bool, list[Pattern]]:
        """Fill in `choices` for a combination that is new."""
        definers = [type(v.op) if type(v) is OpResult else None for v in operands]
        repeated = len(set(operands)) < len(operands)
        chosen = [p for p in self.patterns if p.may_match(definers, repeated)]
        found = self.choices[key] = any(map(is_constant_class, definers)), chosen
        return found


class GreedyDriver(PatternRewriter):
    """Applies patterns, folds and removes dead operations until nothing changes. See `rewrite_greedily`."""

    def __init__(
        self, root: Operation, patterns: Iterable[Pattern], fold: bool = True, strict: bool = False
    ) -> None:
        super().__init__()
        self.root = root
        self.strict = strict
        self._patterns = list(patterns)
        self._fold_enabled = fold
        self._infos: dict[type[Operation], _ClassInfo] = {}
        self._work: dict[Operation, None] = {}
        self._effects = Effects()

    def run(self) -> bool:
        """Whether anything changed."""
        ops = list(self.root.walk())[:0:-1]
        self._watch = Watch(self.root, len(ops))
        self._work = work = dict.fromkeys(ops)
        any_change = self._fold_enabled and self._sweep(ops)
        infos = self._infos
        while work:
            op = work.popitem()[0]
            if op.parent is None:
                continue
            info = infos.get(type(op)) or self._info(type(op))
            if info.removable and self._remove_dead(op, info):
                any_change = True
            elif info.fold or info.patterns:
                any_change |= self._simplify(op, info)
        return any_change

    def _sweep(self, ops: Sequence[Operation]) -> bool:
        """Remove what is dead already, users before what they use, so that no work is done on it."""
        infos, any_change = self._infos, False
        for op in ops:
            info = infos.get(type(op)) or self._info(type(op))
            if info.removable and op.parent is not None and self._remove_dead(op, info):
                any_change = True
        return any_change

    def _info(self, cls: type[Operation]) -> _ClassInfo:
        own = getattr(cls, "canonicalization", ()) if self._fold_enabled else ()
        info = self._infos[cls] = _ClassInfo(cls, [*self._patterns, *own], self._fold_enabled)
        return info

    # -- what happens to one operation

    def _remove_dead(self, op: Operation, info: _ClassInfo) -> bool:
        for result in op.results:
            if result.uses:
                return False
        if not self._fold_enabled or (info.removable == 2 and self._effects.writes(op)):
            return False
        self.erase_unused(op)
        return True

    def _simplify(self, op: Operation, info: _ClassInfo) -> bool:
        """Fold, or else apply the first pattern that matches."""
        operands = op._operands
        if len(operands) == 2:
            a, b = operands
            key: Any = (
                type(a.op) if type(a) is OpResult else a is b,
                type(b.op) if type(b) is OpResult else a is b,
                a is b,
            )
        else:
            key = tuple([type(v.op) if type(v) is OpResult else None for v in operands])
            if len(operands) > 2:
                key = key, len(set(operands))
        constant, patterns = info.choices.get(key) or info.choose(key, operands)
        if info.fold and self._fold(op, info, constant):
            self._watch.rewrote(None)
            return True
        return bool(patterns) and self._apply(op, patterns)

    def _fold(self, op: Operation, info: _ClassInfo, constant: bool) -> bool:
        operands = op._operands
        constants = [constant_of(v) for v in operands] if constant else [None] * len(operands)
        if constant and info.commutative and constants[0] is not None and constants[1:] == [None]:
            self.set_operands(op, operands[::-1])
            return True
        folded = op.fold(constants)  # type: ignore[attr-defined]
        return folded is not None and self._replace_folded(op, folded)

    def _replace_folded(self, op: Operation, folded: Any) -> bool:
        wanted = list(folded) if isinstance(folded, (list, tuple)) else [folded]
        if len(wanted) != len(op.results) or any(w is r for w, r in zip(wanted, op.results)):
            return False
        made = [self._value_of(w, r, op) for w, r in zip(wanted, op.results)]
        if any(m is None for m in made):
            return False
        self.replace(op, made)  # type: ignore[arg-type]
        return True

    def _value_of(self, folded: Value | Attribute, result: Value, op: Operation) -> Value | None:
        if isinstance(folded, Value):
            return folded
        self.start(op)
        return self.constant(folded, result.type)

    def _apply(self, op: Operation, patterns: Sequence[Pattern]) -> bool:
        for pattern in patterns:
            self.start(op)
            if self.strict:
                applied = self._apply_strictly(pattern, op)
            else:
                applied = pattern.match_and_rewrite(op, self)
            if applied or self.changed:
                self._watch.rewrote(pattern)
                return True
        return False

    def _apply_strictly(self, pattern: Pattern, op: Operation) -> bool:
        from .verifier import verify

        before, location, name = fingerprint(self.root), op.location, op.op_name
        applied = pattern.match_and_rewrite(op, self)
        changed = fingerprint(self.root) != before
        if applied != changed:
            said = (
                "says that it changed the IR but did not"
                if applied
                else "changed the IR but says that it did not"
            )
            raise IRError(f"pattern {pattern.label} on '{name}' {said}", location)
        try:
            verify(self.root)
        except IRError as error:
            raise IRError(
                f"pattern {pattern.label} on '{name}' left illegal IR", location, error.diagnostics
            ) from None
        return applied

    # -- the worklist

    def touched(self, op: Operation) -> None:
        self._work[op] = None

    def removed(self, op: Operation) -> None:
        self._work.pop(op, None)

    def lost_use(self, value: Value) -> None:
        if len(value.uses) <= 1 and type(value) is OpResult:
            self._work[value.op] = None


def rewrite_greedily(
    root: Operation, patterns: Iterable[Pattern] = (), *, fold: bool = True, strict: bool = False
) -> bool:
    """Apply `patterns` to everything nested in `root` until none applies, folding and removing dead
    operations as well unless `fold` is false. Returns whether anything changed.

    It always ends: a state that comes again is an IRError that names the patterns that undo each other. With
    `strict` every application is checked: a pattern that changes IR and denies it, or the reverse, or leaves
    IR
    that does not verify, is an IRError."""
    return GreedyDriver(root, patterns, fold, strict).run()
