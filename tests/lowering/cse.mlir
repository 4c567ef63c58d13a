// RUN: stepwell opt %s --pipeline='cse' | filecheck %s

// CHECK-LABEL: func.func @loads
func.func @loads(%m: memref<2xi32>, %i: index, %v: i32) -> i32 {
  // CHECK: memref.load
  %0 = memref.load %m[%i] : memref<2xi32>
  // CHECK-NEXT: memref.store
  %1 = memref.load %m[%i] : memref<2xi32>
  memref.store %v, %m[%i] : memref<2xi32>
  // CHECK-NEXT: memref.load
  %2 = memref.load %m[%i] : memref<2xi32>
  // CHECK-NEXT: arith.addi
  %3 = arith.addi %0, %1 : i32
  // CHECK-NEXT: arith.addi
  %4 = arith.addi %3, %2 : i32
  return %4 : i32
}
