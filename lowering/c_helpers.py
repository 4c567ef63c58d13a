"""Families of C helpers: the text of `sw_<name>_<type>`, for the scalar operations that are no operator of C."""

from __future__ import annotations

import re

from .c_scalars import NAMED, UNSIGNED, integer_literal

_B = "{T} a, {T} b"
_U = "{T} a"
# name -> (result, parameters, body). T is the type, U its unsigned twin, W the unsigned type it computes in,
# t its suffix, bits its width; R, V and r the same of a second type, r its suffix.
FAMILIES: dict[str, tuple[str, str, str]] = {
    "addi": ("{T}", _B, "return ({T})(({W})a + ({W})b);"),
    "subi": ("{T}", _B, "return ({T})(({W})a - ({W})b);"),
    "muli": ("{T}", _B, "return ({T})(({W})a * ({W})b);"),
    "divsi": ("{T}", _B, "return b == 0 ? 0 : b == -1 ? ({T})(0 - ({W})a) : ({T})(a / b);"),
    "remsi": ("{T}", _B, "return b == 0 || b == -1 ? 0 : ({T})(a % b);"),
    "floordivsi": ("{T}", _B, "{T} r = sw_remsi_{t}(a, b);\n"
                   "    return ({T})((({W})sw_divsi_{t}(a, b)) - (r != 0 && (a < 0) != (b < 0)));"),
    "ceildivsi": ("{T}", _B, "{T} r = sw_remsi_{t}(a, b);\n"
                  "    return ({T})((({W})sw_divsi_{t}(a, b)) + (r != 0 && (a < 0) == (b < 0)));"),
    # a * b + c rounded to odd, where a * b is exact: rounding this to fewer bits rounds once (Boldo, Melquiond 2008)
    "fmaodd": ("{T}", "{T} a, {T} b, {T} c",
               "{T} p = a * b, s = p + c, t = s - p, e = (p - (s - t)) + (c - t);\n"
               "    union {{ {T} value; long long bits; }} u;\n"
               "    u.value = s;\n"
               "    if (s - s == 0 && e != 0 && !(u.bits & 1)) u.bits += (e > 0) == (s > 0) ? 1 : -1;\n"
               "    return u.value;"),
    "divui": ("{T}", _B, "return b == 0 ? 0 : ({T})(({U})a / ({U})b);"),
    "remui": ("{T}", _B, "return b == 0 ? 0 : ({T})(({U})a % ({U})b);"),
    "ceildivui": ("{T}", _B, "return ({T})(({W})sw_divui_{t}(a, b) + (sw_remui_{t}(a, b) != 0));"),
    "shli": ("{T}", _B, "return ({U})b >= {bits} ? 0 : ({T})(({W})a << b);"),
    "shrui": ("{T}", _B, "return ({U})b >= {bits} ? 0 : ({T})(({U})a >> b);"),
    "shrsi": ("{T}", _B, "return ({U})b >= {bits} ? (a < 0 ? -1 : 0) : ({T})(a >> b);"),
    "maxsi": ("{T}", _B, "return a > b ? a : b;"),
    "minsi": ("{T}", _B, "return a < b ? a : b;"),
    "maxui": ("{T}", _B, "return ({U})a > ({U})b ? a : b;"),
    "minui": ("{T}", _B, "return ({U})a < ({U})b ? a : b;"),
    "cmpi_ult": ("bool", _B, "return ({U})a < ({U})b;"),
    "cmpi_ule": ("bool", _B, "return ({U})a <= ({U})b;"),
    "cmpi_ugt": ("bool", _B, "return ({U})a > ({U})b;"),
    "cmpi_uge": ("bool", _B, "return ({U})a >= ({U})b;"),
    "absi": ("{T}", _U, "return a < 0 ? ({T})(0 - ({W})a) : a;"),
    "ctpop": ("{T}", _U, "{T} n = 0;\n    for ({U} x = ({U})a; x; x &= ({U})(x - 1)) ++n;\n    return n;"),
    "ipowi": ("{T}", _B, "{W} result = 1, base = ({W})a;\n"
              "    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;\n"
              "    for (; b; b >>= 1, base *= base) if (b & 1) result *= base;\n    return ({T})result;"),
    "bcast": ("{T}", _B, "return a == 1 ? b : a;"),  # of two extents
    "maximumf": ("{T}", _B, "return a == 0 && b == 0 ? a + b : a > b || a != a ? a : b;"),
    "minimumf": ("{T}", _B, "return a == 0 && b == 0 ? -(-a - b) : a < b || a != a ? a : b;"),
    "maxnumf": ("{T}", _B, "return a == 0 && b == 0 ? a + b : a > b || b != b ? a : b;"),
    "minnumf": ("{T}", _B, "return a == 0 && b == 0 ? -(-a - b) : a < b || b != b ? a : b;"),
    "cmpf_one": ("bool", _B, "return a < b || a > b;"),
    "cmpf_ueq": ("bool", _B, "return !(a < b || a > b);"),
    "cmpf_ord": ("bool", _B, "return a == a && b == b;"),
    "cmpf_uno": ("bool", _B, "return a != a || b != b;"),
    "isnan": ("bool", _U, "return a != a;"),
    "isinf": ("bool", _U, "return a == a && a - a != 0;"),
    "isfinite": ("bool", _U, "return a - a == 0;"),
    "rsqrt": ("{T}", _U, "return 1 / sw_sqrt_{t}(a);"),
    "extui": ("{R}", _U, "return ({R})({U})a;"),
    "uitofp": ("{R}", _U, "return ({R})({U})a;"),
    "fptosi": ("{R}", _U, "return a != a ? 0 : a >= {top} ? {max} : a <= -{top} ? {min} : ({R})a;"),
    "fptoui": ("{R}", _U, "return a != a || a <= 0 ? 0 : a >= 2 * {top} ? ({R})-1 : ({R})({V})a;"),
    "bitcast": ("{R}", _U, "union {{ {T} from; {R} to; }} u;\n    u.from = a;\n    return u.to;"),
    "slot": ("{T}", "long long a", "union {{ long long from; {T} to; }} u;\n    u.from = a;\n    return u.to;"),
}  # fmt: skip


