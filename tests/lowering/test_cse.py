"""Common subexpressions: what merges, and what must not."""

import pytest

from stepwell.dialects import arith, builtin, cf, func, math, memref, scf  # noqa: F401
from stepwell.ir.parser import parse_module
from stepwell.ir.rewrite_watch import fingerprint
from stepwell.ir.verifier import verify
from stepwell.lowering.cse import Cse, Dce


def read(text):
    """Two blanks stand for a new line."""
    return parse_module(text.replace("  ", "\n"), allow_unregistered=True)


def eliminated(text, step=None):
    module = read(text)
    (step or Cse()).run(module)
    verify(module)
    return module


def becomes(before, after, step=None):
    found, wanted = eliminated(before, step), read(after)
    assert fingerprint(found) == fingerprint(wanted), str(found)


def names(module):
    return [op.op_name for op in module.walk()][2:]


def test_basic():
    becomes(
        """func.func @f(%a: i32, %b: i32) -> i32 { %0 = arith.addi %a, %b : i32  %1 = arith.addi %a, %b : i32
           %2 = arith.muli %0, %1 : i32  return %2 : i32 }""",
        """func.func @f(%a: i32, %b: i32) -> i32 { %0 = arith.addi %a, %b : i32
           %2 = arith.muli %0, %0 : i32  return %2 : i32 }""",
    )


def test_commutative_operands():
    text = """func.func @f(%a: i32, %b: i32) -> i32 { %0 = arith.addi %a, %b : i32  %1 = arith.addi %b, %a : i32
              %2 = arith.muli %0, %1 : i32  return %2 : i32 }"""
    assert names(eliminated(text)).count("arith.addi") == 1
    assert names(eliminated(text, Cse(commutative=False))).count("arith.addi") == 2
    assert names(eliminated(text.replace("addi", "subi"))).count("arith.subi") == 2


def test_attributes_and_types_matter():
    module = eliminated("""func.func @f(%a: f32, %n: i64) -> f32 {
      %0 = arith.addf %a, %a : f32
      %1 = arith.addf %a, %a fastmath<fast> : f32
      %2 = arith.addf %a, %a {note = 1 : i32} : f32
      %3 = arith.trunci %n : i64 to i32
      %4 = arith.trunci %n : i64 to i16
      %5 = arith.cmpf oeq, %0, %1 : f32
      %6 = arith.cmpf one, %0, %1 : f32
      "t.use"(%2, %3, %4, %5, %6) : (f32, i32, i16, i1, i1) -> ()
      return %0 : f32 }""")
    assert len(names(module)) == 9


def test_true_is_true():
    """Corpus D06: `true` and `1 : i1` are one constant."""
    module = eliminated("""func.func @f() -> (i1, i1) { %0 = arith.constant true
      %1 = "arith.constant"() <{value = 1 : i1}> : () -> i1
      return %0, %1 : i1, i1 }""")
    assert names(module).count("arith.constant") == 1


def test_branches_do_not_see_each_other():
    text = """func.func @f(%a: i32, %c: i1) -> i32 {
      %r = scf.if %c -> (i32) {
        %0 = arith.addi %a, %a : i32
        scf.yield %0 : i32
      } else {
        %1 = arith.addi %a, %a : i32
        scf.yield %1 : i32
      }
      %2 = arith.addi %a, %a : i32
      %3 = arith.addi %r, %2 : i32
      return %3 : i32 }"""
    becomes(text, text)


def test_blocks_by_dominance():
    module = eliminated(
        """func.func @f(%a: i32, %c: i1) -> i32 { %0 = arith.addi %a, %a : i32
             cf.cond_br %c, ^bb1, ^bb2
           ^bb1:
             %1 = arith.addi %a, %a : i32  %3 = arith.muli %1, %a : i32  return %3 : i32
           ^bb2:
             %2 = arith.muli %0, %a : i32  return %2 : i32 }"""
    )
    assert names(module) == [
        "arith.addi", "cf.cond_br", "arith.muli", "func.return", "arith.muli", "func.return",
    ]  # fmt: skip


