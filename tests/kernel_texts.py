"""Kernels from text, for tests: over x (const), y and n, with constants and positions made."""

from stepwell.dialects import loop
from stepwell.ir.parser import parse_module
from stepwell.ir.verifier import verify
from stepwell.runtime import api

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
