"""Compiled kernels on disk: `$STEPWELL_CACHE`, or `stepwell` in the user's cache folder.

An entry is a file `<key>/<sha256 of its content><suffix>`, written to a temporary name and renamed, so that readers
see all of it or nothing, and writers in several processes do not meet. An entry whose content does not have its hash
is dropped. The folder must belong to the user and be closed to others, since what is in it gets loaded.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

import attrs

from ..ir.diagnostics import IRError

DEFAULT_LIMIT = 1 << 30  # bytes


def folder() -> Path:
    """The cache folder, made with mode 0700 where it does not exist. IRError where it is not ours alone."""
    chosen = os.environ.get("STEPWELL_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(chosen) if chosen else Path(base) / "stepwell"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.stat()
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise IRError(
            f"the cache folder '{path}' must belong to you and have mode 0700: chmod 700 it, or set STEPWELL_CACHE"
        )
    return path


def key_of(*parts: str | bytes) -> str:
    """A key that differs whenever a part does."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hashed.update(len(data).to_bytes(8, "little") + data)
    return hashed.hexdigest()


@attrs.define
class Cache:
    """Files by key under `root`, at most `limit` bytes of them: those used longest ago go first."""

    root: Path = attrs.field(factory=folder)
    limit: int = DEFAULT_LIMIT

    def get(self, key: str, suffix: str) -> Path | None:
        """The entry, or None; one that was damaged is removed."""
        for path in sorted(self._place(key).glob(f"*{suffix}")):
            try:
                whole = hashlib.sha256(path.read_bytes()).hexdigest() == path.name.removesuffix(suffix)
                if whole:
                    os.utime(path)
                    return path
                path.unlink()
            except OSError:
                continue
        return None

    def put(self, key: str, suffix: str, data: bytes) -> Path:
        """Store an entry; its file."""
        place = self._place(key)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = place / (hashlib.sha256(data).hexdigest() + suffix)
        handle, part = tempfile.mkstemp(dir=place, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(part, path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
        self.trim(keep=path)
        return path

    def _place(self, key: str) -> Path:
        return self.root / key[:2] / key

    def entries(self) -> list[tuple[float, int, Path]]:
        """(time of last use, bytes, file) of all entries, and of parts that a crash left behind."""
        found = []
        for path in self.root.glob("??/*/*"):
            try:
                about = path.stat()
            except OSError:
                continue
            found.append((about.st_mtime, about.st_size, path))
        return found

    def trim(self, keep: Path | None = None) -> None:
        """Remove entries, those used longest ago first, until the rest fits."""
        found = sorted(self.entries())
        total = sum(size for _, size, _ in found)
        _remove(_beyond(found, total - self.limit, keep))


def _beyond(found: list[tuple[float, int, Path]], excess: int, keep: Path | None) -> Iterable[Path]:
    for _, size, path in found:
        if excess <= 0:
            return
        if path != keep:
            excess -= size
            yield path


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
            path.parent.rmdir()
        except OSError:
            continue  # in use, or its folder holds more
