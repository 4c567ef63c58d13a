// RUN: stepwell opt %s --pipeline='assert-shapes,fuse,resolve,schedule,plan' | filecheck %s

// What no fact proves is checked once, before the first launch; what a fact proves is not checked.
// CHECK-LABEL: func.func @f
// CHECK-NEXT: dim.assert {message = "'nd.concat' axis 0 of %v is declared as 2*m, but is m + n {{.*}}2*m == m + n
// CHECK-NOT: dim.assert
// CHECK: rt.empty
func.func @f<m, n, k>(%x: tensor<[m], f32>, %y: tensor<[n], f32>, %z: tensor<[k], f32>) -> tensor<[2*m], f32> where k == m {
  %w = nd.add %x, %z : (tensor<[m], f32>, tensor<[k], f32>) -> tensor<[m], f32>
  %v = nd.concat %w, %y {axis = 0} : (tensor<[m], f32>, tensor<[n], f32>) -> tensor<[2*m], f32>
  func.return %v : tensor<[2*m], f32>
}
