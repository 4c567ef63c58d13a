// RUN: stepwell emit %s --target cpu | filecheck %s
// RUN: stepwell emit %s --target cuda | filecheck %s --check-prefix=CUDA

// Extents that are not known: two levels of chunks, a register for each, and for each axis.
// CHECK: static void unknown_sum_generic_cpu(
// CHECK: float y_1 = 0.0f;
// CHECK: // chunks of 65536
// CHECK-NEXT: j_chunk < m; j_chunk += 65536
// CHECK-NEXT: end = sw_minsi_i64(j_chunk + 65536, m);
// CHECK-NEXT: float part = 0.0f;
// CHECK-NEXT: // chunks of 256
// CHECK-NEXT: j_chunk_1 = j_chunk; j_chunk_1 < end; j_chunk_1 += 256
// CHECK-NEXT: float part_1 = 0.0f;
// CHECK-NEXT: // reduce over m
// CHECK-NEXT: j = j_chunk_1; j < sw_minsi_i64(j_chunk_1 + 256, end); ++j
// CHECK-NEXT: float part_2 = 0.0f;
// CHECK: // reduce over k
// CHECK: part_4 = part_4 + x[
// CHECK: part_3 = part_3 + part_4;
// CHECK: part_2 = part_2 + part_3;
// CHECK: part_1 = part_1 + part_2;
// CHECK: part = part + part_1;
// CHECK: y_1 = y_1 + part;
// CUDA: unknown_sum_elements(
// CUDA: int end = sw_minsi_i32(j_chunk + 65536, m);
func.func @unknown<m, n, k>(%x: tensor<[m, n, k], f32>) -> tensor<[n], f32> {
  %y = nd.sum %x {axes = [0, 2]} : (tensor<[m, n, k], f32>) -> tensor<[n], f32>
  func.return %y : tensor<[n], f32>
}

// Up to 256 elements, over whatever axes, are one chain of additions.
// CHECK: static void few_sum_generic_cpu(
// CHECK: float y_1 = 0.0f;
// CHECK-NOT: chunk
// CHECK: y_1 = y_1 + x[
func.func @few<n>(%x: tensor<[16, n, 16], f32>) -> tensor<[n], f32> {
  %y = nd.sum %x {axes = [0, 2]} : (tensor<[16, n, 16], f32>) -> tensor<[n], f32>
  func.return %y : tensor<[n], f32>
}

// Up to 65536: one level of chunks.
// CHECK: static void more_sum_generic_cpu(
// CHECK-NOT: chunks of 65536
// CHECK: // chunks of 256
// CHECK: part = part + x[
// CHECK: y_1 = y_1 + part;
func.func @more<n>(%x: tensor<[4096, n], f32>) -> tensor<[n], f32> {
  %y = nd.sum %x {axes = [0]} : (tensor<[4096, n], f32>) -> tensor<[n], f32>
  func.return %y : tensor<[n], f32>
}

// Rows in vectors test for the end of a chunk instead.
// CHECK: static void rows_sum_rows_cpu(
// CHECK: // reduce over n, 16 at a time
// CHECK: if ((j & 4095) == 4080) {  // a chunk of 4096 ends
// CHECK: if ((j & 1048575) == 1048560) {  // a chunk of 1048576 ends
// CHECK: y_2 = y_2 + sw_reduce_addf_f32x16(y_1);
func.func @rows<m, n>(%x: tensor<[m, n], f32>) -> tensor<[m], f32> {
  %y = nd.sum %x {axes = [1]} : (tensor<[m, n], f32>) -> tensor<[m], f32>
  func.return %y : tensor<[m], f32>
}

// What does not round is a plain loop.
// CHECK: static void most_max_generic_cpu(
// CHECK-NOT: chunk
// CHECK: y_1 = sw_maximumf_f32(y_1, x[
func.func @most<m, n>(%x: tensor<[m, n], f32>) -> tensor<[n], f32> {
  %y = nd.max %x {axes = [0]} : (tensor<[m, n], f32>) -> tensor<[n], f32>
  func.return %y : tensor<[n], f32>
}
