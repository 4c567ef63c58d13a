"""Preludes: the helpers that printed source calls, of which it holds those that it uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .c_scalars import LIBM, NAMED

BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4, "f64": 8, "f16": 2, "bf16": 2, "f8e4m3fn": 1,
         "f8e5m2": 1}  # fmt: skip
SCALAR = "|".join(sorted(BYTES, key=len, reverse=True))
_PARAMETERS = {"fma": "abc", "powf": "ab", "remf": "ab", "atan2": "ab", "copysign": "ab"}
IDENTIFIER = re.compile(r"\b(?:sw|SW)_\w+")
COMMENT = re.compile(r"//.*")  # holds words of the IR, which are no helpers
DEFINED = re.compile(
    r"#define (\w+)|struct (?:SW_ALIGNED\(\d+\) )?(sw_\w+)|typedef .*?\b(sw_\w+)|SW_INLINE .*?\b(sw_\w+)\("
)


def c_type(suffix: str) -> str:
    """The C type of a scalar."""
    return NAMED.get(suffix, f"sw_{suffix}")


_UPDATES = {"exchange": "x", "andi": "old & x", "ori": "old | x", "xori": "old ^ x"}


def atomic_update(name: str) -> tuple[str, str] | None:
    """Of `sw_atomic_<kind>_<type>`: the C type, and what becomes of `old` when it is updated by `x`."""
    found = re.fullmatch(r"sw_atomic_(\w+)_(i32|i64)", name)
    if found is None:
        return None
    return c_type(found[2]), _UPDATES.get(found[1], f"sw_{found[1]}_{found[2]}(old, x)")


def libm_family(name: str, prefix: str = "") -> str | None:
    """Functions of libm; `prefix` is what stands before their names."""
    found = re.fullmatch(r"sw_(\w+)_(f32|f64)", name)
    if found is None or found[1] not in LIBM:
        return None
    names = _PARAMETERS.get(found[1], "a")
    type, tail = NAMED[found[2]], "f" if found[2] == "f32" else ""
    call = f"{prefix}{LIBM[found[1]]}{tail}({', '.join(names)})"
    return f"SW_INLINE {type} {name}({', '.join(f'{type} {p}' for p in names)}) {{ return {call}; }}\n"


class Prelude:
    """Helpers by name: blocks of a file, separated by blank lines, and families that make one from its name."""

    def __init__(
        self, file: Path, families: Sequence[Callable[[str], str | None]], elsewhere: tuple[str, ...] = ("sw_entry_",)
    ) -> None:
        self.families, self.elsewhere = families, elsewhere  # prefixes of names that come from somewhere else
        self.blocks: dict[str, str] = {}
        for block in file.read_text(encoding="utf-8").split("\n\n"):
            names = [next(filter(None, m.groups())) for line in block.splitlines() if (m := DEFINED.match(line))]
            self.blocks.update(dict.fromkeys(names, block.strip("\n") + "\n"))

    def find(self, name: str) -> str:
        """The text that defines `name`."""
        found = self.blocks.get(name)
        for make in self.families if found is None else ():
            found = found or make(name)
        if found is None:
            raise KeyError(f"no prelude defines {name}")
        return self.blocks.setdefault(name, found)

    def closure(self, text: str, own: Mapping[str, str]) -> str:
        """What `text` needs, and what that needs, each before its use. `own` are helpers made for this text."""
        placed: dict[str, None] = {}
        open_blocks: set[str] = set()

        def place(part: str) -> None:
            for name in IDENTIFIER.findall(COMMENT.sub("", part)):
                block = own.get(name) or ("" if name.startswith(self.elsewhere) else self.find(name))
                if block not in placed and block not in open_blocks:
                    open_blocks.add(block)
                    place(block)
                    placed[block] = None

        place("SW_INLINE")
        place(text)
        return "\n".join(filter(None, placed))
