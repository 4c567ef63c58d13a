"""Kernels from text, for tests: over x (const), y and n, with constants and positions made; and runs of them."""

from collections.abc import Callable

import numpy as np
import pytest

from stepwell.dialects import loop
from stepwell.ir.diagnostics import IRError
from stepwell.ir.parser import parse_module
from stepwell.ir.verifier import verify
from stepwell.runtime import api, emulate
from stepwell.runtime.emulate import Address, EmulatedArrays

CONSTANTS = """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c63 = arith.constant 63 : index
    %zero = arith.constant 0.0 : f32
    %t = loop.id {which = "thread_x"}
    %block = loop.id {which = "block_x"}
"""
X, Y = "!loop.buffer<f32, global, const>", "!loop.buffer<f32, global>"


def kernel(body: str, threads: int = 64, grid: str = "1", attributes: str = "") -> loop.Kernel:
    """A kernel over x (const), y and n, whose index values t, block, c0, c1, ... are made."""
    api.load_all()
    text = f"""loop.kernel @k(%x: {X}, %y: {Y}, %n: index) attributes {{block = [{threads}, 1, 1],
      grid = #stepwell.dims<[{grid}, 1, 1]>, symbols = ["n"], target = "cuda"{attributes}}} {{{CONSTANTS}{body}}}"""
    module = parse_module(text, "faulty.mlir")
    verify(module)
    return next(op for op in module.walk() if isinstance(op, loop.Kernel))


def int_kernel(body: str, element: str = "i32") -> loop.Kernel:
    """A kernel over elements of another type."""
    text = f"""loop.kernel @k(%x: {X}, %y: {Y}, %n: index) attributes {{block = [64, 1, 1],
      grid = #stepwell.dims<[2, 1, 1]>, symbols = ["n"], target = "cuda"}} {{{CONSTANTS}{body}}}"""
    api.load_all()
    module = parse_module(text.replace("f32, global", f"{element}, global"), "faulty.mlir")
    verify(module)
    return next(op for op in module.walk() if isinstance(op, loop.Kernel))


BALLOT = f"""
    %v = loop.load %x[%t] : {X} -> i32
    %three = arith.constant 3 : i32
    %yes = arith.cmpi slt, %v, %three : i32
    %votes = loop.ballot %yes
    %first = arith.cmpi eq, %block, %c0 : index
    loop.if %first : (i1) -> () {{
      loop.store %votes, %y[%t] : i32, {Y}
    }}"""
ATOMIC = f"""
    %v = loop.load %x[%t] : {X} -> i32
    %old = loop.atomic %v, %y[%c0] {{kind = "KIND"}} : i32, {Y}"""
TILE = "!loop.buffer<f32, shared, 64>"
COPY = f"%v = loop.load %x[%t] : {X} -> f32\n    loop.store %v, %y[%t] : f32, {Y}"
SHUFFLE = """%other = loop.shuffle %zero, %c{lane} {{kind = "{kind}"}} : f32
    loop.store %other, %y[%t] : f32, {Y}"""


# ---------------------------------------------------------------- runs on the emulator


def run(made: loop.Kernel, x: np.ndarray, y: np.ndarray, n: int = 64, grid: int = 1, checked: bool = True) -> None:
    runner = emulate.build_kernels([made], checked=checked)["k"]
    runner([Address.of(x), Address.of(y)], [n], (grid, 1, 1))


def fresh(count: int = 64, dtype: type = np.float32) -> np.ndarray:
    return EmulatedArrays(True).empty((count,), np.dtype(dtype))


def values(count: int = 64) -> np.ndarray:
    return np.arange(count, dtype=np.float32) - 3


def reports(body: str, threads: int = 64, grid: int = 1, x: np.ndarray | None = None, y: np.ndarray | None = None,
            checked: bool = True) -> str:  # fmt: skip
    """What a run of the kernel reports; empty where nothing is wrong."""
    try:
        run(kernel(body, threads), values() if x is None else x, fresh() if y is None else y, grid=grid,
            checked=checked)  # fmt: skip
    except IRError as error:
        return str(error)
    return ""


def some(condition: str, inner: str) -> str:
    """`inner` for the threads whose value is less (or not less) than 0: the verifier cannot see that they differ."""
    r = "!loop.buffer<f32, register, 1>"
    return f"""
    %v = loop.load %x[%t] : {X} -> f32
    %r = loop.alloc : {r}
    loop.store %v, %r[%c0] : f32, {r}
    %hidden = loop.load %r[%c0] : {r} -> f32
    %some = arith.cmpf {condition}, %hidden, %zero : f32
    loop.if %some : (i1) -> () {{
      {inner}
    }}
    """


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(IRError) as caught:
        act()
    return str(caught.value)
