"""Float formats bit by bit: encoding, decoding and the text that reads back to the same bits."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import attrs


@attrs.frozen
class FloatFormat:
    """An IEEE-like format: `width` bits, `exponent` and `mantissa` bits, `finite` when it has no infinities."""

    width: int
    exponent: int
    mantissa: int
    finite: bool = False

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1


FLOAT_FORMATS = {
    "f16": FloatFormat(16, 5, 10),
    "bf16": FloatFormat(16, 8, 7),
    "f32": FloatFormat(32, 8, 23),
    "f64": FloatFormat(64, 11, 52),
    "f8E4M3FN": FloatFormat(8, 4, 3, finite=True),
    "f8E5M2": FloatFormat(8, 5, 2),
}


def decode_float(bits: int, name: str) -> float:
    """The value of `bits` in format `name`; exact for every format."""
    fmt = FLOAT_FORMATS[name]
    if fmt.width == 64:
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
    sign = -1.0 if bits >> (fmt.width - 1) else 1.0
    exponent = bits >> fmt.mantissa & ((1 << fmt.exponent) - 1)
    mantissa = bits & ((1 << fmt.mantissa) - 1)
    top = exponent == (1 << fmt.exponent) - 1
    if top and (not fmt.finite or mantissa == (1 << fmt.mantissa) - 1):
        return math.copysign(math.inf, sign) if mantissa == 0 else math.copysign(math.nan, sign)
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - fmt.bias - fmt.mantissa)
    return sign * math.ldexp((1 << fmt.mantissa) + mantissa, exponent - fmt.bias - fmt.mantissa)


def encode_float(value: float, name: str) -> int:
    """The bits of `value` rounded once, to nearest even; overflow gives infinity (nan in f8E4M3FN)."""
    if name == "f64":
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    fmt = FLOAT_FORMATS[name]
    sign = (1 if math.copysign(1.0, value) < 0 else 0) << (fmt.width - 1)
    top = ((1 << fmt.exponent) - 1) << fmt.mantissa
    nan = top | ((1 << fmt.mantissa) - 1 if fmt.finite else 1 << (fmt.mantissa - 1))
    if math.isnan(value):
        return sign | nan
    if math.isinf(value):
        return sign | (nan if fmt.finite else top)
    _, exponent = math.frexp(value)
    exponent = max(exponent - 1, 1 - fmt.bias) if value else 1 - fmt.bias
    steps = _round_even(Fraction(abs(value)) / Fraction(2) ** (exponent - fmt.mantissa))
    # `steps` may have grown into the next binade or the smallest normal: adding it to the exponent field carries.
    magnitude = steps + ((exponent + fmt.bias - 1) << fmt.mantissa)
    limit = nan if fmt.finite else top
    return sign | (magnitude if magnitude < limit else limit)


def largest_float(name: str) -> float:
    """The largest finite value of format `name`."""
    fmt = FLOAT_FORMATS[name]
    top = ((1 << fmt.exponent) - 1) << fmt.mantissa
    return decode_float(top + (1 << fmt.mantissa) - 2 if fmt.finite else top - 1, name)


def _round_even(value: Fraction) -> int:
    return round(value)  # Fraction rounds half to even


def float_text(bits: int, name: str) -> str:
    """A literal that reads back to `bits`: decimal where it does, hex for infinities, nans and the rest."""
    value = decode_float(bits, name)
    fmt = FLOAT_FORMATS[name]
    if not math.isfinite(value):
        return f"0x{bits:0{fmt.width // 4}X}"
    text = f"{value:.6e}"
    if encode_float(float(text), name) != bits:
        text = f"{value!r}" if "e" in repr(value) else f"{value:.17e}"
        if "." not in text:
            text = text.replace("e", ".0e")
    return text
