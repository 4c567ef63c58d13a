"""Canonicalisation: folds, exact identities, dead code, and simpler control flow."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from ..dialects import arith as a
from ..dialects import math as m
from ..dialects import scalar
from ..ir.attributes import Attribute, FloatType, IntegerType
from ..ir.core import Operation
from ..ir.definition import element_of
from ..ir.floats import FLOAT_FORMATS, decode_float
from ..ir.passes import Pass
from ..ir.rewriter import Pattern, PatternRewriter, rewrite_greedily
from ..ir.rules import Const, Match, Var, call, rules
from .blocks import simplify_blocks


def _integer(name: str, value: int) -> Const:
    def holds(attribute: Attribute) -> bool:
        word = scalar.splat_of(attribute)
        return word is not None and scalar.same_integer(word, value, element_of(attribute.type))  # type: ignore[attr-defined]

    return Const(name, holds, lambda type: scalar.try_constant(value, type))


def _float(name: str, value: float) -> Const:
    def holds(attribute: Attribute) -> bool:
        kind = element_of(getattr(attribute, "type", attribute))  # type: ignore[arg-type]
        word = scalar.splat_of(attribute)
        if word is None or not isinstance(kind, FloatType):
            return False
        found = decode_float(word, kind.name)
        return found == value and math.copysign(1, found) == math.copysign(1, value)

    return Const(name, holds, lambda type: scalar.try_constant(value, type))


x, y = Var("x"), Var("y")
zero, one, ones = _integer("zero", 0), _integer("one", 1), _integer("ones", -1)
zero_float, minus_zero, one_float = _float("0.0", 0.0), _float("-0.0", -0.0), _float("1.0", 1.0)
true, false = ones, zero

add, sub, mul = call(a.AddI), call(a.SubI), call(a.MulI)
divs, divu, rems, remu = call(a.DivSI), call(a.DivUI), call(a.RemSI), call(a.RemUI)
ceils, ceilu, floors = call(a.CeilDivSI), call(a.CeilDivUI), call(a.FloorDivSI)
and_, or_, xor = call(a.AndI), call(a.OrI), call(a.XOrI)
shl, shrs, shru = call(a.ShLI), call(a.ShRSI), call(a.ShRUI)
maxs, mins, maxu, minu = call(a.MaxSI), call(a.MinSI), call(a.MaxUI), call(a.MinUI)
addf, subf, mulf, divf, negf = call(a.AddF), call(a.SubF), call(a.MulF), call(a.DivF), call(a.NegF)
maximum, minimum, maxnum, minnum = call(a.MaximumF), call(a.MinimumF), call(a.MaxNumF), call(a.MinNumF)
extf, truncf, exts, extu, trunc = call(a.ExtF), call(a.TruncF), call(a.ExtSI), call(a.ExtUI), call(a.TruncI)
tofp, toint, tofpu, touint = call(a.SIToFP), call(a.FPToSI), call(a.UIToFP), call(a.FPToUI)
cast, castu, bits, select = call(a.IndexCast), call(a.IndexCastUI), call(a.Bitcast), call(a.Select)


def _narrow(m: Match) -> bool:
    """From an integer of at most 64 bits to index and back: nothing was lost."""
    kind = element_of(m.x.type)
    return isinstance(kind, IntegerType) and kind.width <= 64


def _exact_signed(m: Match) -> bool:
    """Every integer of the type is a value of the float type between."""
    return _digits(m) >= element_of(m.x.type).width - 1  # type: ignore[attr-defined]


def _exact_unsigned(m: Match) -> bool:
    return _digits(m) >= element_of(m.x.type).width  # type: ignore[attr-defined]


def _digits(m: Match) -> int:
    """How many binary digits of an integer the float type between holds; f8 types overflow early: 0."""
    kind = element_of(m.op.operands[0].type)
    return FLOAT_FORMATS[kind.name].mantissa + 1 if kind.width > 8 else 0  # type: ignore[attr-defined]


def _is_bool(m: Match) -> bool:
    return m.op.result.type is m.op.condition.type


INTEGERS = rules(
    (add(x, zero), x),
    (add(sub(x, y), y), x),
    (sub(x, zero), x),
    (sub(x, x), zero),
    (sub(add(x, y), y), x),
    (sub(add(x, y), x), y),
    (mul(x, zero), zero),
    (mul(x, one), x),
    (divs(x, one), x),
    (divu(x, one), x),
    (ceils(x, one), x),
    (ceilu(x, one), x),
    (floors(x, one), x),
    (rems(x, one), zero),
    (remu(x, one), zero),
    (and_(x, zero), zero),
    (and_(x, ones), x),
    (and_(x, x), x),
    (or_(x, zero), x),
    (or_(x, ones), ones),
    (or_(x, x), x),
    (xor(x, zero), x),
    (xor(x, x), zero),
    (xor(xor(x, y), y), x),
    (xor(xor(x, y), x), y),
    (shl(x, zero), x),
    (shrs(x, zero), x),
    (shru(x, zero), x),
    (maxs(x, x), x),
    (mins(x, x), x),
    (maxu(x, x), x),
    (minu(x, x), x),
    (select(x, true, false), x, _is_bool),
)

FLOATS = rules(
    (addf(x, minus_zero), x),  # x + 0.0 turns -0.0 into 0.0
    (subf(x, zero_float), x),
    (mulf(x, one_float), x),
    (divf(x, one_float), x),
    (negf(negf(x)), x),
    (maximum(x, x), x),
    (minimum(x, x), x),
    (maxnum(x, x), x),
    (minnum(x, x), x),
)

CONVERSIONS = rules(
    (truncf(extf(x)), x),  # the wider type holds every value of x
    (trunc(exts(x)), x),
    (trunc(extu(x)), x),
    (exts(exts(x)), exts(x)),
    (extu(extu(x)), extu(x)),
    (exts(extu(x)), extu(x)),
    (bits(bits(x)), x),
    (bits(x), x),
    (cast(cast(x)), x, _narrow),
    (castu(castu(x)), x, _narrow),
    (toint(tofp(x)), x, _exact_signed),
    (touint(tofpu(x)), x, _exact_unsigned),
)


class _OnItself(Pattern):
    """A rule about an operation on the result of one of its own class."""

    def __init__(self, root: type[Operation]) -> None:
        self.root = root  # type: ignore[misc]

    def may_match(self, definers: Sequence[type[Operation] | None], repeated: bool) -> bool:
        return self.root in definers


class Twice(_OnItself):
    """floor(floor(x)) is floor(x), and so for all that change nothing the second time."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        if op.operands[0] is op.results[0]:
            return False
        rewriter.replace(op, op.operands[0])
        return True


