"""What every operator is: fields, a shape rule, a precision rule and a definition.

    @nd.operator
    class Tanh(Operator):
        \"\"\"tanh(x).\"\"\"
        name = "nd.tanh"
        x = operand(FloatTensor)
        y = result(FloatTensor)
        precision = "low"

        def infer_types(self): return [self.x.type]
        def define(self, x): return tanh(x)

Register with `dialect.op`. `trace` writes the definition of an operator as `compute` operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal, Protocol, get_args

import attrs

from ..ir.attributes import Attribute, DimsAttr, FactsAttr, IntegerAttr, StringAttr, TensorType, Type, from_attribute
from ..ir.core import Operation, OpResult, Value
from ..ir.definition import Constraint, Dims, Ints
from ..ir.diagnostics import IRError
from ..ir.dims import Dim, DimError, as_dim, product
from ..ir.facts import Facts, Truth, conflict
from ..ir.pass_options import near
from ..ir.registry import Pure
from .expression import Tensor, Trace, broadcast_dims, store
from .scalar import unsupported
from .signature import facts_error

Precision = Literal["low", "low_accumulate", "keep", "follow"]
ONE = as_dim(1)


@attrs.frozen
class Requirement:
    """A relation between dims that must hold when the operator runs; `message` says what it would mean if
    not.

    Where one of several relations has to hold, `relation` is the product of their differences == 0, so that
    it is one relation all the same, and `alternatives` has them one by one, for proofs."""

    relation: Any  # a Relation
    message: str
    alternatives: tuple[Any, ...] = ()

    @staticmethod
    def any_of(relations: Sequence[Any], message: str) -> Requirement:
        """One of several equations holds."""
        if len(relations) == 1:
            return Requirement(relations[0], message)
        return Requirement(product([r.difference for r in relations]).eq(0), message, tuple(relations))

    def holds_always(self) -> bool:
        """Whether it is about numbers only, and true."""
        return not self.relation.symbols and self.relation.evaluate({})  # type: ignore[no-any-return]

    def prove(self, facts: Facts) -> Truth:
        answers = [facts.prove(r) for r in self.alternatives or (self.relation,)]
        if any(a is Truth.YES for a in answers):
            return Truth.YES
        if all(a is Truth.NO for a in answers):
            return Truth.NO
        return facts.prove(self.relation) if self.alternatives else Truth.UNKNOWN


class Builder(Protocol):
    """What `trace` needs of a builder: it inserts an operation at its insertion point."""

    def insert(self, op: Any) -> Any: ...


class Operator(Operation):
    """An operation on tensors whose meaning is its `define`. Subclasses declare fields and:

    - `infer_types`: the result types, the shape rule; raises through `error`.
    - `shape_requirements`: what is taken for granted about dims (optional). That axes that are combined
      broadcast follows from the definition; that reads are in bounds too, unless this method is overridden.
    - `precision`: how mixed precision treats it: `low` runs in low precision, `low_accumulate` on low
      operands with wide accumulation inside, `keep` stays wide, `follow` is low where its operands are.
    - `define`: the definition, on traced tensors, in the order of the operand fields (a list for a variadic
      one)."""

    __slots__ = ()
    traits = (Pure,)
    discardable: ClassVar[tuple[str, ...] | None] = ("variant",)  # the name of the variant that must implement it
    precision: ClassVar[Precision] = "follow"

    def infer_types(self) -> list[Type]:
        raise NotImplementedError(self.op_name)

    def shape_requirements(self) -> Iterable[Requirement]:
        return ()

    def define(self, *operands: Any) -> Any:
        raise NotImplementedError(self.op_name)

    @classmethod
    def check_class(cls) -> None:
        """Raise a ValueError where a class that is registered lacks what an operator needs."""
        for method, wanted in (
            ("infer_types", "infer_types(self), which returns the list of result types"),
            ("define", "define(self, *operands), which returns the result as a traced tensor, or a tuple of them"),
        ):
            if getattr(cls, method) is getattr(Operator, method):
                raise ValueError(f"operator '{cls.name}' (class {cls.__qualname__}) needs {wanted}")
        rules = get_args(Precision)
        if cls.precision not in rules:
            hint = near(str(cls.precision), rules)
            raise ValueError(
                f"operator '{cls.name}' (class {cls.__qualname__}) has precision = {cls.precision!r}, but it must be "
                f"one of {', '.join(rules)}{hint}"
            )

    def requirements(self) -> list[Requirement]:
        """All relations between dims that this operation needs: its shape rule's, those that make the declared
        result types the inferred ones, and those that its definition takes for granted (derived.py). Constant ones
        that hold are left out."""
        from .derived import derived_requirements

        own = [*self.shape_requirements(), *self._result_requirements()]
        silent = type(self).shape_requirements is Operator.shape_requirements
        return [r for r in [*own, *derived_requirements(self, own, bounds=silent)] if not r.holds_always()]

    def _result_requirements(self) -> Iterable[Requirement]:
        for n, (declared, inferred) in enumerate(zip(self.results, self.infer_types())):
            for axis, (d, i) in enumerate(zip(declared.type.shape, inferred.shape)):  # type: ignore[attr-defined]
                if d is not i and d is not None:
                    name = self.value_name(declared, n)
                    yield Requirement(d.eq(i), f"axis {axis} of {name} is declared as {d}, but is {i}")

    def verify_op(self) -> None:
        self.check_elements()
        self.check_ranked()
        if not isinstance(self.get("variant", StringAttr("")), StringAttr):
            raise self.error(f"has variant = {self.get('variant')}, but a variant is named by a string")
        inferred = self.infer_types()
        if len(inferred) != len(self.results):
            raise self.error(f"gives {len(inferred)} results, not {len(self.results)}")
        for n, (declared, type) in enumerate(zip(self.results, inferred)):
            self._check_declared(self.value_name(declared, n), declared.type, type)
        facts = facts_of(self)
        for requirement in self.requirements():
            if requirement.prove(facts) is Truth.NO:
                raise self.error(requirement.message)

    def _check_declared(self, name: str, declared: Type, inferred: Type) -> None:
        same = isinstance(declared, TensorType) and isinstance(inferred, TensorType)
        if not same or declared.element is not inferred.element or declared.rank != inferred.rank:  # type: ignore
            raise self.error(f"gives '{inferred}' for {name}, which is declared as '{declared}'")

    def check_elements(self) -> None:
        """Operands and results have elements that a kernel can hold."""
        for value in (*self.operands, *self.results):
            reason = unsupported(value.type) if isinstance(value.type, TensorType) else None
            if reason is not None:
                position = self.results.index(value) if isinstance(value, OpResult) and value.op is self else 0
                raise self.error(f"cannot work on {self.value_name(value, position)} of type '{value.type}': {reason}")

    def check_ranked(self) -> None:
        for n, value in enumerate(self.operands):
            if isinstance(value.type, TensorType) and any(d is None for d in value.type.shape):
                raise self.error(
                    f"cannot work on {self.value_name(value, n)} of type '{value.type}': name its '?' dims"
                )

    # -- words and checks that shape rules share

    def value_name(self, value: Value, position: int = 0) -> str:
        """`%x`, or which operand or result it is."""
        if value.hint:
            return f"%{value.hint}"
        return f"result {position}" if value in self.results else f"operand {self.operands.index(value)}"

    def normal_axis(self, axis: int, rank: int, what: str = "axis") -> int:
        """`axis` from 0 up; an error names the range allowed."""
        if not -rank <= axis < rank:
            allowed = f"from {-rank} to {rank - 1}" if rank else "none: the tensor has rank 0"
            raise self.error(f"has {what} {axis}, but for rank {rank} the range allowed is {allowed}")
        return axis % rank

    def normal_axes(self, axes: Iterable[int] | None, rank: int) -> list[int]:
        """Distinct axes from 0 up, in order; all where None."""
        found = list(range(rank)) if axes is None else [self.normal_axis(a, rank) for a in axes]
        if len(set(found)) != len(found):
            raise self.error(f"names an axis twice in {list(axes or ())}")
        return sorted(found)

    def same_element(self, values: Sequence[Value]) -> Type:
        """The one element type of `values`; an error names two that differ."""
        types = [v.type.element for v in values]  # type: ignore[attr-defined]
        for value, type in zip(values, types):
            if type is not types[0]:
                first, other = self.value_name(values[0]), self.value_name(value)
                raise self.error(
                    f"needs operands of one element type, but {first} has '{types[0]}' and {other} has "
                    f"'{type}'; insert nd.cast"
                )
        return types[0]

    def broadcast(self, values: Sequence[Value], shapes: Sequence[Sequence[Dim]] | None = None) -> tuple[Dim, ...]:
        """The shape that `values` (or `shapes`, parts of theirs) broadcast to."""
        shapes = shapes or [v.type.dims for v in values]  # type: ignore[attr-defined]
        try:
            return broadcast_dims(*shapes)
        except DimError:
            for requirement in broadcast_requirements(self, values, shapes):
                if requirement.prove(Facts()) is Truth.NO:
                    raise self.error(requirement.message) from None
            raise

    def refuse_number(self, name: str, legal: bool, wanted: str) -> None:
        """An error where the number that is attribute `name` is not `legal`."""
        if not legal:
            raise self.error(f"has {name} = {self.get(name)}, but it must be {wanted}")

    def dims_attribute(self, name: str) -> list[Dim]:
        """An attribute that lists dims, as dims."""
        return as_dims(self.get(name))


def as_dims(value: Attribute | None) -> list[Dim]:
    """The dims of `[2, -1]`, `#stepwell.dims<[m, 4]>`, or a list that mixes them."""
    found = from_attribute(value)
    flat = [d for part in found or () for d in (part if isinstance(part, tuple) else (part,))]
    return [as_dim(d) for d in flat]


def _is_dim_list(value: Any) -> bool:
    elements = getattr(value, "elements", None)
    return elements is not None and all(isinstance(e, (IntegerAttr, DimsAttr)) for e in elements)


DimList = Constraint("a list of dims", lambda a: Dims.holds(a) or Ints.holds(a) or _is_dim_list(a))


def broadcast_requirements(
    op: Operator, values: Sequence[Value], shapes: Sequence[Sequence[Dim]] | None = None
) -> Iterable[Requirement]:
    """That the shapes of `values` broadcast: on each axis sizes are equal or 1."""
    shapes = shapes or [v.type.dims for v in values]  # type: ignore[attr-defined]
    for n, (shape, value) in enumerate(zip(shapes, values)):
        for m in range(n):
            yield from _pair(op, (values[m], shapes[m]), (value, shape))


def _pair(op: Operator, a: tuple[Value, Sequence[Dim]], b: tuple[Value, Sequence[Dim]]) -> Iterable[Requirement]:
    for back in range(1, min(len(a[1]), len(b[1])) + 1):
        d, e = a[1][-back], b[1][-back]
        if d is not e and d is not ONE and e is not ONE:
            relations = [d.eq(e), *(x.eq(1) for x in (d, e) if not x.is_constant)]
            yield Requirement.any_of(relations, _mismatch(op, a, b, back, "neither is 1"))


def equal_requirement(op: Operator, a: Value, axis_a: int, b: Value, axis_b: int, why: str) -> Iterable[Requirement]:
    """That an axis of one tensor is as long as an axis of another."""
    d, e = a.type.dims[axis_a], b.type.dims[axis_b]  # type: ignore[attr-defined]
    if d is not e:
        first, second = _axis(op, a, axis_a), _axis(op, b, axis_b)
        yield Requirement(d.eq(e), f"{why}: {first} is {d}, {second} is {e} ({_types(a, b)})")


def _mismatch(op: Operator, a: tuple[Value, Sequence[Dim]], b: tuple[Value, Sequence[Dim]], back: int, why: str) -> str:
    first = f"{_axis(op, a[0], len(a[1]) - back)} is {a[1][-back]}"
    second = f"{_axis(op, b[0], len(b[1]) - back)} is {b[1][-back]}"
    return f"cannot broadcast: {first}, {second}, and {why} ({_types(a[0], b[0])})"


def _axis(op: Operator, value: Value, axis: int) -> str:
    return f"axis {axis} of {op.value_name(value)}"


def _types(a: Value, b: Value) -> str:
    return f"'{a.type}' and '{b.type}'"


# ---------------------------------------------------------------- facts and tracing


@lru_cache(maxsize=256)
def facts_from(attribute: FactsAttr | None) -> Facts:
    return Facts(attribute.relations if attribute is not None else ())


def facts_of(op: Operation) -> Facts:
    """The facts of the function that `op`, or where it is not inserted its operands, stand in. IRError where they
    exclude each other."""
    scope: Operation | None = op.parent_op
    if scope is None and op.operands:
        owner = op.operands[0].owner
        scope = owner.parent_op
    while scope is not None:
        found = scope.get("stepwell.facts")
        if isinstance(found, FactsAttr):
            try:
                return facts_from(found)
            except DimError:
                raise facts_error(scope, conflict(found.relations) or found.relations) from None
        scope = scope.parent_op
    return facts_from(None)


def trace(
    op: Operator, operands: Sequence[Value], builder: Builder, facts: Facts | None = None, met: Any = None
) -> list[Value]:
    """Write the definition of `op` on `operands` (of the types of its own) as compute operations at the
    insertion point of `builder`. The values returned have the declared result types; where `met` is told of axes
    of two sizes that meet (derived.py), the inferred ones."""
    with Trace(builder.insert, facts or facts_of(op), op.location, met):
        try:
            results = _defined(op, operands)
            types = [r.type for r in op.results] if met is None else op.infer_types()
            for n, (t, type_) in enumerate(zip(results, types)) if met is not None else ():
                for axis, (d, e) in enumerate(zip(t.shape, type_.shape)):  # type: ignore[attr-defined]
                    met.result(d, e, axis, n)
            values = [store(t, type_) for t, type_ in zip(results, types)]  # type: ignore[arg-type]
        except IRError:
            raise
        except DimError as error:
            if met is not None and met.needs:
                raise
            raise op.error(f"cannot be defined for these sizes: {error.message}") from error
        except Exception as error:
            raise op.error(f"cannot be defined: {_raised(op, error)}") from error
    for value, old in zip(values, op.results):
        value.hint = value.hint or old.hint
    return values


def _defined(op: Operator, operands: Sequence[Value]) -> tuple[Tensor, ...]:
    """What `define` returns, which must fit the results."""
    made = op.define(*_handles(op, operands))
    results = made if isinstance(made, tuple) else (made,)
    if len(results) != len(op.results):
        raise op.error(f"is defined by {len(results)} tensors, but has {len(op.results)} results")
    for n, (t, r) in enumerate(zip(results, op.results)):
        name = op.value_name(r, n)
        if not isinstance(t, Tensor):
            raise op.error(f"is defined by a {type(t).__name__}, but {name} must be a traced tensor")
        if t.rank != r.type.rank:  # type: ignore[attr-defined]
            raise op.error(f"is defined by a tensor of rank {t.rank}, but its shape rule gives '{r.type}' for {name}")
    return results


def _raised(op: Operator, error: Exception) -> str:
    """`define of Swish raised TypeError: ... (swish.py:20)`."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.name == "define"] or list(frames)
    return f"define of {type(op).__name__} raised {type(error).__name__}: {error} ({own[-1].filename}:{own[-1].lineno})"


def _handles(op: Operator, operands: Sequence[Value]) -> list[Any]:
    """Traced tensors, grouped as the operand fields are."""
    rest = iter([Tensor.of(v) for v in operands])
    handles: list[Any] = []
    for field, group in zip(op.definition.operands.values(), op.definition.operand_groups(op).values()):
        tensors = [next(rest) for _ in group]
        handles.append(tensors if field.variadic else tensors[0] if tensors else None)
    return handles
