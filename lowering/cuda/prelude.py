"""The helpers of CUDA C: prelude.cuh, and families that are made from a helper's name."""

from __future__ import annotations

import re
from pathlib import Path

from ..c_helpers import family
from ..c_scalars import NAMED
from ..narrow_floats import narrow_family
from ..prelude import BYTES, SCALAR, Prelude, c_type, libm_family

_VECTOR = {
    "": "struct SW_ALIGNED({align}) {V} {{ {T} v[{width}]; }};\n",
    "load": "SW_INLINE {V} {name}(const {T} *p) {{\n    {V} r;\n    SW_UNROLL\n"
            "    for (int i = 0; i < {width}; ++i) r.v[i] = p[i];\n    return r;\n}}\n",
    "store": "SW_INLINE void {name}({T} *p, {V} x) {{\n    SW_UNROLL\n"
             "    for (int i = 0; i < {width}; ++i) p[i] = x.v[i];\n}}\n",
    "load_aligned": "SW_INLINE {V} {name}(const {T} *p) {{ return *(const {V} *)p; }}\n",
    "store_aligned": "SW_INLINE void {name}({T} *p, {V} x) {{ *({V} *)p = x; }}\n",
    "splat": "SW_INLINE {V} {name}({T} x) {{\n    {V} r;\n    SW_UNROLL\n"
             "    for (int i = 0; i < {width}; ++i) r.v[i] = x;\n    return r;\n}}\n",
    "insert": "SW_INLINE {V} {name}({T} x, {V} to, int lane) {{\n    to.v[lane] = x;\n    return to;\n}}\n",
}  # fmt: skip


def vector_family(name: str) -> str | None:
    """Vector types, their loads and stores, splat and insert."""
    found = re.fullmatch(rf"sw_(?:(\w+?)_)?({SCALAR})x(\d+)", name)
    text = _VECTOR.get(found[1] or "") if found else None
    if found is None or text is None:
        return None
    width = int(found[3])
    fields = {"name": name, "T": c_type(found[2]), "V": f"sw_{found[2]}x{width}", "width": width}
    return text.format(**fields, align=min(16, width * BYTES[found[2]]))


def shuffle_family(name: str) -> str | None:
    """A value of another lane; types that the hardware does not shuffle travel as an int."""
    found = re.fullmatch(rf"sw_shuffle_(xor|up|down|idx)_({SCALAR})", name)
    if found is None:
        return None
    type, native = c_type(found[2]), found[2] in ("i32", "i64", "f32", "f64")
    function = "__shfl_sync" if found[1] == "idx" else f"__shfl_{found[1]}_sync"
    sent = "x" if native else "(int)x.bits" if type.startswith("sw_") else "(int)x"
    got = f"{function}(0xffffffffu, {sent}, lane, width)"
    wrapped = got if native else f"sw_bits_{found[2]}({got})" if type.startswith("sw_") else f"({type}){got}"
    return f"SW_INLINE {type} {name}({type} x, int lane, int width) {{ return {wrapped}; }}\n"


_ATOMIC = {"addi": "Add", "maxsi": "Max", "minsi": "Min", "maxui": "Max", "minui": "Min", "andi": "And", "ori": "Or",
           "xori": "Xor", "exchange": "Exch"}  # fmt: skip


def atomic_family(name: str) -> str | None:
    """Atomic updates; what CUDA has for unsigned integers only gives the same bits for signed ones."""
    found = re.fullmatch(rf"sw_atomic_({'|'.join(_ATOMIC)})_(i32|i64)", name)
    if found is None:
        return None
    type, unsigned = c_type(found[2]), found[1] not in ("maxsi", "minsi")
    sent = {"i32": "unsigned int", "i64": "unsigned long long"}[found[2]] if unsigned else type
    call = f"atomic{_ATOMIC[found[1]]}(({sent} *)p, ({sent})x)"
    return f"SW_INLINE {type} {name}({type} *p, {type} x) {{ return ({type}){call}; }}\n"


def bits_family(name: str) -> str | None:
    """Narrow floats from and to their bits."""
    found = re.fullmatch(r"sw_(?:bits_(b?f\d\w*)|(b?f\d\w*)_bits)", name)
    suffix = (found[1] or found[2]) if found else ""
    if found is None or c_type(suffix) in NAMED.values():
        return None
    if found[2]:
        return f"SW_INLINE unsigned int {name}(sw_{suffix} x) {{ return x.bits; }}\n"
    body = f"    sw_{suffix} r;\n    r.bits = a;\n    return r;\n"
    return f"SW_INLINE sw_{suffix} {name}(unsigned int a) {{\n{body}}}\n"


PRELUDE = Prelude(
    Path(__file__).with_name("prelude.cuh"),
    (vector_family, shuffle_family, atomic_family, libm_family, bits_family, narrow_family, family),
)
