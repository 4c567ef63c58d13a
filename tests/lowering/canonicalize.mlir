// RUN: stepwell opt %s --pipeline='canonicalize' | filecheck %s

// CHECK-LABEL: func.func @identities
func.func @identities(%a: i32, %x: f32) -> (i32, f32) {
  %zero = arith.constant 0 : i32
  %fzero = arith.constant 0.0 : f32
  // x * 0.0 stays: it is NaN for infinities
  // CHECK: %[[R:.*]] = arith.mulf %x, %{{.*}} : f32
  %0 = arith.addi %zero, %a : i32
  %1 = arith.mulf %x, %fzero : f32
  // CHECK-NEXT: return %a, %[[R]] : i32, f32
  return %0, %1 : i32, f32
}
