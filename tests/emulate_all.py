"""Run every CUDA kernel that the tests printed in the emulator's checked build, at small odd sizes.

    STEPWELL_KERNEL_DUMP=kernels pytest && python tests/emulate_all.py kernels

The printer leaves each source in $STEPWELL_KERNEL_DUMP, and beside it the lowered module that it came from; a kernel
that a test has run itself is noted there. What is left is run here: each arm of each `rt.choose`, as if those before
it did not exist, at the smallest sizes that its guard allows, against the generic arm at the same sizes. Kernels that come
from no plan get arguments that are made up. Kernels are the same when their IR is, whatever their names.
"""

import hashlib
import itertools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import attrs
import numpy as np
from tqdm import tqdm

from stepwell.dialects import func, loop, rt
from stepwell.dialects.scalar import dtype_of
from stepwell.ir.attributes import ArrayAttr, TensorType
from stepwell.ir.core import Operation
from stepwell.ir.diagnostics import IRError
from stepwell.ir.dim_relation import Relation
from stepwell.ir.dims import product
from stepwell.ir.printer import print_operation
from stepwell.runtime import api, emulate, inputs
from stepwell.runtime.executor import Executor

SMALL = (3, 1, 5, 7, 4, 8, 16, 17, 32, 33, 64, 65, 128, 129)
LARGE = (257, 260, 513, 520, 1025, 1028, 2049, 2056, 4097, 4104, 8193, 8200, 16385, 16392, 32769, 32776, 33001)
MOST = 1 << 18  # elements of all arguments
TOLERANCE = {"float64": 1e-9, "float32": 1e-3}  # arms differ in the order of their sums


def key_of(text: str) -> str:
    """The same for kernels that differ in their names only."""
    return hashlib.sha256(re.sub(r"loop\.kernel @\S+?\(", "loop.kernel @k(", text, count=1).encode()).hexdigest()[:24]



@attrs.define
class Note:
    """Writes `<hash>.ran` for every launch of a kernel; for `emulate.recording`."""

    folder: Path
    kernels: dict[int, Operation] = attrs.field(factory=dict)

    def __call__(self, call: emulate.Call) -> None:
        if id(call.kernel) in self.kernels:
            return
        self.kernels[id(call.kernel)] = call.kernel  # kept, so that the id stays its own
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{key_of(print_operation(call.kernel))}.ran").write_text(call.kernel.sym_name)


# ---------------------------------------------------------------- one module


Arms = Mapping[int, int]  # choose, in the order of the walk -> its arm that shall run


def chooses(function: Operation) -> list[rt.Choose]:
    return [op for op in function.walk() if isinstance(op, rt.Choose)]


def together(function: Operation) -> list[Arms]:
    """Arm k of every choose that has so many, for each k; a function without a choose has one way to run."""
    counts = {n: len(op.regions) for n, op in enumerate(chooses(function))}
    rounds = max(counts.values(), default=1)
    return [{n: min(k, count - 1) for n, count in counts.items()} for k in range(rounds)]


def without_earlier(module: Operation, name: str, arms: Arms) -> tuple[Operation, list[Relation]]:
    """A copy in which, in function `name`, each of the arms is the first of its choose, and the facts that their guards want. Facts that
    only ask for much work are dropped."""
    made, facts = module.clone(), []
    for n, op in enumerate(chooses(api.entry_of(made, name))):
        first = arms.get(n, 0)
        guards = [_legal(rt.Guard.of(op, k)) for k in range(first, len(op.regions))]
        facts += guards[0].facts if n in arms else ()
        lists = {"guards": tuple(g.attribute() for g in guards), "variants": op.get("variants").elements[first:]}
        op.regions = op.regions[first:]
        op.properties = {**op.properties, **{k: ArrayAttr(v) for k, v in lists.items()}}  # clones share it
    return made, facts


def _legal(guard: rt.Guard) -> rt.Guard:
    return rt.Guard(tuple(f for f in guard.facts if not only_prefers(f)), guard.contiguous, guard.aligned)