# ---------------------------------------------------------------- memory


LOADS = """func.func @f(%m: memref<2xi32>, %i: index, %v: i32, %c: i1, %s: index) -> i32 {{
  %x = memref.load %m[%i] : memref<2xi32>
  {between}
  %y = memref.load %m[%i] : memref<2xi32>
  %z = arith.addi %x, %y : i32
  return %z : i32 }}"""


@pytest.mark.parametrize(
    ("between", "loads"),
    [
        ("", 1),
        ("%n = arith.muli %v, %v : i32", 1),
        ("%n = memref.alloc() : memref<2xi32>", 1),
        ("memref.store %v, %m[%i] : memref<2xi32>", 2),
        ("memref.dealloc %m : memref<2xi32>", 2),
        ('"t.unknown"() : () -> ()', 2),
        ("scf.if %c { memref.store %v, %m[%i] : memref<2xi32> }", 2),
        ("scf.if %c { scf.if %c { memref.store %v, %m[%i] : memref<2xi32> } }", 2),
        ("scf.for %k = %i to %s step %s { memref.store %v, %m[%k] : memref<2xi32> }", 2),
        ("scf.for %k = %i to %s step %s { }", 1),
    ],
)
def test_loads_merge_only_without_a_write_between(between, loads):
    """Corpus D21."""
    assert names(eliminated(LOADS.format(between=between))).count("memref.load") == loads


def test_loads_across_blocks():
    module = eliminated("""func.func @f(%m: memref<?xi32>, %i: index) -> (i32, i32) {
      %0 = memref.load %m[%i] : memref<?xi32>
      cf.br ^bb1
    ^bb1:
      %1 = memref.load %m[%i] : memref<?xi32>
      return %0, %1 : i32, i32 }""")
    assert names(module).count("memref.load") == 1


def test_loads_across_a_block_that_may_write():
    module = eliminated("""func.func @f(%m: memref<?xi32>, %i: index, %c: i1, %v: i32) -> (i32, i32) {
      %0 = memref.load %m[%i] : memref<?xi32>
      cf.cond_br %c, ^bb1, ^bb2
    ^bb1:
      memref.store %v, %m[%i] : memref<?xi32>
      cf.br ^bb2
    ^bb2:
      %1 = memref.load %m[%i] : memref<?xi32>
      return %0, %1 : i32, i32 }""")
    assert names(module).count("memref.load") == 2


def test_a_loop_that_writes_below():
    """The load in the loop runs again after the store."""
    module = eliminated("""func.func @f(%m: memref<?xi32>, %i: index, %c: i1, %v: i32) -> i32 {
      %0 = memref.load %m[%i] : memref<?xi32>
      cf.br ^bb1
    ^bb1:
      %1 = memref.load %m[%i] : memref<?xi32>
      memref.store %v, %m[%i] : memref<?xi32>
      cf.cond_br %c, ^bb1, ^bb2
    ^bb2:
      %2 = arith.addi %0, %1 : i32
      return %2 : i32 }""")
    assert names(module).count("memref.load") == 2


def test_a_structured_loop_that_writes_below():
    module = eliminated("""func.func @f(%m: memref<?xi32>, %i: index, %s: index, %v: i32) -> i32 {
      %0 = memref.load %m[%i] : memref<?xi32>
      %r = scf.for %k = %i to %s step %s iter_args(%acc = %0) -> (i32) {
        %1 = memref.load %m[%i] : memref<?xi32>
        memref.store %v, %m[%i] : memref<?xi32>
        scf.yield %1 : i32
      }
      return %r : i32 }""")
    assert names(module).count("memref.load") == 2


