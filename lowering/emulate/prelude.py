"""The helpers of printed CUDA C on the host: prelude.hh, and families made from a helper's name."""

from __future__ import annotations

import re
from pathlib import Path

from ..c_helpers import family
from ..cuda.prelude import bits_family, vector_family
from ..narrow_floats import narrow_family
from ..prelude import BYTES, SCALAR, Prelude, atomic_update, c_type, libm_family

_MOVES = {
    "load": "template <class P> SW_INLINE {V} {name}(P &&p, int line = __builtin_LINE()) {{\n"
            "    return sw_emu_load<{V}>(p, {width}, {align}, line);\n}}\n",
    "store": "template <class P> SW_INLINE void {name}(P &&p, {V} x, int line = __builtin_LINE()) {{\n"
             "    sw_emu_store(p, x, {width}, {align}, line);\n}}\n",
}  # fmt: skip
_SHUFFLES = {"xor": 0, "up": 1, "down": 2, "idx": 3}  # as emulator.cpp numbers them


def moves_family(name: str) -> str | None:
    """Loads and stores of vectors."""
    found = re.fullmatch(rf"sw_(load|store)(_aligned)?_({SCALAR})x(\d+)", name)
    if found is None:
        return None
    width = int(found[4])
    align = min(16, width * BYTES[found[3]]) if found[2] else 1
    return _MOVES[found[1]].format(name=name, V=f"sw_{found[3]}x{width}", width=width, align=align)


def shuffle_family(name: str) -> str | None:
    """A value of another lane."""
    found = re.fullmatch(rf"sw_shuffle_(xor|up|down|idx)_({SCALAR})", name)
    if found is None:
        return None
    type = c_type(found[2])
    call = f"sw_emu_shuffle({_SHUFFLES[found[1]]}, sw_emu_bits(x), lane, width, line)"
    head = f"SW_INLINE {type} {name}({type} x, int lane, int width, int line = __builtin_LINE())"
    return f"{head} {{\n    return sw_emu_value<{type}>({call});\n}}\n"


def atomic_family(name: str) -> str | None:
    """Atomic updates, in memory that several cores may share."""
    found = atomic_update(name)
    if found is None:
        return None
    type, made = found
    head = f"template <class P> SW_INLINE {type} {name}(P &&p, {type} x, int line = __builtin_LINE())"
    next = f"[=]({type} old) -> {type} {{ return {made}; }}"
    return f"{head} {{\n    return sw_emu_atomic<{type}>(p, {next}, line);\n}}\n"


PRELUDE = Prelude(
    Path(__file__).with_name("prelude.hh"),
    (moves_family, vector_family, shuffle_family, atomic_family, libm_family, bits_family, narrow_family, family),
    elsewhere=("sw_emu_", "SW_EMU_"),  # emulator.h
)


