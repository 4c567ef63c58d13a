"""What the default pipeline cannot compile is refused where it stands, with what to write instead."""

import numpy as np
import pytest

import stepwell
from stepwell.ir.diagnostics import IRError
from stepwell.ir.parser import parse_module
from stepwell.ir.registry import OPERATIONS
from stepwell.lowering.cpu.printer import print_module_source
from stepwell.lowering.uncompiled import _OPERATORS
from stepwell.runtime.api import kernels_of
from stepwell.runtime.driver import main

CALLEE = "func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"
TYPE = "tensor<4xf32>"


def function(body: str, argument: str = TYPE, result: str = TYPE) -> str:
    return f"func.func @f(%x: {argument}) -> {result} {{\n  {body}\n  return %y : {result}\n}}"


REGION = '({\n^bb0(%i: index):\n  %a = "compute.read"(%x, %i) : (tensor<4xf32>, index) -> f32\n' \
         '  "compute.yield"(%a) : (f32) -> ()\n})'  # fmt: skip
IF = "scf.if %x -> tensor<4xf32> {\n  scf.yield %a : tensor<4xf32>\n} else {\n  scf.yield %b : tensor<4xf32>\n}"


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize(("text", "said"), [
    (function(f"%y = arith.addf %x, %x : {TYPE}"), "'arith.addf' op is for scalars: .* did you mean 'nd.add'?"),
    (function(f"%y = arith.negf %x : {TYPE}"), "did you mean 'nd.neg'?"),
    (function(f"%y = math.exp %x : {TYPE}"), "did you mean 'nd.exp'?"),
    (function(f"%y = math.absf %x : {TYPE}"), "did you mean 'nd.abs'?"),
    (function(f"%y = math.cosh %x : {TYPE}"), "`stepwell ops nd` lists the operators"),
    (function(f"%y = arith.extf %x : {TYPE} to tensor<4xf64>", result="tensor<4xf64>"), "did you mean 'nd.cast'?"),
    (function(f"%y = arith.constant dense<1.0> : {TYPE}"), "is a tensor, .* from nd.constant"),
    (CALLEE + function(f"%y = func.call @g(%x) : ({TYPE}) -> {TYPE}"), "write the operators of @g in its place"),
    (function("%y = arith.addi %x, %x : index", "index", "index"), "dim.value computes sizes"),
    (function("%y = arith.addf %x, %x : f32", "f32", "f32"), "pass the number as an argument"),
    (function(f"%a = nd.constant {{value = 1}} : () -> {TYPE}\n  %b = nd.constant {{value = 2}} : () -> {TYPE}\n"
              f"  %y = {IF}", "i1"), "'scf.if' op cannot be compiled yet"),
    (function(f'%y = "compute.map"(%x) {REGION} : ({TYPE}) -> {TYPE}'), "only as the definition of an operator"),
])  # fmt: skip
def test_the_message_says_what_is_true(text: str, said: str, target: str, tmp_path, capsys) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(text)
    with pytest.raises(IRError, match=rf"f\.mlir:\d+:\d+: error: .*{said}".replace("?", r"\?")) as caught:
        stepwell.compile(path, target="cpu" if target == "cpu" else "emulate")
    assert "run the default pipeline" not in str(caught.value)
    assert main(["emit", str(path), "--target", target]) == 1
    assert "error: " in capsys.readouterr().err


def test_every_operator_that_is_named_exists() -> None:
    assert set(_OPERATORS.values()) <= set(OPERATIONS)
    assert all(f"arith.{name}" in OPERATIONS or f"math.{name}" in OPERATIONS for name in _OPERATORS)


def test_emit_refuses_what_no_argument_can_be(tmp_path, capsys) -> None:
    path = tmp_path / "f.mlir"
    path.write_text("func.func @f(%x: tensor<4xi7>) -> tensor<4xi7> {\n  return %x : tensor<4xi7>\n}")
    assert main(["emit", str(path), "--target", "cpu"]) == 1
    assert "%x of @f is 'tensor<4xi7>': 'i7' is not supported" in capsys.readouterr().err


def test_private_functions_need_not_compile() -> None:
    text = function(f"%y = nd.relu %x : ({TYPE}) -> {TYPE}") + "\nfunc.func private @g(%x: i7) -> i7 {\n  return %x : i7\n}"
    assert stepwell.compile(text, target="cpu")(np.ones(4, np.float32)).tolist() == [1] * 4


def test_a_kernel_with_a_type_that_c_does_not_have() -> None:
    text = """loop.kernel @k(%x: !loop.buffer<i8, global>) attributes {target = "cpu"} {
  %0 = arith.constant 0 : index
  %a = loop.load %x[%0] : !loop.buffer<i8, global> -> i8
  %b = arith.extsi %a : i8 to i9
  %c = arith.trunci %b : i9 to i8
  loop.store %c, %x[%0] : i8, !loop.buffer<i8, global>
}"""
    with pytest.raises(IRError, match=r"k.mlir:4:8: error: 'arith.extsi' op gives 'i9', which cannot be printed"):
        print_module_source(kernels_of(parse_module(text, "k.mlir")))
