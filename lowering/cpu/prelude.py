"""The helpers of C: prelude.h, and families that are made from a helper's name.

Vectors are GNU vectors. A vector of i1 has lanes of 32 bits that are 0 or -1.
"""

from __future__ import annotations

import re
from pathlib import Path

from .. import prelude
from ..c_helpers import family
from ..narrow_floats import narrow_family
from ..prelude import SCALAR, Prelude, atomic_update, c_type

BYTES = {**prelude.BYTES, "i1": 4}
_NARROW = ("f16", "bf16", "f8e4m3fn", "f8e5m2")
_INTEGER = {"i8": "signed char", "i16": "short", "i32": "int", "i64": "long long"}


def lane_type(suffix: str) -> str:
    """What a vector holds of a scalar type."""
    return "int" if suffix == "i1" else c_type(suffix)


def mask_type(suffix: str, width: int) -> str:
    """The vector that a comparison of such vectors gives."""
    size = BYTES[suffix]
    element = next(s for s in _INTEGER if BYTES[s] == size)
    return f"sw_{element}x{width}"


# ---------------------------------------------------------------- scalars


def builtin_family(name: str) -> str | None:
    """Functions of libm, as the compiler's builtins: no header is read."""
    return prelude.libm_family(name, "__builtin_")


def bits_family(name: str) -> str | None:
    """Narrow floats are their bits."""
    found = re.fullmatch(r"sw_(?:bits_(\w+)|(\w+)_bits)", name)
    suffix = (found[1] or found[2]) if found else ""
    if suffix not in _NARROW:
        return None
    if found is not None and found[2]:
        return f"SW_INLINE unsigned int {name}(sw_{suffix} x) {{ return x; }}\n"
    return f"SW_INLINE sw_{suffix} {name}(unsigned int a) {{ return (sw_{suffix})a; }}\n"


# Formulas that serve a scalar and, lane by lane, a vector: x is "" or "x8". Literals are spread by `(F){0} + c`.
FORMULAS = {
    # Cephes expf, with the scaling in two steps so that subnormal results round once. Below 1 ulp of error.
    "exp": """SW_INLINE {F} sw_exp_f32{x}({F} v) {{
    {F} high = ({F}){{0}} + 89.0f, low = ({F}){{0}} - 104.0f;
    {F} c = sw_pick_f32{x}(v > high, high, sw_pick_f32{x}(v < low, low, v));
    {F} whole = c * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: rounds to an integer
    {I} n = sw_bitcast_f32{x}_i32{x}(whole) - 0x4b400000;
    whole = whole - 12582912.0f;
    {F} r = (c - whole * 0.693359375f) + whole * 2.12194440e-4f;
    {F} p = 1.9875691500e-4f * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    {I} half = n >> 1;
    {F} scale = sw_bitcast_i32{x}_f32{x}((half + 127) << 23);
    return p * scale * sw_bitcast_i32{x}_f32{x}((n - half + 127) << 23);
}}
""",
    # Cephes tanhf: a polynomial near 0, else 1 - 2 / (exp(2x) + 1).
    "tanh": """SW_INLINE {F} sw_tanh_f32{x}({F} v) {{
    {I} sign = sw_bitcast_f32{x}_i32{x}(v) & (-2147483647 - 1);
    {F} z = sw_bitcast_i32{x}_f32{x}(sw_bitcast_f32{x}_i32{x}(v) & 2147483647), s = z * z;
    {F} p = -5.70498872745e-3f * s + 2.06390887954e-2f;
    p = p * s - 5.37397155531e-2f;
    p = p * s + 1.33314422036e-1f;
    p = p * s - 3.33332819422e-1f;
    p = p * s * z + z;
    {F} far = 1.0f - 2.0f / (sw_exp_f32{x}(z + z) + 1.0f);
    {F} r = sw_pick_f32{x}(z < 0.625f, p, far);
    return sw_bitcast_i32{x}_f32{x}(sw_bitcast_f32{x}_i32{x}(r) | sign);
}}
""",
    # Two minimax polynomials (N. Juffa): x * P(x^2) near 0, else 1 - exp(Q(|x|)).
    "erf": """SW_INLINE {F} sw_erf_f32{x}({F} v) {{
    {I} sign = sw_bitcast_f32{x}_i32{x}(v) & (-2147483647 - 1);
    {F} z = sw_bitcast_i32{x}_f32{x}(sw_bitcast_f32{x}_i32{x}(v) & 2147483647), s = z * z;
    {F} p = -5.96761703e-4f * s + 4.99119423e-3f;
    p = p * s - 2.67681349e-2f;
    p = p * s + 1.12819925e-1f;
    p = p * s - 3.76125336e-1f;
    p = p * s + 1.28379166e-1f;
    p = p * z + z;
    {F} t = sw_pick_f32{x}(z > 4.0f, ({F}){{0}} + 4.0f, z), tt = t * t;
    {F} q = -1.72853470e-5f * t + 3.83197126e-4f;
    {F} u = -3.88396438e-3f * t + 2.42546219e-2f;
    q = q * tt + u;
    q = q * t - 1.06777877e-1f;
    q = q * t - 6.34846687e-1f;
    q = q * t - 1.28717512e-1f;
    q = 1.0f - sw_exp_f32{x}(q * t - t);
    {F} r = sw_pick_f32{x}(z > 0.927734375f, q, p);
    return sw_bitcast_i32{x}_f32{x}(sw_bitcast_f32{x}_i32{x}(r) | sign);
}}
""",
}


