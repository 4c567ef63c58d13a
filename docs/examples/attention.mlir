// Scaled dot-product attention with dynamic batch, heads, lengths and head size.
func.func @attention<b, h, s, t, d>(%q: tensor<[b, h, s, d], f32>, %k: tensor<[b, h, t, d], f32>,
                                    %v: tensor<[b, h, t, d], f32>, %scale: tensor<[], f32>)
    -> tensor<[b, h, s, d], f32> where 1 <= t {
  %scores = nn.matmul %q, %k {transpose_b = true} : (tensor<[b, h, s, d], f32>, tensor<[b, h, t, d], f32>) -> tensor<[b, h, s, t], f32>
  %scaled = nd.mul %scores, %scale : (tensor<[b, h, s, t], f32>, tensor<[], f32>) -> tensor<[b, h, s, t], f32>
  %p = nn.softmax %scaled : (tensor<[b, h, s, t], f32>) -> tensor<[b, h, s, t], f32>
  %y = nn.matmul %p, %v : (tensor<[b, h, s, t], f32>, tensor<[b, h, t, d], f32>) -> tensor<[b, h, s, d], f32>
  func.return %y : tensor<[b, h, s, d], f32>
}
