// The digit of each 8x8 image: a multi-layer perceptron 64 -> 64 -> 32 -> 10, the batch dynamic.
// Weights and 360 held-out images are in digits.npz (digits_train.py); digits.py runs this file.
func.func @digits<b>(%x: tensor<[b, 64], f32>,
                     %w1: tensor<[64, 64], f32>, %b1: tensor<[64], f32>,
                     %w2: tensor<[64, 32], f32>, %b2: tensor<[32], f32>,
                     %w3: tensor<[32, 10], f32>, %b3: tensor<[10], f32>) -> tensor<[b], i64> {
  %h1 = nn.matmul %x, %w1 : (tensor<[b, 64], f32>, tensor<[64, 64], f32>) -> tensor<[b, 64], f32>
  %a1 = nd.add %h1, %b1 : (tensor<[b, 64], f32>, tensor<[64], f32>) -> tensor<[b, 64], f32>
  %r1 = nd.relu %a1 : (tensor<[b, 64], f32>) -> tensor<[b, 64], f32>
  %h2 = nn.matmul %r1, %w2 : (tensor<[b, 64], f32>, tensor<[64, 32], f32>) -> tensor<[b, 32], f32>
  %a2 = nd.add %h2, %b2 : (tensor<[b, 32], f32>, tensor<[32], f32>) -> tensor<[b, 32], f32>
  %r2 = nd.relu %a2 : (tensor<[b, 32], f32>) -> tensor<[b, 32], f32>
  %h3 = nn.matmul %r2, %w3 : (tensor<[b, 32], f32>, tensor<[32, 10], f32>) -> tensor<[b, 10], f32>
  %a3 = nd.add %h3, %b3 : (tensor<[b, 10], f32>, tensor<[10], f32>) -> tensor<[b, 10], f32>
  %p = nd.argmax %a3 {axis = -1} : (tensor<[b, 10], f32>) -> tensor<[b], i64>
  func.return %p : tensor<[b], i64>
}
