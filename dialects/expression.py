"""Traced tensors: a definition is written with these, and tracing it gives `compute` operations.

    e = materialize(exp(x - reduce_max(x, [-1], keepdims=True)))
    return e / reduce_sum(e, [-1], keepdims=True)

A `Tensor` is a shape, an element type and a function from indices to a `Scalar`: elementwise operations
compose these functions, so that a chain of them is one `compute.map`. A reduction is a `compute.reduce` at
once. Floats are held in the wider of their element type and f32, and round once, where `store` writes a
result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from ..ir.attributes import (
    ArrayAttr,
    Attribute,
    DimsAttr,
    IntegerAttr,
    IntegerType,
    Location,
    TensorType,
    Type,
    i1,
    i64,
    index,
    unknown,
)  # fmt: skip
from ..ir.core import Operation, OpResult, Region, Value
from ..ir.dims import Dim, DimError, DimLike, as_dim, bcast, product
from ..ir.facts import Facts, Truth
from . import expression_scalar as on_scalars
from .compute import Map, Read, ReadIf, Reduce, signless
from .expression_scalar import (
    Arithmetic,
    Body,
    Scalar,
    compare_scalars,
    current_body,
    dim_value,
    emit,
    is_float,
    is_unsigned,
    pick,
    scalars,
    select,
    wide,
    writing,
)  # fmt: skip
from .scalar import constant as constant_attribute

ZERO, ONE = as_dim(0), as_dim(1)
_HINTS = "ijkl"
_trace: ContextVar[Trace | None] = ContextVar("trace", default=None)


Meeting = Callable[[Dim, Dim, "int | None", "Value | None"], None]


class Trace:
    """One definition being traced: where its operations go, and what is known about dims. `met` is told of each
    axis of size d that is broadcast to one of size r where d is not r, how far from the right it is, and the index."""

    def __init__(
        self, insert: Callable[[Operation], Any], facts: Facts, location: Location = unknown, met: Meeting | None = None
    ) -> None:
        self.insert = insert
        self.facts = facts
        self.location = location
        self.met = met
        self.made: set[Operation] = set()

    def add(self, op: Operation) -> Operation:
        self.insert(op)
        self.made.add(op)
        return op

    def __enter__(self) -> Trace:
        self._token = _trace.set(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _trace.reset(self._token)


def current() -> Trace:
    trace = _trace.get()
    if trace is None:
        raise RuntimeError("traced tensors can only be used inside a definition that is being traced")
    return trace


class Tensor(Arithmetic):
    """`shape`, the element `type` (wide for floats) and `at`; `value` where it is materialised."""

    def __init__(self, shape: Iterable[DimLike], type: Type, at: Callable[..., Scalar], value: Value | None = None):
        self.shape: tuple[Dim, ...] = tuple(map(as_dim, shape))
        self.type = type
        self.value = value
        self._at = at

    @staticmethod
    def of(value: Value) -> Tensor:
        """The tensor that an SSA value holds."""
        type = value.type
        if not isinstance(type, TensorType):
            raise TypeError(f"'{type}' is not a tensor type")
        return Tensor(type.dims, wide(type.element), lambda *at: _read(value, at), value)

    @property
    def rank(self) -> int:
        return len(self.shape)

    def at(self, *indices: Any) -> Scalar:
        """The element at `indices` (scalars, ints or dims); must be in bounds. Usable inside a body only."""
        if len(indices) != self.rank:
            raise TypeError(f"needs {self.rank} indices, got {len(indices)}")
        body = current_body()
        at = [as_index(i) for i in indices]
        key = (self, *(i.value for i in at))
        if key not in body.made:
            body.made[key] = self._at(*at)
        return body.made[key]

    def at_if(self, condition: Scalar, *indices: Any) -> Scalar:
        """The element where `condition` holds, else 0; the indices matter only where it holds. Needs a
        value."""
        if self.value is None:
            raise TypeError("at_if needs a materialised tensor")
        return _read(self.value, [as_index(i) for i in indices], condition)


def as_index(value: Any) -> Scalar:
    """An index scalar: of a Python int, a dim, or a scalar of any integer type."""
    return on_scalars.cast(value, index) if isinstance(value, Scalar) else dim_value(value)


def _read(value: Value, at: Sequence[Scalar], condition: Scalar | None = None) -> Scalar:
    element: Type = value.type.element  # type: ignore[attr-defined]
    op, first = (Read, []) if condition is None else (ReadIf, [condition.value])
    read = current_body().emit(op.name, [*first, value, *(i.value for i in at)], signless(element))
    return on_scalars.cast(Scalar(read, element), wide(element))


# ---------------------------------------------------------------- shapes


def equal_dims(a: Dim, b: Dim) -> bool:
    """Whether two dims are the same or proved equal under the facts of the definition."""
    return a is b or current().facts.prove(a.eq(b)) is Truth.YES


def broadcast_index(d: Dim, result: Dim, i: Scalar, back: int | None = None) -> Scalar:
    """The index along an axis of size `d` for index `i` along an axis of size `result` that it is broadcast
    to; `back` is how far from the right the axis is."""
    if d is ONE:
        return dim_value(0)
    trace = current()
    if trace.met is not None and d is not result:
        trace.met(d, result, back, i.value)
    if equal_dims(d, result) or current().facts.prove(d.ne(1)) is Truth.YES:
        return i
    return select(compare_scalars("eq", dim_value(d), dim_value(1)), dim_value(0), i)


def broadcast_to(t: Tensor, shape: Sequence[DimLike]) -> Tensor:
    """`t` broadcast to `shape`, aligned at the right."""
    dims = tuple(map(as_dim, shape))
    skip = len(dims) - t.rank
    if skip < 0:
        raise DimError(f"a tensor of rank {t.rank} does not broadcast to rank {len(dims)}")

    def at(*indices: Scalar) -> Scalar:
        axes = enumerate(zip(t.shape, dims[skip:], indices[skip:]))
        return t.at(*(broadcast_index(d, r, i, t.rank - n) for n, (d, r, i) in axes))

    return Tensor(dims, t.type, at)


def broadcast_dims(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """The shape that all of `shapes` broadcast to; DimError where constants do not."""
    rank = max(map(len, shapes), default=0)
    padded = [(ONE,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(bcast(*dims) for dims in zip(*padded))


def normal_axes(axes: Iterable[int], rank: int) -> list[int]:
    """Axes from 0 up, in order."""
    return sorted(a % rank for a in axes)


# ---------------------------------------------------------------- maps


def _probe(types: Sequence[Type], function: Callable[..., Any], arguments: Sequence[Type]) -> Any:
    """What `function` returns on placeholder scalars; nothing that it emits stays."""
    with writing(Body([signless(t) for t in types])) as body:
        made = function(*(Scalar(v, t) for v, t in zip(body.block.arguments, arguments)))
        body.discard()
    return made


def from_function(shape: Sequence[DimLike], function: Callable[..., Scalar]) -> Tensor:
    """The tensor whose element at (i, j, ...) is `function(i, j, ...)`."""
    types = [index] * len(shape)
    return Tensor(shape, _probe(types, function, types).type, function)


def named(hint: str, t: Tensor) -> Tensor:
    """`t`, whose elements are called `hint` in printed code."""

    def at(*indices: Scalar) -> Scalar:
        scalar = t.at(*indices)
        scalar.value.hint = scalar.value.hint or hint
        return scalar

    return Tensor(t.shape, t.type, at, t.value)


gather_index = from_function  # a tensor that reads another: gather_index(shape, lambda i, j: t.at(i, j + 1))


def elementwise(function: Callable[..., Scalar], *operands: Any) -> Tensor:
    """`function` on the elements of tensors, broadcast, and on numbers as they are."""
    tensors = [t for t in operands if isinstance(t, Tensor)]
    shape = _met_shape([t.shape for t in tensors])
    spread = [t if t.shape == () == shape else broadcast_to(t, shape) for t in tensors]

    def on(values: Iterable[Scalar]) -> Scalar:
        rest = iter(values)
        return function(*(next(rest) if isinstance(t, Tensor) else t for t in operands))

    types = [t.type for t in tensors]
    type = _probe(types, lambda *values: on(values), types).type
    return Tensor(shape, type, lambda *at: on(t.at(*at) for t in spread))


def _met_shape(shapes: Sequence[Sequence[Dim]]) -> tuple[Dim, ...]:
    """The shape that `shapes` broadcast to; where constants do not, `met` is told which."""
    try:
        return broadcast_dims(*shapes)
    except DimError:
        met = current().met
        for back in range(1, max(map(len, shapes)) + 1) if met is not None else ():
            found = [s[-back] for s in shapes if len(s) >= back and s[-back].is_constant and s[-back] is not ONE]
            for d in found:
                if d is not found[0]:
                    met(found[0], d, back, None)  # type: ignore[misc]
        raise


def lifted(function: Callable[..., Scalar]) -> Callable[..., Any]:
    """A function of scalars that works on tensors too, element by element."""

    @functools.wraps(function)
    def call(*operands: Any, **static: Any) -> Any:
        if any(isinstance(v, Tensor) for v in operands):
            return elementwise(functools.partial(function, **static), *operands)
        return function(*operands, **static)

    return call


def constant(value: float | int | bool, type: Type) -> Tensor:
    """A rank 0 tensor."""
    return Tensor((), wide(type), lambda: on_scalars.constant(value, wide(type)))


def dim(d: DimLike, type: Type = index) -> Tensor:
    """A dim as a rank 0 tensor of `type`."""
    return Tensor((), type, lambda: on_scalars.cast(dim_value(d), type))


def _hints(rank: int) -> list[str]:
    return [_HINTS[n] if n < len(_HINTS) else f"i{n}" for n in range(rank)]


def materialize(t: Tensor, type: TensorType | None = None) -> Tensor:
    """`t` as a value of its own: a `compute.map`, unless it is the value of one. `type` narrows the
    elements."""
    type = type or TensorType(t.shape, t.type)
    if isinstance(t.value, OpResult) and t.value.op in current().made and t.value.type is type:
        return t
    element = type.element
    body, _ = _written([index] * t.rank, _hints(t.rank), lambda *at: on_scalars.cast(t.at(*at), element))
    region = Region([body.block])
    op = current().add(Map(_inputs(body), [type], regions=[region], location=current().location))
    return Tensor.of(op.result)


def store(t: Tensor, type: TensorType) -> Value:
    """The value of `t` as a result of `type`: the one place where floats round."""
    value = materialize(t, type).value
    assert value is not None
    return value


def _inputs(*bodies: Body) -> list[Value]:
    """The values from outside that bodies use, in order of use."""
    inside = {v for body in bodies for op in body.block.ops for v in op.results}
    arguments = {v for body in bodies for v in body.block.arguments}
    used = (v for body in bodies for op in body.block.ops for v in op.operands)
    return list(dict.fromkeys(v for v in used if v not in inside and v not in arguments))


# ---------------------------------------------------------------- reductions


def reduce(
    shape: Sequence[DimLike],
    extents: Sequence[DimLike],
    function: Callable[..., Any],
    combiner: Callable[..., Any],
    inits: Sequence[float | int | bool],
    associative: bool = True,
    commutative: bool = True,
) -> tuple[Tensor, ...]:
    """N values reduced over `extents` for each point of `shape`. `function(*parallel, *reduced)` gives N
    scalars, `combiner(*left, *right)` N of 2N; `inits` are its identities. N is the number of `inits`."""
    rank = len(shape) + len(extents)
    body, types = _written([index] * rank, _hints(rank), function)
    names = [side + (str(n) if len(types) > 1 else "") for side in "lr" for n in range(len(types))]
    combine, _ = _written(types * 2, names, combiner)
    properties: dict[str, Attribute] = {
        "extents": DimsAttr(tuple(map(as_dim, extents))),
        "inits": ArrayAttr(tuple(constant_attribute(v, signless(t)) for v, t in zip(inits, types))),
    }
    for name, holds in (("associative", associative), ("commutative", commutative)):
        if not holds:
            properties[name] = IntegerAttr(0, i1)
    results = [TensorType(tuple(map(as_dim, shape)), t) for t in types]
    regions = [Region([body.block]), Region([combine.block])]
    inputs = _inputs(body, combine)
    op = current().add(Reduce(inputs, results, properties, regions=regions, location=current().location))
    return tuple(Tensor.of(r) for r in op.results)


def _written(types: Sequence[Type], hints: Sequence[str], function: Callable[..., Any]) -> tuple[Body, list[Type]]:
    """A body with arguments of `types` that yields what `function` returns of them, and the types yielded."""
    with writing(Body([signless(t) for t in types], hints, current().location)) as body:
        values = _many(function(*(Scalar(v, t) for v, t in zip(body.block.arguments, types))))
        body.finish(values)
    return body, [v.type for v in values]


def _many(values: Any) -> tuple[Scalar, ...]:
    return values if isinstance(values, tuple) else (values,)


def contract(shape: Sequence[DimLike], extents: Sequence[DimLike], function: Callable[..., Scalar]) -> Tensor:
    """The sum of `function(*parallel, *reduced)` over `extents`, for each point of `shape`."""
    return reduce(shape, extents, function, add, [0])[0]


def split_axes(shape: Sequence[Dim], axes: Iterable[int]) -> tuple[list[Dim], list[Dim]]:
    """The dims that stay and those on `axes`."""
    gone = set(normal_axes(axes, len(shape)))
    stay = [d for n, d in enumerate(shape) if n not in gone]
    return stay, [d for n, d in enumerate(shape) if n in gone]


def merged(parallel: Sequence[Any], reduced: Sequence[Any], axes: Iterable[int]) -> list[Any]:
    """Indices in the order of the tensor that is reduced over `axes`."""
    rank = len(parallel) + len(reduced)
    gone, stay, away = set(normal_axes(axes, rank)), iter(parallel), iter(reduced)
    return [next(away) if n in gone else next(stay) for n in range(rank)]


def over_axes(t: Tensor, axes: Iterable[int], combiner: Callable[..., Scalar], init: Any, keepdims: bool) -> Tensor:
    """`t` reduced over `axes` with a combiner of two scalars."""
    axes = normal_axes(axes, t.rank)
    stay, gone = split_axes(t.shape, axes)
    made = reduce(stay, gone, lambda *at: t.at(*merged(at[: len(stay)], at[len(stay) :], axes)), combiner, [init])[0]
    return keep_axes(made, axes) if keepdims else made


def keep_axes(t: Tensor, axes: Sequence[int]) -> Tensor:
    """A reduced tensor with the `axes` that it lost put back as ones."""
    rank, gone = t.rank + len(axes), set(axes)
    shape, rest = [], iter(t.shape)
    for n in range(rank):
        shape.append(ONE if n in gone else next(rest))
    return Tensor(shape, t.type, lambda *at: t.at(*(i for n, i in enumerate(at) if n not in gone)))


def reduce_sum(t: Tensor, axes: Iterable[int], keepdims: bool = False) -> Tensor:
    return over_axes(t, axes, add, 0, keepdims)


def reduce_prod(t: Tensor, axes: Iterable[int], keepdims: bool = False) -> Tensor:
    return over_axes(t, axes, mul, 1, keepdims)


def reduce_max(t: Tensor, axes: Iterable[int], keepdims: bool = False) -> Tensor:
    return over_axes(t, axes, maximum, lowest(t.type), keepdims)


def reduce_min(t: Tensor, axes: Iterable[int], keepdims: bool = False) -> Tensor:
    return over_axes(t, axes, minimum, highest(t.type), keepdims)


def lowest(type: Type) -> float | int:
    """The identity of maximum: -inf, or the least integer."""
    return -highest(type) - (not is_float(type)) if not is_unsigned(type) else 0


def highest(type: Type) -> float | int:
    """The identity of minimum."""
    if is_float(type):
        return float("inf")
    width = type.width if isinstance(type, IntegerType) else 64
    return (1 << width) - 1 if is_unsigned(type) else (1 << (width - 1)) - 1


def count(t: Tensor, axes: Iterable[int], type: Type) -> Tensor:
    """How many elements `axes` hold, as a rank 0 tensor of float `type`."""
    return dim(product(split_axes(t.shape, axes)[1]), type)


def reduce_mean(t: Tensor, axes: Iterable[int], keepdims: bool = False) -> Tensor:
    """The sum over the count: NaN over nothing."""
    axes = list(axes)
    return reduce_sum(t, axes, keepdims) / count(t, axes, t.type)


def _before(value: Scalar, at: Scalar, other: Scalar, other_at: Scalar) -> Scalar:
    """Whether (value, at) is chosen by argmax before the other: larger, or equal and earlier; NaN is
    largest."""
    first = (value > other) | (~(value < other) & (at < other_at))
    if not is_float(value.type):
        return first
    nan, other_nan = ne(value, value), ne(other, other)
    return select(nan ^ other_nan, nan, first)


def reduce_argmax(t: Tensor, axes: Iterable[int], keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """(values, indices): the maximum over `axes` and its first index (i64, row-major over several axes). NaN
    is larger than all numbers."""
    axes = normal_axes(axes, t.rank)
    stay, gone = split_axes(t.shape, axes)

    def point(*at: Scalar) -> tuple[Scalar, Scalar]:
        reduced = at[len(stay) :]
        return t.at(*merged(at[: len(stay)], reduced, axes)), on_scalars.cast(flat_index(reduced, gone), i64)

    def choose(v: Scalar, i: Scalar, w: Scalar, j: Scalar) -> tuple[Scalar, Scalar]:
        left = _before(v, i, w, j)
        return select(left, v, w), select(left, i, j)

    made = reduce(stay, gone, point, choose, [lowest(t.type), highest(i64)])
    values, indices = (keep_axes(m, axes) if keepdims else m for m in made)
    return values, indices


def flat_index(at: Sequence[Scalar], shape: Sequence[Dim]) -> Scalar:
    """The row-major position of an index into `shape`."""
    flat: Scalar | None = None
    for i, d in zip(at, shape):
        flat = i if flat is None else flat * dim_value(d) + i
    return dim_value(0) if flat is None else flat


# ---------------------------------------------------------------- functions of scalars and tensors


def _binary(floating: str | None, signed: str | None, unsigned: str | None = None, doc: str = "") -> Callable[..., Any]:
    def function(a: Any, b: Any) -> Scalar:
        a, b = scalars(a, b)
        return emit(pick(a.type, floating, signed, unsigned), [a, b], a.type)

    function.__doc__ = doc
    return lifted(function)


def _unary(floating: str | None, signed: str | None = None, doc: str = "") -> Callable[..., Any]:
    def function(a: Scalar) -> Scalar:
        return emit(pick(a.type, floating, signed), [a], a.type)

    function.__doc__ = doc
    return lifted(function)


add = _binary("arith.addf", "arith.addi")
sub = _binary("arith.subf", "arith.subi")
mul = _binary("arith.mulf", "arith.muli")
div = _binary("arith.divf", None, doc="True division, of floats only.")
trunc_remainder = _binary("arith.remf", "arith.remsi", "arith.remui", doc="The sign is that of the dividend.")
maximum = _binary("arith.maximumf", "arith.maxsi", "arith.maxui", doc="NaN where one is NaN.")
minimum = _binary("arith.minimumf", "arith.minsi", "arith.minui", doc="NaN where one is NaN.")
bit_and = _binary(None, "arith.andi")
bit_or = _binary(None, "arith.ori")
bit_xor = _binary(None, "arith.xori")
index_quotient = _binary(None, "arith.divui", doc="Of whole numbers that are not negative.")
index_remainder = _binary(None, "arith.remui", doc="Of whole numbers that are not negative.")
floor_quotient = _binary(None, "arith.floordivsi", "arith.divui")
power = _binary("math.powf", "math.ipowi", doc="a to the power of b.")
copysign = _binary("math.copysign", None)

exp, exp2, expm1 = _unary("math.exp"), _unary("math.exp2"), _unary("math.expm1")
log, log2, log1p = _unary("math.log"), _unary("math.log2"), _unary("math.log1p")
sqrt, rsqrt, erf, tanh = _unary("math.sqrt"), _unary("math.rsqrt"), _unary("math.erf"), _unary("math.tanh")
sin, cos = _unary("math.sin"), _unary("math.cos")
floor, ceil, round_even = _unary("math.floor"), _unary("math.ceil"), _unary("math.roundeven")


@lifted
def neg(x: Scalar) -> Scalar:
    """-x; integers wrap."""
    return emit("arith.negf", [x], x.type) if is_float(x.type) else 0 - x  # type: ignore[no-any-return]


@lifted
def abs(x: Scalar) -> Scalar:
    """|x|; the least integer stays itself."""
    return x if is_unsigned(x.type) else emit(pick(x.type, "math.absf", "math.absi"), [x], x.type)


def compare(predicate: str, a: Any, b: Any) -> Any:
    """eq, ne, lt, le, gt or ge, as i1. A comparison with NaN is false, save ne."""
    return lifted(lambda x, y: compare_scalars(predicate, *scalars(x, y)))(a, b)


equal = functools.partial(compare, "eq")
ne = functools.partial(compare, "ne")
where = lifted(select)


def cast(x: Any, type: Type) -> Any:
    """`x` with elements of `type`, inside a definition: see expression_scalar.cast."""
    return lifted(lambda s: on_scalars.cast(s, type))(x)
