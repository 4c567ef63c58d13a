// Two tensors that broadcast against each other: axes of size 1 are stretched, and which these are is known only
// when the function is called. One kernel serves (6, 6), (1, 7), (7, 1) and (0, 0) alike.
func.func @broadcast_add<a, b, c, d>(%x: tensor<[a, b], f32>, %y: tensor<[c, d], f32>)
    -> tensor<[bcast(a, c), bcast(b, d)], f32> {
  %z = nd.add %x, %y : (tensor<[a, b], f32>, tensor<[c, d], f32>) -> tensor<[bcast(a, c), bcast(b, d)], f32>
  func.return %z : tensor<[bcast(a, c), bcast(b, d)], f32>
}
