"""Variants: ways to implement a group, each with what it accepts, when it is worth taking, and its schedule.

    @variant("my_rows", target="cuda", operators=("nn.softmax",), dtypes=(f16, f32), prefer="n <= 4096")
    def my_rows(arm: Arm) -> None: ...

`accepts` is legality: the verifier holds every choice to it, also a forced one (`{variant = "my_rows"}` on the
operator). `prefer` is a fact about the function's dims that becomes a guard.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import attrs

from ..dialects.rt import Guard
from ..dialects.scalar import unsupported
from ..ir.attributes import FileLoc, Location, TensorType, Type, unknown
from ..ir.core import Value
from ..ir.diagnostics import IRError
from ..ir.dims import Relation, parse_facts, product
from ..ir.facts import Contradiction, Facts, Truth
from ..ir.parser import parse_type
from ..ir.pass_options import near
from ..ir.registry import DIALECTS, OPERATIONS
from .fused import Arm, Fused
from .schedules.generic import generic
from .schedules.matmul import Product, product_form
from .schedules.matmul_cpu import matmul_cpu, matmul_cpu_packed
from .schedules.matmul_cuda import Tile, matmul_cuda
from .schedules.rows import Rows, row_form
from .schedules.rows_cpu import rows_cpu
from .schedules.rows_cuda import WARP, RowShape, capacity, rows_cuda, vector_width

# Extents up to which 32-bit indices are right: the last step of a loop over the grid, at most 65535 blocks of 256
# threads, must not overflow either.
INT32 = (1 << 31) - (1 << 25)


@attrs.define(eq=False)
class Candidate:
    """A group for which variants are looked at."""

    fused: Fused
    target: str
    facts: Facts
    symbols: tuple[str, ...]
    external: frozenset[Value]  # inputs that are arguments of the function: any strides
    unaligned: frozenset[Value]  # inputs whose memory is an argument's: any alignment

    @property
    def tensors(self) -> list[Value]:
        """The inputs, and all that is computed from them: a schedule may give any of it a buffer."""
        computed = [r for op in self.fused.block.ops for r in op.results]
        tensors = [v for v in (*self.fused.inputs, *computed) if isinstance(v.type, TensorType)]
        return sorted(tensors, key=lambda v: -v.tensor.rank)  # what bounds a large one bounds others too


Accepts = Callable[[Candidate], "str | None"]  # None, or why not
Prefers = Callable[[Candidate], Sequence[Relation]]


@attrs.frozen(eq=False)
class Variant:
    """One way to implement groups of a target; see the module's text. `contiguous`: inputs must be row-major;
    `aligned`: they must start on 64 bytes. Those are guards where the function's arguments come in."""

    name: str
    target: str
    schedule: Callable[[Arm], None]
    accepts: Accepts = lambda candidate: None
    prefer: Prefers = lambda candidate: ()
    operators: tuple[str, ...] | None = None
    dtypes: tuple[Type, ...] | None = None
    index_bits: int = 64
    contiguous: bool = True
    aligned: bool = False
    rank: int = 0

    def refusal(self, candidate: Candidate) -> str | None:
        """Why this variant cannot implement the group; None when it can."""
        _check_operators(self)
        anchor = candidate.fused.anchor
        if self.target != candidate.target:
            return f"it is for target '{self.target}', not '{candidate.target}'"
        if self.operators is not None and (anchor is None or anchor.op_name not in self.operators):
            return f"it implements {' or '.join(self.operators)}"
        if self.dtypes is not None:
            for value in anchor.operands if anchor is not None else candidate.tensors:
                if isinstance(value.type, TensorType) and value.tensor.element not in self.dtypes:
                    names = ", ".join(map(str, self.dtypes))
                    return f"it accepts {names} only, but {_name(value)} is {value.tensor.element}"
        return self.accepts(candidate)

    def guard(self, candidate: Candidate) -> Guard | None:
        """What is left to test at run time; None where it is known never to hold."""
        wanted = list(self.prefer(candidate))
        if self.index_bits == 32:
            wanted += [product(v.tensor.dims) <= INT32 for v in candidate.tensors]
        open_facts: list[Relation] = []
        known = candidate.facts
        for relation in dict.fromkeys(wanted):
            truth = known.prove(relation)
            if truth is Truth.NO:
                return None
            if truth is Truth.UNKNOWN:
                open_facts.append(relation)
                try:
                    known = known.assume(relation)  # what one test says, the next need not
                except Contradiction:
                    return None
        tensors = [(n, v) for n, v in enumerate(candidate.fused.inputs) if isinstance(v.type, TensorType)]
        strided = tuple(n for n, v in tensors if v in candidate.external and v.tensor.rank)
        unaligned = tuple(n for n, v in tensors if v in candidate.unaligned)
        return Guard(tuple(open_facts), strided if self.contiguous else (), unaligned if self.aligned else ())


