// A pre-norm transformer block: multi-head attention (4 heads of 16) from matmul and softmax, then an MLP with gelu.
// Batch b and length s are symbols: one compile serves all.
//   stepwell run docs/examples/transformer_block.mlir --dim b=2 --dim s=17,1,128,333 --check
func.func @transformer_block<b, s>(
    %x: tensor<[b, s, 64], f32>,
    %g1: tensor<[64], f32>,
    %c1: tensor<[64], f32>,
    %wq: tensor<[64, 64], f32>,
    %wk: tensor<[64, 64], f32>,
    %wv: tensor<[64, 64], f32>,
    %wo: tensor<[64, 64], f32>,
    %g2: tensor<[64], f32>,
    %c2: tensor<[64], f32>,
    %w1: tensor<[64, 256], f32>,
    %b1: tensor<[256], f32>,
    %w2: tensor<[256, 64], f32>,
    %b2: tensor<[64], f32>) -> tensor<[b, s, 64], f32> {
  %n1 = nn.layer_norm %x, %g1, %c1 {eps = 1.0e-5} : (tensor<[b, s, 64], f32>, tensor<[64], f32>, tensor<[64], f32>) -> tensor<[b, s, 64], f32>
  %q0 = nn.matmul %n1, %wq : (tensor<[b, s, 64], f32>, tensor<[64, 64], f32>) -> tensor<[b, s, 64], f32>
  %q1 = nd.reshape %q0 {shape = #stepwell.dims<[b, s, 4, 16]>} : (tensor<[b, s, 64], f32>) -> tensor<[b, s, 4, 16], f32>
  %q = nd.transpose %q1 {permutation = [0, 2, 1, 3]} : (tensor<[b, s, 4, 16], f32>) -> tensor<[b, 4, s, 16], f32>
  %k0 = nn.matmul %n1, %wk : (tensor<[b, s, 64], f32>, tensor<[64, 64], f32>) -> tensor<[b, s, 64], f32>
  %k1 = nd.reshape %k0 {shape = #stepwell.dims<[b, s, 4, 16]>} : (tensor<[b, s, 64], f32>) -> tensor<[b, s, 4, 16], f32>
  %k = nd.transpose %k1 {permutation = [0, 2, 1, 3]} : (tensor<[b, s, 4, 16], f32>) -> tensor<[b, 4, s, 16], f32>
  %v0 = nn.matmul %n1, %wv : (tensor<[b, s, 64], f32>, tensor<[64, 64], f32>) -> tensor<[b, s, 64], f32>
  %v1 = nd.reshape %v0 {shape = #stepwell.dims<[b, s, 4, 16]>} : (tensor<[b, s, 64], f32>) -> tensor<[b, s, 4, 16], f32>
  %v = nd.transpose %v1 {permutation = [0, 2, 1, 3]} : (tensor<[b, s, 4, 16], f32>) -> tensor<[b, 4, s, 16], f32>
  %scores = nn.matmul %q, %k {transpose_b = true} : (tensor<[b, 4, s, 16], f32>, tensor<[b, 4, s, 16], f32>) -> tensor<[b, 4, s, s], f32>
  %scale = nd.constant {value = 0.25} : () -> tensor<[], f32>
  %scaled = nd.mul %scores, %scale : (tensor<[b, 4, s, s], f32>, tensor<[], f32>) -> tensor<[b, 4, s, s], f32>
  %p = nn.softmax %scaled : (tensor<[b, 4, s, s], f32>) -> tensor<[b, 4, s, s], f32>
  %a0 = nn.matmul %p, %v : (tensor<[b, 4, s, s], f32>, tensor<[b, 4, s, 16], f32>) -> tensor<[b, 4, s, 16], f32>
  %a1 = nd.transpose %a0 {permutation = [0, 2, 1, 3]} : (tensor<[b, 4, s, 16], f32>) -> tensor<[b, s, 4, 16], f32>
  %a = nd.reshape %a1 {shape = #stepwell.dims<[b, s, 64]>} : (tensor<[b, s, 4, 16], f32>) -> tensor<[b, s, 64], f32>
  %o = nn.matmul %a, %wo : (tensor<[b, s, 64], f32>, tensor<[64, 64], f32>) -> tensor<[b, s, 64], f32>
  %r = nd.add %x, %o : (tensor<[b, s, 64], f32>, tensor<[b, s, 64], f32>) -> tensor<[b, s, 64], f32>
  %n2 = nn.layer_norm %r, %g2, %c2 {eps = 1.0e-5} : (tensor<[b, s, 64], f32>, tensor<[64], f32>, tensor<[64], f32>) -> tensor<[b, s, 64], f32>
  %h0 = nn.matmul %n2, %w1 : (tensor<[b, s, 64], f32>, tensor<[64, 256], f32>) -> tensor<[b, s, 256], f32>
  %h1 = nd.add %h0, %b1 : (tensor<[b, s, 256], f32>, tensor<[256], f32>) -> tensor<[b, s, 256], f32>
  %h2 = nd.gelu %h1 : (tensor<[b, s, 256], f32>) -> tensor<[b, s, 256], f32>
  %m0 = nn.matmul %h2, %w2 : (tensor<[b, s, 256], f32>, tensor<[256, 64], f32>) -> tensor<[b, s, 64], f32>
  %m1 = nd.add %m0, %b2 : (tensor<[b, s, 64], f32>, tensor<[64], f32>) -> tensor<[b, s, 64], f32>
  %y = nd.add %r, %m1 : (tensor<[b, s, 64], f32>, tensor<[b, s, 64], f32>) -> tensor<[b, s, 64], f32>
  func.return %y : tensor<[b, s, 64], f32>
}
