// RUN: stepwell opt %s --pipeline='simplify-loops' | filecheck %s

// What does not change leaves the loop; a loop that runs once is its body, one that never runs is gone; an integer
// division stays, because the loop may protect it from dividing by zero.
// CHECK-LABEL: loop.kernel @k
// CHECK: arith.addf %a, %a
// CHECK: loop.for %c0, %n, %c1
// CHECK-NOT: arith.addf
// CHECK: arith.divsi
// CHECK: loop.store
// CHECK-NOT: loop.for
loop.kernel @k(%y: !loop.buffer<f32, global>, %n: index, %a: f32, %d: index) attributes {target = "cpu", symbols = ["n"], block = [1, 1, 1], grid = #stepwell.dims<[1, 1, 1]>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  loop.for %0, %n, %1 {binding = "serial"} : (index, index, index) -> () {
  ^bb0(%i: index):
    loop.for %0, %1, %1 {binding = "serial"} : (index, index, index) -> () {
    ^bb0(%j: index):
      %s = arith.addf %a, %a : f32
      %q = arith.divsi %n, %d : index
      %at = arith.addi %i, %j : index
      %to = arith.addi %at, %q : index
      loop.store %s, %y[%to] : f32, !loop.buffer<f32, global>
    }
    loop.for %1, %0, %1 {binding = "serial"} : (index, index, index) -> () {
    ^bb0(%j: index):
      loop.store %a, %y[%j] : f32, !loop.buffer<f32, global>
    }
  }
}
