"""Scalars in C and CUDA C: types, literals, and a table with one expression for each `arith` and `math` op.

dialects/scalar.py says what each computes. What an operator of C does not say by itself goes through a helper named
`sw_<op>_<type>`, for example `sw_divsi_i32`; FAMILIES holds their texts, which both languages share.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from fractions import Fraction

import attrs

from ..ir.attributes import FloatAttr, FloatType, IndexType, IntegerAttr, IntegerType, Type, VectorType, f32, f64, i1
from ..ir.core import Operation, Value
from ..ir.diagnostics import IRError
from ..ir.floats import decode_float, encode_float

ATOM, UNARY, MUL, ADD, RELATION, EQUALITY, AND, XOR, OR, ALL, ANY, CONDITIONAL = range(12, 0, -1)

_LITERAL = re.compile(r"-?\d+(?:ll)?")


@attrs.frozen
class Expr:
    """A piece of C: its text, how tightly it binds, and the buffers that it reads."""

    text: str
    rank: int = ATOM
    reads: frozenset[Value] = frozenset()

    @property
    def number(self) -> int | None:
        """The value of an integer literal."""
        return int(self.text.removesuffix("ll")) if _LITERAL.fullmatch(self.text) else None

    def at(self, rank: int) -> str:
        """The text as an operand of something that binds with `rank`."""
        return self.text if self.rank >= rank else f"({self.text})"


# ---------------------------------------------------------------- types

_INTEGERS = {1: "bool", 8: "signed char", 16: "short", 32: "int", 64: "long long"}
UNSIGNED = {"i8": "unsigned char", "i16": "unsigned short", "i32": "unsigned int", "i64": "unsigned long long"}
NAMED = {"f32": "float", "f64": "double", **{f"i{bits}": name for bits, name in _INTEGERS.items()}}


def is_narrow(type: Type) -> bool:
    """f16, bf16 and the f8 types: held as bits, computed in f32."""
    return isinstance(type, FloatType) and type.width < 32


@attrs.frozen
class CTypes:
    """Names of types where `index` has `index_bits` bits."""

    index_bits: int = 64

    def suffix(self, type: Type) -> str:
        """The type in the name of a helper: `f32`, `i64`, `bf16`, `f8e4m3fn`, `f32x8`."""
        if isinstance(type, VectorType):
            return f"{self.suffix(type.element)}x{type.shape[0]}"
        if isinstance(type, IndexType):
            return f"i{self.index_bits}"
        if isinstance(type, IntegerType) and type.width not in _INTEGERS:
            raise IRError(f"no type of C holds '{type}'")
        return f"i{type.width}" if isinstance(type, IntegerType) else str(type).lower()

    def name(self, type: Type) -> str:
        """The type in C: `float`, `long long`, `sw_f16`, `sw_f32x8`."""
        suffix = self.suffix(type)
        return NAMED.get(suffix, f"sw_{suffix}")


# ---------------------------------------------------------------- literals


def integer_literal(value: int, bits: int = 32) -> Expr:
    """An integer constant of `bits` bits; the smallest ones, which C cannot write, as a difference."""
    lowest = -(1 << 31) + (bits > 32)  # a difference of ints would be an int, which is too narrow for what follows
    long = "ll" if not lowest <= value < 1 << 31 else ""
    if value == -(1 << 63) or (value == -(1 << 31) and not long):
        return Expr(f"{value + 1}{long} - 1", ADD)
    return Expr(f"{value}{long}", ATOM if value >= 0 else UNARY)


def index_literal(value: int) -> Expr:
    """An index constant, wrapped to 64 bits."""
    return integer_literal((value + (1 << 63)) % (1 << 64) - (1 << 63), 64)


def float_literal(bits: int, type: FloatType) -> Expr:
    """A float constant that reads back to `bits`; infinities and NaNs through helpers."""
    value = decode_float(bits, type.name)
    name = str(type).lower()
    if value - value != 0:
        return Expr(f"sw_bits_{name}(0x{bits:x})")
    if is_narrow(type):
        return Expr(f"sw_f32_to_{name}({float_literal(encode_float(value, 'f32'), f32).text})")
    text = _decimal(bits, type) if type is f32 else repr(value)
    if not re.search(r"[.e]", text):
        text += ".0"
    return Expr(text + ("f" if type is f32 else ""), UNARY if text.startswith("-") else ATOM)


def _decimal(bits: int, type: FloatType) -> str:
    """The shortest decimal that is nearer to this f32 than to its neighbours."""
    value = decode_float(bits, type.name)
    above = bits + 1 if bits & 0x7FFFFFFF < 0x7F7FFFFF else bits - 1
    near = [decode_float(b, type.name) for b in (max(bits - 1, 0), above)]
    for digits in range(1 if above > bits else 9, 10):
        text = f"{value:.{digits}g}"
        off = abs(Fraction(text) - Fraction(value))
        if value == 0 or all(off < abs(Fraction(text) - Fraction(other)) for other in near):
            return text
    return float.hex(value)


def literal(value: IntegerAttr | FloatAttr) -> Expr:
    """The constant `value` as an expression."""
    if isinstance(value, FloatAttr):
        return float_literal(value.bits, value.type)
    if value.type is i1:
        return Expr("true" if value.value & 1 else "false")
    if not isinstance(value.type, IntegerType):
        return index_literal(value.value)
    width = value.type.width
    wrapped = value.value & ((1 << width) - 1)
    return integer_literal(wrapped - (wrapped >> (width - 1) << width), width)


# ---------------------------------------------------------------- expressions


@attrs.frozen
class Use:
    """A scalar operation at hand: its operands as expressions, with their (element) types."""

    op: Operation
    args: tuple[Expr, ...]
    types: tuple[Type, ...]
    result: Type
    c: CTypes

    def text(self, at: int, rank: int) -> str:
        return self.args[at].at(rank)

    @property
    def plain(self) -> list[str]:
        return [a.text for a in self.args]


Rule = Callable[[Use], Expr]
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add, "subi": operator.sub, "muli": operator.mul, "andi": operator.and_, "ori": operator.or_,
    "xori": operator.xor,
}  # fmt: skip


def infix(symbol: str, rank: int) -> Rule:
    """A left-associative operator."""
    return lambda u: Expr(f"{u.text(0, rank)} {symbol} {u.text(1, rank + 1)}", rank)


def negated(rule: Rule) -> Rule:
    return lambda u: Expr(f"!({rule(u).text})", UNARY)


def helper(name: str, *suffixes: Type, args: tuple[Expr, ...] | list[Expr], c: CTypes) -> Expr:
    """A call of `sw_<name>_<types>`."""
    joined = "_".join([name, *map(c.suffix, suffixes)])
    return Expr(f"sw_{joined}({', '.join(a.text for a in args)})")


def call(name: str) -> Rule:
    """A helper for the type of the first operand."""
    return lambda u: helper(name, u.types[0], args=u.args, c=u.c)


def between(name: str) -> Rule:
    """A helper from the operand's type to the result's."""
    return lambda u: helper(name, u.types[0], u.result, args=u.args, c=u.c)


def formula(text: str, rank: int) -> Rule:
    """A text with {0}, {1} for operands, in which each binds more tightly than any operator."""
    return lambda u: Expr(text.format(*(a.at(UNARY) for a in u.args)), rank)


def cast(u: Use) -> Expr:
    """A conversion as C does it; none where the types have one name."""
    name = u.c.name(u.result)
    return u.args[0] if name == u.c.name(u.types[0]) else Expr(f"({name}){u.text(0, UNARY)}", UNARY)


def integer(name: str, symbol: str, rank: int, otherwise: Rule | None = None) -> Rule:
    """Wrapping arithmetic: the operator itself on `index`, which does not overflow; else a helper, or `otherwise`.

    Small literals are ints in C, and an operator on two of them would be one too: such are computed here."""
    by_operator, by_type = infix(symbol, rank), otherwise or call(name)

    def rule(u: Use) -> Expr:
        if not isinstance(u.types[0], IndexType):
            return by_type(u)
        a, b = (arg.number for arg in u.args)
        if a is not None and b is not None:
            return index_literal(_ARITHMETIC[name](a, b))
        return u.args[1] if name == "addi" and a == 0 else by_operator(u)

    return rule


INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
                    "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true")  # fmt: skip
_COMPARE = {"eq": ("==", EQUALITY), "ne": ("!=", EQUALITY), "lt": ("<", RELATION), "le": ("<=", RELATION),
            "gt": (">", RELATION), "ge": (">=", RELATION)}  # fmt: skip
_OPPOSITE = {"ugt": "le", "uge": "lt", "ult": "ge", "ule": "gt"}


def predicate(op: Operation) -> str:
    """The predicate of a comparison by its name."""
    value = op.value_of("predicate")
    names = INTEGER_PREDICATES if op.op_name == "arith.cmpi" else FLOAT_PREDICATES
    return names[value] if isinstance(value, int) else str(value)


def _cmpi(u: Use) -> Expr:
    which = predicate(u.op)
    if u.types[0] is i1 and which not in ("eq", "ne"):
        return BOOLEAN[which](u)
    if which[0] == "u":
        return helper(f"cmpi_{which}", u.types[0], args=u.args, c=u.c)
    return infix(*_COMPARE[which[-2:]])(u)


def _cmpf(u: Use) -> Expr:
    which = predicate(u.op)
    if which in ("true", "false"):
        return Expr(which)
    if which in _OPPOSITE:
        return negated(infix(*_COMPARE[_OPPOSITE[which]]))(u)
    if which in ("one", "ueq", "ord", "uno"):
        return helper(f"cmpf_{which}", u.types[0], args=u.args, c=u.c)
    return infix(*_COMPARE[which[-2:]])(u)


def _extsi(u: Use) -> Expr:
    if u.types[0] is not i1:
        return cast(u)
    minus = "-1ll" if isinstance(u.result, IndexType) and u.c.index_bits == 64 else "-1"  # see `integer`
    return Expr(f"{u.text(0, ANY)} ? {minus} : 0", CONDITIONAL)


def _extui(u: Use) -> Expr:
    return cast(u) if u.types[0] is i1 else between("extui")(u)


def _trunci(u: Use) -> Expr:
    return Expr(f"({u.text(0, AND)} & 1) != 0", EQUALITY) if u.result is i1 else cast(u)


def _resize(u: Use) -> Expr:
    """index_cast: sign extension or truncation, by the widths that index has here."""
    return _trunci(u) if u.result is i1 else _extsi(u)


def _resize_unsigned(u: Use) -> Expr:
    if u.result is i1:
        return _trunci(u)
    return cast(u) if u.c.name(u.result) == u.c.name(u.types[0]) else _extui(u)


def _float_cast(u: Use) -> Expr:
    """extf and truncf: C's cast between f32 and f64, helpers where a narrow format takes part."""
    if not (is_narrow(u.types[0]) or is_narrow(u.result)):
        return cast(u)
    if is_narrow(u.types[0]) and u.result not in (f32,):
        wide = helper(f"{u.c.suffix(u.types[0])}_to", f32, args=u.args, c=u.c)
        return wide if u.result is f64 else helper("f32_to", u.result, args=[wide], c=u.c)
    return helper(f"{u.c.suffix(u.types[0])}_to", u.result, args=u.args, c=u.c)


