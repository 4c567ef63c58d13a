// A two-layer perceptron with gelu: batch, input, hidden and output sizes are all symbols.
func.func @mlp<b, i, h, o>(%x: tensor<[b, i], f32>, %w1: tensor<[i, h], f32>, %b1: tensor<[h], f32>,
                           %w2: tensor<[h, o], f32>, %b2: tensor<[o], f32>) -> tensor<[b, o], f32> {
  %0 = nn.matmul %x, %w1 : (tensor<[b, i], f32>, tensor<[i, h], f32>) -> tensor<[b, h], f32>
  %1 = nd.add %0, %b1 : (tensor<[b, h], f32>, tensor<[h], f32>) -> tensor<[b, h], f32>
  %2 = nd.gelu %1 : (tensor<[b, h], f32>) -> tensor<[b, h], f32>
  %3 = nn.matmul %2, %w2 : (tensor<[b, h], f32>, tensor<[h, o], f32>) -> tensor<[b, o], f32>
  %y = nd.add %3, %b2 : (tensor<[b, o], f32>, tensor<[o], f32>) -> tensor<[b, o], f32>
  func.return %y : tensor<[b, o], f32>
}
