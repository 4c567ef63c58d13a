// RUN: stepwell opt %s --pipeline='fuse,resolve{target=cuda}' | filecheck %s
// RUN: stepwell opt %s --pipeline='fuse,resolve{target=cpu},schedule,plan' | filecheck %s --check-prefix=CPU

// Guards that the facts prove are gone: rows of 64 never need the variants for long or ragged rows.
// CHECK-LABEL: func.func @known
// CHECK-NEXT: guards = [{aligned = array<i64: 0>, contiguous = array<i64: 0>, facts = #stepwell.facts<"64*m <= 2113929216">}
// CHECK-SAME: variants = ["rows_short", {{.*}}, "generic"]
// CPU-LABEL: loop.kernel @known_softmax_rows_cpu
// CPU: loop.for
// CPU-LABEL: func.func @known
// CPU: rt.empty
// CPU: rt.choose
// CPU: rt.launch @known_softmax_rows_cpu
// CPU: rt.launch @known_softmax_generic_cpu
func.func @known<m>(%x: tensor<[m, 64], f32>) -> tensor<[m, 64], f32> {
  %y = nn.softmax %x : (tensor<[m, 64], f32>) -> tensor<[m, 64], f32>
  func.return %y : tensor<[m, 64], f32>
}

// Row lengths that are not known: each way to spread rows, whole vectors first, then peeled.
// CHECK-LABEL: func.func @unknown
// CHECK-NEXT: rt.choose
// CHECK-SAME: n mod 4 == 0
// CHECK-SAME: "rows_short", "rows_short_peeled", "rows_warp", "rows_warp_peeled", "rows_block", "rows_block_peeled", "rows_long", "rows_long_peeled", "elements", "generic"
func.func @unknown<m, n>(%x: tensor<[m, n], f32>) -> tensor<[m, n], f32> {
  %y = nn.softmax %x : (tensor<[m, n], f32>) -> tensor<[m, n], f32>
  func.return %y : tensor<[m, n], f32>
}

// What lies between counts too: 32-bit indices are guarded by the extent of the product that is summed.
// CHECK-LABEL: func.func @outer
// CHECK: m*n <= 2113929216
func.func @outer<m, n>(%x: tensor<[m, 1], f32>, %y: tensor<[n], f32>) -> tensor<[m], f32> {
  %p = nd.mul %x, %y : (tensor<[m, 1], f32>, tensor<[n], f32>) -> tensor<[m, n], f32>
  %s = nd.sum %p {axes = [1]} : (tensor<[m, n], f32>) -> tensor<[m], f32>
  func.return %s : tensor<[m], f32>
}