def formula_family(name: str) -> str | None:
    """exp, tanh and erf of f32, for a scalar or a vector."""
    found = re.fullmatch(r"sw_(\w+)_f32(x\d+)?", name)
    if found is None:
        return None
    x = found[2] or ""
    real, whole = (f"sw_f32{x}", f"sw_i32{x}") if x else ("float", "int")
    if found[1] == "pick" and not x:
        return f"SW_INLINE float {name}(bool m, float a, float b) {{ return m ? a : b; }}\n"
    return FORMULAS[found[1]].format(F=real, I=whole, x=x) if found[1] in FORMULAS else None


def atomic_family(name: str) -> str | None:
    """Updates that give what was there before; a kernel in C has one thread."""
    found = atomic_update(name)
    if found is None:
        return None
    type, made = found
    return (f"SW_INLINE {type} {name}({type} *p, {type} x) {{\n    {type} old = *p;\n    *p = {made};\n"
            "    return old;\n}\n")  # fmt: skip


# ---------------------------------------------------------------- vectors

# (type, size in bytes) -> text; T is a lane, M memory's element, V the vector, N the width
_MEMORY = {
    "": "typedef {T} {V} __attribute__((vector_size({bytes})));\n",
    "load": "SW_INLINE {V} {name}(const {M} *p) {{\n    {V} r;\n"
            "    __builtin_memcpy(&r, p, sizeof r);\n    return r;\n}}\n",
    "store": "SW_INLINE void {name}({M} *p, {V} x) {{ __builtin_memcpy(p, &x, sizeof x); }}\n",
    "insert": "SW_INLINE {V} {name}({T} x, {V} to, int lane) {{\n    to[lane] = x;\n    return to;\n}}\n",
}  # fmt: skip
_MASKS = {
    "load": "SW_INLINE {V} {name}(const bool *p) {{\n    sw_i8x{N} r;\n    __builtin_memcpy(&r, p, sizeof r);\n"
            "    return __builtin_convertvector(r, {V}) != 0;\n}}\n",
    "store": "SW_INLINE void {name}(bool *p, {V} x) {{\n    sw_i8x{N} r = __builtin_convertvector(-x, sw_i8x{N});\n"
             "    __builtin_memcpy(p, &r, sizeof r);\n}}\n",
    "insert": "SW_INLINE {V} {name}(bool x, {V} to, int lane) {{\n    to[lane] = -x;\n    return to;\n}}\n",
}  # fmt: skip


def memory_family(name: str) -> str | None:
    """Vector types, loads, stores, splat and insert."""
    found = re.fullmatch(rf"sw_(?:(\w+?)_)?({SCALAR})x(\d+)", name)
    if found is None:
        return None
    what, suffix, width = (found[1] or "").removesuffix("_aligned"), found[2], int(found[3])
    if what == "splat":
        value = "-x" if suffix == "i1" else "x"
        lanes = ", ".join([value] * width)
        head = f"SW_INLINE sw_{suffix}x{width} {name}({c_type(suffix)} x)"
        return f"{head} {{\n    return (sw_{suffix}x{width}){{{lanes}}};\n}}\n"
    text = (_MASKS.get(what) if suffix == "i1" else None) or _MEMORY.get(what)
    fields = {"name": name, "T": lane_type(suffix), "M": c_type(suffix), "V": f"sw_{suffix}x{width}", "N": width}
    return text.format(**fields, bytes=width * BYTES[suffix]) if text else None


