// RUN: stepwell opt %s --pipeline='fuse' | filecheck %s

// An elementwise chain is one group; its scalar constant is copied into it.
// CHECK-LABEL: func.func @chain
// CHECK: rt.group %x {anchor = "nd.mul"}
// CHECK: nd.exp
// CHECK: nd.constant
// CHECK: nd.mul
// CHECK: rt.yield
// CHECK-NOT: rt.group
func.func @chain<n>(%x: tensor<[n], f32>) -> tensor<[n], f32> {
  %e = nd.exp %x : (tensor<[n], f32>) -> tensor<[n], f32>
  %c = nd.constant {value = 2.0} : () -> tensor<[], f32>
  %y = nd.mul %e, %c : (tensor<[n], f32>, tensor<[], f32>) -> tensor<[n], f32>
  func.return %y : tensor<[n], f32>
}

// A value that two operators use is computed once, in a group of its own.
// CHECK-LABEL: func.func @shared
// CHECK-COUNT-2: = rt.group
func.func @shared<n>(%x: tensor<[n], f32>) -> (tensor<[n], f32>, tensor<[n], f32>) {
  %e = nd.exp %x : (tensor<[n], f32>) -> tensor<[n], f32>
  %a = nd.neg %e : (tensor<[n], f32>) -> tensor<[n], f32>
  func.return %e, %a : tensor<[n], f32>, tensor<[n], f32>
}

// An epilogue joins the matrix product; a costly prologue does not.
// CHECK-LABEL: func.func @product
// CHECK: rt.group %x {anchor = "nd.exp"}
// CHECK: rt.group {{.*}} {anchor = "nn.matmul"}
// CHECK: nn.matmul
// CHECK: nd.relu
func.func @product<m, k, n>(%x: tensor<[m, k], f32>, %w: tensor<[k, n], f32>) -> tensor<[m, n], f32> {
  %e = nd.exp %x : (tensor<[m, k], f32>) -> tensor<[m, k], f32>
  %p = nn.matmul %e, %w : (tensor<[m, k], f32>, tensor<[k, n], f32>) -> tensor<[m, n], f32>
  %y = nd.relu %p : (tensor<[m, n], f32>) -> tensor<[m, n], f32>
  func.return %y : tensor<[m, n], f32>
}

// A reshape is a view; of an argument, which may be strided, of its row-major form.
// CHECK-LABEL: func.func @views
// CHECK: rt.contiguous %x
// CHECK: rt.view
func.func @views<m>(%x: tensor<[m, 4], f32>) -> tensor<[4*m], f32> {
  %y = nd.reshape %x {shape = #stepwell.dims<[4*m]>} : (tensor<[m, 4], f32>) -> tensor<[4*m], f32>
  func.return %y : tensor<[4*m], f32>
}
