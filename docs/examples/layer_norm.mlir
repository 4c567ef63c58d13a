// Layer norm over the last axis of a matrix of any size, with weight and bias.
//   stepwell run docs/examples/layer_norm.mlir --dim m=100 --dim n=1023 --check
func.func @layer_norm<m, n>(%x: tensor<[m, n], f32>, %w: tensor<[n], f32>, %b: tensor<[n], f32>)
    -> tensor<[m, n], f32> {
  %y = nn.layer_norm %x, %w, %b {eps = 1.0e-5} : (tensor<[m, n], f32>, tensor<[n], f32>, tensor<[n], f32>) -> tensor<[m, n], f32>
  func.return %y : tensor<[m, n], f32>
}
