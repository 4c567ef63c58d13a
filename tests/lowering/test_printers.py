"""Printed kernels: C against the table of scalar semantics, CUDA C through NVRTC, and the text itself."""


from typing import Any

import loop_kernels as cases
import numpy as np
import nvrtc
import pytest
from loop_kernels import Case

from stepwell.dialects.scalar import dtype_of
from stepwell.ir.attributes import index
from stepwell.lowering.cpu import prelude as cpu_prelude
from stepwell.lowering.cuda import printer as cuda_printer
from stepwell.runtime import cpu, emulate

WIDTH = 8
EMULATED = emulate.EmulatedArrays(checked=True)
EXACT, CLOSE = list(cases.exact_cases()), list(cases.close_cases())
# Units in the last place. The formulas of exp, tanh and erf, then what libm and libdevice promise.
ULP = {"exp": 2, "tanh": 3, "erf": 3}
needs_compiler = pytest.mark.skipif(not cpu.available(), reason="no C compiler")


def groups(every: list[Case]) -> list[list[Case]]:
    """Cases by operation, so that one source holds each group."""
    names = sorted({c.op for c in every})
    return [[c for c in every if c.op == name] for name in names]


def has_vector(case: Case) -> bool:
    return index not in (*case.operands, case.result)


def run(case: Case, runner: Any, arrays: list[np.ndarray]) -> np.ndarray:
    out = EMULATED.empty((len(arrays[0]),), dtype_of(case.result))
    runner([EMULATED.pointer(a) for a in (*arrays, out)], [len(out)], (2, 1, 1))
    return out.view(np.ndarray)


def check(group: list[Case], kernels: dict[str, Any], width: int, target: str) -> None:
    for case in group:
        arrays = cases.operands(case)
        want = cases.expected(case, arrays)
        got = run(case, kernels[case.kernel(target, width).sym_name], arrays)
        if case in EXACT:
            wrong = ~cases.same(got, want)
        else:
            most = ULP.get(case.op.partition(".")[2], 4) if case.result.width >= 32 else 1
            wrong = cases.units(got, want) > most
        at = np.flatnonzero(wrong)
        assert not len(at), (case.name, width, [(*(a[i] for a in arrays), got[i], want[i]) for i in at[:5]])


@needs_compiler
@pytest.mark.parametrize("group", groups(EXACT + CLOSE), ids=lambda g: g[0].op)
def test_c_computes_what_the_table_says(group: list[Case]) -> None:
    kernels = [case.kernel("cpu", width) for case in group for width in (1, WIDTH) if width == 1 or has_vector(case)]
    built = dict(cpu.build_kernels(kernels))
    check(group, built, 1, "cpu")
    check([case for case in group if has_vector(case)], built, WIDTH, "cpu")


@pytest.mark.skipif(emulate.compiler() is None, reason="no C++ compiler")
@pytest.mark.parametrize("group", groups(EXACT + CLOSE), ids=lambda g: g[0].op)
def test_emulated_cuda_computes_what_the_table_says(group: list[Case]) -> None:
    kernels = [case.kernel("cuda", width) for case in group for width in (1, 4) if width == 1 or has_vector(case)]
    built = dict(emulate.build_kernels(kernels))
    check(group, built, 1, "cuda")
    check([case for case in group if has_vector(case)], built, 4, "cuda")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_cuda_compiles(arch: str) -> None:
    try:
        nvrtc.library()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    every = EXACT + CLOSE
    vectors = [case for case in every if has_vector(case)]
    kernels = [case.kernel("cuda") for case in every] + [case.kernel("cuda", 4) for case in vectors]
    for at in range(0, len(kernels), 100):
        source = cuda_printer.print_module_source(kernels[at : at + 100])
        assert nvrtc.compile_cubin(source, arch, options=["--fmad=false"])


@needs_compiler
@pytest.mark.parametrize("suffix", ["f32", "f16", "i8", "i64", "i1"])
def test_c_selects_by_bits_not_lanes(suffix: str) -> None:
    name = f"sw_select_i1x8_{suffix}x8_{suffix}x8_{suffix}x8"
    assert "for (" not in cpu_prelude.PRELUDE.find(name)