def _int_to_float(signed: bool) -> Rule:
    def rule(u: Use) -> Expr:
        if is_narrow(u.result):
            return between("sitofp" if signed else "uitofp")(u)
        if u.types[0] is i1 and signed:
            return Expr(f"{u.text(0, ANY)} ? -1 : 0", CONDITIONAL)
        return cast(u) if signed or u.types[0] is i1 else between("uitofp")(u)

    return rule


def _float_to_int(name: str) -> Rule:
    """Saturating; i1 holds 0 and -1, or 0 and 1."""
    def rule(u: Use) -> Expr:
        if u.result is i1:
            return Expr(f"{u.text(0, RELATION)} {'<= -1' if name == 'fptosi' else '>= 1'}", RELATION)
        return between(name)(u)

    return rule


def _select(u: Use) -> Expr:
    first = u.text(1, CONDITIONAL + 1)
    literals = all(arg.number is not None for arg in u.args[1:])
    if literals and isinstance(u.result, IndexType) and u.c.index_bits == 64:
        first = first.removesuffix("ll") + "ll"  # two small ones would give an int; see `integer`
    return Expr(f"{u.text(0, ANY)} ? {first} : {u.text(2, CONDITIONAL)}", CONDITIONAL)


def _constant(u: Use) -> Expr:
    value = u.op.get("value")
    if not isinstance(value, (IntegerAttr, FloatAttr)):
        raise u.op.error("cannot be printed: a kernel's constants are scalars")
    return literal(value)


