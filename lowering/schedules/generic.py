"""The generic schedule: correct loops for any definition, on any target.

Each reduction and each result becomes a kernel; maps are inlined where they are read. A reduction that only
one map reads, element by element, is computed inside that map's kernel.
"""

from __future__ import annotations

from ...dialects import compute
from ...ir.attributes import TensorType
from ...ir.core import Value
from ...ir.dims import Dim, as_dim, ceildiv, dim_min, product
from ..emit import FlatPoint, NotVectorisable, Point
from ..fused import Arm, KernelMaker, enclosing
from ..sources import row_major

THREADS = 256
BLOCKS = 65535  # more elements than threads are taken in strides
CPU_LANES = 64  # bytes of a vector on the CPU


def generic(arm: Arm) -> None:
    """Make the kernels of `arm`, in order."""
    for value in roots(arm):
        arm.temporary(value)
        (_cuda if arm.target == "cuda" else _cpu)(arm, value)


def roots(arm: Arm) -> list[Value]:
    """The values that need a kernel: the results and what cannot be inlined into them, in order of definition."""
    fused = arm.fused
    found: list[Value] = []
    for op in fused.block.ops:
        for value in op.results:
            if value in fused.outputs or _standalone(arm, value):
                found.append(value)
    return found


def _standalone(arm: Arm, value: Value) -> bool:
    """Reductions, save those that one map reads at its own indices; and maps that a reduction reads more than
    once for each of their elements (computing them again each time could cost far more than storing them)."""
    readers = arm.fused.readers(value)
    users = {enclosing(r) for r in readers}
    if isinstance(value.defining_op, compute.Reduce):
        if len(users) != 1 or value.defining_op.results[1:]:
            return True
        user = users.pop()
        return isinstance(user, compute.Reduce) or any([*r.indices] != [*user.body.arguments] for r in readers)
    return holds_reduction(value) and any(isinstance(u, compute.Reduce) for u in users)


def holds_reduction(value: Value) -> bool:
    """Whether computing an element of `value` runs a reduction that has no buffer of its own."""
    op = value.defining_op
    return isinstance(op, compute.Map) and any(isinstance(v.defining_op, compute.Reduce) for v in op.operands)


def _cuda(arm: Arm, value: Value) -> None:
    """One thread an element, striding over the grid."""
    shape = value.tensor.dims
    total = product(shape)
    grid = dim_min(ceildiv(total, as_dim(THREADS)), as_dim(BLOCKS))
    with arm.kernel([value], block=THREADS, grid=[grid], doc=_doc(arm, value)) as k:
        emit = k.emitter
        with emit.loop(0, emit.dim(total), hint="i", binding="global", doc=f"elements of [{_text(shape)}]") as i:
            point = FlatPoint(emit, i, shape, emit.builder.block)
            k.store(value, emit.define(value, point), i)


def _text(shape: tuple[Dim, ...]) -> str:
    return ", ".join(map(str, shape))


def _doc(arm: Arm, value: Value) -> str:
    names = ", ".join(op.op_name for op in arm.fused.operators)
    return f"{names}: {value.hint or 'result'} [{_text(value.tensor.dims)}]"


def lanes_for(arm: Arm, value: Value) -> int:
    """How many elements make a vector on the CPU, by the widest element that is read or written."""
    kinds = [v.tensor.element for v in [value, *arm.leaves([value])] if isinstance(v.type, TensorType)]
    widest = max(max(getattr(t, "width", 64), 32) for t in kinds)
    return CPU_LANES * 8 // widest


def _cpu(arm: Arm, value: Value) -> None:
    """Nested loops; the innermost in vectors where the definition allows."""
    op = value.defining_op
    try:
        if not isinstance(op, compute.Map) or not value.tensor.shape:
            raise NotVectorisable
        _cpu_kernel(arm, value, lanes_for(arm, value))
    except NotVectorisable:
        _cpu_kernel(arm, value, 1)


def _cpu_kernel(arm: Arm, value: Value, width: int) -> None:
    with arm.kernel([value], doc=_doc(arm, value)) as k:
        _cpu_axes(k, value, [], width)


def _cpu_axes(k: KernelMaker, value: Value, indices: list[Value], width: int) -> None:
    emit, shape = k.emitter, value.tensor.dims
    axis = len(indices)
    if axis == len(shape):
        point = Point(indices, shape)
        k.store(value, emit.define(value, point), emit.offset(point.indices, row_major(shape)))
    elif axis == len(shape) - 1 and width > 1:
        _cpu_vectors(k, value, indices, width)
    else:
        with emit.loop(0, emit.dim(shape[axis]), hint=_hint(value, axis), doc=f"over {shape[axis]}") as i:
            _cpu_axes(k, value, [*indices, i], width)


def _hint(value: Value, axis: int) -> str:
    op = value.defining_op
    assert isinstance(op, (compute.Map, compute.Reduce))
    return op.body.arguments[axis].hint or "ijklpqrs"[axis % 8]


def _cpu_vectors(k: KernelMaker, value: Value, indices: list[Value], width: int) -> None:
    emit, shape = k.emitter, value.tensor.dims

    def body(i: Value, lanes: int) -> None:
        point = Point([*indices, i], shape)
        element = emit.as_vector(emit.define(value, point), lanes)
        k.store(value, element, emit.offset(point.indices, row_major(shape)))

    emit.by_vectors(shape[-1], width, _hint(value, len(shape) - 1), body)
