"""Traced scalars: the arithmetic inside the regions of a definition.

A `Scalar` is an SSA value with its type, where integer types keep their sign (the value itself is signless).
Operations go to the innermost open `Body` and are shared there: the same operation on the same values is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..ir.attributes import (
    Attribute,
    DimsAttr,
    FloatType,
    IndexType,
    IntegerAttr,
    IntegerType,
    Location,
    Type,
    f32,
    f64,
    i1,
    i64,
    index,
    unknown,
)  # fmt: skip
from ..ir.core import Block, Value
from ..ir.dims import Dim, DimLike, as_dim
from ..ir.registry import OPERATIONS
from . import arith, dim, math  # noqa: F401 (their operations are looked up by name)
from .compute import Yield, signless
from .scalar import constant as constant_attribute

_bodies: ContextVar[tuple[Body, ...]] = ContextVar("bodies", default=())


class Body:
    """A region's block while it is being written."""

    def __init__(self, types: Sequence[Type], hints: Sequence[str | None] = (), location: Location = unknown) -> None:
        self.block = Block(types, hints)
        self.location = location
        self.made: dict[Any, Any] = {}  # what was emitted, by operation and operands

    def emit(self, name: str, operands: Sequence[Value], type: Type, **properties: Attribute) -> Value:
        """The result of an operation, made unless this body has it already."""
        key = (name, tuple(operands), type, tuple(properties.items()))
        found = self.made.get(key)
        if found is None:
            op = OPERATIONS[name](operands, [type], properties, location=self.location)
            self.block.append(op)
            found = self.made[key] = op.result
        return found

    def finish(self, values: Iterable[Scalar]) -> None:
        """Erase what `values` do not need, and yield them."""
        self.block.append(Yield([v.value for v in values], location=self.location))
        op = self.block.terminator.previous
        while op is not None:
            before = op.previous
            if not op.result.uses:
                op.erase()
            op = before

    def discard(self) -> None:
        """Erase what was written."""
        op = self.block.last
        while op is not None:
            op.erase()
            op = self.block.last


def current_body() -> Body:
    bodies = _bodies.get()
    if not bodies:
        raise RuntimeError("scalars can only be computed inside the function of a map or a reduction")
    return bodies[-1]


@contextmanager
def writing(body: Body) -> Iterator[Body]:
    """Make `body` the innermost one."""
    token = _bodies.set((*_bodies.get(), body))
    try:
        yield body
    finally:
        _bodies.reset(token)


def is_unsigned(type: Type) -> bool:
    """i1 counts as unsigned: true is 1."""
    return type is i1 or (isinstance(type, IntegerType) and type.signedness == "u")


def is_float(type: Type) -> bool:
    return isinstance(type, FloatType)


def wide(type: Type) -> Type:
    """The type in which a definition holds elements of `type`: f32 for the narrower floats, else itself."""
    return f32 if isinstance(type, FloatType) and type.width < 32 else type