def _unsigned(suffix: str) -> str:
    return UNSIGNED.get(suffix, "unsigned int")


def _fields(t: str, r: str) -> dict[str, str]:
    bits = int(t[1:]) if t[:1] == "i" else 32
    top = int(r[1:]) - 1 if r[:1] == "i" else 31
    return {
        "T": NAMED.get(t, f"sw_{t}"), "U": _unsigned(t), "W": _unsigned(t if bits == 64 else "i32"), "t": t,
        "bits": str(bits), "R": NAMED.get(r, f"sw_{r}"), "V": _unsigned(r), "r": r,
        "top": f"{float(1 << top)!r}{'f' if t == 'f32' else ''}",
        "max": integer_literal((1 << top) - 1).text, "min": integer_literal(-(1 << top)).text,
    }  # fmt: skip


def _to_narrow(t: str, r: str, signed: bool) -> str:
    """An integer to a narrow float, rounded once: through an f64 whose last bit keeps what was lost."""
    source = NAMED[t] if signed else _unsigned(t)
    if t in ("i1", "i8", "i16"):
        value = "a ? -1 : 0" if signed and t == "i1" else f"({source if t != 'i1' else 'bool'})a"
        return f"return sw_f32_to_{r}({value});"
    if t == "i32":
        return f"return sw_f64_to_{r}(({source})a);"
    lost = f"{source} v = ({source})a;\n    int low = (int)(v & 0x7ff);\n"
    big = "(v > (1ll << 53) || v < -(1ll << 53))" if signed else "v > (1ull << 53)"
    return f"{lost}    if (low && {big}) v = (v - low) | 0x800;\n    return sw_f64_to_{r}((double)v);"


def family(name: str) -> str | None:
    """The text of helper `name`, or None where no family has it."""
    found = re.fullmatch(r"sw_(\w+?)_(b?[if]\d+(?:e\dm\d(?:fn)?)?)(?:_(b?[if]\d+(?:e\dm\d(?:fn)?)?))?", name)
    if found is None:
        return None
    which, t, r = found[1], found[2], found[3] or "i32"
    if which in ("sitofp", "uitofp") and r not in ("f32", "f64"):
        result, parameters, body = "{R}", _U, _to_narrow(t, r, which == "sitofp").replace("{", "{{")
    elif which in FAMILIES:
        result, parameters, body = FAMILIES[which]
    else:
        return None
    fields = _fields(t, r)
    result, parameters, body = (part.format(**fields) for part in (result, parameters, body))
    return f"SW_INLINE {result} {name}({parameters}) {{\n    {body}\n}}\n"
