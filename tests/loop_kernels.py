"""Loop kernels for tests: one operation over arrays, with operands of every kind and edge values for them."""

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from stepwell.dialects import arith, load_all, loop
from stepwell.dialects.scalar import dtype_of
from stepwell.ir.attributes import (
    FloatAttr,
    FloatType,
    IndexType,
    IntegerAttr,
    IntegerType,
    Type,
    VectorType,
    bf16,
    f8E4M3FN,
    f8E5M2,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    index,
)  # fmt: skip
from stepwell.ir.builder import Builder
from stepwell.ir.core import Operation, Value
from stepwell.ir.registry import OPERATIONS

load_all()
INTEGERS = (i1, i8, i16, i32, i64, index)
FLOATS = (f32, f64, f16, bf16)
NARROWEST = (f8E4M3FN, f8E5M2)
INTEGER_BINARY = ("addi", "subi", "muli", "divsi", "divui", "ceildivsi", "ceildivui", "floordivsi", "remsi", "remui",
                  "andi", "ori", "xori", "shli", "shrsi", "shrui", "maxsi", "maxui", "minsi", "minui")  # fmt: skip
FLOAT_BINARY = ("addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf")
EXACT_UNARY = ("absf", "sqrt", "floor", "ceil", "round", "roundeven", "trunc", "isnan", "isinf", "isfinite")
CLOSE_UNARY = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "rsqrt", "tanh", "sinh", "cosh", "sin", "cos",
               "tan", "asin", "acos", "atan", "erf")  # fmt: skip


@attrs.frozen
class Case:
    """One operation with element types; `properties` are its attributes."""

    op: str
    operands: tuple[Type, ...]
    result: Type
    properties: tuple[tuple[str, object], ...] = ()

    @property
    def name(self) -> str:
        words = [self.op.partition(".")[2], *(str(v) for _, v in self.properties), *map(str, self.operands)]
        return "_".join([*words, str(self.result)])

    def make(self, operands: Sequence[Value], width: int = 1) -> Operation:
        """The operation itself."""
        result = self.result if width == 1 else VectorType((width,), self.result)
        properties = {k: IntegerAttr(v, i64) for k, v in self.properties}  # type: ignore[arg-type]
        return OPERATIONS[self.op](operands, [result], properties)

    def kernel(self, target: str, width: int = 1) -> loop.Kernel:
        """The operation on every element of arrays a, b, ... into r, `width` at a time."""
        buffers = [(f"{n}", loop.BufferType(t, constant=True)) for n, t in zip("abc", self.operands, strict=False)]
        name = self.name if width == 1 else f"{self.name}_x{width}"
        made = loop.Kernel.make(
            name, target, [*buffers, ("r", loop.BufferType(self.result))], symbols=["n"], grid=["(n + 127) // 128"],
            block=[128],
        )  # fmt: skip
        b = Builder(made.body)
        over = b.insert(
            loop.For.make(number(b, 0), made.symbol_arguments["n"], number(b, width), hint="i", binding="global")
        )
        with b.at(over.body):
            loads = [b.create(loop.Load, x, over.index, width=width).result for x in made.buffers[:-1]]
            value = b.insert(self.make(loads, width)).result
            b.create(loop.Store, value, made.buffers[-1], over.index)
        return made


def number(b: Builder, value: int) -> Value:
    return b.create(arith.Constant, value=IntegerAttr(value, index)).result


def real(b: Builder, value: float, type: FloatType = f32) -> Value:
    return b.create(arith.Constant, value=FloatAttr.of(value, type)).result


def bits(type: Type) -> int:
    return 64 if isinstance(type, IndexType) else type.width  # type: ignore[attr-defined,no-any-return]


def exact_cases() -> Iterator[Case]:
    """Cases whose results are those of the table, bit for bit."""
    for t in INTEGERS:
        yield from (Case(f"arith.{op}", (t, t), t) for op in INTEGER_BINARY)
        yield from (Case("arith.cmpi", (t, t), i1, (("predicate", p),)) for p in range(10))
        yield Case("arith.select", (i1, t, t), t)
        yield from (Case(f"math.{op}", (t,), t) for op in ("absi", "ctpop") if t is not i1)
        yield from (Case("math.ipowi", (t, t), t) for _ in range(t is not i1))
    for f in FLOATS:
        yield from (Case(f"arith.{op}", (f, f), f) for op in FLOAT_BINARY)
        yield from (Case("arith.cmpf", (f, f), i1, (("predicate", p),)) for p in range(16))
        yield Case("arith.select", (i1, f, f), f)
        yield Case("arith.negf", (f,), f)
        yield Case("math.copysign", (f, f), f)
        yield Case("math.fma", (f, f, f), f)
        yield from (Case(f"math.{op}", (f,), i1 if op.startswith("is") else f) for op in EXACT_UNARY)
    yield from conversions()