def only_prefers(fact: Relation) -> bool:
    """Whether a fact asks for much work, which no kernel needs in order to be right: `8388608 <= m*n`."""
    return fact.kind in ("<=", "<") and fact.difference.evaluate(dict.fromkeys(fact.difference.symbols, 0)) > MOST


def candidates(symbols: Sequence[str]) -> Iterator[dict[str, int]]:
    """Sizes from small to large: all alike, then one larger than the others, then two."""
    yield from (dict.fromkeys(symbols, v) for v in SMALL)
    for count in (1, 2):
        for few in itertools.combinations(symbols, count):
            for base in (1, 3, 4):
                for sizes in itertools.product(SMALL + LARGE, repeat=count):
                    yield {**dict.fromkeys(symbols, base), **dict(zip(few, sizes))}


class Runs:
    """A function of a lowered module on the emulator."""

    def __init__(self, module: Operation, entry: func.FuncOp) -> None:
        self.module, self.entry = module, entry
        self.function = api.compile(self.module, "emulate", entry=self.entry.sym_name)
        tensors = [v.type for op in self.entry.walk() for v in op.results if isinstance(v.type, TensorType)]
        tensors += [p.type for p in self.function.signature.parameters if isinstance(p.type, TensorType)]
        self.counts = [product(t.dims) for t in tensors]
        self.kernels = {k.sym_name: k for k in api.kernels_of(self.function.module)}

    def executor(self, module: Operation) -> Executor:
        function = api.entry_of(module, self.entry.sym_name)
        runners = self.function.executor.kernels
        return Executor(function, self.function.arrays, runners, self.kernels)

    def arguments(self, sizes: Mapping[str, int]) -> list[object] | None:
        """The inputs at these sizes, on 64 bytes; None where the call takes too much."""
        if sum(count.evaluate(sizes) for count in self.counts) > MOST:
            return None
        made = inputs.make([], self.function.signature, self.entry, dict(sizes), 0)
        return [self.aligned(a) if isinstance(a, np.ndarray) else a for a in made]

    def aligned(self, array: np.ndarray) -> np.ndarray:
        made = self.function.arrays.empty(array.shape, array.dtype).view(np.ndarray)
        made[...] = array
        return made

    def fitting(
        self, executor: Executor, facts: Sequence[Relation]
    ) -> tuple[dict[str, int], list[object]] | None:
        """The first sizes that the guards and the asserts allow, and inputs."""
        for sizes in candidates(executor.symbols):
            try:
                if not all(f.evaluate(sizes) for f in facts):
                    continue
                given = self.arguments(sizes)
                if given is not None:
                    executor.check(self.function.signature.bind([getattr(a, "shape", a) for a in given]))
                    return sizes, given
            except IRError:
                continue
        return None

    def run(self, arms: Arms) -> str | None:
        """What went wrong; empty where nothing did, None where no sizes fit the guards together."""
        module, facts = without_earlier(self.module, self.entry.sym_name, arms)
        executor = self.executor(module)
        found = self.fitting(executor, facts)
        if found is None:
            return None
        sizes, given = found
        symbols = tuple(sizes[s] for s in executor.symbols)
        try:
            return self.compare(symbols, given, executor.run(symbols, given))
        except IRError as error:
            return f"at {sizes}: {error}"

    def compare(self, symbols: tuple[int, ...], given: list[object], results: list[np.ndarray]) -> str:
        """The generic arms compute the same."""
        last = {n: len(op.regions) - 1 for n, op in enumerate(chooses(self.entry))}
        generic, _ = without_earlier(self.module, self.entry.sym_name, last)
        for a, b in zip(results, self.executor(generic).run(symbols, given)):
            exact = a.dtype.kind in "iub"
            limit = 0 if exact else TOLERANCE.get(a.dtype.name, 3e-2)
            scale = 0 if exact or not a.size else limit * float(np.nanmax(np.abs(b.astype(np.float64)), initial=1))
            if not np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=limit, atol=scale, equal_nan=True):
                return f"differs from the generic arms at {dict(zip(self.entry.symbols, symbols))}"
        return ""

    def every(self) -> Iterator[tuple[Arms, str | None]]:
        """Run all arms: together where they can, else one by one."""
        for arms in together(self.entry):
            wrong = self.run(arms)
            if wrong is not None or len(arms) < 2:
                yield arms, wrong
                continue
            for n, k in arms.items():
                yield {n: k}, self.run({n: k})


