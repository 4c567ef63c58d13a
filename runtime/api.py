"""`stepwell.compile`: from text, a file or a module to a function on arrays. One compile serves every shape."""

from __future__ import annotations

import importlib.util
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from ..dialects import func, load_all, loop, rt
from ..dialects.signature import Signature, check_facts
from ..ir.attributes import Location, TensorType
from ..ir.core import Operation
from ..ir.diagnostics import IRError
from ..ir.dims import DimError
from ..ir.parser import parse_file, parse_module
from ..ir.pass_options import near
from ..ir.passes import PassManager
from ..ir.verifier import verify
from ..lowering import load_all as load_passes
from .arrays import Arrays, arrays_of
from .executor import sizes_text

TARGETS = ("cuda", "cpu", "emulate", "emulate-plain", "reference")
AMP = ("f16", "bf16")
ARCH = re.compile(r"sm_\d{2,3}[af]?")
LOWERING = "fuse,resolve{{target={target}}},schedule,cse,simplify-loops,cse,plan"


@attrs.define
class Stats:
    """What compiling cost. `compilations` counts how often the code of the function was generated: once, whatever the
    sizes it is called with."""

    compilations: int = 0
    kernels: int = 0
    seconds: float = 0.0


def default_target() -> str:
    """`cuda` where a device is usable, else `cpu`."""
    from . import cuda

    return "cuda" if cuda.available() else "cpu"


def front_text(amp: str | None = None) -> str:
    """The passes over operators that every target begins with, as text."""
    low = f"amp{{dtype={amp}}}," if amp else ""
    return f"canonicalize,cse,assert-shapes,{low}canonicalize,cse"


def printed_for(target: str) -> str:
    """The target whose code runs: the emulator runs what is printed for CUDA."""
    return "cuda" if target.startswith("emulate") else target


def pipeline_text(target: str, amp: str | None = None) -> str:
    """The default pipeline of a target, as text."""
    return f"{front_text(amp)},{LOWERING.format(target=printed_for(target))}"


def load_source(source: Any, name: str = "<text>") -> Operation:
    """The module of a text, a path (a `Path`, or a string that ends in .mlir) or a module, verified. `name` is the
    file that errors in a text name.

    Raises IRError, OSError for a file that cannot be read, and TypeError for what is none of these."""
    load_all()
    load_passes()
    if isinstance(source, Operation):
        module = source.clone()
    elif isinstance(source, os.PathLike):
        module = parse_file(os.fsdecode(source))
    elif not isinstance(source, str):
        raise TypeError(f"the source is a {type(source).__name__}, but must be IR text, a path or a module")
    elif source.endswith(".mlir") and "\n" not in source:
        module = parse_file(source)
    else:
        module = parse_module(source, name)
    return checked(module)


def checked(module: Operation) -> Operation:
    """The module; IRError where it is no valid IR, or the facts of a function exclude each other."""
    for op in module.walk():
        if isinstance(op, func.FuncOp):
            check_facts(op)
    verify(module)
    return module


def entry_of(module: Operation, name: str | None = None) -> func.FuncOp:
    """The function to run: `name`, or the first public one."""
    functions = [op for op in module.body.ops if isinstance(op, func.FuncOp) and not op.is_declaration]
    if name is not None:
        for op in functions:
            if op.sym_name == name:
                return op
        known = [op.sym_name for op in functions]
        raise IRError(f"no function @{name}{near(name, known)}; the module has {', '.join(map(str, known)) or 'none'}")
    public = [op for op in functions if op.sym_visibility in (None, "public")]
    if not public:
        raise IRError("the module has no function to run; define one with func.func")
    return public[0]


def compile(
    source: Any, target: str | None = None, *, entry: str | None = None, amp: str | None = None,
    arch: str | None = None, progress: Callable[[str, int, int], None] | None = None, name: str = "<text>",
) -> Function:  # fmt: skip
    """Compile a function of a module; the result takes and returns NumPy, CuPy or PyTorch arrays of any sizes.

    `source`: IR text, a path, or a module. `target`: cuda, cpu or reference (default: the best one here); emulate runs
    the CUDA code on this machine and checks what its threads do, emulate-plain only runs it.
    `entry`: the function's name (default: the first public one). `amp`: f16 or bf16, run what may run low in it.
    `arch`: of the GPU, sm_90a (default: that of the current device). `name`: what errors call a source that is text.
    A lowered module runs as it stands.
    Raises IRError for anything wrong with the source and for a target that this machine does not have, ValueError
    for an unknown target, amp or arch."""
    target = target or default_target()
    if target not in TARGETS:
        raise ValueError(f"unknown target '{target}'; there are {', '.join(TARGETS)}")
    if amp not in (None, *AMP):
        raise ValueError(f"unknown amp '{amp}'; there are {', '.join(AMP)}")
    if arch is not None and not ARCH.fullmatch(arch):
        raise ValueError(f"unknown arch '{arch}'; write sm_90a or the like")
    if target == "cuda":
        _check_cuda()
    module = load_source(source, name)
    return Function(module, entry_of(module, entry).sym_name, target, amp, arch, progress)


