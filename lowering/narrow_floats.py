"""Helpers for the narrow float formats that C and CUDA C share: f8, and f64 to each of them, rounded once.

Rounding to odd first keeps what decides the second rounding (Boldo and Melquiond, 2008).
"""

from __future__ import annotations

import re

from ..ir.floats import FLOAT_FORMATS, FloatFormat

_FORMATS = {name.lower(): made for name, made in FLOAT_FORMATS.items() if made.width <= 16}

TO_ODD = """// Rounded to odd: a second rounding is then as if there had been one.
SW_INLINE float sw_f64_to_f32_odd(double x) {
    float near = (float)x;
    unsigned int bits = sw_bitcast_f32_i32(near);
    if ((double)near == x || x != x || (bits & 1)) return near;
    bool up = (x > (double)near) == (x > 0);
    return sw_bits_f32(up ? bits + 1 : bits - 1);
}
"""

_FROM_F32 = """// To nearest even.
SW_INLINE {T} sw_f32_to_{t}(float x) {{
    unsigned int bits = sw_bitcast_f32_i32(x), sign = bits >> 31 << {sign}, magnitude = bits & 0x7fffffff;
    if (magnitude >= 0x7f800000) return sw_bits_{t}(sign | (magnitude > 0x7f800000 ? {nan} : {beyond}));
    int exponent = (int)(magnitude >> 23) - 127, shift = {drop};
    if (exponent < {least}) shift += {least} - exponent;
    if (shift > 25) return sw_bits_{t}(sign);
    unsigned int whole = (magnitude & 0x7fffff) | 0x800000, kept = whole >> shift;
    unsigned int rest = whole & ((1u << shift) - 1), half = 1u << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
    if (exponent >= {least}) kept += (unsigned int)(exponent - {least}) << {mantissa};
    return sw_bits_{t}(sign | (kept >= {limit} ? {beyond} : kept));
}}
"""

_TO_F32 = """SW_INLINE float sw_{t}_to_f32({T} x) {{
    unsigned int bits = sw_{t}_bits(x), magnitude = bits & {low}, sign = bits >> {sign} << 31;
    if (magnitude {special}) return sw_bits_f32(sign | 0x7fc00000);
    if (magnitude < {normal}) {{
        float small = (float)magnitude * {unit}f;
        return sign ? -small : small;
    }}
    if (magnitude == {infinity}) return sw_bits_f32(sign | 0x7f800000);
    return sw_bits_f32(sign | ((magnitude << {drop}) + {bias}u));
}}
"""


def _fields(name: str, fmt: FloatFormat) -> dict[str, object]:
    infinity = ((1 << fmt.exponent) - 1) << fmt.mantissa
    nan = infinity | ((1 << fmt.mantissa) - 1 if fmt.finite else 1 << (fmt.mantissa - 1))
    least, drop = 1 - fmt.bias, 23 - fmt.mantissa
    return {
        "t": name, "T": f"sw_{name}", "sign": fmt.width - 1, "nan": hex(nan), "mantissa": fmt.mantissa,
        "beyond": hex(nan if fmt.finite else infinity), "limit": hex(nan if fmt.finite else infinity),
        "least": least, "drop": drop, "low": hex((1 << (fmt.width - 1)) - 1), "normal": 1 << fmt.mantissa,
        "special": f"== {nan:#x}" if fmt.finite else f"> {infinity:#x}",
        "infinity": hex(0xFFFF if fmt.finite else infinity), "unit": repr(2.0 ** (least - fmt.mantissa)),
        "bias": (127 - fmt.bias) << 23,
    }  # fmt: skip


def narrow_family(name: str) -> str | None:
    """Conversions of narrow formats that the prelude of a target does not have of its own."""
    if name == "sw_f64_to_f32_odd":
        return TO_ODD
    if name in ("sw_bits_f32", "sw_bits_f64"):
        wide = name.endswith("64")
        real, bits = ("double", "unsigned long long") if wide else ("float", "unsigned int")
        union = f"union {{ {bits} from; {real} to; }} u;"
        return f"SW_INLINE {real} {name}({bits} a) {{\n    {union}\n    u.from = a;\n    return u.to;\n}}\n"
    found = re.fullmatch(r"sw_(?:(f32|f64)_to_(\w+)|(\w+)_to_f32)", name)
    fmt = _FORMATS.get(found[2] or found[3]) if found else None
    if found is None or fmt is None:
        return None
    if found[3]:
        return _TO_F32.format(**_fields(found[3], fmt))
    if found[1] == "f32":
        return _FROM_F32.format(**_fields(found[2], fmt))
    t = found[2]
    return f"SW_INLINE sw_{t} {name}(double x) {{ return sw_f32_to_{t}(sw_f64_to_f32_odd(x)); }}\n"
