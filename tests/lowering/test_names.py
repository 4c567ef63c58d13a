"""Any name of the IR gives a source that compiles: names are escaped, and comments name no helpers."""

import functools
import subprocess
from collections.abc import Sequence

import numpy as np
import nvrtc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stepwell
from stepwell.dialects import arith, loop
from stepwell.ir.attributes import IntegerAttr, f32, index
from stepwell.ir.builder import Builder
from stepwell.ir.dim_algebra import RESERVED as DIM_WORDS
from stepwell.ir.dim_algebra import SYMBOL_NAME
from stepwell.lowering.cpu import prelude as c_prelude
from stepwell.lowering.cpu.printer import print_module_source
from stepwell.lowering.cuda import prelude as cuda_prelude
from stepwell.lowering.cuda import printer as cuda_printer
from stepwell.lowering.emulate.printer import FOLDER, print_emulated
from stepwell.lowering.names import RESERVED, Names, comment, identifier
from stepwell.runtime import cpu, emulate

needs_compiler = pytest.mark.skipif(not cpu.available(), reason="no C compiler")
HELPERS = sorted({*c_prelude.PRELUDE.blocks, *cuda_prelude.PRELUDE.blocks})
LIKELY = [
    *sorted(RESERVED), *HELPERS, "sw_", "SW_", "sw_foo", "SW_foo", "sw_entry_f", "_sw_f32", "Sw_f", "cuda", "__half", "a b", "é",
    "日本", "0", "", "_", "__", "x\n#error", "*/", "\\", "??/", "%x", "buffers", "sizes", "r", "i", "v", "x" * 100,
    "INT_MAX", "M_PI", "M_PIf32", "HUGE_VALF", "FP_NAN", "EXIT_FAILURE", "expf32", "sinhf64x", "yn", "move", "sort", "std",
]  # fmt: skip
names = st.sampled_from(LIKELY) | st.text(max_size=12) | st.builds("{}_{}".format, st.sampled_from(LIKELY), st.integers(0, 2))
symbols = names.filter(lambda n: SYMBOL_NAME.fullmatch(n) is not None and n not in DIM_WORDS)


def kernel(target: str, name: str, words: Sequence[str], symbol: str) -> loop.Kernel:
    """One that copies and negates, with `words` for its arguments, its loop, values, buffers and comments."""
    made = loop.Kernel.make(
        name, target, [(words[0], loop.BufferType(f32, "global", None, True)), (words[1], loop.BufferType(f32)),
                       (words[2], f32)], symbols=[symbol], doc=f"{words[3]} sw_nothing SW_nothing",
    )  # fmt: skip
    at = Builder(made.body)
    x, y, n, s = made.body.arguments
    low = at.create(arith.Constant, value=IntegerAttr(0, index)).result
    step = at.create(arith.Constant, value=IntegerAttr(1, index)).result
    each = at.insert(loop.For.make(low, n, step, hint=words[4], binding="serial", doc=f"{words[3]} // sw_nothing"))
    inner = Builder(each.body)
    value = inner.create(loop.Load, x, each.index, result_types=[f32]).result
    value.hint = words[5]
    total = inner.create(arith.AddF, value, value, result_types=[f32]).result
    total = inner.create(arith.MulF, total, value, result_types=[f32]).result
    total.hint = words[6]
    cell = inner.insert(loop.Alloc.make(f32, "register", 1, words[7])).result
    zero = inner.create(arith.SubF, total, s, result_types=[f32]).result
    inner.create(loop.Store, zero, cell, low)
    inner.create(loop.Store, inner.create(loop.Load, cell, low, result_types=[f32]).result, y, each.index)
    return made


def compiles(source: str, compiler: Sequence[str] = ()) -> None:
    command = [*(compiler or (*cpu.compiler(), "-x", "c")), "-fsyntax-only", "-"]
    made = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    assert made.returncode == 0, f"{made.stderr}\n{source}"


@functools.cache
def has_nvrtc() -> bool:
    try:
        return nvrtc.library() is not None
    except FileNotFoundError:
        return False


@needs_compiler
@settings(max_examples=60)
@given(st.lists(names, min_size=3, max_size=3), st.lists(names, min_size=8, max_size=8), symbols)
def test_any_name_compiles_as_c(kernels: list[str], words: list[str], symbol: str) -> None:
    compiles(print_module_source([kernel("cpu", name, words, symbol) for name in dict.fromkeys(kernels)]))


@needs_compiler
def test_every_likely_name_compiles() -> None:
    count = len(LIKELY)
    every = [[LIKELY[(n + k * 7) % count] for k in range(8)] for n in range(count)]
    compiles(print_module_source([kernel("cpu", name, words, "n") for name, words in zip(LIKELY, every)]))
    if has_nvrtc():
        source = cuda_printer.print_module_source([kernel("cuda", n, words, "n") for n, words in zip(LIKELY, every)])
        nvrtc.compile_cubin(source, "sm_90a")
    if emulate.compiler() is None:
        return
    emulated = print_emulated([kernel("cuda", name, words, "n") for name, words in zip(LIKELY, every)]).source
    compiles(emulated, (*emulate.compiler(), "-std=c++17", "-x", "c++", f"-I{FOLDER}"))


@given(names)
def test_an_identifier_is_no_name_of_a_helper(name: str) -> None:
    found = identifier(name)
    assert found.isidentifier() and found.isascii() and found not in RESERVED
    assert not found.lower().startswith(("sw_", "_"))


@given(st.lists(names, max_size=20))
def test_fresh_names_differ(given_names: list[str]) -> None:
    scope = Names()
    made = [scope.fresh(name) for name in given_names]
    assert len(set(made)) == len(made)


@given(st.text())
def test_a_comment_is_one_line_that_ends(text: str) -> None:
    made = comment(text)
    assert made.isascii() and not set(made) & {"\n", "\r", "\\"} and "*/" not in made


def test_helpers_that_a_comment_names_are_not_looked_up() -> None:
    source = print_module_source([kernel("cpu", "sw_f", ["sw_exp_f32"] * 8, "sw_n")])
    assert "SW_INLINE float sw_exp_f32" not in source


def test_symbols_arguments_and_functions_named_as_helpers() -> None:
    text = """
    func.func @sw_f<sw_n, int>(%sw_x: tensor<[sw_n, int], f32>, %SW_y: tensor<[int], f32>) -> tensor<[sw_n, int], f32> {
      %SW_INLINE = nn.softmax %sw_x : (tensor<[sw_n, int], f32>) -> tensor<[sw_n, int], f32>
      %SW_z = nd.add %SW_INLINE, %SW_y : (tensor<[sw_n, int], f32>, tensor<[int], f32>) -> tensor<[sw_n, int], f32>
      return %SW_z : tensor<[sw_n, int], f32>
    }"""
    x = np.zeros((2, 4), np.float32)
    for target in ("cpu", "emulate"):
        np.testing.assert_array_equal(stepwell.compile(text, target=target)(x, x[0]), np.full((2, 4), 0.25))
