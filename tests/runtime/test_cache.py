"""Compiled kernels on disk: entries that were damaged, the limit, whose folder it is, writers side by side."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import stepwell
from stepwell.ir.diagnostics import IRError
from stepwell.runtime.cache import Cache, folder, key_of


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path)


def test_an_entry_comes_back(cache):
    path = cache.put(key_of("a"), ".so", b"text")
    assert cache.get(key_of("a"), ".so") == path and path.read_bytes() == b"text"
    assert cache.get(key_of("a"), ".cubin") is None
    assert cache.get(key_of("b"), ".so") is None


def test_keys_differ_where_parts_do():
    assert len({key_of("ab", "c"), key_of("a", "bc"), key_of("abc"), key_of("ab", "c", "")}) == 4
    assert key_of("a", b"b") == key_of(b"a", "b")


@pytest.mark.parametrize("data", [b"", b"tex", b"test", b"text and more"])
def test_a_damaged_entry_is_dropped(cache, data):
    path = cache.put(key_of("a"), ".so", b"text")
    path.write_bytes(data)
    assert cache.get(key_of("a"), ".so") is None
    assert not path.exists()
    assert cache.put(key_of("a"), ".so", b"text") == path and cache.get(key_of("a"), ".so") == path


def test_an_unfinished_part_is_no_entry(cache):
    path = cache.put(key_of("a"), ".so", b"text")
    path.rename(path.with_suffix(".part"))
    assert cache.get(key_of("a"), ".so") is None


def test_what_was_used_longest_ago_goes_first(tmp_path):
    cache = Cache(tmp_path, limit=250)
    paths = {}
    for age, name in enumerate("abc"):
        paths[name] = cache.put(key_of(name), ".so", name.encode() * 100)
        os.utime(paths[name], (age, age))
        if name == "b":
            os.utime(paths["a"], (9, 9))  # used since
    assert [n for n in "abc" if cache.get(key_of(n), ".so")] == ["a", "c"]
    assert not paths["b"].parent.exists(), "the empty folder of an entry that went"


def test_what_was_just_stored_stays(tmp_path):
    cache = Cache(tmp_path, limit=10)
    path = cache.put(key_of("a"), ".so", b"a" * 100)
    assert cache.get(key_of("a"), ".so") == path
    cache.put(key_of("b"), ".so", b"b" * 100)
    assert [size for _, size, _ in cache.entries()] == [100] and cache.get(key_of("a"), ".so") is None


def test_a_failed_write_leaves_nothing(cache, monkeypatch):
    def fail(*_):
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        cache.put(key_of("a"), ".so", b"text")
    assert cache.entries() == []


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_may_enter_is_refused(tmp_path, monkeypatch, mode):
    path = tmp_path / "cache"
    path.mkdir()
    path.chmod(mode)
    monkeypatch.setenv("STEPWELL_CACHE", str(path))
    with pytest.raises(IRError, match=r"must belong to you and have mode 0700: chmod 700 it"):
        folder()
    path.chmod(0o700)
    assert folder() == path


def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path / "cache"))
    folder()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(IRError, match="must belong to you"):
        folder()


def test_the_folder_is_made_for_the_user_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("STEPWELL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert folder() == tmp_path / "home" / "stepwell"
    assert stat.S_IMODE(folder().stat().st_mode) == 0o700


WRITER = """
import sys
from pathlib import Path
from stepwell.runtime.cache import Cache, key_of
cache = Cache(Path(sys.argv[1]), limit=1 << 18)
for n in range(150):
    key, data = key_of(str(n % 5)), bytes([n % 5]) * 40000
    cache.put(key, ".so", data)
    path = cache.get(key, ".so")
    try:
        assert path is None or path.read_bytes() == data
    except FileNotFoundError:
        pass  # the other has just removed it
"""


def test_two_writers_do_not_meet(tmp_path):
    code = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen(code, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for writer in writers:
        _, err = writer.communicate(timeout=120)
        assert writer.returncode == 0, err
    assert not list(tmp_path.rglob("*.part"))
    cache = Cache(tmp_path)
    for n in range(5):
        path = cache.get(key_of(str(n)), ".so")
        assert path is None or set(path.read_bytes()) == {n}


def test_a_kernel_whose_entry_was_damaged_is_compiled_again(tmp_path, monkeypatch):
    from stepwell.runtime import cpu

    if cpu.compiler() is None:
        pytest.skip("no C compiler")
    (tmp_path / "cache").mkdir(mode=0o700)
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path / "cache"))
    text = (Path(__file__).resolve().parents[2] / "docs/examples/softmax.mlir").read_text()

    def compiled():
        monkeypatch.setattr(cpu, "_LOADED", {})
        stepwell.compile(text, target="cpu")
        return {p: p.read_bytes() for p in (tmp_path / "cache").rglob("*.so")}

    first = compiled()
    assert first
    for path in first:
        path.unlink()  # a library that is loaded must keep its bytes
        path.write_bytes(b"no library")
    again = compiled()
    assert again and all(data != b"no library" for data in again.values())
