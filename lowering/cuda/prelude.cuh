// Blocks separated by blank lines; a source gets those that it uses. Prefix sw_ for functions and types, SW_ for
// macros. An emulator puts its own file in the place of this one.

#define SW_INLINE static __device__ __forceinline__

#define SW_KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)

#define SW_GLOBAL(type) type *__restrict__

#define SW_SHARED(type, name, size) __shared__ __align__(16) type name[size]

#define SW_DYNAMIC_SHARED(type, name, offset, size) type *const name = (type *)(sw_dynamic_shared() + (offset))

SW_INLINE unsigned char *sw_dynamic_shared() {
    extern __shared__ __align__(16) unsigned char sw_dynamic_shared_bytes[];
    return sw_dynamic_shared_bytes;
}

#define SW_REGISTERS(type, name, size) __align__(16) type name[size]

#define SW_REGISTER(type, name) type name

#define SW_ALIGNED(bytes) __align__(bytes)

#define SW_UNROLL _Pragma("unroll")

#define SW_VECTOR

SW_INLINE int sw_thread_x() { return threadIdx.x; }

SW_INLINE int sw_thread_y() { return threadIdx.y; }

SW_INLINE int sw_thread_z() { return threadIdx.z; }

SW_INLINE int sw_block_x() { return blockIdx.x; }

SW_INLINE int sw_block_y() { return blockIdx.y; }

SW_INLINE int sw_block_z() { return blockIdx.z; }

SW_INLINE int sw_block_dim_x() { return blockDim.x; }

SW_INLINE int sw_block_dim_y() { return blockDim.y; }

SW_INLINE int sw_block_dim_z() { return blockDim.z; }

SW_INLINE int sw_grid_dim_x() { return gridDim.x; }

SW_INLINE int sw_grid_dim_y() { return gridDim.y; }

SW_INLINE int sw_grid_dim_z() { return gridDim.z; }

// The position of this thread among those of its block.
SW_INLINE int sw_thread() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }

SW_INLINE int sw_lane() { return sw_thread() & 31; }

SW_INLINE int sw_warp() { return sw_thread() >> 5; }

// As these, in a block whose y and z are 1.
SW_INLINE int sw_lane_x() { return threadIdx.x & 31; }

SW_INLINE int sw_warp_x() { return threadIdx.x >> 5; }

// The position of this thread in the grid, along x, and how many there are.
SW_INLINE int sw_global_i32() { return blockIdx.x * blockDim.x + threadIdx.x; }

SW_INLINE int sw_global_count_i32() { return gridDim.x * blockDim.x; }

SW_INLINE long long sw_global_i64() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

SW_INLINE long long sw_global_count_i64() { return (long long)gridDim.x * blockDim.x; }

SW_INLINE void sw_barrier() { __syncthreads(); }

SW_INLINE void sw_warp_barrier() { __syncwarp(); }

SW_INLINE int sw_ballot(bool vote) { return (int)__ballot_sync(0xffffffffu, vote); }

// Floats of 16 and 8 bits are held as bits, and computed in f32.
struct sw_f16 { unsigned short bits; };

struct sw_bf16 { unsigned short bits; };

struct sw_f8e4m3fn { unsigned char bits; };

struct sw_f8e5m2 { unsigned char bits; };

SW_INLINE float sw_f16_to_f32(sw_f16 x) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
    return r;
}

SW_INLINE sw_f16 sw_f32_to_f16(float x) {
    sw_f16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}

SW_INLINE sw_f16 sw_f64_to_f16(double x) {
    sw_f16 r;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(r.bits) : "d"(x));
    return r;
}

SW_INLINE float sw_bf16_to_f32(sw_bf16 x) { return __uint_as_float((unsigned int)x.bits << 16); }

SW_INLINE sw_bf16 sw_f32_to_bf16(float x) {
    sw_bf16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}

// NaN where an operand is one; -0.0 below +0.0.
SW_INLINE float sw_maximumf_f32(float a, float b) {
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

SW_INLINE float sw_minimumf_f32(float a, float b) {
    float r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

SW_INLINE float sw_rsqrt_f32(float x) { return rsqrtf(x); }

SW_INLINE double sw_rsqrt_f64(double x) { return rsqrt(x); }

SW_INLINE int sw_ctpop_i32(int a) { return __popc(a); }

SW_INLINE long long sw_ctpop_i64(long long a) { return __popcll(a); }
