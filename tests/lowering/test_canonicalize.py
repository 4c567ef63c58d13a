"""Canonicalisation: each identity is exact, the mlir_cases have their verdicts."""

import itertools

import numpy as np
import pytest

from stepwell.dialects import arith, builtin, cf, dim, func, memref, scalar, scf  # noqa: F401
from stepwell.dialects import math as m
from stepwell.ir.attributes import FloatType, bf16, f16, f32, f64, i1, i8, i16, i32, index
from stepwell.ir.core import Block
from stepwell.ir.definition import FloatLike, build
from stepwell.ir.parser import parse_module
from stepwell.ir.rewrite_watch import fingerprint
from stepwell.ir.rules import Call, Const, Match, Var
from stepwell.ir.verifier import verify
from stepwell.lowering.blocks import simplify_blocks
from stepwell.lowering.canonicalize import CONVERSIONS, FLOATS, IDEMPOTENT, INTEGERS, LATTICES, Canonicalize


def read(text):
    """Two blanks stand for a new line."""
    return parse_module(text.replace("  ", "\n"), allow_unregistered=True)


def canonical(text, **options):
    module = read(text)
    verify(module)
    Canonicalize(strict=True, **options).run(module)
    verify(module)
    return module


def becomes(before, after):
    wanted = read(after)
    found = canonical(before)
    assert fingerprint(found) == fingerprint(wanted), str(found)
    assert fingerprint(canonical(str(found))) == fingerprint(wanted)  # and stays so


# ---------------------------------------------------------------- every rule against the one table of semantics

FLOAT_VALUES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    3.25,
    -7.0,
    65504.0,
    6e-8,
    float("inf"),
    float("-inf"),
    float("nan"),
]


def variables(pattern):
    if isinstance(pattern, Var):
        return [pattern.name]
    inner = pattern.arguments if isinstance(pattern, Call) else ()
    return list(dict.fromkeys(n for a in inner for n in variables(a)))


def samples(type):
    if isinstance(type, FloatType):
        return np.array(FLOAT_VALUES, scalar.dtype_of(type))
    if type is i1:
        return np.array([False, True])
    if type is i8:
        return np.arange(-128, 128).astype(np.int8)
    info = np.iinfo(scalar.dtype_of(type))
    return np.array([0, 1, -1, 2, 255, -256, info.min, info.max, info.max - 1], scalar.dtype_of(type))


def evaluated(pattern, values, type):
    if isinstance(pattern, Var):
        return values[pattern.name]
    if isinstance(pattern, Const):
        return scalar.array_of(pattern.make(type))
    arguments = [evaluated(a, values, type) for a in pattern.arguments]
    op = build(pattern.cls, *Block([scalar.type_of(a.dtype) for a in arguments]).arguments)
    return scalar.evaluate(op, *arguments)


def same_bits(one, other):
    one, other = np.broadcast_arrays(one, other)
    if one.dtype.kind in "biu":
        return bool((one == other).all())
    nan = np.isnan(one) & np.isnan(other)
    return bool((nan | (one.view(f"u{one.dtype.itemsize}") == other.view(f"u{one.dtype.itemsize}"))).all())


@pytest.mark.parametrize("rule", [*INTEGERS, *FLOATS], ids=lambda r: f"{r.pattern}")
def test_both_sides_of_a_rule_are_equal_on_all_values(rule):
    types = (
        [f16, f32, f64, bf16]
        if issubclass(rule.root, (arith.FloatBinary, arith.FloatUnary))
        else [i1, i8, i32]
    )
    if rule.root is arith.Select:
        types = [i1]
    names = variables(rule.pattern)
    for type in types:
        grid = np.meshgrid(*[samples(type)] * len(names), indexing="ij")
        values = dict(zip(names, grid))
        assert same_bits(evaluated(rule.pattern, values, type), evaluated(rule.replacement, values, type)), (
            type
        )


ELEMENTS = [i1, i8, i16, i32, index, f16, bf16, f32, f64]


def chains(rule):
    """Each choice of types for which a rule on conversions applies, as (types from the inside out)."""
    depth, inner = 0, rule.pattern
    while isinstance(inner, Call):
        depth, inner = depth + 1, inner.arguments[0]
    return itertools.product(ELEMENTS, repeat=depth + 1)