def test_allocations_have_identity():
    """Corpus D20."""
    module = eliminated("""func.func @f(%v: i32, %i: index) {
      %u = memref.alloc() : memref<4xi32>
      %w = memref.alloc() : memref<4xi32>
      memref.store %v, %u[%i] : memref<4xi32>
      memref.store %v, %w[%i] : memref<4xi32>
      %r1 = "t.random"() : () -> i32
      %r2 = "t.random"() : () -> i32
      %c1 = arith.constant 3 : i32
      %c2 = arith.constant 3 : i32
      "t.use"(%r1, %r2, %c1, %c2) : (i32, i32, i32, i32) -> ()
      return }""")
    found = names(module)
    assert (
        found.count("memref.alloc") == 2
        and found.count("t.random") == 2
        and found.count("arith.constant") == 1
    )


# ---------------------------------------------------------------- regions


IF = """%{name} = scf.if %c -> (i32) {{
    %{name}0 = arith.subi %{x}, %{y} : i32
    scf.yield %{name}0 : i32
  }} else {{
    scf.yield %a : i32
  }}
"""


def test_operations_with_regions():
    """Corpus D18: equal regions may merge, others must not."""
    parts = [("p", "a", "b"), ("q", "b", "a"), ("r", "a", "b")]
    body = "".join(IF.format(name=n, x=x, y=y) for n, x, y in parts)
    module = eliminated(f"""func.func @f(%a: i32, %b: i32, %c: i1) -> (i32, i32, i32) {{
      {body}
      return %p, %q, %r : i32, i32, i32 }}""")
    assert names(module).count("scf.if") == 2
    first, second, third = module.body.first.body.terminator.operands
    assert first is third and first is not second


def test_isolated_operations_start_afresh():
    module = eliminated("""
    %0 = arith.constant 1 : i32
    func.func @f() -> i32 {
      %1 = arith.constant 1 : i32
      return %1 : i32
    }
    "t.use"(%0) : (i32) -> ()""")
    assert len([op for op in module.walk() if op.op_name == "arith.constant"]) == 2


def test_graph_regions():
    module = eliminated("""func.func @f(%a: i8, %b: i8) {
      "t.graph"() ({
        "t.other"() ({ "t.use"(%x) : (i8) -> () }) : () -> ()
        %x = arith.addi %a, %b : i8
        %q = arith.addi %y, %y : i8
        %y = arith.addi %a, %b : i8
      }) : () -> ()
      return }""")
    assert names(module) == ["t.graph", "t.other", "t.use", "arith.addi", "func.return"]


def test_dead_regions_go():
    becomes(
        """func.func @f(%a: i32) -> i32 { %0 = arith.addi %a, %a : i32
           %1 = scf.execute_region -> i32 { %c = arith.addi %a, %a : i32  scf.yield %c : i32 }
           return %0 : i32 }""",
        "func.func @f(%a: i32) -> i32 { %0 = arith.addi %a, %a : i32  return %0 : i32 }",
    )


def test_as_mlir_opt_leaves_what_only_dead_operations_used():
    text = (
        """func.func @f(%a: i1) { %c = arith.constant 0 : i32  %0 = arith.select %a, %c, %c : i32  return }"""
    )
    becomes(text, "func.func @f(%a: i1) { %c = arith.constant 0 : i32  return }")
    becomes(text, "func.func @f(%a: i1) { return }", Dce())


# ---------------------------------------------------------------- size


def test_deep_nesting_does_not_recurse():
    depth = 3_000
    text = '"t.region"() ({\n' * depth + "%0 = arith.constant 1 : i32\n" + "}) : () -> ()\n" * depth
    module = parse_module(text, allow_unregistered=True)
    Cse().run(module)
    Dce().run(module)
    assert len(list(module.walk())) == depth + 1


def test_deep_conditions():
    depth = 2_000
    body = "scf.if %c {\n" * depth + "memref.store %v, %m[%i] : memref<2xi32>\n" + "}\n" * depth
    module = eliminated(f"func.func @f(%c: i1, %v: i32, %m: memref<2xi32>, %i: index) {{\n{body}return }}")
    assert names(module).count("scf.if") == depth