class Arithmetic:
    """Python's operators, for scalars and tensors alike. `==` stays identity: use `equal`."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return _functions()["add"](self, other)

    def __radd__(self, other: Any) -> Any:
        return _functions()["add"](other, self)

    def __sub__(self, other: Any) -> Any:
        return _functions()["sub"](self, other)

    def __rsub__(self, other: Any) -> Any:
        return _functions()["sub"](other, self)

    def __mul__(self, other: Any) -> Any:
        return _functions()["mul"](self, other)

    def __rmul__(self, other: Any) -> Any:
        return _functions()["mul"](other, self)

    def __truediv__(self, other: Any) -> Any:
        return _functions()["div"](self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _functions()["div"](other, self)

    def __neg__(self) -> Any:
        return _functions()["neg"](self)

    def __and__(self, other: Any) -> Any:
        return _functions()["bit_and"](self, other)

    def __or__(self, other: Any) -> Any:
        return _functions()["bit_or"](self, other)

    def __xor__(self, other: Any) -> Any:
        return _functions()["bit_xor"](self, other)

    def __invert__(self) -> Any:
        return _functions()["bit_xor"](self, -1)

    def __lt__(self, other: Any) -> Any:
        return _functions()["compare"]("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return _functions()["compare"]("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return _functions()["compare"]("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return _functions()["compare"]("ge", self, other)


def _functions() -> dict[str, Callable[..., Any]]:
    from . import expression

    return vars(expression)


class Scalar(Arithmetic):
    __slots__ = ("type", "value")

    def __init__(self, value: Value, type: Type) -> None:
        self.value = value
        self.type = type


def emit(name: str, operands: Sequence[Scalar], type: Type, **properties: Attribute) -> Scalar:
    """One operation of `arith` or `math` with a result of `type`."""
    return Scalar(current_body().emit(name, [s.value for s in operands], signless(type), **properties), type)


def constant(value: float | int | bool, type: Type) -> Scalar:
    """A number as a scalar of `type`."""
    return emit("arith.constant", [], type, value=constant_attribute(value, signless(type)))


def dim_value(d: DimLike) -> Scalar:
    """A dim as a number of type index."""
    d = as_dim(d)
    if d.is_constant:
        return constant(d.value, index)
    return emit("dim.value", [], index, value=DimsAttr((d,)))


def scalars(*values: Any) -> list[Scalar]:
    """Python numbers and dims as scalars of the type that the others have."""
    types = [v.type for v in values if isinstance(v, Scalar)]
    if any(t is not types[0] for t in types):
        raise TypeError(f"scalars of types {', '.join(map(str, types))} do not mix; use cast")
    return [_scalar(v, types[0]) for v in values]


def _scalar(value: Any, type: Type) -> Scalar:
    if isinstance(value, Scalar):
        return value
    return dim_value(value) if isinstance(value, Dim) else constant(value, type)


def pick(type: Type, floating: str | None, signed: str | None, unsigned: str | None = None) -> str:
    """The operation for `type` among three; TypeError where there is none."""
    name = floating if is_float(type) else (unsigned or signed) if is_unsigned(type) else signed
    if name is None:
        raise TypeError(f"no such operation on '{type}'")
    return name


# MLIR's numbers of the predicates.
_INTEGER = {name: n for n, name in enumerate(["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])}
_FLOAT = {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "une": 13}


def compare_scalars(predicate: str, a: Scalar, b: Scalar) -> Scalar:
    """eq, ne, lt, le, gt or ge. A comparison with NaN is false, save ne."""
    if is_float(a.type):
        kind = "une" if predicate == "ne" else "o" + predicate
        return emit("arith.cmpf", [a, b], i1, predicate=IntegerAttr(_FLOAT[kind], i64))
    sign = "" if predicate in ("eq", "ne") else "u" if is_unsigned(a.type) else "s"
    return emit("arith.cmpi", [a, b], i1, predicate=IntegerAttr(_INTEGER[sign + predicate], i64))


def select(condition: Scalar, a: Any, b: Any) -> Scalar:
    a, b = scalars(a, b) if isinstance(a, Scalar) or isinstance(b, Scalar) else (a, b)
    return emit("arith.select", [condition, a, b], a.type)


def cast(x: Scalar, type: Type) -> Scalar:
    """`x` as a scalar of `type`. Float to integer truncates and saturates, NaN gives 0; to i1 is `x != 0`.
    Integers wrap. A conversion to a float rounds once."""
    if x.type is type:
        return x
    if type is i1:
        return compare_scalars("ne", x, constant(0, x.type))
    if isinstance(type, FloatType):
        return _to_float(x, type)
    if is_float(x.type):
        through = i64 if isinstance(type, IndexType) else type
        whole = emit("arith.fptoui" if is_unsigned(through) else "arith.fptosi", [x], through)
        return cast(whole, type)
    return _to_integer(x, type)


def _to_float(x: Scalar, type: FloatType) -> Scalar:
    if isinstance(x.type, FloatType):
        source = _widened_from(x)
        if source is not None and source.type is type:
            return source
        if x.type.width == type.width:  # f16 and bf16, the two f8
            return emit("arith.truncf", [emit("arith.extf", [x], f32)], type)
        return emit("arith.extf" if x.type.width < type.width else "arith.truncf", [x], type)
    if isinstance(x.type, IndexType):
        x = cast(x, i64)
    return emit("arith.uitofp" if is_unsigned(x.type) else "arith.sitofp", [x], type)


def _widened_from(x: Scalar) -> Scalar | None:
    """The narrower float that x is the exact widening of."""
    op = x.value.defining_op
    if op is None or op.op_name != "arith.extf":
        return None
    return Scalar(op.operands[0], op.operands[0].type)


def _to_integer(x: Scalar, type: Type) -> Scalar:
    unsigned = is_unsigned(x.type)
    if isinstance(type, IndexType) or isinstance(x.type, IndexType):
        return emit("arith.index_castui" if unsigned else "arith.index_cast", [x], type)
    before, after = x.type.width, type.width  # type: ignore[attr-defined]
    if before == after:
        return Scalar(x.value, type)
    if before > after:
        return emit("arith.trunci", [x], type)
    return emit("arith.extui" if unsigned else "arith.extsi", [x], type)


def default_float(type: Type) -> Type:
    """The float type in which a whole number of `type` is averaged: f32 for the narrow ones, else f64."""
    return f32 if isinstance(type, IntegerType) and type.width <= 16 else f64
