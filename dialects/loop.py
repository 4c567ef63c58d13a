"""`loop`: kernels as loops over buffers. The level that is printed as CUDA C and as C.

A loop has a *binding*. On CUDA `block` strides over the grid (from blockIdx.x by gridDim.x), `thread` over
the threads of a block, `global` over all threads of the grid, `warp` over the warps of a block and `lane`
over the lanes of a warp; `serial`, `unroll` and `vector` are plain loops (unrolled, or free of carried
dependences). In C each is a plain serial loop, so one nest prints as both.

Loops carry no values: what changes lives in a register buffer, and one of size 1 prints as a variable.
Values are scalars (f16, bf16, f8 too) or `vector<WxT>` with W a power of two; `arith` and `math` take both.
Buffers are flat: an access has one element index.

Places kept for what comes: asynchronous copies (`loop.async_copy`, `loop.async_wait`), bulk tensor copies
and `!loop.mbarrier` with init, expect, arrive and wait; matrix fragments (`!loop.fragment`, `loop.mma`,
`loop.wgmma`) and a `layout` field on shared buffers that indexing and descriptors read;
`loop.cluster_barrier`. The bindings `warpgroup` and `cluster` are reserved: the printers refuse them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.attributes import (
    DimsAttr,
    Location,
    StringAttr,
    SymbolRefAttr,
    Type,
    i1,
    i32,
    index,
)
from ..ir.core import Block, BlockArgument, Operation, OpResult, Region, Value
from ..ir.definition import (
    Array,
    Constraint,
    Dims,
    Index,
    Int,
    Ints,
    String,
    attribute,
    build,
    caller_location,
    one_of,
    operand,
    region,
    result,
)
from ..ir.dims import Dim, as_dim
from ..ir.effects import Recursive
from ..ir.registry import IsolatedFromAbove, NoTerminator, Pure
from .loop_memory import ATOMICS, Alloc, Atomic, Load, Store, verify_element
from .loop_types import (
    BufferType,
    Scalar,
    buffer_type,
    byte_width,
    is_scalar,
    loop,
    signless,
)
from .loop_vectors import COMBINERS, Extract, Insert, ReduceVector, Splat

if TYPE_CHECKING:
    from ..ir.item_parser import ItemParser
    from ..ir.printer import Printer

SERIAL = ("serial", "unroll", "vector")
BLOCK = ("block", "block_y", "block_z")
THREAD = ("thread", "thread_y", "thread_z", "global", "warp", "lane")
IN_WARP = ("thread", "thread_y", "thread_z", "global", "lane")  # these part the lanes of a warp
RESERVED = ("cluster", "warpgroup")
BINDINGS = (*SERIAL, *BLOCK, *THREAD, *RESERVED)
POSITIONS = ("block", "thread", "grid_dim", "block_dim")
IDS = (*(f"{what}_{axis}" for what in POSITIONS for axis in "xyz"), "lane", "warp")
SHUFFLES = ("xor", "down", "up", "idx")
STATIC_SHARED_LIMIT = 48 * 1024  # bytes that a kernel may declare without dynamic shared memory


# ---------------------------------------------------------------- kernels


@loop.op
class Kernel(Operation):
    """A kernel. Arguments: buffers, the values of `symbols`, other scalars (strides, scalar operands)."""

    name = "loop.kernel"
    traits = (IsolatedFromAbove, NoTerminator)
    sym_name = attribute(String)
    target = attribute(one_of("cuda", "cpu"))
    block = attribute(Ints, default=(1, 1, 1), doc="threads of a block in x, y, z")
    grid = attribute(Dims, optional=True, doc="blocks in x, y, z as dims over `symbols`; 1 where absent")
    symbols = attribute(Array, default=(), doc="dim symbols whose values are passed as index arguments")
    index_bits = attribute(Int, default=64, doc="width of `index` in the printed kernel: 32 or 64")
    shared = attribute(Int, optional=True, doc="bytes of shared memory: the sum of the allocations")
    doc = attribute(String, optional=True)
    body_region = region()

    @classmethod
    def make(
        cls, name: str, target: str, arguments: Sequence[tuple[str, Type]], *, symbols: Sequence[str] = (),
        block: Sequence[int] = (1, 1, 1), grid: Sequence[Dim | int | str] = (1, 1, 1), index_bits: int = 64,
        doc: str | None = None, location: Location | None = None,
    ) -> Kernel:  # fmt: skip
        """A kernel with an empty body. `arguments` are (name, type) pairs without the symbols, which come
        after the buffers; `block` and `grid` may have fewer than 3 entries."""
        buffers = [(n, t) for n, t in arguments if isinstance(t, BufferType)]
        scalars = [(n, t) for n, t in arguments if not isinstance(t, BufferType)]
        every = [*buffers, *((s, index) for s in symbols), *scalars]
        entry = Block([t for _, t in every], [n for n, _ in every])
        return build(
            cls, regions=[Region([entry])], location=location or caller_location(), sym_name=name,
            target=target, block=_three(block, 1), grid=DimsAttr(_three(tuple(map(as_dim, grid)), as_dim(1))),
            symbols=tuple(symbols), index_bits=index_bits, doc=doc,
        )  # fmt: skip

    @classmethod
    def parse_items(cls, p: ItemParser) -> Operation:
        name, arguments = p.symbol_name(), p.arguments()
        attributes = p.attr_dict("attributes")
        body = p.region(arguments)
        return p.make((), (), {"sym_name": StringAttr(name)}, attributes, [body])

    def print_items(self, p: Printer) -> None:
        p.write(" ", SymbolRefAttr((self.sym_name,)), "(")
        for number, argument in enumerate(self.body.arguments):
            p.write(", " if number else "")
            p.argument(argument)
        p.write(")")
        p.attr_dict(self, ("sym_name",), keyword="attributes")
        p.write(" ")
        p.region(self.region, entry_arguments=False)

    @property
    def buffers(self) -> list[BlockArgument]:
        """The buffer arguments."""
        return [a for a in self.body.arguments if isinstance(a.type, BufferType)]

    @property
    def scalars(self) -> list[BlockArgument]:
        """The arguments after the buffers; those of `symbols` come first."""
        return [a for a in self.body.arguments if not isinstance(a.type, BufferType)]

    @property
    def symbol_arguments(self) -> dict[str, BlockArgument]:
        """Dim symbol -> the argument that is its value."""
        return dict(zip(self.symbols, self.scalars))

    @property
    def launch_grid(self) -> tuple[Dim, ...]:
        """Blocks in x, y and z."""
        return self.grid or (as_dim(1),) * 3

    @property
    def shared_bytes(self) -> int:
        """Bytes of all shared buffers, each begun at a multiple of 16."""
        return sum(-(-buffer_type(a).bytes // 16) * 16 for a in self.allocations("shared"))

    @property
    def dynamic_shared(self) -> int:
        """Bytes of dynamic shared memory that a launch must ask for: all of it, or 0 up to 48 KiB."""
        total = self.shared_bytes
        return total if total > STATIC_SHARED_LIMIT else 0

    def allocations(self, space: str) -> list[OpResult]:
        """Buffers that the kernel allocates in `space`, in order."""
        allocs = [op.result for op in self.walk() if isinstance(op, Alloc)]
        return [a for a in allocs if isinstance(a.type, BufferType) and a.type.space == space]

    def verify_op(self) -> None:
        self._verify_arguments()
        if self.index_bits not in (32, 64):
            raise self.error(f"has index_bits = {self.index_bits}; it may be 32 or 64")
        if len(self.block) != 3 or min(self.block) < 1:
            raise self.error("needs three positive numbers in 'block'")
        used = frozenset().union(*(d.symbols for d in self.launch_grid))
        if len(self.launch_grid) != 3 or not used <= set(self.symbols):
            raise self.error(f"needs three dims over {list(self.symbols)} in 'grid'")
        if self.shared is not None and self.shared != self.shared_bytes:
            raise self.error(f"says shared = {self.shared}, but allocates {self.shared_bytes} bytes")

    def _verify_arguments(self) -> None:
        kinds = [isinstance(a.type, BufferType) for a in self.body.arguments]
        if kinds != sorted(kinds, reverse=True):
            raise self.error("must take its buffers before its scalars")
        for argument in self.scalars:
            if not is_scalar(argument.type):
                raise self.error(f"argument {argument.index} must be a scalar, not '{argument.type}'")
        for argument in self.buffers:
            verify_element(self, f"argument {argument.index}", buffer_type(argument))
            if buffer_type(argument).space not in ("global", "param"):
                raise self.error(f"argument {argument.index} must be a global buffer, not '{argument.type}'")
        symbols = self.scalars[: len(self.symbols)]
        if len(symbols) != len(self.symbols) or any(a.type is not index for a in symbols):
            raise self.error("needs an index argument, after its buffers, for each of its symbols")


def _three(values: Sequence[Any], fill: Any) -> tuple[Any, ...]:
    return (*values, *[fill] * (3 - len(values)))


# ---------------------------------------------------------------- control


@loop.op
class For(Operation):
    """Runs its region for i = lo, lo + step, ... below hi (never when lo >= hi); step is positive."""

    name = "loop.for"
    traits = (NoTerminator, Recursive)
    lo = operand(Index)
    hi = operand(Index)
    step = operand(Index)
    binding = attribute(one_of(*BINDINGS), default="serial")
    doc = attribute(String, optional=True, doc="the comment of the printed loop")
    body_region = region()

    @classmethod
    def make(
        cls, lo: Value, hi: Value, step: Value, *, hint: str | None = None, binding: str = "serial",
        doc: str | None = None, location: Location | None = None,
    ) -> For:  # fmt: skip
        """A loop with an empty body; its index is `made.index`."""
        regions = [Region([Block([index], [hint])])]
        location = location or caller_location()
        return build(cls, lo, hi, step, regions=regions, binding=binding, doc=doc, location=location)

    @property
    def index(self) -> BlockArgument:
        """The loop variable."""
        return self.body.arguments[0]

    def verify_op(self) -> None:
        if [a.type for a in self.body.arguments] != [index]:
            raise self.error("needs a region with one index argument")


@loop.op
class If(Operation):
    """Runs `then` when the condition holds, else `otherwise` when there is one."""

    name = "loop.if"
    traits = (NoTerminator, Recursive)
    condition = operand(Constraint("i1", lambda t: t is i1))
    reason = attribute(String, optional=True, doc="tail, role, elected, ...; printed as a comment")
    then = region()
    otherwise = region(optional=True)

    @classmethod
    def make(
        cls, condition: Value, *, reason: str | None = None, otherwise: bool = False,
        location: Location | None = None,
    ) -> If:  # fmt: skip
        """An `if` with empty regions, two when `otherwise`."""
        regions = [Region([Block()]) for _ in range(2 if otherwise else 1)]
        return build(cls, condition, regions=regions, reason=reason, location=location or caller_location())


@loop.op
class Id(Operation):
    """Where this thread is, or how many there are: `block_x`, `thread_y`, `grid_dim_x`, `lane`, `warp`, ...
    In C each position is 0 and each count 1."""

    name = "loop.id"
    traits = (Pure,)
    which = attribute(one_of(*IDS))
    value = result(Index)
    assembly = "attr-dict"

    def infer_types(self) -> list[Type]:
        return [index]


def depends_on_thread(value: Value) -> bool:
    """Whether `value` is seen to differ between the threads of a block, through pure operations."""
    stack, seen = [value], {value}
    while stack:
        at = stack.pop()
        seen.add(at)
        owner = at.owner
        if isinstance(owner, Block):
            parent = owner.parent_op
            if isinstance(parent, For):
                if parent.binding in THREAD:
                    return True
                stack += [v for v in (parent.lo, parent.step) if v not in seen]
        elif isinstance(owner, Id):
            if owner.which.startswith(("thread", "lane", "warp")):
                return True
        else:
            stack += [v for v in owner.operands if v not in seen]
    return False


def _verify_converged(op: Operation, bindings: Sequence[str], block_wide: bool) -> None:
    """No enclosing loop is bound to `bindings`; for a `block_wide` op nothing around it is seen to depend on
    the thread."""
    inner = op.parent_op
    while inner is not None and not isinstance(inner, Kernel):
        if isinstance(inner, For) and inner.binding in bindings:
            raise op.error(f"stands in a '{inner.binding}' loop, which not all threads run equally often")
        tested = inner.operands if isinstance(inner, (For, If)) and block_wide else ()
        if any(map(depends_on_thread, tested)):
            raise op.error(f"stands in a '{inner.op_name}' that depends on the thread: not all reach it")
        inner = inner.parent_op


@loop.op
class Barrier(Operation):
    """All threads of the block wait for each other; what they wrote is seen by all."""

    name = "loop.barrier"
    assembly = "attr-dict"

    def verify_op(self) -> None:
        _verify_converged(self, THREAD, True)


@loop.op
class WarpBarrier(Operation):
    """All lanes of the warp wait for each other; what they wrote is seen by all lanes."""

    name = "loop.warp_barrier"
    assembly = "attr-dict"

    def verify_op(self) -> None:
        _verify_converged(self, IN_WARP, False)


@loop.op
class Shuffle(Operation):
    """The value of another lane of this warp: of `this ^ lane`, `this + lane` (down), `this - lane` (up) or
    `lane` itself (idx), within groups of `width` lanes; the own value where that lane is outside the group.
    All lanes take part."""

    name = "loop.shuffle"
    value = operand(Scalar)
    lane = operand(Index)
    kind = attribute(one_of(*SHUFFLES), default="xor")
    width = attribute(Int, default=32, doc="a power of two up to 32")
    received = result(Scalar)
    assembly = "$value `,` $lane attr-dict `:` type($value)"

    def infer_types(self) -> list[Type]:
        return [self.value.type]

    def verify_op(self) -> None:
        if self.width not in (2, 4, 8, 16, 32):
            raise self.error("needs a power of two up to 32 as 'width'")
        _verify_converged(self, IN_WARP, False)


@loop.op
class Ballot(Operation):
    """Bit i is the vote of lane i of this warp; 0 for a lane that has ended. All others take part."""

    name = "loop.ballot"
    vote = operand(Constraint("i1", lambda t: t is i1))
    votes = result(Constraint("i32", lambda t: t is i32))
    assembly = "$vote attr-dict"

    def infer_types(self) -> list[Type]:
        return [i32]

    def verify_op(self) -> None:
        _verify_converged(self, IN_WARP, False)


__all__ = [
    "ATOMICS", "COMBINERS", "IDS", "RESERVED", "SERIAL", "SHUFFLES", "STATIC_SHARED_LIMIT", "Alloc", "Atomic", "Ballot",
    "Barrier", "BufferType", "Extract", "For", "Id", "If", "Insert", "Kernel", "Load", "ReduceVector", "Shuffle",
    "Splat", "Store", "WarpBarrier", "buffer_type", "byte_width", "loop", "signless",
]  # fmt: skip