class Absorbed(_OnItself):
    """(x and y) and x is x and y; so for `or` and the extremes."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        for one, other in (op.operands, op.operands[::-1]):
            inner = one.defining_op
            if type(inner) is self.root and inner is not op and other in inner.operands:
                rewriter.replace(op, one)
                return True
        return False


IDEMPOTENT = (m.AbsF, m.Floor, m.Ceil, m.Trunc, m.Round, m.RoundEven)
LATTICES = (
    a.AndI, a.OrI, a.MaxSI, a.MinSI, a.MaxUI, a.MinUI, a.MaximumF, a.MinimumF, a.MaxNumF, a.MinNumF,
)  # fmt: skip
PATTERNS: list[Pattern] = [
    *INTEGERS,
    *FLOATS,
    *CONVERSIONS,
    *map(Twice, IDEMPOTENT),
    *map(Absorbed, LATTICES),
]


@attrs.define
class Canonicalize(Pass):
    """Fold, apply exact identities, remove what is dead and simplify control flow, until nothing changes."""

    name = "canonicalize"
    anchor = None
    strict: bool = False  # check each application of a pattern

    def run(self, op: Operation) -> None:
        simplify_blocks(op)
        while rewrite_greedily(op, PATTERNS, strict=self.strict) and simplify_blocks(op):
            pass