_both, _either, _differ = infix("&&", ALL), infix("||", ANY), infix("!=", EQUALITY)
_first_only, _second_only = formula("{0} && !{1}", ALL), formula("!{0} && {1}", ALL)
_not_second, _not_first = formula("{0} || !{1}", ANY), formula("!{0} || {1}", ANY)
# i1 is 0 and -1 where an op is signed, 0 and 1 where it is unsigned.
BOOLEAN: dict[str, Rule] = {
    "addi": _differ, "subi": _differ, "xori": _differ, "muli": _both, "andi": _both, "minui": _both, "maxsi": _both,
    "ori": _either, "maxui": _either, "minsi": _either, "divsi": _both, "divui": _both, "floordivsi": _both,
    "ceildivsi": _both, "ceildivui": _both, "shli": _first_only, "shrui": _first_only, "shrsi": formula("{0}", UNARY),
    "remsi": lambda u: Expr("false"), "remui": lambda u: Expr("false"), "slt": _first_only, "sle": _not_second,
    "sgt": _second_only, "sge": _not_first, "ult": _second_only, "ule": _not_first, "ugt": _first_only,
    "uge": _not_second,
}  # fmt: skip

_CALLED = ("divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui", "ceildivui", "shli", "shrsi", "shrui",
           "maxsi", "minsi", "maxui", "minui", "maximumf", "minimumf", "maxnumf", "minnumf", "remf")  # fmt: skip