def converted(classes, types, value):
    for cls, source, target in zip(classes, types, types[1:]):
        op = build(cls, Block([source]).arguments[0], result_types=[target])
        try:
            verify(op)
        except Exception:
            return None
        value = scalar.evaluate(op, value)
    return value


@pytest.mark.parametrize("rule", CONVERSIONS, ids=lambda r: f"{r.pattern}")
def test_conversion_rules_lose_nothing(rule):
    classes, inner, applied = [], rule.pattern, 0
    while isinstance(inner, Call):
        classes.insert(0, inner.cls)
        inner = inner.arguments[0]
    for types in chains(rule):
        if isinstance(rule.replacement, Var) and types[0] is not types[-1]:
            continue
        x = samples(types[0])
        whole = converted(classes, types, x)
        if whole is None:
            continue
        value = Block([types[0]]).arguments[0]
        last = build(classes[-1], Block([types[-2]]).arguments[0], result_types=[types[-1]])
        if rule.condition is not None and not rule.condition(Match(last, {"x": value})):
            continue
        applied += 1
        if isinstance(rule.replacement, Var):
            assert same_bits(whole, x), types
        else:
            assert same_bits(whole, converted([rule.replacement.cls], [types[0], types[-1]], x)), types
    assert applied


@pytest.mark.parametrize("cls", LATTICES, ids=lambda c: c.name)
def test_absorption(cls):
    floats = cls.definition.operands["lhs"].constraint is FloatLike
    for type in [f16, f32] if floats else [i1, i8]:
        x, y = np.meshgrid(samples(type), samples(type), indexing="ij")
        op = build(cls, *Block([type, type]).arguments)
        once = scalar.evaluate(op, x, y)
        assert same_bits(scalar.evaluate(op, once, x), once) and same_bits(scalar.evaluate(op, y, once), once)


@pytest.mark.parametrize("cls", IDEMPOTENT, ids=lambda c: c.name)
def test_twice(cls):
    op = build(cls, Block([f32]).arguments[0])
    once = scalar.evaluate(op, samples(f32))
    assert same_bits(scalar.evaluate(op, once), once)


# ---------------------------------------------------------------- what must not be folded


@pytest.mark.parametrize(
    "line",
    [
        "arith.mulf %x, %zero : f32",
        "arith.subf %x, %x : f32",
        "arith.divf %x, %x : f32",
        "arith.addf %x, %zero : f32",
        "arith.subf %x, %minus : f32",
        "arith.remf %x, %one : f32",
    ],
)
def test_inexact_float_identities_are_left_alone(line):
    """Corpus B28."""
    module = canonical(f"""
    func.func @f(%x: f32) -> f32 {{
      %zero = arith.constant 0.0 : f32
      %minus = arith.constant -0.0 : f32
      %one = arith.constant 1.0 : f32
      %r = {line}
      return %r : f32
    }}""")
    assert line.split()[0] in str(module)


def test_casts_that_round_stay():
    module = canonical("""
    func.func @f(%x: f32, %i: i64) -> (f32, f32, i64) {
      %h = arith.truncf %x : f32 to f16
      %0 = arith.extf %h : f16 to f32
      %n = arith.fptosi %x : f32 to i32
      %1 = arith.sitofp %n : i32 to f32
      %k = arith.trunci %i : i64 to i32
      %2 = arith.extsi %k : i32 to i64
      return %0, %1, %2 : f32, f32, i64
    }""")
    assert len(list(module.walk())) == 9


def test_dynamic_and_odd_types_make_no_constants():
    module = canonical("""
    func.func @f<m>(%t: tensor<[m], i32>, %n: i7) -> (tensor<[m], i32>, i7) {
      %0 = arith.subi %t, %t : tensor<[m], i32>
      %1 = arith.subi %n, %n : i7
      return %0, %1 : tensor<[m], i32>, i7
    }""")
    assert str(module).count("arith.subi") == 2


def test_vectors_and_static_tensors():
    becomes(
        """
    func.func @f(%t: tensor<3xi32>, %v: vector<4xf32>) -> (tensor<3xi32>, vector<4xf32>) {
      %0 = arith.subi %t, %t : tensor<3xi32>
      %one = arith.constant dense<1.0> : vector<4xf32>
      %1 = arith.mulf %one, %v : vector<4xf32>
      return %0, %1 : tensor<3xi32>, vector<4xf32>
    }""",
        """
    func.func @f(%t: tensor<3xi32>, %v: vector<4xf32>) -> (tensor<3xi32>, vector<4xf32>) {
      %0 = arith.constant dense<0> : tensor<3xi32>
      return %0, %v : tensor<3xi32>, vector<4xf32>
    }""",
    )