def _check_cuda() -> None:
    from . import cuda

    if not cuda.available():
        lacks = "a CUDA device, and there is none"
        if importlib.util.find_spec("cupy") is None:
            lacks = "CuPy, which is not installed (the extra cuda12 or cuda13)"
        raise IRError(f"target cuda needs {lacks}; use the target cpu, or emulate to run the CUDA code here")


def lower(module: Operation, target: str, amp: str | None = None) -> Operation:
    """Run the default pipeline, in place, on a module that is not lowered yet."""
    PassManager.parse(pipeline_text(target, amp)).run(module)
    return module


def is_lowered(module: Operation) -> bool:
    """Whether the module holds a plan: kernels, launches or buffers."""
    return any(isinstance(op, (loop.Kernel, rt.Launch, rt.Empty, rt.View)) for op in module.walk())


def kernels_of(module: Operation) -> list[loop.Kernel]:
    return [op for op in module.walk() if isinstance(op, loop.Kernel)]


class Function:
    """A compiled function. Call it with arrays and scalars in the order of its signature, or by their names."""

    def __init__(
        self, module: Operation, entry: str, target: str, amp: str | None, arch: str | None,
        progress: Callable[[str, int, int], None] | None,
    ) -> None:  # fmt: skip
        self.stats = Stats()
        self.target = self.used_target = target
        self.signature = Signature.of(entry_of(module, entry))
        started = time.perf_counter()
        lowered = is_lowered(module)
        if lowered and amp:
            raise IRError("the module is lowered already: mixed precision comes before lowering")
        if not lowered:
            PassManager.parse(front_text(amp)).run(module)
        self.source = None if lowered else module.clone()  # operators, after mixed precision: what is to be computed
        if target == "cpu" and not _compiler_found():
            self.used_target = "reference"
        if self.used_target == "reference":
            self._prepare_reference(module, entry)
        else:
            if not lowered:
                PassManager.parse(LOWERING.format(target=printed_for(target))).run(module)
            self._prepare_kernels(module, entry, arch, progress)
        self.stats.seconds = time.perf_counter() - started

    def _prepare_reference(self, module: Operation, entry: str) -> None:
        from .reference import Reference

        if self.source is None:
            raise IRError("the module is lowered to kernels, which the reference does not run; give it the source file")
        self.module = module
        function = entry_of(module, entry)
        self.arrays: Arrays = arrays_of("cpu")
        self.stats.compilations += 1
        self.executor: Any = Reference(function)
        self.executor.symbols = function.symbols

    def _prepare_kernels(
        self, module: Operation, entry: str, arch: str | None, progress: Callable[[str, int, int], None] | None
    ) -> None:
        from .executor import Executor

        self.module = module
        verify(module)
        function = entry_of(self.module, entry)
        kernels = kernels_of(self.module)
        for kernel in kernels:
            if kernel.target not in (None, printed_for(self.target)):
                raise kernel.error(f"was lowered for target '{kernel.target}', not '{printed_for(self.target)}'")
        self.stats.kernels = len(kernels)
        self.arrays = arrays_of(self.target)
        self.stats.compilations += 1
        runners = self.arrays.build(kernels, arch, progress)
        self.executor = Executor(function, self.arrays, runners, {k.sym_name: k for k in kernels})

    def __repr__(self) -> str:
        """`<stepwell function @f(%x: tensor<[m, n], f32>) for cpu>`"""
        shown = ", ".join(f"%{p.name}: {p.type}" for p in self.signature.parameters)
        return f"<stepwell function @{self.signature.name}({shown}) for {self.used_target}>"

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        """Run on arrays and Python scalars, given in order or by name: `f(x, w=w)`. `out`: an array (or a sequence,
        None for those to be made) that takes the results. Raises IRError for an argument that does not fit the
        signature, before anything is launched."""
        buffers, kind = self._accept(self._in_order(arguments, named))
        symbols = self._bind(buffers)
        self.executor.check(symbols)
        given = self._outputs(out, symbols, buffers)
        try:
            results = self.executor.run(symbols, buffers, {n: b for n, (b, _) in given.items()})
        except MemoryError as error:
            raise IRError(f"@{self.signature.name}: out of memory: {error}", self.signature.location) from None
        made = [self._give(n, r, given, kind) for n, r in enumerate(self._apart(results, given))]
        return made[0] if len(made) == 1 else tuple(made) if made else None

    def bind(self, *arguments: Any, **named: Any) -> dict[str, int]:
        """The value that each symbol would have in a call."""
        buffers, _ = self._accept(self._in_order(arguments, named))
        return dict(zip(self.executor.symbols, self._bind(buffers), strict=True))

    def _in_order(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """The arguments of a call with those given by name at their places."""
        if not named:
            return arguments
        names = [p.name for p in self.signature.parameters]
        for name in named:
            if name not in names:
                there = ", ".join(f"%{n}" for n in names) or "none"
                raise IRError(f"the function has no argument '{name}'{near(name, names)} (it has {there})",
                              self.signature.location)  # fmt: skip
            if name in names[: len(arguments)]:
                raise IRError(f"argument %{name} is given twice, by its place and by its name", self._declared(name))
        missing = [n for n in names[len(arguments) :] if n not in named]
        if missing:
            shown = ", ".join(f"%{n}" for n in missing)
            plural = "s" if len(missing) > 1 else ""
            raise IRError(f"the call lacks argument{plural} {shown}", self._declared(missing[0]))
        return [*arguments, *(named[n] for n in names[len(arguments) :])]

    def _declared(self, name: str) -> Location:
        return next(p.location for p in self.signature.parameters if p.name == name)

    def _accept(self, arguments: Sequence[Any]) -> tuple[list[Any], str]:
        parameters = self.signature.parameters
        if len(arguments) != len(parameters):
            names = ", ".join(f"%{p.name}" for p in parameters)
            raise IRError(
                f"the function takes {len(parameters)} arguments ({names}), but {len(arguments)} were given",
                self.signature.location,
            )
        kinds = {self.arrays.kind(a) for a in arguments} - {None}
        buffers = [self.arrays.accept(a, p) for a, p in zip(arguments, parameters, strict=True)]
        return buffers, "torch" if "torch" in kinds else "native"

    def _bind(self, buffers: Sequence[Any]) -> tuple[int, ...]:
        return self.signature.bind([getattr(b, "shape", b) for b in buffers])

    def _outputs(self, out: Any, symbols: tuple[int, ...], inputs: Sequence[Any]) -> dict[int, tuple[Any, Any]]:
        """Result number -> (a buffer that kernels may write, what the caller gave)."""
        if out is None:
            return {}
        given = list(out) if isinstance(out, (list, tuple)) else [out]
        types = self.signature.results
        if len(given) != len(types):
            raise IRError(f"out= has {len(given)} arrays, but the function has {len(types)} results",
                          self.signature.location)  # fmt: skip
        values = dict(zip(self.executor.symbols, symbols, strict=True))
        made = {}
        for n, (array, type) in enumerate(zip(given, types, strict=True)):
            if array is not None:
                if not isinstance(type, TensorType):
                    raise IRError(f"out[{n}] is given, but the result is a number of type '{type}'; pass None")
                made[n] = (self.arrays.accept_output(array, type, self._shape(type, n, values), n, inputs), array)
        self.arrays.check_apart({n: array for n, (_, array) in made.items()})
        return made

    def _shape(self, type: TensorType, number: int, values: Mapping[str, int]) -> tuple[int, ...]:
        try:
            return tuple(d.evaluate(values) for d in type.dims)
        except DimError as error:
            message = f"result {number} of @{self.signature.name} ('{type}') has no size: {error.message}"
            raise IRError(message + sizes_text(values.items()), self.signature.location) from None

    def _apart(self, results: Sequence[Any], given: Mapping[int, tuple[Any, Any]]) -> list[Any]:
        """The results, those copied that are arguments whose memory another result is about to be copied into."""
        made = list(results)
        for number, (buffer, array) in given.items():
            if results[number] is not buffer:
                target = self.arrays.buffer_of(array)
                for n, result in enumerate(made):
                    if n != number and self.arrays.may_overlap(target, result):
                        made[n] = result.copy()
        return made

    def _give(self, number: int, result: Any, given: dict[int, tuple[Any, Any]], kind: str) -> Any:
        if number in given:
            buffer, array = given[number]
            if result is not buffer:
                self.arrays.copy_into(array, result)
            return array
        return self.arrays.give(result, kind)


_WARNED = False


def _compiler_found() -> bool:
    global _WARNED
    from . import cpu

    if cpu.available():
        return True
    if not _WARNED:
        _WARNED = True
        warnings.warn("no C compiler found ($CC, gcc, clang, cc): the reference runs instead, slowly", stacklevel=4)
    return False


__all__ = ["Function", "Stats", "compile", "default_target", "entry_of", "load_source", "lower"]
