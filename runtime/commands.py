"""The commands of the driver: their options, and what they do. `run` has a file of its own."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from ..ir.diagnostics import IRError


def _add(subparsers: Any, name: str, summary: str, epilog: str, command: Any) -> Any:
    from .driver import add_common

    parser = subparsers.add_parser(
        name, help=summary, description=summary, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(command=command)
    add_common(parser)
    return parser


# ---------------------------------------------------------------- opt


def add_opt(subparsers: Any) -> None:
    parser = _add(subparsers, "opt", "Run passes over a file and print the result.", (
        "examples:\n  stepwell opt f.mlir --pipeline='canonicalize,cse'\n"
        "  stepwell opt f.mlir --pipeline='fuse,resolve{target=cuda},schedule,plan' > low.mlir\n"
        "  stepwell opt f.mlir --list-passes"), opt)  # fmt: skip
    parser.add_argument("file", nargs="?", default="-", help="IR text; - is standard input")
    parser.add_argument("--pipeline", default="", help="passes in order, options in braces: 'amp{dtype=f16},cse'")
    parser.add_argument("--pass-pipeline", default="", metavar="TEXT", help="the same, as mlir-opt spells it")
    parser.add_argument("--lower", metavar="TARGET", choices=("cuda", "cpu"), help="the default pipeline of a target")
    parser.add_argument("--print-generic", action="store_true", help="print MLIR's generic form")
    parser.add_argument("--allow-unregistered-dialect", action="store_true", help="keep operations of unknown dialects")
    parser.add_argument("--print-ir-after-all", action="store_true", help="print the IR to stderr after each pass")
    parser.add_argument("--timing", action="store_true", help="print the time of each pass to stderr")
    parser.add_argument("--split-input-file", action="store_true", help="the file is several, parted by // -----")
    parser.add_argument("--list-passes", action="store_true", help="print all passes with their options")
    parser.add_argument("-o", "--output", default="-", help="write here, once everything held")


def opt(options: argparse.Namespace) -> int:
    """Parse, verify, run the passes, print."""
    from .api import pipeline_text
    from .driver import setup

    check_output(options.output)
    setup(options)
    if options.list_passes:
        return _list_passes()
    text = _read(options.file)
    name = "<stdin>" if options.file == "-" else options.file
    pipeline = options.pipeline or options.pass_pipeline
    if options.lower:
        pipeline = f"{pipeline},{pipeline_text(options.lower)}" if pipeline else pipeline_text(options.lower)
    made = [_optimise(part, name, pipeline, options) for part in _parts(text, options.split_input_file)]
    _write(options.output, "// -----\n".join(made))
    return 0


def read_module(path: str) -> Any:
    """The verified module of a file, or of standard input."""
    from ..ir.parser import parse_module
    from .api import load_source

    return load_source(parse_module(_read(path), "<stdin>" if path == "-" else path))


def _parts(text: str, split: bool) -> list[str]:
    """The texts of a split file, each after as many empty lines as stand before it, so that places are right."""
    if not split:
        return [text]
    made, before = [], 0
    for part in text.split("// -----"):
        made.append("\n" * before + part)
        before += part.count("\n")
    return made


def _optimise(text: str, name: str, pipeline: str, options: argparse.Namespace) -> str:
    from ..ir.parser import parse_module
    from ..ir.passes import PassManager, Timing
    from ..ir.printer import print_operation
    from .api import checked

    module = checked(parse_module(text, name, allow_unregistered=options.allow_unregistered_dialect))
    timing = Timing()
    stream = sys.stderr if options.print_ir_after_all else None
    PassManager.parse(pipeline).run(module, print_after_all=stream, timing=timing)
    if options.timing:
        print(timing.report(), file=sys.stderr)
    return print_operation(module, generic=options.print_generic) + "\n"


def _list_passes() -> int:
    from ..ir.passes import describe_passes

    print(describe_passes())
    return 0


def _read(path: str) -> str:
    """The text of a file or of standard input."""
    from ..ir.lexer import decode_source

    if path == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, "it is closed", "standard input")
        return decode_source(sys.stdin.buffer.read(), "<stdin>")
    with open(path, "rb") as file:
        return decode_source(file.read(), path)


def _write(path: str, text: str) -> None:
    """Print to standard output (`-`), or write a file."""
    if path == "-":
        if sys.stdout is None:
            raise OSError(errno.EBADF, "it is closed", "standard output")
        sys.stdout.write(text)
    else:
        write_file(path, lambda file: file.write(text.encode("utf-8", "surrogateescape")))


def write_file(path: str, fill: Callable[[Any], object]) -> None:
    """Whole or not at all: a file is written beside `path` and moved over it. Errors name `path`."""
    check_output(path)
    target = os.path.realpath(path)
    try:
        if os.path.exists(target) and not os.path.isfile(target):  # a device or a pipe is written, not replaced
            with open(target, "wb") as file:
                fill(file)
            return
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target))
        try:
            with os.fdopen(handle, "wb") as file:
                fill(file)
            os.chmod(temporary, 0o644)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise OSError(error.errno, error.strerror or str(error), path) from None


def check_output(path: str | None) -> None:
    """Raise an OSError where `path`, that a command is to write at its end, cannot be written: before the work."""
    if path is None or path == "-":
        return
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if os.path.isdir(target) or not os.path.basename(path):
        raise IsADirectoryError(errno.EISDIR, "is a folder, but a file is to be written", path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, f"cannot be written: there is no folder {folder}", path)
    if not os.access(target if os.path.exists(target) and not os.path.isfile(target) else folder, os.W_OK):
        raise PermissionError(errno.EACCES, "cannot be written: permission denied", path)


# ---------------------------------------------------------------- emit


def add_emit(subparsers: Any) -> None:
    parser = _add(subparsers, "emit", "Print the source that would be compiled.", (
        "examples:\n  stepwell emit docs/examples/softmax.mlir --target cuda\n"
        "  stepwell emit docs/examples/softmax.mlir --target cpu --kernel softmax_softmax_rows_cpu\n"
        "  stepwell emit docs/examples/softmax.mlir --emulate softmax_emulated --dim m=3 --dim n=17"),
        emit)  # fmt: skip
    parser.add_argument("file", help="IR text; - is standard input")
    parser.add_argument("--target", choices=("cuda", "cpu"), default="cuda", help="default: cuda")
    parser.add_argument("--arch", type=_arch, default="sm_90a",
                        help="with --emulate: the GPU whose limits hold (the text is the same for all)")  # fmt: skip
    parser.add_argument("--amp", choices=("f16", "bf16"), help="mixed precision first")
    parser.add_argument("--kernel", action="append", default=[], help="only this kernel (repeatable)")
    parser.add_argument("-o", "--output", default="-", help="write here")
    parser.add_argument("--emulate", metavar="FOLDER", help="write a C++ program that runs one call on the emulator")
    parser.add_argument("--entry", metavar="NAME", help="with --emulate: the function to call")
    add_inputs(parser)


def emit(options: argparse.Namespace) -> int:
    """Lower and print the kernels of a file."""
    from ..ir.pass_options import near
    from .api import is_lowered, kernels_of, lower
    from .driver import setup

    check_output(options.output)
    setup(options)
    module = read_module(options.file)
    if options.emulate:
        return _emit_program(module, options)
    if not is_lowered(module):
        lower(module, options.target, options.amp)
    kernels = kernels_of(module)
    names = [k.sym_name for k in kernels]
    for name in options.kernel:
        if name not in names:
            raise IRError(f"no kernel '{name}'{near(name, names)}; there are {', '.join(names)}")
    chosen = [k for k in kernels if not options.kernel or k.sym_name in options.kernel]
    _write(options.output, _source(chosen, options.target))
    return 0


def _emit_program(module: Any, options: argparse.Namespace) -> int:
    """Record one call on the emulator and write it as a program, also where it found faults."""
    from . import api, emulate, inputs
    from .emulate_folder import Recording, write_folder

    entry = api.entry_of(module, options.entry)
    function = api.compile(module, "emulate", entry=entry.sym_name, amp=options.amp, arch=options.arch)
    arrays = inputs.make(options.arg, function.signature, entry, inputs.size_list(options.dim, entry)[0], options.seed)
    symbols = function.bind(*arrays)
    recorded, results, faults = Recording(), None, None
    with emulate.recording(recorded.note):
        try:
            results = function(*arrays)
        except IRError as error:
            faults, results = error, getattr(error, "results", None)
    sizes = ", ".join(f"{s} = {v}" for s, v in symbols.items())
    made = results if isinstance(results, tuple) else () if results is None else (results,)
    write_folder(options.emulate, f"One call of @{entry.sym_name} with {sizes or 'static sizes'}", recorded, made)
    print(f"wrote {options.emulate}: build and run it there with: g++ -g *.cpp -o emulated && ./emulated")
    if faults is not None:
        raise faults
    return 0


def _source(kernels: list[Any], target: str) -> str:
    if target == "cuda":
        from ..lowering.cuda.printer import print_module_source
    else:
        from ..lowering.cpu.printer import print_module_source
    return str(print_module_source(kernels))


# ---------------------------------------------------------------- ops


def add_ops(subparsers: Any) -> None:
    parser = _add(subparsers, "ops", "List operations, or show the reference of some.", (
        "examples:\n  stepwell ops\n  stepwell ops nn.softmax nd"), ops)  # fmt: skip
    parser.add_argument("names", nargs="*", help="operations or dialects")
    parser.add_argument("--precision", action="store_true", help="the table of precision rules")


def ops(options: argparse.Namespace) -> int:
    """Print the op reference."""
    from .driver import setup
    from .op_pages import list_operations, page, precision_table

    setup(options)
    if options.precision:
        print(precision_table())
    elif options.names:
        print("\n\n".join(page(name) for name in options.names))
    else:
        print(list_operations())
    return 0


# ---------------------------------------------------------------- run


def run(options: argparse.Namespace) -> int:
    """`stepwell run`; imported here, because the other commands need no arrays."""
    from .run import run as command

    return command(options)


def _arch(text: str) -> str:
    from .api import ARCH

    if not ARCH.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}' is no GPU architecture; write sm_90a or the like")
    return text


def _seed(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"'{text[:40]}' is no seed; give a whole number from 0 up")
    return value


def add_inputs(parser: Any) -> None:
    """The options that say what a function is called with."""
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N[,N]",
                        help="sizes of a symbol, one run each (repeatable; lists are taken in step: "
                             "m=1,2 and n=3,4 run (1, 3) and (2, 4), a single size holds for all)")  # fmt: skip
    parser.add_argument("--arg", action="append", default=[], metavar="NAME=SPEC",
                        help="randn, rand, zeros, ones, a number (of a tensor: of all its elements), F.npy or "
                             "F.npz:key (repeatable)")  # fmt: skip
    parser.add_argument("--seed", type=_seed, default=0, help="of the random inputs")


def add_run(subparsers: Any) -> None:
    parser = _add(subparsers, "run", "Compile a function and run it.", (
        "Without --arg, inputs are seeded random numbers. A dim that is not given takes the smallest value from 7\n"
        "up that the facts allow. Several sizes run through one compiled function.\n\n"
        "examples:\n  stepwell run docs/examples/layer_norm.mlir --dim m=100 --dim n=1023 --check\n"
        "  stepwell run docs/examples/softmax.mlir --dim n=17,1,128,333 --target cpu --bench\n"
        "  stepwell run docs/examples/digits.mlir --arg x=docs/examples/digits.npz:images"), run)  # fmt: skip
    parser.add_argument("file", help="IR text, or a lowered file; - is standard input")
    parser.add_argument("--entry", metavar="NAME", help="the function to run (default: the first public one)")
    parser.add_argument("--target", choices=("cuda", "cpu", "emulate", "emulate-plain", "reference"),
                        help="default: cuda with a device, else cpu; emulate: the CUDA code here, checked")  # fmt: skip
    parser.add_argument("--amp", choices=("f16", "bf16"), help="mixed precision")
    parser.add_argument("--arch", type=_arch, help="GPU architecture (default: that of the device)")
    add_inputs(parser)
    parser.add_argument("--check", action="store_true", help="compare with the definition of each operator, in f64")
    parser.add_argument("--bench", action="store_true", help="time the calls")
    parser.add_argument("--save", metavar="F.npz", help="write the results of the last size")
