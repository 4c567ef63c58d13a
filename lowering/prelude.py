"""Preludes: the helpers that printed source calls, of which it holds those that it uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

IDENTIFIER = re.compile(r"\b(?:sw|SW)_\w+")
COMMENT = re.compile(r"//.*")  # holds words of the IR, which are no helpers
DEFINED = re.compile(
    r"#define (\w+)|struct (?:SW_ALIGNED\(\d+\) )?(sw_\w+)|typedef .*?\b(sw_\w+)|SW_INLINE .*?\b(sw_\w+)\("
)


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