# op -> body over vectors of one float type (floats), or of one integer type, computed unsigned as U (integers)
_FLOATS = {
    "addf": "a + b", "subf": "a - b", "mulf": "a * b", "divf": "a / b", "negf": "-a",
    "absf": "({V})(({M})a & {max})",
    "maximumf": "sw_pick_{s}((a == 0) & (b == 0), a + b, sw_pick_{s}((a > b) | (a != a), a, b))",
    "minimumf": "sw_pick_{s}((a == 0) & (b == 0), -(-a - b), sw_pick_{s}((a < b) | (a != a), a, b))",
}  # fmt: skip
_INTEGERS = {
    "addi": "({V})(({U})a + ({U})b)", "subi": "({V})(({U})a - ({U})b)", "muli": "({V})(({U})a * ({U})b)",
    "andi": "a & b", "ori": "a | b", "xori": "a ^ b",
    "maxsi": "({V})((a & (a > b)) | (b & ~(a > b)))", "minsi": "({V})((a & (a < b)) | (b & ~(a < b)))",
}  # fmt: skip
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNARY = ("negf", "absf")


def arithmetic_family(name: str) -> str | None:
    """Operations that GNU vectors have, on vectors of one type."""
    found = re.fullmatch(rf"sw_(\w+?)_({SCALAR})x(\d+)", name)
    if found is None or found[2] in _NARROW:
        return None
    what, suffix, width = found[1], found[2], int(found[3])
    vector = f"sw_{suffix}x{width}"
    if what == "pick":
        return _pick(name, vector, mask_type(suffix, width))
    if what.startswith(("cmpf_o", "cmpi_s", "cmpf_une", "cmpi_eq", "cmpi_ne")) and what[-2:] in _COMPARE:
        return _comparison(name, what, vector, width)
    body = (_FLOATS if suffix[0] == "f" else _INTEGERS).get(what)
    if body is None or (suffix == "i1" and what not in ("andi", "ori", "xori")):
        return None
    unsigned = f"    typedef unsigned {lane_type(suffix).removeprefix('signed ')} U " \
               f"__attribute__((vector_size({width * BYTES[suffix]})));\n" if "{U}" in body else ""  # fmt: skip
    highest = "0x7fffffff" if suffix == "f32" else "0x7fffffffffffffffll"
    made = body.format(V=vector, M=mask_type(suffix, width), U="U", s=f"{suffix}x{width}", max=highest)
    parameters = f"{vector} a" if what in _UNARY else f"{vector} a, {vector} b"
    return f"SW_INLINE {vector} {name}({parameters}) {{\n{unsigned}    return {made};\n}}\n"


def _pick(name: str, vector: str, mask: str) -> str:
    body = f"return ({vector})((m & ({mask})a) | (~m & ({mask})b));"
    return f"SW_INLINE {vector} {name}({mask} m, {vector} a, {vector} b) {{\n    {body}\n}}\n"


def _comparison(name: str, what: str, vector: str, width: int) -> str | None:
    if what == "cmpf_one":
        return None
    holds = f"a {_COMPARE[what[-2:]]} b"
    body = f"return __builtin_convertvector({holds}, sw_i1x{width});"
    return f"SW_INLINE sw_i1x{width} {name}({vector} a, {vector} b) {{\n    {body}\n}}\n"


_CONVERTED = ("extf", "truncf", "sitofp", "extsi", "trunci")


def conversion_family(name: str) -> str | None:
    """Conversions between vectors, and bitcasts."""
    found = re.fullmatch(rf"sw_(\w+?)_({SCALAR})x(\d+)_({SCALAR})x\3", name)
    if found is None:
        return None
    what, a, width, b = found[1], found[2], int(found[3]), found[4]
    source, target = f"sw_{a}x{width}", f"sw_{b}x{width}"
    if what == "bitcast":
        return f"SW_INLINE {target} {name}({source} a) {{ return ({target})a; }}\n"
    body: str | None = _half(a, b, width) if what in ("extf", "truncf") else None
    if body is None and what in _CONVERTED and not {a, b} & {"i1", *_NARROW}:
        body = f"    return __builtin_convertvector(a, {target});\n"
    return f"SW_INLINE {target} {name}({source} a) {{\n{body}}}\n" if body else None


def select_family(name: str) -> str | None:
    """Selection by a vector of i1, bit by bit."""
    found = re.fullmatch(rf"sw_select_i1x(\d+)_({SCALAR})x\1_\2x\1_\2x\1", name)
    if found is None:
        return None
    vector, mask = f"sw_{found[2]}x{found[1]}", mask_type(found[2], int(found[1]))
    body = f"{mask} k = __builtin_convertvector(m, {mask});\n    return ({vector})((k & ({mask})a) | (~k & ({mask})b));"
    return f"SW_INLINE {vector} {name}(sw_i1x{found[1]} m, {vector} a, {vector} b) {{\n    {body}\n}}\n"


