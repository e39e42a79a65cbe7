// StatelessRandomNormalV2(int32[2], uint64[1], uint64[2], int32[])
extern "C" __global__ void __launch_bounds__(256) entry(const u64* __restrict__ in0, const u64* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 33u) {
        const u64 block = u64(n / 4u);
        const u64 below = in1[0u] + block;
        const u64 above = in1[1u] + select(u64(0u), u64(1u), below < block);
        const u64 key = in0[0u];
        u32 half = u32(key & u64(4294967295u));
        u32 half_2 = u32(key >> 32u);
        u32 half_3 = u32(below & u64(4294967295u));
        u32 half_4 = u32(below >> 32u);
        u32 half_5 = u32(above & u64(4294967295u));
        u32 half_6 = u32(above >> 32u);
        for (u32 i = 0u; i < 10u; i++) {
            const u32 high = mulhi_(3528531795u, half_3);
            const u32 low = 3528531795u * half_3;
            const u32 high_2 = mulhi_(3449720151u, half_5);
            const u32 low_2 = 3449720151u * half_5;
            half_3 = (high_2 ^ half_4) ^ half;
            half_4 = low_2;
            half_5 = (high ^ half_6) ^ half_2;
            half_6 = low;
            half = half + 2654435769u;
            half_2 = half_2 + 3144134277u;
        }
        const u32 number = n % 4u;
        const f32 share = max(of_bits((select(half_3, half_5, number >= 2u) & 8388607u) | 1065353216u) - 1.0f, 1e-7f);
        const f32 radius = sqrt((-2.0f) * log_(share));
        const f32 turn = 4.0f * (of_bits((select(half_4, half_6, number >= 2u) & 8388607u) | 1065353216u) - 1.0f);
        const f32 whole = round(turn);
        const f32 part = (turn - whole) * 1.5707964f;
        const i32 quarter = (i32(whole) + i32(number % 2u)) & 3;
        const f32 size = select(sin_part_(part), cos_part_(part), (quarter & 1) == 1);
        out0[n] = select(size, -size, quarter >= 2) * radius;
    }
}
