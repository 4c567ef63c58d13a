"""Runs the RUN lines of a .mlir file in this process: a test costs milliseconds, not an interpreter.

    // RUN: stepwell opt %s --pipeline='canonicalize' | filecheck %s --check-prefix=X
    // RUN: not stepwell opt %s 2>&1 | filecheck %s
    // RUN: stepwell opt %s > %t \\
    // RUN:   && stepwell run %t

`%s` is the file, `%S` its folder, `%t` a path for a temporary file. A command is stepwell, stepwell-opt
or filecheck; `not` before it asks for a failing exit status. `|`, `&&`, `>` and `2>&1` are the whole
shell, and stand between spaces. A command that raises has failed, with or without `not`.
"""

import contextlib
import io
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

RUN = re.compile(r"^\s*//\s*RUN:[ \t]*(.*?)\s*$", re.MULTILINE)


class RunFailure(Exception):
    """A RUN line did not hold; the text shows the command and what it printed."""


def run_lines(text: str) -> list[str]:
    """The RUN lines of a file, those that end in a backslash joined with the next one."""
    return re.sub(r"\\\n\s*", "", "\n".join(RUN.findall(text))).splitlines()


def run_file(path: Path) -> None:
    """Run each RUN line of `path`. Raises RunFailure at the first one that does not hold."""
    with tempfile.TemporaryDirectory() as folder:
        places = {"%s": str(path), "%S": str(path.parent), "%t": str(Path(folder, path.stem + ".tmp"))}
        for line in run_lines(path.read_text(encoding="utf-8")):
            words = [re.sub("%[sSt]", lambda m: places[m[0]], word) for word in shlex.split(line)]
            try:
                for pipeline in split(words, "&&"):
                    run_pipeline(pipeline)
            except RunFailure as failure:
                raise RunFailure(f"RUN: {line}\n{failure}") from None


def split(words: list[str], mark: str) -> list[list[str]]:
    return [list(group) for is_mark, group in groupby(words, mark.__eq__) if not is_mark]


def run_pipeline(words: list[str]) -> None:
    piped = ""
    for command in split(words, "|"):
        piped = run_command(command, piped)


def run_command(words: list[str], stdin: str) -> str:
    """What the command passes on through the pipe. Raises RunFailure unless its status is as asked."""
    shown = shlex.join(words)
    expect_failure = words[0] == "not"
    name, *arguments = words[expect_failure:]
    redirected = None
    if ">" in arguments:
        at = arguments.index(">")
        redirected = Path(arguments[at + 1])
        del arguments[at : at + 2]
    out = io.StringIO()
    errors = out if "2>&1" in arguments else io.StringIO()
    arguments = [a for a in arguments if a != "2>&1"]

    status = call(name, arguments, stdin, out, errors)
    if status is None or (status != 0) != expect_failure:
        ended = "raised an exception" if status is None else f"exited with status {status}"
        report = [f"$ {shown}", f"{ended}{', a failure was expected' if expect_failure else ''}"]
        for title, text in (("stdin", stdin), ("stdout", out.getvalue()), ("stderr", errors.getvalue())):
            if text and (title, errors) != ("stderr", out):
                report += [f"--- {title}", text.rstrip("\n")]
        raise RunFailure("\n".join(report))
    if redirected:
        redirected.write_text(out.getvalue(), encoding="utf-8")
        return ""
    return out.getvalue()


def call(name: str, arguments: list[str], stdin: str, out: io.StringIO, errors: io.StringIO) -> int | None:
    """The exit status of a command; None where it raised."""
    saved, sys.stdin = sys.stdin, io.StringIO(stdin)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            try:
                return command_named(name)(arguments) or 0
            except SystemExit as stop:
                if isinstance(stop.code, str):
                    print(stop.code, file=sys.stderr)
                return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            except Exception:
                traceback.print_exc()
                return None
    finally:
        sys.stdin = saved


def command_named(name: str) -> Callable[[list[str]], int | None]:
    if name == "filecheck":
        from filecheck.main import main as filecheck

        return lambda arguments: filecheck(["filecheck", *arguments])
    from stepwell.runtime import driver

    commands = {"stepwell": driver.main, "stepwell-opt": driver.opt_main}
    if name not in commands:
        raise ValueError(f"a RUN line may call filecheck, {' or '.join(commands)}, not {name!r}")
    return commands[name]