# math op -> its function in libm, without the f of f32
LIBM = {
    "absf": "fabs", "roundeven": "rint", "powf": "pow", "remf": "fmod",
    **{name: name for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign",
        "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor", "fma", "log", "log10", "log1p", "log2", "round",
        "sin", "sinh", "sqrt", "tan", "tanh", "trunc")},
}  # fmt: skip
_MATH = (*LIBM, "rsqrt", "absi", "ctpop", "ipowi", "isnan", "isinf", "isfinite")

SCALARS: dict[str, Rule] = {
    **{f"arith.{name}": call(name) for name in _CALLED},
    **{f"math.{name}": call(name) for name in _MATH if name != "remf"},
    "arith.constant": _constant,
    "arith.addi": integer("addi", "+", ADD),
    "arith.subi": integer("subi", "-", ADD),
    "arith.muli": integer("muli", "*", MUL),
    "arith.andi": integer("andi", "&", AND, infix("&", AND)),
    "arith.ori": integer("ori", "|", OR, infix("|", OR)),
    "arith.xori": integer("xori", "^", XOR, infix("^", XOR)),
    "arith.addf": infix("+", ADD),
    "arith.subf": infix("-", ADD),
    "arith.mulf": infix("*", MUL),
    "arith.divf": infix("/", MUL),
    "arith.negf": lambda u: Expr(f"-{u.text(0, ATOM)}", UNARY),
    "arith.cmpi": _cmpi,
    "arith.cmpf": _cmpf,
    "arith.select": _select,
    "arith.extsi": _extsi,
    "arith.extui": _extui,
    "arith.trunci": _trunci,
    "arith.index_cast": _resize,
    "arith.index_castui": _resize_unsigned,
    "arith.extf": _float_cast,
    "arith.truncf": _float_cast,
    "arith.sitofp": _int_to_float(True),
    "arith.uitofp": _int_to_float(False),
    "arith.fptosi": _float_to_int("fptosi"),
    "arith.fptoui": _float_to_int("fptoui"),
    "arith.bitcast": between("bitcast"),
}
_ON_BITS = ("arith.constant", "arith.select", "arith.bitcast", "arith.extf", "arith.truncf", "arith.sitofp",
            "arith.uitofp", "loop.splat", "loop.extract", "loop.insert")  # fmt: skip


def scalar(use: Use) -> Expr:
    """The expression of a scalar operation; narrow floats are computed wider and rounded once."""
    name = use.op.op_name
    reads = frozenset().union(*(a.reads for a in use.args))
    if use.types and use.types[0] is i1 and name.partition(".")[2] in BOOLEAN:
        made = BOOLEAN[name.partition(".")[2]](use)
    elif name in SCALARS:
        made = _widened(use) if name not in _ON_BITS and any(map(is_narrow, use.types)) else SCALARS[name](use)
    else:
        raise use.op.error("has no form in C")
    return attrs.evolve(made, reads=reads)


def _widened(use: Use) -> Expr:
    """Narrow operands in f32; a fused multiply-add in f64 and to odd, because f32 would round twice."""
    fused = use.op.op_name == "math.fma"
    wide = f64 if fused else f32

    def widen(arg: Expr, type: Type) -> Expr:
        return helper(f"{use.c.suffix(type)}_to", f32, args=[arg], c=use.c) if is_narrow(type) else arg

    args = tuple(map(widen, use.args, use.types))
    types = tuple(wide if is_narrow(t) else t for t in use.types)
    result = wide if is_narrow(use.result) else use.result
    widened = attrs.evolve(use, args=args, types=types, result=result)
    made = helper("fmaodd", f64, args=args, c=use.c) if fused else SCALARS[use.op.op_name](widened)
    return helper(f"{use.c.suffix(wide)}_to", use.result, args=[made], c=use.c) if is_narrow(use.result) else made