def conversions() -> Iterator[Case]:
    plain = [t for t in INTEGERS if t is not index]
    for a in plain:
        wider = [b for b in plain if bits(b) > bits(a)]
        yield from (Case(f"arith.{op}", (a,), b) for b in wider for op in ("extsi", "extui"))
        yield from (Case("arith.trunci", (b,), a) for b in wider)
        yield from (Case(f"arith.{op}", (a,), index) for op in ("index_cast", "index_castui"))
        yield from (Case(f"arith.{op}", (index,), a) for op in ("index_cast", "index_castui"))
        for f in (*FLOATS, *NARROWEST):
            yield from (Case(f"arith.{op}", (a,), f) for op in ("sitofp", "uitofp"))
            yield from (Case(f"arith.{op}", (f,), a) for op in ("fptosi", "fptoui"))
    for a in (*FLOATS, *NARROWEST):
        for b in (*FLOATS, *NARROWEST):
            if a.width < b.width:
                yield Case("arith.extf", (a,), b)
                yield Case("arith.truncf", (b,), a)
    yield from (Case("arith.bitcast", (a,), b) for a, b in ((f32, i32), (i64, f64), (f16, i16), (i8, f8E5M2)))


def close_cases() -> Iterator[Case]:
    """Functions that are right to a few units in the last place."""
    for f in FLOATS:
        yield from (Case(f"math.{op}", (f,), f) for op in CLOSE_UNARY)
        yield from (Case(f"math.{op}", (f, f), f) for op in ("powf", "atan2"))


# ---------------------------------------------------------------- values


def integers(type: Type) -> np.ndarray:
    """Edge values of an integer type."""
    if type is i1:
        return np.array([False, True])
    width = bits(type)
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    near = [*range(-9, 10), low, low + 1, high, high - 1, width - 1, width, width + 1, high // 3, low // 5]
    rounding = [s * v for s in (1, -1) for v in (2**24 + 1, 2**53 + 1, 2**53 + 3, 2**60 + 2**34 + 1, 2**62 + 2**54 + 1)]
    return np.array([v for v in (*near, *rounding) if low <= v <= high]).astype(dtype_of(type))


def floats(type: FloatType) -> np.ndarray:
    """Edge values of a float type: specials, subnormals, ties of every narrower format, and bounds of integers."""
    dtype = dtype_of(type)
    plain = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 0.1, 7.0, 100.0, 1e-3, 127.0, 128.0, 255.5, 256.0, 32768.0, 65504.0, 65519.9,
             65520.0, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 1e30, 3.4028235e38, 1e300, 2.0**-14, 2.0**-24, 2.0**-25,
             2.0**-25 * 1.001, 6.1e-5, 2.0**-126, 2.0**-149, 2.0**-133, 5e-324, 1e-310, 448.0, 464.0, 480.0, 57344.0,
             61440.0, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-30, 1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-9,
             1.0625, 1.1875, 2.0**-9, 2.0**-10, 2.0**-16, 2.0**-17, 88.5, 89.0, -103.9, 104.0, 0.6249, 0.93]  # fmt: skip
    with np.errstate(all="ignore"):
        return np.array([*plain, *(-v for v in plain), np.inf, -np.inf, np.nan]).astype(dtype)


def values(type: Type) -> np.ndarray:
    return floats(type) if isinstance(type, FloatType) else integers(type)


def operands(case: Case, width: int = 8) -> list[np.ndarray]:
    """Arrays of all combinations of edge values, cut to a multiple of `width`; three operands are drawn."""
    parts = [values(t) for t in case.operands]
    if len(parts) == 3:
        rng = np.random.default_rng(0)
        parts = [p[rng.integers(0, len(p), 4096)] for p in parts]
    else:
        parts = [g.ravel() for g in np.meshgrid(*parts, indexing="ij")]
    padded = -(-len(parts[0]) // width) * width
    return [np.ascontiguousarray(np.resize(p, padded)) for p in parts]


def expected(case: Case, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """What the table of scalar semantics says."""
    block = loop.Kernel.make("k", "cpu", [(f"a{i}", loop.BufferType(t)) for i, t in enumerate(case.operands)])
    b = Builder(block.body)
    loads = [b.create(loop.Load, x, number(b, 0)).result for x in block.buffers]
    with np.errstate(all="ignore"):
        return np.asarray(case.make(loads).evaluate(*arrays))  # type: ignore[attr-defined]


def same(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where two arrays agree bit for bit; any NaN is a NaN."""
    words = f"u{got.dtype.itemsize}"
    if got.dtype.kind in "biu":
        return np.asarray(got == want)
    return np.asarray((got.view(words) == want.view(words)) | (np.isnan(got) & np.isnan(want)))


def units(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """How many floats of their type lie between two arrays."""
    def order(x: np.ndarray) -> np.ndarray:
        word = x.view(f"i{x.dtype.itemsize}").astype(np.int64)
        low = np.int64(-(1 << (8 * x.dtype.itemsize - 1)))
        return np.where(word < 0, low - word, word)

    apart = np.abs(order(got).astype(np.float64) - order(want).astype(np.float64))
    return np.where(np.isnan(got) & np.isnan(want), 0, np.where(np.isnan(got) ^ np.isnan(want), np.inf, apart))


def is_integer(type: Type) -> bool:
    return isinstance(type, (IntegerType, IndexType))
