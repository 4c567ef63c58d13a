"""How the dim symbols of a function are bound from the shapes and scalars of a call.

A symbol is solved from an argument axis in which it is the one unknown, linearly (`2*s`, `s+1`), or is an
`index` argument declared to be it. The plan is made once; then every axis and every fact is checked."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from ..ir.attributes import Location, StringAttr, TensorType, Type, index
from ..ir.core import Operation
from ..ir.diagnostics import Diagnostic, IRError, find_source
from ..ir.dims import Dim, DimError, Relation, compile_dims, linear_in, solve
from ..ir.facts import conflict
from .func import FACTS, FuncOp
from .scalar import unsupported

_HOLDS = {"==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt}
# Where a function's facts are written: after `where`, or in the generic form's attribute. Comments are stepped over.
_WHERE = re.compile(r"//[^\n]*|(?<![\w$.@%#\"])(?P<at>where|stepwell\.facts)\b")


@attrs.frozen
class Parameter:
    """One argument of a function; `dim` is the symbol that an index argument is."""

    name: str
    type: Type
    location: Location
    dim: str | None = None


@attrs.frozen
class Axis:
    """A size that a call gives: axis `axis` of argument `parameter`, or its value where `axis` is None."""

    parameter: int
    axis: int | None
    dim: Dim


@attrs.frozen
class Signature:
    """The parameters of a function, its symbols, and where each is bound (`plan`, in order)."""

    name: str
    location: Location
    parameters: tuple[Parameter, ...]
    results: tuple[Type, ...]
    symbols: tuple[str, ...]
    facts: tuple[Relation, ...]
    axes: tuple[Axis, ...]
    plan: tuple[tuple[str, int], ...]  # symbol, index into axes
    _direct: tuple[int | None, ...]  # for each symbol, the axis that is it, where all symbols have one
    _sizes: Callable[[Sequence[int]], tuple[int, ...]]
    _sides: Callable[[Sequence[int]], tuple[int, ...]]

    @staticmethod
    def of(function: FuncOp) -> Signature:
        """The signature of a function; IRError for a symbol that no argument can bind, and for a type that no array
        or number has."""
        parameters = tuple(_parameters(function))
        check_types(function)
        axes = tuple(_axes(function, parameters))
        symbols = function.symbols
        plan = tuple(_plan(function, parameters, axes))
        found = dict(plan)
        direct = tuple(found[s] if axes[found[s]].dim is Dim.symbol(s) else None for s in symbols)
        sides = [side for r in function.relations for side in (r.lhs, r.rhs)]
        return Signature(
            function.sym_name, function.location, parameters, function.type.results, symbols,
            function.relations, axes, plan, direct, compile_dims([a.dim for a in axes], symbols),
            compile_dims(sides, symbols),
        )  # fmt: skip

    def bind(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """The values of `symbols` for a call: a shape for each tensor argument, the value for each scalar.
        IRError lists every size and fact that does not fit."""
        given = self._given(arguments)
        for n, size in enumerate(given):
            if size < 0:
                raise IRError(f"@{self.name}: {self.place(n)} is {size}, but a dim is not negative", self._location(n))
        values = self._solve(given)
        try:
            fits = self._sizes(values) == given and all(self._facts_hold(values))
        except DimError as error:
            raise self._no_size(values, error) from None
        if not fits:
            raise IRError(list(self._failures(given, values)))
        return values

    def _given(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        if len(arguments) != len(self.parameters):
            raise IRError(f"@{self.name} takes {len(self.parameters)} arguments, not {len(arguments)}", self.location)
        for parameter, argument in zip(self.parameters, arguments):
            if isinstance(parameter.type, TensorType) and len(argument) != parameter.type.rank:
                raise IRError(
                    f"%{parameter.name} of @{self.name} is '{parameter.type}', of rank "
                    f"{parameter.type.rank}, but the array has rank {len(argument)}", parameter.location,
                )  # fmt: skip
        return tuple(
            [int(arguments[a.parameter] if a.axis is None else arguments[a.parameter][a.axis]) for a in self.axes]
        )

    def _solve(self, given: tuple[int, ...]) -> tuple[int, ...]:
        if None not in self._direct:
            return tuple([given[n] for n in self._direct])  # type: ignore[index]
        values: dict[str, int] = {}
        for symbol, n in self.plan:
            try:
                values[symbol] = solve(self.axes[n].dim, symbol, given[n], values)
            except DimError as error:
                where = f"{self.place(n)} is {given[n]}, which does not fit '{self.axes[n].dim}'"
                raise IRError(f"@{self.name}: {where}: {error.message}", self._location(n)) from None
        return tuple(values[s] for s in self.symbols)

    def _facts_hold(self, values: tuple[int, ...]) -> Iterator[bool]:
        sides = self._sides(values)
        return (_HOLDS[f.kind](a, b) for f, a, b in zip(self.facts, sides[::2], sides[1::2]))

    # -- messages

    def place(self, n: int) -> str:
        """`%x axis 1`, or `%k` for a scalar."""
        axis = self.axes[n]
        name = f"%{self.parameters[axis.parameter].name}"
        return name if axis.axis is None else f"{name} axis {axis.axis}"

    def _location(self, n: int) -> Location:
        return self.parameters[self.axes[n].parameter].location

    def _no_size(self, values: tuple[int, ...], error: DimError) -> IRError:
        """The error of a call for whose sizes a dim of the arguments, or a side of a fact, has no value."""
        env = dict(zip(self.symbols, values))
        sizes = ", ".join(f"{s} = {v}" for s, v in env.items())
        for n, axis in enumerate(self.axes):
            try:
                axis.dim.evaluate(env)
            except DimError:
                message = f"@{self.name}: {self.place(n)}, '{axis.dim}', has no size for {sizes}: {error.message}"
                return IRError(message, self._location(n))
        for fact in self.facts:
            try:
                fact.evaluate(env)
            except DimError:
                message = f"@{self.name}: needs {fact}, which has no value for {sizes}: {error.message}"
                return IRError(message, self.location)
        return IRError(f"@{self.name}: {error.message}", self.location)

    def _failures(self, given: tuple[int, ...], values: tuple[int, ...]) -> Iterator[Diagnostic]:
        source = dict(self.plan)
        for n, (wanted, size) in enumerate(zip(self._sizes(values), given)):
            if wanted != size:
                yield Diagnostic(f"@{self.name}: {self._mismatch(n, wanted, size, given, source)}", self._location(n))
        for fact, holds in zip(self.facts, self._facts_hold(values)):
            if not holds:
                sizes = ", ".join(f"{s} = {v}" for s, v in zip(self.symbols, values) if s in fact.symbols)
                yield Diagnostic(f"@{self.name}: needs {fact}, which does not hold for {sizes}", self.location)

    def _mismatch(self, n: int, wanted: int, size: int, given: tuple[int, ...], source: dict[str, int]) -> str:
        dim = self.axes[n].dim
        for symbol in self.symbols:
            if dim is Dim.symbol(symbol):
                first = self.place(source[symbol])
                return f"symbol '{symbol}' is {wanted} by {first} and {size} by {self.place(n)}"
        if dim.is_constant:
            return f"{self.place(n)} must be {dim}, but is {size}"
        places = ", ".join(f"{s} = {given[source[s]]} by {self.place(source[s])}" for s in sorted(dim.symbols)
                           if self._direct[self.symbols.index(s)] is not None)  # fmt: skip
        return f"{self.place(n)} must be {dim} = {wanted}{' with ' + places if places else ''}, but is {size}"


def _parameters(function: FuncOp) -> Iterator[Parameter]:
    hints = [a.hint for a in function.arguments]
    for n, type in enumerate(function.type.inputs):
        name = hints[n] if n < len(hints) and hints[n] else f"arg{n}"
        location = function.arguments[n].location if n < len(hints) else function.location
        known = location if getattr(location, "line", None) or getattr(location, "inner", None) else function.location
        yield Parameter(str(name), type, known, function.argument_dim(n))


def check_types(function: FuncOp) -> None:
    """Raise an IRError where an argument or a result has a type that no array or number has."""
    for parameter in _parameters(function):
        _check_type(function, f"%{parameter.name}", parameter.type, parameter.location)
    for n, type in enumerate(function.type.results):
        _check_type(function, f"result {n}", type, function.location)


def _check_type(function: FuncOp, name: str, type: Type, location: Location) -> None:
    reason = unsupported(type, () if isinstance(type, TensorType) else (index,))
    if reason is not None:
        raise IRError(f"{name} of @{function.sym_name} is '{type}': {reason}", location)


def check_facts(function: FuncOp) -> None:
    """Raise an IRError, placed at the where clause, where the facts of a function exclude each other."""
    try:
        found = conflict(function.relations)
    except DimError:
        found = function.relations
    if found:
        raise facts_error(function, found)


def facts_error(scope: Operation, relations: Sequence[Relation]) -> IRError:
    """The error of facts that no sizes satisfy, placed where they are written."""
    name = scope.get("sym_name")
    of = f" of @{name.value}" if isinstance(name, StringAttr) else ""
    shown = " and ".join(f"'{r}'" for r in relations)
    if len(relations) == 1:
        message = f"the fact {shown}{of} holds for no sizes (they are integers from 0 up); change it or take it out"
    else:
        message = f"the facts{of} contradict each other: no sizes satisfy {shown}; change one or take it out"
    return IRError(message, where_of(scope))


def where_of(scope: Operation) -> Location:
    """Where the facts of a function are written; its own place where that is not known."""
    found = find_source(scope.location, _WHERE) if scope.get(FACTS) is not None else None
    return found or scope.location


def _axes(function: FuncOp, parameters: Sequence[Parameter]) -> Iterator[Axis]:
    for n, parameter in enumerate(parameters):
        if parameter.dim is not None:
            yield Axis(n, None, Dim.symbol(parameter.dim))
        if isinstance(parameter.type, TensorType):
            for axis, dim in enumerate(parameter.type.shape):
                if dim is None:
                    raise function.error(f"has a '?' dim in %{parameter.name}: give it a symbol")
                yield Axis(n, axis, dim)


def _plan(function: FuncOp, parameters: Sequence[Parameter], axes: Sequence[Axis]) -> Iterator[tuple[str, int]]:
    """Symbols with the axis that binds each: axes that are the symbol first, then those linear in one
    unknown."""
    bound: set[str] = set()
    for n, axis in enumerate(axes):
        for symbol in axis.dim.symbols - bound:
            if axis.dim is Dim.symbol(symbol):
                bound.add(symbol)
                yield symbol, n
    while (found := _next(axes, bound, function.symbols)) is not None:
        bound.add(found[0])
        yield found
    for symbol in function.symbols:
        if symbol not in bound:
            raise function.error(
                f"cannot bind symbol '{symbol}' from the shapes of the arguments of "
                f"@{function.sym_name}; pass it as a scalar argument: %{symbol}: index {{dim = {symbol}}}"
            )


def _next(axes: Sequence[Axis], bound: set[str], symbols: Sequence[str]) -> tuple[str, int] | None:
    for n, axis in enumerate(axes):
        unknown = axis.dim.symbols - bound
        if len(unknown) == 1 and linear_in(axis.dim, symbol := next(iter(unknown)), bound) and symbol in symbols:
            return symbol, n
    return None