def run_module(job: tuple[Path, Path]) -> tuple[int, list[str]]:
    """Run all arms of a dumped module; how many runs there were and what went wrong."""
    path, folder = job
    module = api.load_source(path.read_text(encoding="utf-8", errors="surrogateescape"))
    functions = [op for op in module.body.ops if isinstance(op, func.FuncOp) and not op.is_declaration]
    with emulate.recording(Note(folder)):
        made = [one for entry in functions for one in Runs(module, entry).every()]
    texts = {None: "no sizes fit the guard"}
    return len(made), [f"{path.name}: arms {arms}: {texts.get(wrong, wrong)}" for arms, wrong in made if wrong != ""]


def run_alone(job: tuple[Sequence[Path], Path]) -> list[str]:
    """Run kernels that come from no plan, with made-up arguments: large buffers, sizes and numbers of 5."""
    paths, folder = job
    kernels = [kernel_of(path) for path in paths]
    wrong = []
    with emulate.recording(Note(folder)):
        for path, kernel in zip(paths, kernels):
            try:
                run_kernel(kernel)
            except IRError as error:
                wrong.append(f"{path.name}: {error}")
    return wrong


def kernel_of(path: Path) -> loop.Kernel:
    module = api.load_source(path.read_text(encoding="utf-8", errors="surrogateescape"))
    return api.kernels_of(module)[0]


def run_kernel(kernel: loop.Kernel) -> None:
    memory = emulate.EmulatedArrays(checked=True)
    buffers = []
    for argument in kernel.buffers:
        type = loop.buffer_type(argument)
        array = memory.empty((1 << 12,), dtype_of(type.element))
        array[...] = 1
        if type.constant:
            array.written = None
        buffers.append(memory.pointer(array))
    sizes = dict.fromkeys(kernel.symbols, 5)
    grid = tuple(d.evaluate(sizes) for d in kernel.launch_grid)
    emulate.build_kernels([kernel])[kernel.sym_name](buffers, [5] * len(kernel.scalars), grid)


# ---------------------------------------------------------------- the command


def printed(folder: Path) -> dict[str, str]:
    """Key -> file of every kernel that was printed as CUDA C."""
    return {key_of(path.read_text(encoding="utf-8")): path.name for path in sorted(folder.glob("*.cu.kernel"))}


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print(__doc__)
        return 2
    folder = Path(arguments[0])
    kernels = printed(folder)
    if not kernels:
        print(f"no kernels in '{folder}': run the tests with STEPWELL_KERNEL_DUMP set to a folder")
        return 1
    before = {p.stem for p in folder.glob("*.ran")} & set(kernels)
    jobs = [(path, folder) for path in sorted(folder.glob("*.cu.mlir"))]
    count, failures = 0, []
    with ProcessPoolExecutor(max_workers=2) as pool:
        for tried, wrong in tqdm(pool.map(run_module, jobs), total=len(jobs), disable=not sys.stderr.isatty()):
            count += tried
            failures += wrong
        alone = [folder / name for key, name in kernels.items() if not (folder / f"{key}.ran").exists()]
        parts = [(alone[at : at + 20], folder) for at in range(0, len(alone), 20)]
        for wrong in tqdm(pool.map(run_alone, parts), total=len(parts), disable=not sys.stderr.isatty()):
            failures += wrong
    ran = {p.stem for p in folder.glob("*.ran")}
    left = [text for key, text in kernels.items() if key not in ran]
    print("\n".join([*failures[:20], *(f"did not run: {text}" for text in left[:20])]))
    print(f"kernels printed {len(kernels)}, run by tests {len(before)}, run here {len(ran & set(kernels)) - len(before)}, "
          f"not run {len(left)}; {len(jobs)} modules, {count} runs, {len(alone)} kernels of no plan, {len(failures)} failures")  # fmt: skip
    return 1 if failures or left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