def test_dims():
    becomes(
        """
    func.func @f<m>(%t: tensor<[2*m, 3], f32>) -> (index, index) {
      %0 = dim.of %t, 0 : index
      %1 = dim.of %t, 1 : index
      return %0, %1 : index, index
    }""",
        """
    func.func @f<m>(%t: tensor<[2*m, 3], f32>) -> (index, index) {
      %1 = arith.constant 3 : index
      %0 = dim.value [2*m] : index
      return %0, %1 : index, index
    }""",
    )


# ---------------------------------------------------------------- control flow


def test_loop_with_one_iteration():
    becomes(
        """
    func.func @f(%a: i32) -> i32 {
      %c0 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %0 = scf.for %i = %c0 to %c4 step %c4 iter_args(%x = %a) -> (i32) {
        %y = arith.addi %x, %x : i32
        scf.yield %y : i32
      }
      return %0 : i32
    }""",
        """
    func.func @f(%a: i32) -> i32 {
      %y = arith.addi %a, %a : i32
      return %y : i32
    }""",
    )


def test_constants_stay_in_their_region():
    module = canonical("""
    func.func @f(%m: memref<4xi32>, %n: index, %s: index) {
      scf.for %i = %n to %n step %s {
        scf.yield
      }
      scf.for %i = %n to %s step %s {
        %0 = arith.subi %i, %i : index
        %v = arith.constant 1 : i32
        memref.store %v, %m[%0] : memref<4xi32>
      }
      return
    }""")
    (loop,) = [op for op in module.walk() if op.op_name == "scf.for"]
    assert [op.op_name for op in loop.body.ops] == [
        "arith.constant",
        "arith.constant",
        "memref.store",
        "scf.yield",
    ]


def test_unreachable_blocks_that_use_each_other():
    module = parse_module("""
    func.func @f(%a: i32) -> i32 {
      return %a : i32
    ^bb1(%x: i32):
      cf.br ^bb2(%x : i32)
    ^bb2(%y: i32):
      cf.br ^bb1(%y : i32)
    }""")
    assert simplify_blocks(module)
    verify(module)
    assert len(module.body.first.region.blocks) == 1
    assert not simplify_blocks(module)


def test_chains_of_blocks_merge():
    becomes(
        """
    func.func @f(%a: i32) -> i32 {
      cf.br ^bb1(%a : i32)
    ^bb1(%x: i32):
      %0 = arith.addi %x, %a : i32
      cf.br ^bb2(%0 : i32)
    ^bb2(%y: i32):
      %1 = arith.muli %y, %a : i32
      return %1 : i32
    }""",
        """
    func.func @f(%a: i32) -> i32 {
      %0 = arith.addi %a, %a : i32
      %1 = arith.muli %0, %a : i32
      return %1 : i32
    }""",
    )


def test_a_block_that_branches_to_itself_stays():
    module = canonical("func.func @f() {\n  cf.br ^bb1\n^bb1:\n  cf.br ^bb1\n}")
    assert len(module.body.first.region.blocks) == 2


# ---------------------------------------------------------------- the cases of ../shared/mlir_cases, as text of our own

