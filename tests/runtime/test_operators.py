"""Every elementwise operator: the CPU's kernels against the evaluator of its definition, on edge values and odd sizes."""

import ml_dtypes
import numpy as np
import pytest

import stepwell
from stepwell.dialects import load_all
from stepwell.dialects.nd_elementwise import Binary, Unary
from stepwell.ir.registry import OPERATIONS
from stepwell.runtime import emulate

load_all()
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
          "i8": np.int8, "i32": np.int32, "ui8": np.uint8}  # fmt: skip
TOLERANCE = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 4e-6, "f64": 1e-12}
SHAPES = [(2, 3), (1, 1), (0, 4), (3, 33)]
SPECIAL = ("nd.cast", "nd.clamp", "nd.compare", "nd.logical_not")  # these have attributes or results of their own
OPERATORS = sorted(n for n, c in OPERATIONS.items() if issubclass(c, (Unary, Binary)) and n not in SPECIAL)


def values(shape, dtype, rng):
    """Random numbers, with what is not finite and zeros of both signs in front."""
    floating = dtype in TOLERANCE
    low = 0 if dtype == "ui8" else -100
    made = 3 * rng.standard_normal(shape) if floating else rng.integers(low, 100, shape).astype(np.float64)
    edges = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-7] if floating else [0, 1, 100, low, 7, 2]
    if made.size > len(edges):
        made.reshape(-1)[: len(edges)] = edges
    return made.astype(DTYPES[dtype])


def text(name, dtype):
    t, binary = f"tensor<[m, n], {dtype}>", issubclass(OPERATIONS[name], Binary)
    operands, types = ("%x, %z", f"{t}, {t}") if binary else ("%x", t)
    parameters = f"%x: {t}, %z: {t}" if binary else f"%x: {t}"
    return (f"func.func @f<m, n>({parameters}) -> {t} {{\n  %y = {name} {operands} : ({types}) -> {t}\n"
            f"  func.return %y : {t}\n}}")  # fmt: skip


def accepts(name, dtype):
    """Whether the verifier takes the operator on this type; it says why where it does not."""
    from stepwell.ir.diagnostics import IRError
    from stepwell.ir.verifier import verify

    try:
        verify(stepwell.parse(text(name, dtype)))
    except IRError as error:
        assert "tensor of" in str(error) or "nd.cast first" in str(error), error
        return False
    return True


@pytest.mark.parametrize("name", OPERATORS)
def test_agrees_with_its_definition(name):
    rng = np.random.default_rng(len(name))
    tried = 0
    for dtype in filter(lambda d: accepts(name, d), DTYPES):
        fast, reference = (stepwell.compile(text(name, dtype), target=t) for t in ("cpu", "reference"))
        for shape in SHAPES:
            arguments = [values(shape, dtype, rng)]
            if issubclass(OPERATIONS[name], Binary):
                arguments.append(values(shape, dtype, rng)[::-1])
            with np.errstate(all="ignore"):
                got, wanted = fast(*arguments), reference(*arguments)
            assert got.dtype == wanted.dtype
            limit = TOLERANCE.get(dtype, 0)
            np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=limit, atol=limit)
            tried += 1
    assert tried


@pytest.mark.skipif(emulate.compiler() is None, reason="no C++ compiler")
@pytest.mark.parametrize("dtype", DTYPES)
def test_emulated_cuda_agrees_with_the_definitions(dtype):
    """All operators of a dtype as the results of one function, on the emulator."""
    names = [n for n in OPERATORS if accepts(n, dtype)]
    t = f"tensor<[m, n], {dtype}>"
    lines = [text(n, dtype).split("\n")[1].replace("%y =", f"%y{k} =") for k, n in enumerate(names)]
    results = ", ".join(f"%y{k}" for k in range(len(names)))
    source = (f"func.func @f<m, n>(%x: {t}, %z: {t}) -> ({', '.join([t] * len(names))}) {{\n" + "\n".join(lines)
              + f"\n  func.return {results} : {', '.join([t] * len(names))}\n}}")  # fmt: skip
    emulated, reference = (stepwell.compile(source, target=t) for t in ("emulate", "reference"))
    rng = np.random.default_rng(7)
    for shape in SHAPES:
        arguments = [values(shape, dtype, rng), values(shape, dtype, rng)[::-1]]
        with np.errstate(all="ignore"):
            found = zip(names, emulated(*arguments), reference(*arguments), strict=True)
            for name, got, wanted in found:
                limit = TOLERANCE.get(dtype, 0)
                np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=limit, atol=limit,
                                           err_msg=name)  # fmt: skip
