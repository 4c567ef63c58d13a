"""Vectors in printed kernels: each operation is a call of a helper, which works lane by lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs

from ..dialects import loop
from ..ir.attributes import Type, VectorType, i1
from ..ir.core import Operation, Value
from .c_scalars import ATOM, EQUALITY, CTypes, Expr, Use, predicate, scalar
from .prelude import Prelude


class VectorPrinter:
    """The part of a printer that knows vectors: the helpers' names, their texts, and what a target says of lanes."""

    prelude: ClassVar[Prelude]
    lane = "{0}.v[{1}]"  # element {1} of vector {0}
    c: CTypes
    values: dict[Value, Expr]
    helpers: dict[str, str]  # those made for this kernel, by name

    def use(self, op: Operation) -> Use:
        args = tuple(self.values[v] for v in op.operands)
        return Use(op, args, tuple(v.type for v in op.operands), op.results[0].type, self.c)

    def vector(self, op: Operation) -> Expr:
        """A call of a helper that computes an operation lane by lane."""
        use = self.use(op)
        name = self.vector_helper(op, [v.type for v in op.operands], op.results[0].type)
        reads = frozenset().union(*(a.reads for a in use.args))
        return Expr(f"{name}({', '.join(use.plain)})", ATOM, reads)

    def vector_name(self, op: Operation, types: Sequence[Type], result: Type) -> str:
        """`sw_<op>[_<predicate>]_<types>`: one type where all are the same."""
        what = op.op_name.partition(".")[2]
        if op.op_name in ("arith.cmpi", "arith.cmpf"):
            what += f"_{predicate(op)}"
            result = types[0]
        every = [*types, result] if len({*types, result}) > 1 else [result]
        return "_".join(["sw", what, *map(self.c.suffix, every)])

    def vector_helper(self, op: Operation, types: Sequence[Type], result: Type) -> str:
        name = self.vector_name(op, types, result)
        if name not in self.helpers and not self.has_helper(name):
            self.helpers[name] = self.lanewise(name, op, types, result)
        return name

    def has_helper(self, name: str) -> bool:
        """Whether the prelude has its own text for a vector helper."""
        try:
            return bool(self.prelude.find(name))
        except KeyError:
            return False

    def lanewise(self, name: str, op: Operation, types: Sequence[Type], result: Type) -> str:
        """A helper that loops over lanes, each by the rule of the scalar op."""
        width = next(t.shape[0] for t in (*types, result) if isinstance(t, VectorType))
        letters = "abcdef"[: len(types)]
        args = tuple(self.element(letter, t) for letter, t in zip(letters, types))
        made = scalar(Use(op, args, tuple(map(_element, types)), _element(result), self.c))
        parameters = ", ".join(f"{self.c.name(t)} {letter}" for letter, t in zip(letters, types))
        opened = [self.opened(letter, t) for letter, t in zip(letters, types) if isinstance(t, VectorType)]
        body = [
            *filter(None, opened), *self.results(result), "SW_UNROLL", f"for (int i = 0; i < {width}; ++i) "
            f"{self.element('r', result).text} = {self.held(made, _element(result)).text};", *self.closed(result),
        ]  # fmt: skip
        head = f"SW_INLINE {self.c.name(result)} {name}({parameters})"
        return head + " {\n    " + "\n    ".join(body) + "\n}\n"

    def opened(self, name: str, type: VectorType) -> str:
        """What must be said before the lanes of an operand can be read."""
        return ""

    def results(self, type: Type) -> list[str]:
        """The declaration of a helper's result r."""
        return [f"{self.c.name(type)} r;"]

    def closed(self, type: Type) -> list[str]:
        """The return of r."""
        return ["return r;"]

    def element(self, name: str, type: Type) -> Expr:
        """Lane i of an operand, as a scalar."""
        return Expr(self.lane.format(name, "i")) if isinstance(type, VectorType) else Expr(name)

    def held(self, made: Expr, type: Type) -> Expr:
        """A scalar as a vector holds it."""
        return made

    def splat(self, op: loop.Splat) -> Expr:
        value = self.values[op.scalar]
        return Expr(f"sw_splat_{self.c.suffix(op.vector.type)}({value.text})", ATOM, value.reads)

    def extract(self, op: loop.Extract) -> Expr:
        value = self.values[op.vector]
        made = Expr(self.lane.format(value.at(ATOM), op.lane), ATOM, value.reads)
        return attrs.evolve(made, text=f"{made.text} != 0", rank=EQUALITY) if op.scalar.type is i1 else made

    def insert(self, op: loop.Insert) -> Expr:
        value, whole = self.values[op.scalar], self.values[op.vector]
        name = f"sw_insert_{self.c.suffix(op.vector.type)}"
        return Expr(f"{name}({value.text}, {whole.text}, {op.lane})", ATOM, value.reads | whole.reads)

    def reduce_vector(self, op: loop.ReduceVector) -> Expr:
        value = self.values[op.vector]
        name = f"sw_reduce_{op.kind}_{self.c.suffix(op.vector.type)}"
        if name not in self.helpers:
            self.helpers[name] = self.halving(name, op)
        return Expr(f"{name}({value.text})", ATOM, value.reads)

    def halving(self, name: str, op: loop.ReduceVector) -> str:
        """A helper that combines halves until one element is left."""
        type, element = op.vector.type, op.scalar.type
        a, b = Expr(self.lane.format("a", "i")), Expr(self.lane.format("a", "i + half"))
        combiner = _Combiner(op.kind, op)
        made = self.held(scalar(Use(combiner, (a, b), (element,) * 2, element, self.c)), element)  # type: ignore[arg-type]
        return (
            f"SW_INLINE {self.c.name(element)} {name}({self.c.name(type)} a) {{\n"
            f"    SW_UNROLL\n    for (int half = {type.shape[0] // 2}; half > 0; half /= 2)\n"
            f"        for (int i = 0; i < half; ++i) {a.text} = {made.text};\n"
            f"    return {self.lane.format('a', 0)};\n}}\n"
        )

    VALUES: ClassVar[dict[str, Callable[[Any, Any], Expr]]] = {
        "loop.splat": splat, "loop.extract": extract, "loop.insert": insert, "loop.reduce_vector": reduce_vector,
    }  # fmt: skip


@attrs.frozen
class _Combiner:
    """Stands for the `arith` op that a vector is reduced by."""

    kind: str
    op: Operation

    @property
    def op_name(self) -> str:
        return f"arith.{self.kind}"

    def error(self, message: str) -> Exception:
        return self.op.error(message)


def _element(type: Type) -> Type:
    return type.element if isinstance(type, VectorType) else type
