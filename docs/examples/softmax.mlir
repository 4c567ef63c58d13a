// Softmax over the last axis of a matrix of any size.
func.func @softmax<m, n>(%x: tensor<[m, n], f32>) -> tensor<[m, n], f32> {
  %y = nn.softmax %x : (tensor<[m, n], f32>) -> tensor<[m, n], f32>
  func.return %y : tensor<[m, n], f32>
}
