"""The `compute` dialect: what an operator means, as index spaces over tensors.

    %s = compute.reduce %x {extents = [n], inits = [0.0 : f32]} : (tensor<[m, n], f32>) -> tensor<[m], f32> {
    ^bb0(%i: index, %j: index):
      %a = compute.read %x[%i, %j] : f32
      compute.yield %a
    }, {
    ^bb0(%l: f32, %r: f32):
      %t = arith.addf %l, %r : f32
      compute.yield %t
    }

Regions hold pure scalar ops only; tensors are read by `compute.read`, and the operands list those that are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.attributes import (
    ArrayAttr,
    Attribute,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    Type,
    from_attribute,
    index,
)
from ..ir.core import Block, BlockArgument, Operation
from ..ir.definition import (
    AnyTensor,
    AnyType,
    Array,
    Bool,
    BoolLike,
    Dims,
    Index,
    attribute,
    operand,
    region,
    result,
)  # fmt: skip
from ..ir.dims import Dim
from ..ir.registry import Dialect, Pure, Terminator
from .scalar import unsupported

compute = Dialect("compute", "Definitions of operators: maps and reductions over index spaces.", closed=True)

SCALAR_DIALECTS = ("arith", "math")
SCALAR_OPS = ("dim.value", "compute.read", "compute.read_if", "compute.yield")


def signless(type: Type) -> Type:
    """The type that an element has inside a region: unsigned and signed integers lose their sign."""
    return IntegerType(type.width) if isinstance(type, IntegerType) and type.signedness else type


def same_shape(a: Sequence[Dim | None], b: Sequence[Dim | None]) -> bool:
    """Whether two shapes are written the same (dims are interned; their `==` is a relation)."""
    return len(a) == len(b) and all(x is y for x, y in zip(a, b))


class _OverIndices(Operation):
    """Shared by map and reduce: tensor results and a body over index arguments. `op.body` is its block."""

    __slots__ = ()

    @property
    def indices(self) -> list[BlockArgument]:
        """The index arguments of the body."""
        return self.body.arguments

    @property
    def result_types(self) -> list[TensorType]:
        return [r.type for r in self.results]  # type: ignore[misc]

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The parallel index space: the shape of each result."""
        return self.result_types[0].dims

    @property
    def space(self) -> tuple[Dim, ...]:
        """The extents of all index arguments."""
        return self.shape

    def verify_op(self) -> None:
        if not self.results:
            raise self.error("needs a result")
        for value in (*self.operands, *self.results):
            reason = unsupported(value.type, (index,)) if isinstance(value.type, TensorType) else None
            if reason is not None:
                name = f"%{value.hint} of " if value.hint else ""
                raise self.error(f"cannot work on {name}type '{value.type}': {reason}")
        for type in self.result_types[1:]:
            if not same_shape(type.shape, self.result_types[0].shape):
                raise self.error(f"has results of two shapes, '{self.result_types[0]}' and '{type}'")
        _check_arguments(self, self.body, [Index] * len(self.space), "body")
        _check_yield(self, self.body, [signless(t.element) for t in self.result_types], "body")
        for op in self.body.ops:
            _check_scalar_op(self, op)


def _check_arguments(op: Operation, block: Block, wanted: Sequence[object], name: str) -> None:
    """`wanted` holds Index for an index argument, or the exact type."""
    if len(block.arguments) != len(wanted):
        raise op.error(f"{name} needs {len(wanted)} arguments, but has {len(block.arguments)}")
    for position, (argument, type) in enumerate(zip(block.arguments, wanted)):
        if not (Index.holds(argument.type) if type is Index else argument.type is type):
            expected = "index" if type is Index else type
            raise op.error(f"{name} argument {position} must be '{expected}', but is '{argument.type}'")


def _check_yield(op: Operation, block: Block, types: list[Type], name: str) -> None:
    if not isinstance(block.last, Yield):
        raise op.error(f"{name} must end in compute.yield")
    given = [v.type for v in block.last.operands]
    if given != types:
        raise op.error(f"{name} must yield ({', '.join(map(str, types))}), but yields ({', '.join(map(str, given))})")


def _check_scalar_op(parent: Operation, op: Operation) -> None:
    if op.op_name.partition(".")[0] not in SCALAR_DIALECTS and op.op_name not in SCALAR_OPS:
        raise op.error(f"is not a pure scalar operation, which '{parent.op_name}' holds only")
    if op.regions:
        raise op.error(f"has a region, which is not allowed inside '{parent.op_name}'")
    if isinstance(op, (Read, ReadIf)) and op.source not in parent.operands:
        raise op.error(f"reads a tensor that is not an operand of its '{parent.op_name}'")


