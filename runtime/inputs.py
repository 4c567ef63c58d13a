"""Inputs of `stepwell run`: sizes from --dim, arrays from --arg or a seeded random generator."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..dialects import func
from ..dialects.scalar import dtype_of
from ..dialects.signature import Parameter, Signature, where_of
from ..ir.attributes import FloatType, TensorType, i1
from ..ir.diagnostics import IRError
from ..ir.dims import Bcast, Dim, DimError, Relation, product, solve
from ..ir.facts import Facts
from ..ir.pass_options import near
from .arrays import LARGE, accept_scalar, arrays_of, check_memory
from .executor import sizes_text


@attrs.frozen
class Fill:
    """The number that all elements of a tensor are."""

    value: np.ndarray


KINDS = ("randn", "rand", "zeros", "ones")


def size_list(given: Sequence[str], entry: func.FuncOp) -> list[dict[str, int]]:
    """The sizes of each run from `--dim name=1,2,3` options: lists of equal length go together, a single value
    holds for all. IRError for a symbol that the function does not have."""
    lists: dict[str, list[int]] = {}
    for text in given:
        name, _, numbers = text.partition("=")
        if name not in entry.symbols:
            there = ", ".join(entry.symbols) or "none"
            raise IRError(f"--dim {text}: @{entry.sym_name} has no dim '{name}' (it has {there})"
                          f"{near(name, entry.symbols)}", entry.location)  # fmt: skip
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


def make(
    specs: Sequence[str], signature: Signature, entry: func.FuncOp, sizes: Mapping[str, int], seed: int
) -> list[Any]:
    """The arguments of a call, as NumPy arrays and numbers."""
    by_name = _specs(specs, signature)
    loaded = {n: _scalar_of(_load(spec, p), p) for n, (spec, p) in by_name.items()}
    symbols = _symbols(signature, entry, sizes, loaded)
    check_fits(signature, symbols, loaded)
    generator = np.random.default_rng(seed)
    made = []
    for parameter in signature.parameters:
        value = loaded.get(parameter.name)
        kind = value if isinstance(value, (str, Fill)) else "randn"
        made.append(value if value is not None and not isinstance(value, (str, Fill))
                    else _aligned(_generate(kind, parameter, symbols, generator)))  # fmt: skip
    return made


def _aligned(made: Any) -> Any:
    """The array in memory on 64 bytes: which variant runs must not hang on where NumPy found room."""
    if not isinstance(made, np.ndarray):
        return made
    array = arrays_of("cpu").empty(made.shape, made.dtype)
    array[...] = made
    return array


def _specs(specs: Sequence[str], signature: Signature) -> dict[str, tuple[str, Parameter]]:
    parameters = {p.name: p for p in signature.parameters}
    made = {}
    for text in specs:
        name, equals, spec = text.partition("=")
        name = name.lstrip("%")
        if name in parameters and not equals:
            raise IRError(f"--arg {text}: says nothing of %{name}; write --arg {name}=randn, {name}=3 or {name}=F.npy")
        if name in made:
            raise IRError(f"--arg {text}: %{name} is given twice")
        if name not in parameters:
            there = ", ".join(parameters) or "none"
            raise IRError(f"--arg {text}: the function has no argument '{name}' (it has {there})"
                          f"{near(name, list(parameters))}", signature.location)  # fmt: skip
        made[name] = (spec, parameters[name])
    return made


def _load(spec: str, parameter: Parameter) -> Any:
    """A kind of random array (as a string), a number, or an array from a file."""
    if spec in KINDS:
        if parameter.dim is not None:
            raise IRError(f"--arg {parameter.name}={spec}: %{parameter.name} is the dim '{parameter.dim}'; give a "
                          f"number, or --dim {parameter.dim}=N")  # fmt: skip
        return spec
    path, colon, key = spec.rpartition(":")
    if colon and path.endswith(".npz"):
        return _from_npz(path, key)
    if spec.endswith(".npy"):
        return _open(spec)
    number = _parse_number(spec)
    if number is None:
        kinds = ", ".join(KINDS)
        raise IRError(f"--arg {parameter.name}={spec}: expected {kinds}, a number, F.npy or F.npz:key")
    if isinstance(parameter.type, TensorType):
        element = parameter.type.element
        made = np.array(accept_scalar(number, attrs.evolve(parameter, type=element)), dtype_of(element))
        return Fill(made) if parameter.type.rank else made
    return accept_scalar(number, parameter)


def _scalar_of(value: Any, parameter: Parameter) -> Any:
    """The number that a file holds for an argument that is one."""
    held = isinstance(value, np.ndarray) and not isinstance(parameter.type, TensorType)
    return accept_scalar(value, parameter) if held else value


def _parse_number(text: str) -> float | None:
    """An int where it is one; None for what is no number, or beyond f64."""
    for read in (lambda: int(text, 0), lambda: float(text)):
        try:
            number: float = read()
        except ValueError:
            continue
        return None if isinstance(number, float) and math.isinf(number) and "inf" not in text.lower() else number
    return None


def _open(path: str) -> Any:
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file or directory", path)
    try:
        return np.load(path, allow_pickle=False)
    except Exception as error:  # of NumPy, of zipfile, of zlib
        raise IRError(f"{path} cannot be read as a NumPy file: {_reason(error)}") from None


def _from_npz(path: str, key: str) -> np.ndarray:
    archive = _open(path)
    names = getattr(archive, "files", [])
    if key not in names:
        raise IRError(f"{path} has no array '{key}' (it has {', '.join(names) or 'none'}){near(key, names)}")
    try:
        return np.asarray(archive[key])
    except Exception as error:
        raise IRError(f"{path}: array '{key}' cannot be read: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return "it holds Python objects, or is none" if "pickle" in text else text


def _symbols(
    signature: Signature, entry: func.FuncOp, sizes: Mapping[str, int], loaded: Mapping[str, Any]
) -> dict[str, int]:
    """Values for all symbols: those given, those that loaded arrays have, and small ones for the rest."""
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
    wanted = [s for s in signature.symbols if s not in values]
    found = _search(wanted, [*entry.relations, *_sizes_exist(signature)], values)
    if found is None:
        given = ", ".join(f"{s} = {v}" for s, v in values.items())
        facts = ", ".join(map(str, entry.relations)) or "that every size is 0 or more"
        raise IRError(
            f"no size was found for {', '.join(wanted)} that @{entry.sym_name} can be called with"
            f"{' where ' + given if given else ''}: it needs {facts}; give one with --dim {wanted[0]}=N",
            where_of(entry),
        )  # fmt: skip
    for symbol in wanted:
        print(f"{symbol} = {found[symbol]} (not given)")
    return found


def _sizes_exist(signature: Signature) -> list[Relation]:
    """That the axes of the arguments have sizes, where that is not plain."""
    plain = {Dim.symbol(s) for s in signature.symbols}
    dims = [a.dim for a in signature.axes if a.dim.symbols and a.dim not in plain]
    return [*(d >= 0 for d in dims), *(r for d in dims for r in _broadcasts(d))]


def _broadcasts(dim: Dim) -> Iterator[Relation]:
    """That the sizes in each bcast(a, b) of a dim are equal, or one is 1."""
    for atom in dim.atoms:
        if isinstance(atom, Bcast):
            a, b = atom.lhs, atom.rhs
            yield product([a - b, a - 1, b - 1]).eq(0)
            yield from (*_broadcasts(a), *_broadcasts(b))


def _search(
    wanted: Sequence[str], relations: Sequence[Relation], given: Mapping[str, int], tries: int = 2000
) -> dict[str, int] | None:
    """`given` and the first sizes of the `wanted` symbols, small ones first, that satisfy the relations; what is
    given is not judged. None where none were found in so many tries."""
    try:
        known = [r for r in (r.substitute(given) for r in relations) if r.symbols]
    except DimError:
        return {**given, **dict.fromkeys(wanted, 7)}  # the call itself reports what was given
    left = tries

    def choose(at: int, relations: Sequence[Relation], values: dict[str, int]) -> dict[str, int] | None:
        nonlocal left
        if at == len(wanted):
            return values
        try:
            facts = Facts(relations)
            for size in facts.sizes(wanted[at]):
                left -= 1
                try:
                    rest = [r.substitute({wanted[at]: size}) for r in relations]
                except DimError:
                    continue
                if all(r.symbols or r.evaluate({}) for r in rest):
                    found = choose(at + 1, [r for r in rest if r.symbols], {**values, wanted[at]: size})
                    if found is not None:
                        return found
                if left < 0:
                    return None
        except DimError:
            pass  # no sizes satisfy these
        return None

    return choose(0, known, dict(given))


def _shape(parameter: Parameter, symbols: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a tensor argument; IRError where an axis has no size."""
    sizes = []
    for axis, dim in enumerate(parameter.type.dims):  # type: ignore[attr-defined]
        here = sizes_text((s, symbols[s]) for s in sorted(dim.symbols))
        try:
            size = dim.evaluate(symbols)
        except DimError as error:
            raise IRError(f"%{parameter.name} axis {axis}, '{dim}', has no size{here}: {error.message}; "
                          "choose others with --dim", parameter.location) from None  # fmt: skip
        if size < 0:
            raise IRError(f"%{parameter.name} axis {axis}, '{dim}', would be {size}{here}; choose others with --dim",
                          parameter.location)  # fmt: skip
        sizes.append(size)
    return tuple(sizes)