def _name(value: Value) -> str:
    return f"operand %{value.hint}" if value.hint else "an operand"


TARGETS = ("cuda", "cpu")
VARIANTS: dict[str, Variant] = {}


def register(variant: Variant) -> Variant:
    old = VARIANTS.get(variant.name)
    if old is not None and (_origin(old) is None or _origin(old) != _origin(variant)):
        raise ValueError(f"variant '{variant.name}' is registered already")
    VARIANTS[variant.name] = variant  # a module that is run again takes the place of its first run
    return variant


def _origin(variant: Variant) -> tuple[str, str] | None:
    """The module and the name of a schedule that is a function."""
    name = getattr(variant.schedule, "__qualname__", None)
    return None if name is None else (variant.schedule.__module__, name)


def _listed(name: str, what: str, given: Any) -> tuple[Any, ...]:
    """`given`, which must be a list and not one string."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"variant '{name}' has {what} = {given!r}, but it must be a tuple, as in ({given!r},)")
    return tuple(given)


def _dtype(name: str, given: Type | str) -> Type:
    """A type, also by its text."""
    made: object = given
    if isinstance(given, str):
        try:
            made = parse_type(given)
        except IRError:
            made = None
    if not isinstance(made, Type) or unsupported(made) is not None:
        raise ValueError(f"variant '{name}' has dtype {given!r}, but it must be a type of elements, as f16 or 'f32'")
    return made


def _operator_name(name: str, given: Any) -> str:
    found = given if isinstance(given, str) else getattr(given, "name", None)
    if not isinstance(found, str):
        raise ValueError(f"variant '{name}' has operator {given!r}, but it must be a name, as 'nn.softmax', or a class")
    return found


def _check_operators(variant: Variant) -> None:
    """Raise an IRError for a variant of an operator that its dialect does not have; warn where there is no such
    dialect, which may be another extension's. Done when variants are looked at: what is named may be registered
    after the variant."""
    for name in () if variant in _checked else variant.operators or ():
        if name not in OPERATIONS:
            message = f"variant '{variant.name}' implements '{name}', which is not registered{near(name, OPERATIONS)}"
            if name.partition(".")[0] in DIALECTS:
                raise IRError(message, _location(variant))
            warnings.warn(f"{message} ({_location(variant)})", stacklevel=2)
    _checked.add(variant)


_checked: set[Variant] = set()


def _location(variant: Variant) -> Location:
    code = getattr(variant.schedule, "__code__", None)
    return unknown if code is None else FileLoc(code.co_filename, code.co_firstlineno, 1)


def variant(
    name: str, *, target: str, operators: Sequence[str | type] | None = None,
    dtypes: Sequence[Type | str] | None = None, prefer: str = "", accepts: Accepts = lambda candidate: None,
    rank: int = 100, index_bits: int = 64, contiguous: bool = True, aligned: bool = False,
) -> Callable[[Callable[[Arm], None]], Callable[[Arm], None]]:  # fmt: skip
    """Register a schedule function as a variant. `prefer` is a list of facts, `n <= 4096, n % 8 == 0`, over
    symbols of the function; where the function lacks a symbol the variant is not taken. `dtypes` are types or their
    texts, `operators` classes or names; a name that no dialect has is an error when variants are first looked at."""
    if target not in TARGETS:
        raise ValueError(
            f"variant '{name}' is for target '{target}', which does not exist{near(target, TARGETS)}; "
            f"it must be {' or '.join(map(repr, TARGETS))} (the emulator runs variants of 'cuda')"
        )
    facts = tuple(parse_facts(prefer)) if prefer else ()
    names = None if operators is None else tuple(_operator_name(name, o) for o in _listed(name, "operators", operators))
    kinds = None if dtypes is None else tuple(_dtype(name, d) for d in _listed(name, "dtypes", dtypes))

    def check(candidate: Candidate) -> str | None:
        missing = [s for f in facts for s in f.symbols if s not in candidate.symbols]
        return f"the function has no dim '{missing[0]}'" if missing else accepts(candidate)

    def add(schedule: Callable[[Arm], None]) -> Callable[[Arm], None]:
        register(Variant(
            name, target, schedule, check, lambda candidate: facts, names, kinds, index_bits, contiguous, aligned, rank,
        ))  # fmt: skip
        return schedule

    return add


# ---------------------------------------------------------------- the built-in ones


def _is_rows(candidate: Candidate) -> str | None:
    found = row_form(candidate.fused)
    if isinstance(found, str):
        return found
    return "it is a product of matrices" if isinstance(product_form(candidate.fused), Product) else None


def _is_product(candidate: Candidate) -> str | None:
    found = product_form(candidate.fused)
    return found if isinstance(found, str) else None


def _rows(candidate: Candidate) -> Rows:
    found = row_form(candidate.fused)
    assert isinstance(found, Rows)
    return found


def _width(candidate: Candidate, rows: Rows) -> int:
    arm = Arm(candidate.fused, candidate.target, "", candidate.symbols, candidate.facts, None, None, {})  # type: ignore[arg-type]
    return vector_width(arm, rows)


def _row_variants(name: str, shape: RowShape, rank: int) -> None:
    """Two variants of a way to spread rows: row lengths that are a multiple of the vector, and all others."""

    def fits(candidate: Candidate, divisible: bool) -> list[Relation]:
        rows = _rows(candidate)
        width = _width(candidate, rows)
        wanted = [rows.length <= capacity(shape, width)] if shape.chunks else []
        return [*wanted, (rows.length % width).eq(0)] if divisible and width > 1 else wanted

    for suffix, peeled in (("", False), ("_peeled", True)):
        register(Variant(
            name + suffix, "cuda", partial(rows_cuda, shape=shape, peeled=peeled), _is_rows,
            partial(fits, divisible=not peeled), index_bits=32, aligned=True, rank=rank - peeled,
        ))  # fmt: skip


def _is_large(candidate: Candidate) -> list[Relation]:
    found = product_form(candidate.fused)
    assert isinstance(found, Product)
    m, n, _ = found.sizes
    return [m * n * product(found.batch) >= 1 << 23]  # below, large tiles leave multiprocessors idle


def _has_many_rows(candidate: Candidate) -> list[Relation]:
    found = product_form(candidate.fused)
    assert isinstance(found, Product)
    return [found.sizes[0] >= 16]  # fewer do not pay for the packing


_row_variants("rows_short", RowShape(WARP, 1, rows_per_block=8), 70)
_row_variants("rows_warp", RowShape(WARP, 8, rows_per_block=8), 60)
_row_variants("rows_block", RowShape(256, 8), 50)
_row_variants("rows_long", RowShape(512, 0), 40)
register(Variant(
    "matmul_large_tiles", "cuda", lambda arm: matmul_cuda(arm, Tile(128, 128, 16, 8, 8)), _is_product, _is_large,
    index_bits=32, rank=71,
))  # fmt: skip
register(Variant(
    "matmul_tiles", "cuda", lambda arm: matmul_cuda(arm, Tile()), _is_product, index_bits=32, rank=70,
))  # fmt: skip
register(Variant("elements", "cuda", generic, index_bits=32, rank=10))
register(Variant("generic", "cuda", generic, contiguous=False, rank=0))
register(Variant("rows_cpu", "cpu", rows_cpu, _is_rows, rank=60))
register(Variant("matmul_cpu_packed", "cpu", matmul_cpu_packed, _is_product, _has_many_rows, rank=71))
register(Variant("matmul_cpu", "cpu", matmul_cpu, _is_product, rank=70))
register(Variant("elements_cpu", "cpu", generic, rank=10))
register(Variant("generic_cpu", "cpu", generic, contiguous=False, rank=0))


def candidates(candidate: Candidate) -> list[Variant]:
    """The variants that accept a group, best rank first; the last takes everything."""
    found = [v for v in VARIANTS.values() if v.refusal(candidate) is None]
    return sorted(found, key=lambda v: -v.rank)


__all__ = ["INT32", "VARIANTS", "Candidate", "Variant", "candidates", "register", "variant"]