def _half(a: str, b: str, width: int) -> str | None:
    """Conversions of f16 and bf16 vectors from and to f32; F16C where the processor has it."""
    lanes = f"    sw_{b}x{width} r;\n    SW_UNROLL\n    for (int i = 0; i < {width}; ++i) " \
            f"r[i] = sw_{a}_to_{b}(a[i]);\n    return r;\n"  # fmt: skip
    if (a, b) == ("bf16", "f32"):
        wide = f"__builtin_convertvector(a, sw_u32x{width})"
        return f"    return (sw_f32x{width})({wide} << 16);\n"
    if (a, b) == ("f32", "bf16"):
        return (
            f"    sw_u32x{width} bits = (sw_u32x{width})a;\n"
            f"    sw_u32x{width} kept = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;\n"
            f"    sw_u32x{width} nan = (sw_u32x{width})(a != a);\n"
            f"    kept = (nan & (bits >> 16 | 0x40)) | (~nan & kept);\n"
            f"    return __builtin_convertvector(kept, sw_bf16x{width});\n"
        )
    if {a, b} != {"f16", "f32"} or width % 8:
        return lanes if {a, b} in ({"f16", "f32"}, {"bf16", "f32"}) else None
    return f"#ifdef __F16C__\n{_f16c(a, b, width)}#else\n{lanes}#endif\n"


def _f16c(a: str, b: str, width: int) -> str:
    """Eight lanes at a time through the processor's conversion."""
    copy = "__builtin_memcpy"
    if a == "f16":
        step = "__builtin_ia32_vcvtph2ps256(part)"
        types = ("__attribute__((vector_size(16))) short", "__attribute__((vector_size(32))) float")
    else:
        step = "__builtin_ia32_vcvtps2ph256(part, 0)"
        types = ("__attribute__((vector_size(32))) float", "__attribute__((vector_size(16))) short")
    return (
        f"    sw_{b}x{width} r;\n    SW_UNROLL\n    for (int i = 0; i < {width // 8}; ++i) {{\n"
        f"        {types[0]} part;\n        {copy}(&part, (char *)&a + i * sizeof part, sizeof part);\n"
        f"        {types[1]} made = {step};\n"
        f"        {copy}((char *)&r + i * sizeof made, &made, sizeof made);\n    }}\n    return r;\n"
    )


def unsigned_vectors(name: str) -> str | None:
    """`sw_u32x8`, which conversions compute in."""
    found = re.fullmatch(r"sw_u32x(\d+)", name)
    if found is None:
        return None
    return f"typedef unsigned int {name} __attribute__((vector_size({4 * int(found[1])})));\n"


def fma_family(name: str) -> str | None:
    """a * b + c of vectors, rounded once: one instruction where the processor has it."""
    found = re.fullmatch(r"sw_fma_(f32|f64)x(\d+)", name)
    if found is None:
        return None
    suffix, width = found[1], int(found[2])
    vector, bytes = f"sw_{suffix}x{width}", int(found[2]) * BYTES[suffix]
    tail, letter = ("f", "s") if suffix == "f32" else ("", "d")
    lanes = f"    {vector} r;\n    SW_UNROLL\n    for (int i = 0; i < {width}; ++i) " \
            f"r[i] = __builtin_fma{tail}(a[i], b[i], c[i]);\n    return r;\n"  # fmt: skip
    fast = {16: f"return __builtin_ia32_vfmaddp{letter}(a, b, c);",
            32: f"return __builtin_ia32_vfmaddp{letter}256(a, b, c);",
            64: f"return __builtin_ia32_vfmaddp{letter}512_mask(a, b, c, -1, 4);"}.get(bytes)  # fmt: skip
    feature = "__AVX512F__" if bytes == 64 else "__FMA__"
    if fast:
        lanes = f"#if defined({feature}) && !defined(__clang__)\n    {fast}\n#else\n{lanes}#endif\n"
    return f"SW_INLINE {vector} {name}({vector} a, {vector} b, {vector} c) {{\n{lanes}}}\n"


PRELUDE = Prelude(
    Path(__file__).with_name("prelude.h"),
    (formula_family, atomic_family, memory_family, fma_family, arithmetic_family, conversion_family, select_family,
     unsigned_vectors, bits_family, builtin_family, narrow_family, family),
)  # fmt: skip
