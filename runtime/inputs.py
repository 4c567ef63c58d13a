"""Inputs of `stepwell run`: sizes from --dim, arrays from --arg or a seeded random generator."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..dialects import func
from ..dialects.scalar import dtype_of
from ..dialects.signature import Parameter, Signature
from ..ir.attributes import FloatType, TensorType, i1
from ..ir.diagnostics import IRError

KINDS = ("randn", "rand", "zeros", "ones")


def size_list(given: Sequence[str], entry: func.FuncOp) -> list[dict[str, int]]:
    """The sizes of each run from `--dim name=1,2,3` options: lists of equal length go together, a single value
    holds for all. IRError for a symbol that the function does not have."""
    lists: dict[str, list[int]] = {}
    for text in given:
        name, _, numbers = text.partition("=")
        if name not in entry.symbols:
            raise IRError(f"--dim {text}: @{entry.sym_name} has no dim '{name}'{_near(name, entry.symbols)}; "
                          f"it has {', '.join(entry.symbols) or 'none'}", entry.location)  # fmt: skip
        if name in lists:
            raise IRError(f"--dim {text}: '{name}' is given twice; write --dim {name}=1,2 for several sizes")
        lists[name] = [_size(text, n) for n in numbers.split(",")]
    lengths = {len(v) for v in lists.values()} - {1}
    if len(lengths) > 1:
        shown = ", ".join(f"{n} has {len(v)}" for n, v in lists.items())
        raise IRError(f"lists of sizes that go together must be equally long, but {shown}")
    count = lengths.pop() if lengths else 1
    return [{n: v[k] if len(v) > 1 else v[0] for n, v in lists.items()} for k in range(count)]


def _size(text: str, number: str) -> int:
    try:
        value = int(number)
    except ValueError:
        raise IRError(f"--dim {text}: '{number}' is not a number; write --dim n=128 or --dim n=17,1,128") from None
    if not 0 <= value < 1 << 62:
        raise IRError(f"--dim {text}: a size cannot be {value}")
    return value


def _near(name: str, names: Sequence[str]) -> str:
    found = difflib.get_close_matches(name, names, 1)
    return f"; did you mean '{found[0]}'?" if found else ""


def make(
    specs: Sequence[str], signature: Signature, entry: func.FuncOp, sizes: Mapping[str, int], seed: int
) -> list[Any]:
    """The arguments of a call, as NumPy arrays and numbers."""
    by_name = _specs(specs, signature)
    loaded = {n: _load(spec, p) for n, (spec, p) in by_name.items()}
    symbols = _symbols(signature, entry, sizes, loaded)
    generator = np.random.default_rng(seed)
    made = []
    for parameter in signature.parameters:
        value = loaded.get(parameter.name)
        kind = value if isinstance(value, str) else "randn"
        made.append(value if value is not None and not isinstance(value, str)
                    else _generate(kind, parameter, symbols, generator))  # fmt: skip
    return made


def _specs(specs: Sequence[str], signature: Signature) -> dict[str, tuple[str, Parameter]]:
    parameters = {p.name: p for p in signature.parameters}
    made = {}
    for text in specs:
        name, equals, spec = text.partition("=")
        name = name.lstrip("%")
        if name not in parameters or not equals:
            raise IRError(f"--arg {text}: the function has no argument '{name}'{_near(name, list(parameters))}; "
                          f"it has {', '.join(parameters)}", signature.location)  # fmt: skip
        made[name] = (spec, parameters[name])
    return made


def _load(spec: str, parameter: Parameter) -> Any:
    """A kind of random array (as a string), a number, or an array from a file."""
    if spec in KINDS:
        return spec
    path, colon, key = spec.rpartition(":")
    if colon and path.endswith(".npz"):
        return _from_npz(path, key)
    if spec.endswith(".npy"):
        return _open(spec)
    try:
        number = float(spec) if any(c in spec.lower() for c in ".einf") else int(spec, 0)
    except ValueError:
        kinds = ", ".join(KINDS)
        raise IRError(f"--arg {parameter.name}={spec}: expected {kinds}, a number, F.npy or F.npz:key") from None
    if isinstance(parameter.type, TensorType):
        if parameter.type.rank:
            raise IRError(f"--arg {parameter.name}={spec}: %{parameter.name} is '{parameter.type}', not a scalar")
        return np.array(number, dtype_of(parameter.type.element))
    return number


def _open(path: str) -> Any:
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file or directory", path)
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise IRError(f"{path} cannot be read as a NumPy file: {error}") from None


def _from_npz(path: str, key: str) -> np.ndarray:
    archive = _open(path)
    names = getattr(archive, "files", [])
    if key not in names:
        raise IRError(f"{path} has no array '{key}'{_near(key, names)}; it has {', '.join(names)}")
    try:
        return np.asarray(archive[key])
    except ValueError as error:
        raise IRError(f"{path}: array '{key}' cannot be read: {error}") from None


def _symbols(
    signature: Signature, entry: func.FuncOp, sizes: Mapping[str, int], loaded: Mapping[str, Any]
) -> dict[str, int]:
    """Values for all symbols: those given, those that loaded arrays have, and small ones for the rest."""
    from ..ir.dims import DimError, solve

    values = dict(sizes)
    for parameter in signature.parameters:
        value = loaded.get(parameter.name)
        if parameter.dim is not None and isinstance(value, int):
            values.setdefault(parameter.dim, value)
        for dim, size in zip(getattr(parameter.type, "shape", ()), getattr(value, "shape", ()), strict=False):
            unknown = dim.symbols - values.keys()
            if len(unknown) == 1:
                symbol = next(iter(unknown))
                try:
                    values[symbol] = solve(dim, symbol, size, values)
                except DimError:
                    continue  # the call itself reports what does not fit
    for symbol in signature.symbols:
        if symbol not in values:
            known = [r.substitute(values) for r in entry.relations]
            open_facts = type(entry.facts)([r for r in known if r.symbols])
            values[symbol] = open_facts.smallest(symbol, 7)
            print(f"{symbol} = {values[symbol]} (not given)")
    return values


def _generate(kind: str, parameter: Parameter, symbols: Mapping[str, int], generator: np.random.Generator) -> Any:
    type = parameter.type
    if not isinstance(type, TensorType):
        if parameter.dim is not None:
            return symbols[parameter.dim]
        return float(generator.standard_normal()) if isinstance(type, FloatType) else int(generator.integers(1, 8))
    shape = tuple(d.evaluate(symbols) for d in type.dims)
    dtype = dtype_of(type.element)
    if kind in ("zeros", "ones"):
        return np.full(shape, 1 if kind == "ones" else 0).astype(dtype)
    if type.element is i1:
        return generator.integers(0, 2, shape).astype(bool)
    if not isinstance(type.element, FloatType):
        unsigned = dtype.kind == "u"
        return generator.integers(0 if unsigned else -8, 8, shape).astype(dtype)
    draw = generator.standard_normal if kind == "randn" else generator.random
    return draw(shape, dtype=np.float32).astype(dtype)


def to_device(array: Any, function: Any) -> Any:
    """A NumPy array as the function's target takes it."""
    if function.used_target != "cuda" or not isinstance(array, np.ndarray):
        return array
    import cupy

    return cupy.asarray(array)


def to_host(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()  # type: ignore[no-any-return]
