"""Mixed precision: casts so that what may run in a 16-bit float does.

Each operator declares its rule (dialects/operator.py). `low` and `low_accumulate` run on low operands;
`follow` does where every f32 operand is the low result of an operator before it, or a constant; `keep` stays.
Operators are rebuilt on cast operands with all their attributes, their types inferred again, and cast back
where others use them. Function signatures, explicit casts, integers, f64 and operations that are no operators
stay as they are. A constant is made again in the low type; an operator stays wide where a constant would
overflow."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ..dialects.func import FuncOp
from ..dialects.nd import Cast, Constant
from ..dialects.operator import Operator
from ..ir.attributes import FloatAttr, FloatType, IntegerAttr, TensorType, TypeAttr, bf16, f16, f32
from ..ir.builder import Builder
from ..ir.core import Block, Operation, Value
from ..ir.definition import rebuild
from ..ir.diagnostics import IRError
from ..ir.floats import decode_float, encode_float
from ..ir.passes import Pass
from ..ir.registry import OPERATIONS


@attrs.define
class Amp(Pass):
    """Run what may run in low precision in `dtype`; signatures stay. `keep` names operators that stay
    wide."""

    name = "amp"
    dtype: FloatType = f16
    keep: tuple[str, ...] = ()

    def run(self, module: Operation) -> None:
        if self.dtype not in (f16, bf16):
            raise IRError(f"amp: dtype is f16 or bf16, not {self.dtype}")
        keep = kept_names(self.keep)
        for op in list(module.walk()):
            if isinstance(op, FuncOp) and not op.is_declaration:
                for block in op.region.blocks:
                    _BlockCaster(self.dtype, keep).run(block)


def kept_names(names: Iterable[str]) -> frozenset[str]:
    """Full names of operators given as `exp` or `nd.exp`; IRError for one that no operator has."""
    operators = [name for name, cls in OPERATIONS.items() if issubclass(cls, Operator)]
    found: set[str] = set()
    for given in names:
        matches = [name for name in operators if given in (name, name.partition(".")[2])]
        if not matches:
            raise IRError(f"amp: no operator is named '{given}' (option keep)")
        found.update(matches)
    return frozenset(found)


def is_wide(value: Value) -> bool:
    """Whether a value is what mixed precision may narrow: a tensor of f32."""
    return isinstance(value.type, TensorType) and value.type.element is f32


class _BlockCaster:
    """One block; `low` has the low value that each wide one is the widening, or the rounding source, of."""

    def __init__(self, dtype: FloatType, keep: frozenset[str]) -> None:
        self.dtype = dtype
        self.keep = keep
        self.low: dict[Value, Value] = {}
        self.results: set[Value] = set()  # wide values that are casts of low results
        self.casts: list[Cast] = []

    def run(self, block: Block) -> None:
        for op in list(block.ops):
            if isinstance(op, Operator) and self.is_low(op):
                self.convert(op)
        for cast in reversed(self.casts):
            if not cast.result.uses:
                cast.erase()

    def is_low(self, op: Operator) -> bool:
        """Whether `op` is to run on low operands."""
        wide = [v for v in op.operands if is_wide(v)]
        if not wide or isinstance(op, Cast) or op.name in self.keep or op.precision == "keep":
            return False
        if any(self.overflows(v) for v in wide):
            return False
        if op.precision == "follow":
            follows = [v in self.results for v in wide if not isinstance(v.defining_op, Constant)]
            return bool(follows) and all(follows)
        return True

    def overflows(self, value: Value) -> bool:
        """Whether a finite constant is infinite in the low type."""
        op = value.defining_op
        if not isinstance(op, Constant):
            return False
        number = op.get("value")
        if isinstance(number, IntegerAttr):
            number = FloatAttr.of(float(number.value), f32)
        rounded = decode_float(encode_float(number.value, self.dtype.name), self.dtype.name)
        return abs(rounded) == float("inf") != abs(number.value)

    def convert(self, op: Operator) -> None:
        """Replace `op` by itself on low operands, and its low results, where used, by their widening."""
        builder = Builder(before=op)
        made = rebuild(op, [self.lowered(v, builder) if is_wide(v) else v for v in op.operands])
        builder.insert(made)
        for old, new in zip(op.results, made.results):
            assert isinstance(old.type, TensorType) and isinstance(new.type, TensorType)
            new.type = old.type.with_element(new.type.element)  # the shape as it was declared
            if new.type is old.type:
                old.replace_all_uses_with(new)
            else:
                self.widen(old, new, builder)
        op.erase()

    def widen(self, old: Value, new: Value, builder: Builder) -> None:
        wide = self.cast(new, f32, builder)
        wide.hint = old.hint
        self.low[wide] = new
        self.results.add(wide)
        old.replace_all_uses_with(wide)

    def lowered(self, value: Value, place: Builder) -> Value:
        """The low value of a wide one; its cast is made once, before the first operator that takes it."""
        if value not in self.low:
            self.low[value] = self.lower(value, place)
        return self.low[value]

    def lower(self, value: Value, place: Builder) -> Value:
        op = value.defining_op
        if isinstance(op, Cast) and op.operands[0].type.element is self.dtype:  # type: ignore[attr-defined]
            return op.operands[0]  # widened from the low type, which is exact
        if isinstance(op, Constant):
            type = value.type.with_element(self.dtype)  # type: ignore[attr-defined]
            properties = {k: TypeAttr(self.dtype) if k == "dtype" else v for k, v in op.properties.items()}
            return place.insert(Constant((), [type], properties, op.attributes, location=op.location)).result
        return self.cast(value, self.dtype, place)

    def cast(self, value: Value, to: FloatType, place: Builder) -> Value:
        type = value.type.with_element(to)  # type: ignore[attr-defined]
        op = value.defining_op
        location = {"location": op.location} if op is not None else {"location": value.location}  # type: ignore
        made = place.insert(Cast([value], [type], {"dtype": TypeAttr(to)}, **location))
        made.result.hint = value.hint
        self.casts.append(made)
        return made.result