def check_fits(signature: Signature, symbols: Mapping[str, int], loaded: Mapping[str, Any]) -> None:
    """Raise an IRError where the arrays that are made and the results are more than there is memory."""
    total = 0
    for parameter in signature.parameters:
        if isinstance(parameter.type, TensorType) and not isinstance(loaded.get(parameter.name), np.ndarray):
            total += math.prod(_shape(parameter, symbols)) * dtype_of(parameter.type.element).itemsize
    for type in signature.results:
        if isinstance(type, TensorType):
            try:
                sizes = [d.evaluate(symbols) for d in type.dims]
            except DimError:
                continue  # the call itself reports it
            total += max(math.prod(sizes), 0) * dtype_of(type.element).itemsize
    if total >= LARGE:
        shown = ", ".join(f"{s} = {v}" for s, v in symbols.items())
        check_memory(total, f"a call of @{signature.name} with {shown or 'its sizes'}: its arguments and results")


def _generate(
    kind: str | Fill, parameter: Parameter, symbols: Mapping[str, int], generator: np.random.Generator
) -> Any:  # fmt: skip
    type = parameter.type
    if not isinstance(type, TensorType):
        if parameter.dim is not None:
            return symbols[parameter.dim]
        if kind in ("zeros", "ones"):
            return int(kind == "ones")
        if isinstance(type, FloatType):
            return float(generator.random() if kind == "rand" else generator.standard_normal())
        return int(generator.integers(0, 2) if type is i1 else generator.integers(1, 8))
    shape, dtype = _shape(parameter, symbols), dtype_of(type.element)
    if isinstance(kind, Fill):
        return np.full(shape, kind.value)
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
    return array.get() if hasattr(array, "get") else np.asarray(array)  # type: ignore[no-any-return]