@compute.op
class Map(_OverIndices):
    """Each result element is the scalar that the body yields at its indices. Result shapes are equal."""

    __slots__ = ()
    name = "compute.map"
    traits = (Pure,)
    inputs = operand(AnyType, variadic=True, doc="the tensors (or scalars of the function) that the body uses")
    outputs = result(AnyTensor, variadic=True)
    body_region = region(doc="one index argument for each axis of the results; yields one scalar a result")


@compute.op
class Reduce(_OverIndices):
    """N values reduced over index axes that follow the parallel ones.

    The body yields N scalars for each point; the combiner takes 2N scalars, left then right, and yields N.
    `inits` are N identities of the combiner: the result where an extent is 0, and a value that may be
    combined in any number of times."""

    __slots__ = ()
    name = "compute.reduce"
    traits = (Pure,)
    inputs = operand(AnyType, variadic=True)
    extents = attribute(Dims, doc="sizes of the reduction axes")
    inits = attribute(Array, doc="an identity for each value")
    associative = attribute(Bool, default=True)
    commutative = attribute(Bool, default=True)
    outputs = result(AnyTensor, variadic=True)
    body_region = region(doc="parallel indices, then reduction indices; yields N scalars")
    combiner_region = region(doc="2N scalars; yields N")

    @property
    def parallel_rank(self) -> int:
        return len(self.result_types[0].shape)

    @property
    def space(self) -> tuple[Dim, ...]:
        return (*self.shape, *self.extents)

    @property
    def combiner(self) -> Block:
        return self.regions[1].block

    @property
    def identities(self) -> list[float | int | bool]:
        """`inits` as Python values."""
        return [from_attribute(a) for a in self._inits()]

    def _inits(self) -> tuple[Attribute, ...]:
        inits = self.get("inits")
        return inits.elements if isinstance(inits, ArrayAttr) else ()

    def verify_op(self) -> None:
        super().verify_op()
        types = [signless(t.element) for t in self.result_types]
        given = [a.type if isinstance(a, (FloatAttr, IntegerAttr)) else None for a in self._inits()]
        if given != types:
            raise self.error(f"needs inits of types ({', '.join(map(str, types))}), one for each result")
        _check_arguments(self, self.combiner, types * 2, "combiner")
        _check_yield(self, self.combiner, types, "combiner")
        for op in self.combiner.ops:
            _check_scalar_op(self, op)


class _Reads(Operation):
    __slots__ = ()

    def infer_types(self) -> list[Type]:
        return [signless(self.source.type.element)]  # type: ignore[attr-defined]

    def verify_op(self) -> None:
        type = self.source.type  # type: ignore[attr-defined]
        if len(self.indices) != type.rank:  # type: ignore[attr-defined]
            count = len(self.indices)  # type: ignore[attr-defined]
            raise self.error(f"needs {type.rank} indices into '{type}', but has {count}")
        if self.result.type is not signless(type.element):
            raise self.error(f"must give '{signless(type.element)}', the element of '{type}', not '{self.result.type}'")


@compute.op
class Read(_Reads):
    """The element at the indices, which must be in bounds. Unsigned elements are read as signless."""

    __slots__ = ()
    name = "compute.read"
    traits = (Pure,)
    source = operand(AnyTensor)
    indices = operand(Index, variadic=True)
    element = result(AnyType)
    assembly = "$source `[` $indices `]` attr-dict `:` type($element)"


@compute.op
class ReadIf(_Reads):
    """Where `condition` holds the element at the indices, else 0; the indices matter only where it holds.

    For what `read` cannot say because every read must be in bounds: concatenation, padding.
    """

    __slots__ = ()
    name = "compute.read_if"
    traits = (Pure,)
    condition = operand(BoolLike)
    source = operand(AnyTensor)
    indices = operand(Index, variadic=True)
    element = result(AnyType)
    assembly = "$condition `,` $source `[` $indices `]` attr-dict `:` type($element)"


@compute.op
class Yield(Operation):
    """The values of a region."""

    __slots__ = ()
    name = "compute.yield"
    traits = (Pure, Terminator)
    values = operand(AnyType, variadic=True)
    assembly = "($values^)? attr-dict"


def reads(op: Operation) -> Iterator[Read | ReadIf]:
    """The reads inside a map or reduce."""
    return (inner for inner in op.walk() if isinstance(inner, (Read, ReadIf)))
