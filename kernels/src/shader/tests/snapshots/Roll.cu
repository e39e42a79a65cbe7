// Roll(float32[3,4,5], int32[3], int32[3])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const i32* __restrict__ in1, const i32* __restrict__ in2, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 60u) {
        u32 shift = 0u;
        u32 shift_2 = 0u;
        u32 shift_3 = 0u;
        for (u32 i = 0u; i < 3u; i++) {
            const i32 named = in2[i];
            const i32 axis = select(named, named + 3, named < 0);
            if (axis == 0) {
                shift = (shift + u32(floor_mod_i32_(in1[i], 3))) % 3u;
            }
            if (axis == 1) {
                shift_2 = (shift_2 + u32(floor_mod_i32_(in1[i], 4))) % 4u;
            }
            if (axis == 2) {
                shift_3 = (shift_3 + u32(floor_mod_i32_(in1[i], 5))) % 5u;
            }
        }
        out0[n] = in0[(n / 20u % 3u + 3u - shift) % 3u * 20u + (n / 5u % 4u + 4u - shift_2) % 4u * 5u + (n % 5u + 5u - shift_3) % 5u];
    }
}
