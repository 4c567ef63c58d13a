"""Executes the plan of one function: a list of steps over buffers, made once, run at each call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from ..dialects import arith, dim, func, loop, rt
from ..dialects.scalar import dtype_of
from ..ir.attributes import TensorType
from ..ir.core import Block, Operation, Value
from ..ir.diagnostics import Diagnostic, IRError
from ..ir.dims import Dim, DimError, Relation, compile_dims

Symbols = tuple[int, ...]
Sizes = Callable[[Sequence[int]], tuple[int, ...]]
ALIGNMENT = 64  # bytes: what a guard means by aligned


class KernelRunner(Protocol):
    """A compiled kernel: launched on pointers and index values over a grid."""

    def __call__(self, pointers: Sequence[int], scalars: Sequence[Any], grid: tuple[int, ...]) -> None: ...


class Device(Protocol):
    """Arrays of a target. Strides are in elements."""

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any: ...
    def pointer(self, array: Any) -> int: ...
    def contiguous(self, array: Any) -> Any: ...
    def finish(self, results: Sequence[Any], op: Operation) -> None: ...


@attrs.define
class Frame:
    """One call: the values of its symbols and its buffers by number."""

    symbols: Symbols
    values: list[Any]


Step = Callable[[Frame], None]
Assert = tuple[Relation, str, Operation]  # what must hold, what it means, where


def strides_of(array: Any) -> tuple[int, ...]:
    """Strides in elements, zero along axes of at most one element (where they do not matter)."""
    size = array.itemsize
    return tuple(s // size for s in array.strides)


def is_contiguous(array: Any) -> bool:
    return bool(array.flags.c_contiguous)


class Executor:
    """The steps of a planned function. `kernels` maps names to compiled kernels."""

    def __init__(self, function: func.FuncOp, device: Device, kernels: Mapping[str, KernelRunner],
                 definitions: Mapping[str, loop.Kernel]) -> None:  # fmt: skip
        self.device, self.kernels, self.definitions = device, kernels, definitions
        self.function, self.name = function, function.sym_name
        self.symbols = tuple(function.symbols)
        self.slots: dict[Value, int] = {a: n for n, a in enumerate(function.body.arguments)}
        self.results: list[int] = []
        self.asserts: list[Assert] = []
        self.steps = self._block(function.body)
        self.slot_count = len(self.slots)

    def _slot(self, value: Value) -> int:
        return self.slots.setdefault(value, len(self.slots))

    def sizes(self, dims: Sequence[Dim]) -> Sizes:
        return compile_dims(list(dims), self.symbols)

    def _block(self, block: Block) -> list[Step]:
        made = [self._step(op) for op in block.ops]
        return [step for step in made if step is not None]

    def _step(self, op: Operation) -> Step | None:
        makers: dict[type, Callable[[Any], Step | None]] = {
            rt.Empty: self._empty, rt.View: self._view, rt.Contiguous: self._contiguous, rt.Launch: self._launch,
            rt.Choose: self._choose, dim.AssertOp: self._assert, func.ReturnOp: self._return,
            dim.ValueOp: self._dim, arith.Constant: self._constant,
        }  # fmt: skip
        if isinstance(op, rt.Yield):
            return None
        maker = makers.get(type(op))
        if maker is None:
            raise op.error("is not an operation of a plan; run the default pipeline to lower it")
        return maker(op)

    def _empty(self, op: rt.Empty) -> Step:
        out, shape, dtype = self._slot(op.result), self.sizes(op.result.tensor.dims), dtype_of(op.result.tensor.element)
        empty = self.device.empty

        def step(frame: Frame) -> None:
            if frame.values[out] is None:
                sizes = shape(frame.symbols)
                if sizes and min(sizes) < 0:
                    raise self._error(f"needs a tensor of shape {sizes} ('{op.result.type}')", frame.symbols, op)
                frame.values[out] = empty(sizes, dtype)

        return step

    def _view(self, op: rt.View) -> Step:
        source, out, shape = self._slot(op.source), self._slot(op.result), self.sizes(op.result.tensor.dims)

        def step(frame: Frame) -> None:
            frame.values[out] = frame.values[source].reshape(shape(frame.symbols))

        return step

    def _contiguous(self, op: rt.Contiguous) -> Step:
        source, out = self._slot(op.source), self._slot(op.result)

        def step(frame: Frame) -> None:
            frame.values[out] = self.device.contiguous(frame.values[source])

        return step

    def _dim(self, op: dim.ValueOp) -> Step:
        out, value = self._slot(op.result), self.sizes([op.expression])

        def step(frame: Frame) -> None:
            frame.values[out] = value(frame.symbols)[0]

        return step

    def _constant(self, op: arith.Constant) -> Step:
        out, value = self._slot(op.result), op.value_of("value")

        def step(frame: Frame) -> None:
            frame.values[out] = value

        return step

    def _launch(self, op: rt.Launch) -> Step:
        name = op.kernel.name
        kernel, definition = self.kernels[name], self.definitions[name]
        buffers = [self._slot(v) for v in op.operands if isinstance(v.type, TensorType)]
        scalars = [self._slot(v) for v in op.operands if not isinstance(v.type, TensorType)]
        strided = [buffers[n] for n in op.strides or ()]
        sizes = self.sizes(op.sizes or ())
        grid_of = compile_dims(list(definition.launch_grid), definition.symbols)
        pointer = self.device.pointer

        def step(frame: Frame) -> None:
            index_values = sizes(frame.symbols)
            grid = grid_of(index_values)
            if 0 in grid:
                return
            values = frame.values
            numbers: list[Any] = list(index_values)
            for slot in strided:
                numbers.extend(strides_of(values[slot]))
            numbers.extend(values[slot] for slot in scalars)
            kernel([pointer(values[slot]) for slot in buffers], numbers, grid)

        return step

    def _choose(self, op: rt.Choose) -> Step:
        arms = []
        for number, region in enumerate(op.regions):
            block = region.blocks[0]
            for argument, operand in zip(block.arguments, op.operands, strict=True):
                self.slots[argument] = self._slot(operand)
            arms.append((self._guard(rt.Guard.of(op, number), op), self._block(block)))

        def step(frame: Frame) -> None:
            for holds, steps in arms:
                if holds is None or holds(frame):
                    for inner in steps:
                        inner(frame)
                    return

        return step

    def _guard(self, guard: rt.Guard, op: rt.Choose) -> Callable[[Frame], bool] | None:
        tests = [test for test in (self._facts(guard.facts), self._memory(guard, op)) if test is not None]
        if not tests:
            return None
        return tests[0] if len(tests) == 1 else lambda frame: tests[0](frame) and tests[1](frame)

    def _facts(self, facts: Sequence[Any]) -> Callable[[Frame], bool] | None:
        if not facts:
            return None
        differences = self.sizes([f.difference for f in facts])
        kinds = [_HOLDS[f.kind] for f in facts]
        return lambda frame: all(h(d) for h, d in zip(kinds, differences(frame.symbols), strict=True))

    def _memory(self, guard: rt.Guard, op: rt.Choose) -> Callable[[Frame], bool] | None:
        contiguous = [self._slot(op.operands[n]) for n in guard.contiguous]
        aligned = [self._slot(op.operands[n]) for n in guard.aligned]
        pointer = self.device.pointer
        if not contiguous and not aligned:
            return None

        def test(frame: Frame) -> bool:
            values = frame.values
            return all(is_contiguous(values[s]) for s in contiguous) and all(
                pointer(values[s]) % ALIGNMENT == 0 for s in aligned
            )

        return test

    def _assert(self, op: dim.AssertOp) -> None:
        self.asserts += assert_of(op)
        return None

    def _return(self, op: func.ReturnOp) -> None:
        self.results, self.returned = [self._slot(v) for v in op.operands], op
        return None

    def check(self, symbols: Symbols) -> None:
        """Run the asserts; all that fail are reported together."""
        check_asserts(self.asserts, dict(zip(self.symbols, symbols, strict=True)))

    def _error(self, message: str, symbols: Symbols, op: Operation) -> IRError:
        return IRError(f"@{self.name} {message}{sizes_text(zip(self.symbols, symbols))}", op.location)

    def run(self, symbols: Symbols, arguments: Sequence[Any], out: Mapping[int, Any] | None = None) -> list[Any]:
        """The result buffers. `out` gives buffers for some results, by number. `check` was called before."""
        frame = Frame(symbols, [*arguments, *[None] * (self.slot_count - len(arguments))])
        for number, array in (out or {}).items():
            if self.results[number] >= len(arguments):  # an argument that is a result is copied by the caller
                frame.values[self.results[number]] = array
        try:
            for step in self.steps:
                step(frame)
        except DimError as error:  # a size that no assert speaks of
            raise self._error(f"cannot be run at these sizes: {error.message}", symbols, self.function) from None
        results = [frame.values[slot] for slot in self.results]
        self.device.finish(results, self.returned)
        return results


def assert_of(op: dim.AssertOp) -> list[Assert]:
    return [(r, op.message or f"{r} does not hold", op) for r in op.get("relation").relations]


def check_asserts(asserts: Iterable[Assert], values: Mapping[str, int]) -> None:
    """IRError with all asserts that fail at these sizes. One whose sides have no value there is named only where no
    other fails: it may rely on those before it."""
    failed, undefined = [], []
    for relation, message, op in asserts:
        try:
            if not relation.evaluate(values):
                failed.append(Diagnostic(f"{message}{sizes_text(values.items())}", op.location))
        except DimError as error:
            undefined.append(Diagnostic(f"{message}{sizes_text(values.items())}: {error.message}", op.location))
    if failed or undefined:
        raise IRError(failed or undefined)


def sizes_text(values: Iterable[tuple[str, int]]) -> str:
    """` (m = 3, n = 4)`; nothing where there are no symbols."""
    shown = ", ".join(f"{s} = {v}" for s, v in values)
    return f" ({shown})" if shown else ""


_HOLDS: dict[str, Callable[[int], bool]] = {
    "==": lambda d: d == 0, "!=": lambda d: d != 0, "<=": lambda d: d <= 0, "<": lambda d: d < 0,
}  # fmt: skip
