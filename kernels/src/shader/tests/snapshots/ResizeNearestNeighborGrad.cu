// ResizeNearestNeighborGrad(float32[2,7,3,3], int32[2])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const u32* __restrict__ table0, const u32* __restrict__ table1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 120u) {
        const u32 channel = n % 3u;
        const u32 x = n / 3u % 5u;
        const u32 y = n / 15u % 4u;
        const u32 image = n / 60u;
        f32 sum = 0.0f;
        for (u32 i = select(0u, table0[max(y, 1u) - 1u], y > 0u); i < table0[y]; i++) {
            const u32 position = table0[4u + 2u * i];
            const f32 weight = of_bits(table0[4u + 2u * i + 1u]);
            f32 part = 0.0f;
            for (u32 i_2 = select(0u, table1[max(x, 1u) - 1u], x > 0u); i_2 < table1[x]; i_2++) {
                const u32 position_2 = table1[5u + 2u * i_2];
                const f32 weight_2 = of_bits(table1[5u + 2u * i_2 + 1u]);
                part = part + weight_2 * in0[((image * 7u + position) * 3u + position_2) * 3u + channel];
            }
            sum = sum + weight * part;
        }
        out0[n] = sum;
    }
}
