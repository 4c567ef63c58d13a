"""The `stepwell` command. Exit status: 0 when everything held, 1 for an error in the input, 2 when nothing was
compared."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from ..ir.attributes import unknown
from ..ir.diagnostics import IRError
from .blame import fault_of_extension

MAIN_HELP = """examples:
  stepwell run docs/examples/softmax.mlir --dim m=1000 --dim n=777 --check
  stepwell run docs/examples/transformer_block.mlir --dim s=17,1,128 --check
  stepwell emit docs/examples/layer_norm.mlir --target cuda
  stepwell opt docs/examples/mlp.mlir --pipeline='canonicalize,amp{dtype=f16},fuse'
  stepwell ops nn.softmax"""


class Parser(argparse.ArgumentParser):
    """argparse with exit status 1 for a wrong command line, and the nearest option named."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, but what a command does not know is its error, not the outer parser's."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        bad = _BAD_CHOICE.search(message)
        if bad:
            message += _meant(bad["given"], [c.strip("' ") for c in bad["choices"].split(",")])
        elif message.startswith(("unrecognized", "ambiguous")):
            for word in message.split():
                option = word.split("=")[0].rstrip(":")
                if option.startswith("-") and option not in self._option_string_actions:
                    message += _meant(option, list(self._option_string_actions))
        self.exit(1, f"{self.prog}: error: {message}\nsee {self.prog} --help\n")


_BAD_CHOICE = re.compile(r"invalid choice: '(?P<given>.*)' \(choose from (?P<choices>.*)\)")
_ALSO = {"gpu": "cuda", "nvidia": "cuda", "c": "cpu", "host": "cpu", "fp16": "f16", "half": "f16", "bfloat16": "bf16"}


def _meant(given: str, names: Sequence[str]) -> str:
    near = [_ALSO[given]] if _ALSO.get(given) in names else difflib.get_close_matches(given, names, 1)
    return f"; did you mean {near[0]}?" if near else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`; the exit status."""
    for stream in (sys.stdout, sys.stderr):  # text of the input may hold bytes that are no UTF-8
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        options = build_parser().parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    except KeyboardInterrupt:
        return _interrupted()
    return guarded(options)


def _interrupted() -> int:
    print("interrupted", file=sys.stderr)
    return 130


def opt_main(argv: Sequence[str] | None = None) -> int:
    """The command `stepwell-opt`: `stepwell opt`."""
    return main(["opt", *(sys.argv[1:] if argv is None else argv)])


def guarded(options: argparse.Namespace) -> int:
    """Run a command; errors of the input become one screen and status 1, never a traceback."""
    try:
        status = int(options.command(options))
        if sys.stdout is not None:
            sys.stdout.flush()  # a reader that left is noticed here, not when Python ends
        return status
    except IRError as error:
        show_error(error, options)
        return error.status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = "standard output" if error.filename is None else error.filename or "''"
        print(f"error: {where}: {error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        return _interrupted()
    except MemoryError as error:
        print(f"error: out of memory: {error or 'the input is too large for this machine'}", file=sys.stderr)
    except Exception as error:
        if os.environ.get("STEPWELL_TRACEBACK"):
            raise
        kind = type(error).__name__
        fault = fault_of_extension(error)
        if fault is not None:
            show_error(fault, options)
            return fault.status
        print(f"internal error: {kind}: {error}\nThis is a fault of stepwell, please report it; "
              "STEPWELL_TRACEBACK=1 shows where it happened.", file=sys.stderr)  # fmt: skip
    return 1


def show_error(error: IRError, options: argparse.Namespace, limit: int = 20) -> None:
    """Print diagnostics to stderr, as text or as JSON lines."""
    if getattr(options, "diagnostics", "text") == "json":
        for diagnostic in error.diagnostics:
            print(diagnostic.as_json(), file=sys.stderr)
        return
    for diagnostic in error.diagnostics[:limit]:
        print(diagnostic.render(), file=sys.stderr)
    if len(error.diagnostics) > limit:
        print(f"... and {len(error.diagnostics) - limit} more", file=sys.stderr)


def load_extensions(names: Sequence[str]) -> None:
    """Import dialects, passes and variants of the user's own (`--load`), and those of installed packages."""
    import importlib
    import importlib.util
    from importlib.metadata import entry_points

    for point in entry_points(group="stepwell.dialects"):
        try:
            point.load()
        except Exception as error:
            raise IRError(f"the installed extension '{point.value}' cannot be loaded: "
                          f"{type(error).__name__}: {error}") from error  # fmt: skip
    for name in names:
        if os.path.isfile(name) and not name.endswith(".py"):
            hint = "; IR is given as FILE" if name.endswith(".mlir") else ""
            raise IRError(f"--load {name}: an extension is a Python file (.py) or a module's name, not this{hint}")
        try:
            if name.endswith(".py"):
                # a name of its own, so that it hides no installed module; dataclasses look it up in sys.modules
                spec = importlib.util.spec_from_file_location(f"stepwell_loaded_{os.path.basename(name)[:-3]}", name)
                assert spec is not None and spec.loader is not None
                sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
            else:
                importlib.import_module(name)
        except OSError:
            raise
        except (Exception, SystemExit) as error:
            fault = fault_of_extension(error)
            place = fault.diagnostics[0].location if fault is not None else unknown
            raise IRError(f"--load {name}: {type(error).__name__}: {error}", place) from error


def setup(options: argparse.Namespace) -> None:
    """Register everything that text may name."""
    from ..dialects import load_all
    from ..lowering import load_all as load_passes

    load_all()
    load_passes()
    load_extensions(options.load)


def build_parser() -> Parser:
    """All commands and their options."""
    from .. import __version__
    from . import commands

    parser = Parser(
        prog="stepwell", description="Tensor programs with symbolic sizes: one compile serves every shape.",
        epilog=MAIN_HELP, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"stepwell {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in (commands.add_run, commands.add_opt, commands.add_emit, commands.add_ops):
        add(subparsers)
    return parser


def add_common(parser: Any) -> None:
    """Options of every command."""
    parser.add_argument("--load", action="append", default=[], metavar="FILE.py|MODULE",
                        help="import dialects, passes or variants of your own first (repeatable)")  # fmt: skip
    parser.add_argument("--diagnostics", choices=("text", "json"), default="text", help="how errors are printed")


if __name__ == "__main__":
    raise SystemExit(main())
