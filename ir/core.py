"""Values, operations, blocks and regions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .attributes import Attribute, Location, TensorType, Type, from_attribute, to_attribute, unknown

if TYPE_CHECKING:
    from .definition import OpDefinition

OpT = TypeVar("OpT", bound="Operation")
_NO_ATTRIBUTES: Mapping[str, Attribute] = {}  # shared by all operations without attributes; never written


class Located:
    """What has a place in a text."""

    __slots__ = ()
    _location: Any

    @property
    def location(self) -> Location:
        """Where it is written. The parser leaves a pair (source, offset), which is resolved when asked."""
        location = self._location
        if type(location) is tuple:
            location = self._location = location[0].location(location[1])
        return location  # type: ignore[no-any-return]

    @location.setter
    def location(self, location: Location) -> None:
        self._location = location


class Value:
    """An SSA value. `uses` counts, by operation, the operands that are this value."""

    __slots__ = ("hint", "type", "uses")

    def __init__(self, type: Type, hint: str | None = None) -> None:
        self.type = type
        self.hint = hint
        self.uses: dict[Operation, int] = {}

    @property
    def tensor(self) -> TensorType:
        """The type, which has to be a ranked tensor; TypeError where it is another."""
        if not isinstance(self.type, TensorType):
            raise TypeError(f"{self!r} is not a tensor")
        return self.type

    @property
    def users(self) -> list[Operation]:
        return list(self.uses)

    @property
    def owner(self) -> Operation | Block:
        raise NotImplementedError

    @property
    def defining_op(self) -> Operation | None:
        owner = self.owner
        return owner if isinstance(owner, Operation) else None

    def replace_all_uses_with(self, other: Value) -> None:
        """Every operand that is this value becomes `other`; replacing a value by itself does nothing."""
        if other is self:
            return
        for user in self.users:
            user.operands = tuple(other if v is self else v for v in user.operands)

    def replace_uses_where(self, other: Value, keep: Any) -> None:
        """As `replace_all_uses_with`, in the users for which `keep(user)` holds."""
        for user in self.users if other is not self else ():
            if keep(user):
                user.operands = tuple(other if v is self else v for v in user.operands)

    def __repr__(self) -> str:
        return f"<%{self.hint or '?'} : {self.type}>"


class OpResult(Value):
    """Result number `index` of operation `op`."""

    __slots__ = ("index", "op")

    def __init__(self, type: Type, op: Operation, index: int, hint: str | None = None) -> None:
        super().__init__(type, hint)
        self.op = op
        self.index = index

    @property
    def owner(self) -> Operation:
        return self.op


class BlockArgument(Value, Located):
    """Argument number `index` of `block`."""

    __slots__ = ("_location", "block", "index")

    def __init__(self, type: Type, block: Block, index: int, hint: str | None, location: Any) -> None:
        super().__init__(type, hint)
        self.block = block
        self.index = index
        self._location = location

    @property
    def owner(self) -> Block:
        return self.block


class Operation(Located):
    """One operation. Registered operations are subclasses that declare their fields (definition.py);
    an operation of a dialect that is not loaded is an `UnregisteredOp`.

    `properties` are the attributes that the operation's definition names (MLIR's inherent ones),
    `attributes` the discardable rest. Both are read-only; write with `set` and `remove`.
    """

    __slots__ = (
        "_location", "_operands", "attributes", "next", "parent", "previous", "properties", "regions", "results",
        "successors",
    )  # fmt: skip
    name: ClassVar[str]
    definition: ClassVar[OpDefinition]
    # Discardable attributes without a dialect prefix that it takes; None takes any, as MLIR's dialects do.
    discardable: ClassVar[tuple[str, ...] | None] = None

    def __init__(
        self,
        operands: Sequence[Value] = (),
        result_types: Sequence[Type] = (),
        properties: Mapping[str, Attribute] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
        successors: Sequence[Block] = (),
        location: Any = unknown,
    ) -> None:
        self._operands: tuple[Value, ...] = tuple(operands)
        for value in self._operands:
            value.uses[self] = value.uses.get(self, 0) + 1
        self.results = tuple([OpResult(t, self, i) for i, t in enumerate(result_types)])
        self.properties = properties or _NO_ATTRIBUTES
        self.attributes = attributes or _NO_ATTRIBUTES
        self.regions = tuple(regions)
        for region in self.regions:
            region.parent = self
        self.successors: tuple[Block, ...] = tuple(successors)
        self._location: Any = location
        self.parent: Block | None = None
        self.previous: Operation | None = None
        self.next: Operation | None = None

    # -- operands and results

    @property
    def operands(self) -> tuple[Value, ...]:
        return self._operands

    @operands.setter
    def operands(self, values: Sequence[Value]) -> None:
        self._drop_uses()
        self._operands = tuple(values)
        for value in self._operands:
            value.uses[self] = value.uses.get(self, 0) + 1

    def _drop_uses(self) -> None:
        for value in self._operands:
            count = value.uses[self] - 1
            if count:
                value.uses[self] = count
            else:
                del value.uses[self]

    @property
    def result(self) -> OpResult:
        """The only result."""
        if len(self.results) != 1:
            raise ValueError(f"'{self.op_name}' has {len(self.results)} results, not one")
        return self.results[0]

    @property
    def op_name(self) -> str:
        """The full name, `dialect.op`; of an unregistered operation as well."""
        return self.name

    # -- attributes

    def get(self, name: str, default: Any = None) -> Any:
        """The property or attribute `name`, as an Attribute."""
        found = self.properties.get(name)
        return found if found is not None else self.attributes.get(name, default)

    def value_of(self, name: str, default: Any = None) -> Any:
        """As `get`, as a Python value."""
        found = self.get(name)
        return default if found is None else from_attribute(found)

    def set(self, name: str, value: Any) -> None:
        """Set a property, where the definition names it, or else an attribute."""
        slot = "properties" if name in self.definition.attributes else "attributes"
        setattr(self, slot, {**getattr(self, slot), name: to_attribute(value)})

    def remove(self, name: str) -> None:
        self.properties = {k: v for k, v in self.properties.items() if k != name}
        self.attributes = {k: v for k, v in self.attributes.items() if k != name}

    # -- structure

    @property
    def parent_op(self) -> Operation | None:
        return self.parent.parent.parent if self.parent is not None and self.parent.parent is not None else None

    def ancestor(self, kind: type[OpT]) -> OpT | None:
        """The nearest enclosing operation of class `kind`."""
        op = self.parent_op
        while op is not None and not isinstance(op, kind):
            op = op.parent_op
        return op

    @property
    def region(self) -> Region:
        return self.regions[0]

    @property
    def body(self) -> Block:
        """The first block of the first region."""
        return self.regions[0].blocks[0]

    def walk(self) -> Iterator[Operation]:
        """This operation and all nested in it, parents first. The operation just yielded may be erased
        or changed, once the walk has moved on. Does not recurse."""
        stack: list[Operation | None] = [self]
        while stack:
            op = stack.pop()
            if op is None:
                continue
            following = op.next if op is not self else None
            yield op
            if op is not self:
                stack.append(following)
            stack.extend(block.first for region in reversed(op.regions) for block in reversed(region.blocks))

    def is_ancestor_of(self, op: Operation) -> bool:
        """Whether `op` is this operation or nested in it."""
        current: Operation | None = op
        while current is not None and current is not self:
            current = current.parent_op
        return current is self

    # -- moving, erasing, cloning

    def detach(self) -> None:
        """Take this operation out of its block."""
        block = self.parent
        if block is None:
            return
        if self.previous is not None:
            self.previous.next = self.next
        else:
            block.first = self.next
        if self.next is not None:
            self.next.previous = self.previous
        else:
            block.last = self.previous
        self.parent = self.previous = self.next = None

    def erase(self) -> None:
        """Remove this operation and all nested in it. Raises ValueError while a result is used elsewhere."""
        for result in self.results:
            outside = [user for user in result.uses if not self.is_ancestor_of(user)]
            if outside:
                raise ValueError(f"cannot erase '{self.op_name}': a result is used by '{outside[0].op_name}'")
        self.detach()
        for op in list(self.walk()):
            op._drop_uses()
            op._operands = ()
            op.successors = ()

    def clone(self: OpT, mapping: dict[Value, Value] | None = None, location: Location | None = None) -> OpT:
        """A copy, with operands looked up in `mapping`, which gains the new results. Does not recurse."""
        from .clone import clone_operation

        return clone_operation(self, {} if mapping is None else mapping, location)

    def verify_op(self) -> None:
        """Checks of this operation beyond its declared fields; raise through `self.error`."""

    def error(self, message: str, *notes: str) -> Exception:
        """A diagnostic at this operation, to raise: `raise op.error("...")`."""
        from .diagnostics import IRError

        return IRError(f"'{self.op_name}' op {message}", self.location, list(notes))

    def __str__(self) -> str:
        from .printer import print_operation

        return print_operation(self)

    def __repr__(self) -> str:
        return f"<{self.op_name} at {id(self):#x}>"


class Block:
    """Arguments and a list of operations."""

    __slots__ = ("arguments", "first", "hint", "last", "parent")

    def __init__(self, argument_types: Sequence[Type] = (), hints: Sequence[str | None] = ()) -> None:
        self.arguments: list[BlockArgument] = []
        self.first: Operation | None = None
        self.last: Operation | None = None
        self.parent: Region | None = None
        self.hint: str | None = None
        for index, type in enumerate(argument_types):
            self.add_argument(type, hints[index] if index < len(hints) else None)

    def add_argument(self, type: Type, hint: str | None = None, location: Any = unknown) -> BlockArgument:
        argument = BlockArgument(type, self, len(self.arguments), hint, location)
        self.arguments.append(argument)
        return argument

    def erase_argument(self, position: int) -> None:
        if self.arguments[position].uses:
            raise ValueError("cannot erase a block argument that is used")
        del self.arguments[position]
        for later, argument in enumerate(self.arguments[position:], position):
            argument.index = later

    @property
    def ops(self) -> Iterator[Operation]:
        """The operations in order; the one just yielded may be erased, moved or replaced."""
        op = self.first
        while op is not None:
            following = op.next
            yield op
            op = following

    @property
    def parent_op(self) -> Operation | None:
        return self.parent.parent if self.parent is not None else None

    def append(self, op: Operation) -> None:
        op.parent = self
        op.previous = self.last
        if self.last is None:
            self.first = op
        else:
            self.last.next = op
        self.last = op

    def insert_before(self, op: Operation, anchor: Operation | None) -> None:
        """Put `op` before `anchor`, or last when it is None."""
        if anchor is None:
            self.append(op)
            return
        op.parent = self
        op.previous, op.next = anchor.previous, anchor
        if anchor.previous is None:
            self.first = op
        else:
            anchor.previous.next = op
        anchor.previous = op

    @property
    def terminator(self) -> Operation:
        if self.last is None:
            raise ValueError("an empty block has no terminator")
        return self.last


class Region:
    """A list of blocks; the first is the entry."""

    __slots__ = ("blocks", "parent")

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self.blocks: list[Block] = []
        self.parent: Operation | None = None
        for block in blocks:
            self.append(block)

    def append(self, block: Block) -> None:
        block.parent = self
        self.blocks.append(block)

    @property
    def block(self) -> Block:
        return self.blocks[0]


class UnregisteredOp(Operation):
    """An operation of a dialect that is not loaded; it keeps everything that was written."""

    __slots__ = ("_name",)
    name = "builtin.unregistered"

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._name = name

    @property
    def op_name(self) -> str:
        return self._name
