"""An arm as one definition, and the kernels that a schedule makes of it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..dialects import compute, dim, loop, rt
from ..dialects.operator import Operator, trace
from ..ir.attributes import DenseArrayAttr, DimsAttr, SymbolRefAttr, TensorType, Type, i64, index
from ..ir.builder import Builder
from ..ir.core import Block, Operation, Value
from ..ir.dims import Dim, as_dim
from ..ir.facts import Facts
from .emit import Emitter, Source
from .sources import BufferSource


class Fused:
    """The operators of a block expanded into compute operations, in `block`, over `inputs`.

    `anchor` is the operator that decides the schedule."""

    def __init__(self, source: Block, anchor_name: str) -> None:
        self.block = Block([a.type for a in source.arguments], [a.hint for a in source.arguments])
        self.inputs: list[Value] = list(self.block.arguments)
        self.outputs: list[Value] = []
        self.anchor: Operator | None = None
        self.operators: list[Operator] = []
        self._expand(source, anchor_name)

    def _expand(self, source: Block, anchor_name: str) -> None:
        mapping: dict[Value, Value] = dict(zip(source.arguments, self.inputs, strict=True))
        for op in source.ops:
            if isinstance(op, rt.Yield):
                self.outputs = [mapping[v] for v in op.operands]
                continue
            assert isinstance(op, Operator), op.op_name
            self.operators.append(op)
            made = trace(op, [mapping[v] for v in op.operands], Builder(self.block))
            if op.op_name == anchor_name:
                self.anchor = op
            for old, new in zip(op.results, made, strict=True):
                new.hint = new.hint or old.hint
                mapping[old] = new
        for op in reversed(list(self.block.ops)):
            if not any(r.uses or r in self.outputs for r in op.results):
                op.erase()

    @property
    def reductions(self) -> list[compute.Reduce]:
        return [op for op in self.block.ops if isinstance(op, compute.Reduce)]

    def readers(self, value: Value) -> list[compute.Read | compute.ReadIf]:
        """The reads of a tensor, in all maps and reductions."""
        return [user for user in value.uses if isinstance(user, (compute.Read, compute.ReadIf))]


def enclosing(op: Operation) -> compute.Map | compute.Reduce:
    """The map or reduction whose region holds `op`."""
    parent = op.parent_op
    assert isinstance(parent, (compute.Map, compute.Reduce))
    return parent


@attrs.define(eq=False)
class Arm:
    """What a schedule works on: a definition, the buffers of its inputs and results, and where its kernels and
    launches go. `strided` are the inputs that may have any strides."""

    fused: Fused
    target: str
    name: str
    symbols: tuple[str, ...]
    facts: Facts
    builder: Builder  # into the arm: temporaries and launches
    kernels: Builder  # into the module
    buffers: dict[Value, Value]
    strided: frozenset[Value] = frozenset()
    index_bits: int = 64
    count: int = 0

    def temporary(self, value: Value) -> None:
        """Give `value` a buffer of its own, if it has none."""
        if value not in self.buffers:
            made = self.builder.create(rt.Empty, result_types=[value.type]).result
            made.hint = value.hint
            self.buffers[value] = made

    def leaves(self, roots: Sequence[Value]) -> list[Value]:
        """The inputs and buffers from which `roots` are computed, in order; roots are not taken from buffers."""
        found: dict[Value, None] = {}
        stack = [v for root in reversed(roots) for v in reversed(_operands(root))]
        seen: set[Value] = set()
        while stack:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            if (value in self.buffers and value not in roots) or value in self.fused.inputs:
                found[value] = None
            else:
                stack.extend(reversed(_operands(value)))
        return list(found)

    def kernel(
        self, writes: Sequence[Value], *, block: int = 1, grid: Sequence[Dim | int] = (1,), doc: str = "",
        scratch: TensorType | None = None,
    ) -> KernelMaker:  # fmt: skip
        """A new kernel that computes `writes` into their buffers; it is launched at the end of `with`, and given up
        where that ends in an exception. `scratch` is the type of a buffer of its own to work in."""
        return KernelMaker(self, list(writes), block, [as_dim(g) for g in grid], doc, scratch)


def _operands(value: Value) -> list[Value]:
    op = value.defining_op
    return list(op.operands) if op is not None else []


class KernelMaker:
    """Builds one kernel: `emitter` writes its body, `outputs` are its buffers for what it writes, `scratch` the one
    that it works in."""

    def __init__(
        self, arm: Arm, writes: list[Value], block: int, grid: list[Dim], doc: str, scratch: TensorType | None
    ) -> None:
        self.arm, self.writes, self.scratch_type = arm, writes, scratch
        leaves = arm.leaves(writes)
        self.reads = [v for v in leaves if isinstance(v.type, TensorType)]
        self.scalars = [v for v in leaves if not isinstance(v.type, TensorType)]
        self.strided = [v for v in self.reads if v in arm.strided]
        suffix = f"_{arm.count}" if arm.count else ""
        self.kernel = loop.Kernel.make(
            arm.name + suffix, arm.target, self._arguments(), block=(block,), grid=tuple(grid),
            symbols=arm.symbols, index_bits=arm.index_bits, doc=doc or None, location=arm.builder.location,
        )  # fmt: skip
        self._connect()

    def _arguments(self) -> list[tuple[str, Type]]:
        made: list[tuple[str, Type]] = []
        for position, value in enumerate([*self.reads, *self.writes]):
            constant = position < len(self.reads)
            hint = value.hint or (f"in{position}" if constant else "out")
            made.append((hint, loop.BufferType(value.tensor.element, "global", None, constant)))
        if self.scratch_type is not None:
            made.append(("scratch", loop.BufferType(self.scratch_type.element)))
        for value in self.strided:
            made += [(f"{value.hint or 'in'}_stride{axis}", index) for axis in range(value.tensor.rank)]
        return made + [(v.hint or "scalar", v.type) for v in self.scalars]

    def _connect(self) -> None:
        arguments = list(self.kernel.body.arguments)
        buffers = self.kernel.buffers
        rest = arguments[len(buffers) + len(self.arm.symbols) :]
        sources: dict[Value, Source] = {}
        for value, buffer in zip(self.reads, buffers, strict=False):
            strides = None
            if value in self.strided:
                rank = value.tensor.rank
                strides, rest = tuple(rest[:rank]), rest[rank:]
            sources[value] = BufferSource(buffer, value.tensor.dims, strides)
        self.outputs = dict(zip(self.writes, buffers[len(self.reads) :], strict=False))
        self.scratch = buffers[-1] if self.scratch_type is not None else None
        self.emitter = Emitter(self.kernel, sources)
        self.emitter.scalars.update(zip(self.scalars, rest, strict=True))

    def __enter__(self) -> KernelMaker:
        return self

    def __exit__(self, kind: type | None, *exc: object) -> None:
        if kind is not None:
            return
        arm = self.arm
        arm.count += 1
        arm.kernels.insert(self.kernel)
        buffers = [arm.buffers[v] for v in [*self.reads, *self.writes]]
        if self.scratch_type is not None:
            buffers.append(arm.builder.create(rt.Empty, result_types=[self.scratch_type]).result)
        symbols = self._prune_symbols()
        sizes = DimsAttr(tuple(as_dim(s) for s in symbols))
        strided = [self.reads.index(v) for v in self.strided]
        arm.builder.create(
            rt.Launch, [*buffers, *[arm.buffers[v] for v in self.scalars]],
            kernel=SymbolRefAttr((self.kernel.sym_name,)),
            sizes=sizes if symbols else None, strides=DenseArrayAttr(i64, tuple(strided)) if strided else None,
        )  # fmt: skip

    def _prune_symbols(self) -> list[str]:
        """Take out the arguments of symbols that the kernel does not need; those that are left."""
        kernel = self.kernel
        used = set().union(*(g.symbols for g in kernel.launch_grid))
        for op in kernel.walk():
            if isinstance(op, dim.ValueOp):
                used |= op.expression.symbols
        for position in reversed(range(len(self.arm.symbols))):
            if self.arm.symbols[position] not in used:
                kernel.body.erase_argument(len(kernel.buffers) + position)
        kept = [s for s in self.arm.symbols if s in used]
        kernel.set("symbols", kept)
        return kept

    def store(self, value: Value, scalar: Value, point_offset: Value, aligned: bool = False) -> None:
        """Write an element of one of `writes`."""
        self.emitter.store(scalar, self.outputs[value], point_offset, aligned)