CASES = {
    "addf_negzero": (
        "func.func @f(%a: f32) -> f32 { %z = arith.constant 0.0 : f32  %0 = arith.addf %a, %z : f32  return %0 : f32 }",
        "func.func @f(%a: f32) -> f32 { %z = arith.constant 0.0 : f32  %0 = arith.addf %a, %z : f32  return %0 : f32 }",
    ),
    "cmp_self": (
        "func.func @f(%a: i32) -> i1 { %0 = arith.cmpi ule, %a, %a : i32  return %0 : i1 }",
        "func.func @f(%a: i32) -> i1 { %0 = arith.constant true  return %0 : i1 }",
    ),
    "dead_load_goes_store_stays": (
        """func.func @f(%m: memref<1xi32>, %a: i32) { %c0 = arith.constant 0 : index
           memref.store %a, %m[%c0] : memref<1xi32>  %d = memref.load %m[%c0] : memref<1xi32>  return }""",
        """func.func @f(%m: memref<1xi32>, %a: i32) { %c0 = arith.constant 0 : index
           memref.store %a, %m[%c0] : memref<1xi32>  return }""",
    ),
    "for_zero_trip": (
        """func.func @f(%a: i32) -> i32 { %c0 = arith.constant 0 : index  %c1 = arith.constant 1 : index
           %0 = scf.for %i = %c1 to %c0 step %c1 iter_args(%x = %a) -> i32 {
             %y = arith.addi %x, %x : i32  scf.yield %y : i32 }
           return %0 : i32 }""",
        "func.func @f(%a: i32) -> i32 { return %a : i32 }",
    ),
    "if_const": (
        """func.func @f(%a: i32, %b: i32) -> i32 { %t = arith.constant true
           %0 = scf.if %t -> i32 { scf.yield %a : i32 } else { scf.yield %b : i32 }
           return %0 : i32 }""",
        "func.func @f(%a: i32, %b: i32) -> i32 { return %a : i32 }",
    ),
    "merge_loop": (
        """func.func @loop() { %c0 = arith.constant 0 : i32  %c1 = arith.constant 1 : i32  %c2 =
        arith.constant 2 : i32
             %enter = arith.cmpi sgt, %c2, %c0 : i32
             cf.cond_br %enter, ^exit, ^header(%c2 : i32)
           ^header(%iv: i32):
             %done = arith.cmpi eq, %iv, %c2 : i32
             cf.cond_br %done, ^exit, ^latch
           ^latch:
             %next = arith.addi %iv, %c1 : i32
             cf.br ^header(%next : i32)
           ^exit:
             return }""",
        "func.func @loop() { return }",
    ),
    "rem": (
        """func.func @f() -> (i32, i32) { %a = arith.constant -7 : i32  %o = arith.constant 2 : i32
           %0 = arith.divsi %a, %o : i32  %1 = arith.remsi %a, %o : i32  return %0, %1 : i32, i32 }""",
        """func.func @f() -> (i32, i32) { %0 = arith.constant -3 : i32  %1 = arith.constant -1 : i32
           return %0, %1 : i32, i32 }""",
    ),
    "unregistered_stays": (
        'func.func @f(%a: i32) { %0 = "t.side"(%a) : (i32) -> i32  return }',
        'func.func @f(%a: i32) { %0 = "t.side"(%a) : (i32) -> i32  return }',
    ),
    "private_function_stays": (
        "func.func private @g() { return }\nfunc.func @f() { return }",
        "func.func private @g() { return }\nfunc.func @f() { return }",
    ),
    "shift_then_xor": (
        """func.func @f(%a: i32) -> i32 { %0 = arith.constant 31 : i32  %1 = arith.shrsi %a, %0 : i32
           %2 = arith.xori %1, %1 : i32  return %2 : i32 }""",
        "func.func @f(%a: i32) -> i32 { %0 = arith.constant 0 : i32  return %0 : i32 }",
    ),
    "branches_through": (
        """func.func @f(%c: i1, %a: i32) -> i32 {
             cf.cond_br %c, ^bb1(%a : i32), ^bb2(%a : i32)
           ^bb1(%x: i32):
             cf.br ^bb3(%x : i32)
           ^bb2(%y: i32):
             cf.br ^bb3(%y : i32)
           ^bb3(%z: i32):
             return %z : i32 }""",
        "func.func @f(%c: i1, %a: i32) -> i32 { return %a : i32 }",
    ),
    "ceildiv": (
        """func.func @f() -> i8 { %c7 = arith.constant 7 : i8  %m = arith.constant -128 : i8
           %0 = arith.ceildivsi %m, %c7 : i8  return %0 : i8 }""",
        "func.func @f() -> i8 { %0 = arith.constant -18 : i8  return %0 : i8 }",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    becomes(*CASES[name])


def test_an_operation_on_itself_ends():
    canonical_free = parse_module("%c0 = arith.constant 0 : index\n%0 = arith.addi %0, %c0 : index")
    Canonicalize().run(canonical_free)


def test_functions_fold():
    module = canonical("""
    func.func @f() -> f32 {
      %c = arith.constant 4.0 : f32
      %0 = math.sqrt %c : f32
      return %0 : f32
    }""")
    assert "2.000000e+00" in str(module) and m.Sqrt.name not in str(module)
