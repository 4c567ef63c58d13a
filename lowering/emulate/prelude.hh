// The host's side of ../cuda/prelude.cuh: the same names, so that the printed kernel text is the same.

#define SW_INLINE static inline __attribute__((unused))

#define SW_KERNEL(threads) extern "C" void

#define SW_GLOBAL(type) SW_EMU_POINTER(type)

#define SW_SHARED(type, name, size) const auto name = sw_emu_shared_of<type>(#name, -1, size, __LINE__)

#define SW_DYNAMIC_SHARED(type, name, offset, size) \
    const auto name = sw_emu_shared_of<type>(#name, offset, size, __LINE__)

#define SW_REGISTERS(type, name, size) SW_EMU_REGISTERS(type, name, size)

#define SW_REGISTER(type, name) SW_EMU_REGISTER(type, name)

#define SW_ALIGNED(bytes) alignas(bytes)

#define SW_UNROLL

#define SW_VECTOR

SW_INLINE int sw_thread_x() { return sw_emu_self->thread[0]; }

SW_INLINE int sw_thread_y() { return sw_emu_self->thread[1]; }

SW_INLINE int sw_thread_z() { return sw_emu_self->thread[2]; }

SW_INLINE int sw_block_x() { return sw_emu_self->block[0]; }

SW_INLINE int sw_block_y() { return sw_emu_self->block[1]; }

SW_INLINE int sw_block_z() { return sw_emu_self->block[2]; }

SW_INLINE int sw_block_dim_x() { return sw_emu_self->block_dim[0]; }

SW_INLINE int sw_block_dim_y() { return sw_emu_self->block_dim[1]; }

SW_INLINE int sw_block_dim_z() { return sw_emu_self->block_dim[2]; }

SW_INLINE int sw_grid_dim_x() { return sw_emu_self->grid_dim[0]; }

SW_INLINE int sw_grid_dim_y() { return sw_emu_self->grid_dim[1]; }

SW_INLINE int sw_grid_dim_z() { return sw_emu_self->grid_dim[2]; }

SW_INLINE int sw_thread() { return sw_emu_self->linear; }

SW_INLINE int sw_lane() { return sw_emu_self->linear & 31; }

SW_INLINE int sw_warp() { return sw_emu_self->linear >> 5; }

SW_INLINE int sw_lane_x() { return sw_emu_self->thread[0] & 31; }

SW_INLINE int sw_warp_x() { return sw_emu_self->thread[0] >> 5; }

SW_INLINE int sw_global_i32() { return (int)((unsigned)sw_block_x() * sw_block_dim_x() + sw_thread_x()); }

SW_INLINE int sw_global_count_i32() { return (int)((unsigned)sw_grid_dim_x() * sw_block_dim_x()); }

SW_INLINE long long sw_global_i64() { return (long long)sw_block_x() * sw_block_dim_x() + sw_thread_x(); }

SW_INLINE long long sw_global_count_i64() { return (long long)sw_grid_dim_x() * sw_block_dim_x(); }

SW_INLINE void sw_barrier(int line = __builtin_LINE()) { sw_emu_wait(SW_EMU_AT_BARRIER, line); }

SW_INLINE void sw_warp_barrier(int line = __builtin_LINE()) { sw_emu_wait(SW_EMU_AT_WARP_BARRIER, line); }

SW_INLINE int sw_ballot(bool vote, int line = __builtin_LINE()) { return (int)sw_emu_ballot(vote, line); }

struct sw_f16 { unsigned short bits; };

struct sw_bf16 { unsigned short bits; };

struct sw_f8e4m3fn { unsigned char bits; };

struct sw_f8e5m2 { unsigned char bits; };

SW_INLINE float sw_rsqrt_f32(float x) { return 1 / sqrtf(x); }

SW_INLINE double sw_rsqrt_f64(double x) { return 1 / sqrt(x); }

SW_INLINE float sw_bf16_to_f32(sw_bf16 x) { return sw_bits_f32((unsigned int)x.bits << 16); }

SW_INLINE sw_bf16 sw_f32_to_bf16(float x) {
    unsigned int bits = sw_bitcast_f32_i32(x);
    return sw_bits_bf16(x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
