// Cumsum(float32[3,4,2], int32[])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 6u) {
        const u32 base = n / 2u * 8u + n % 2u;
        f32 acc = 0.0f;
        for (u32 i = 0u; i < 4u; i++) {
            const u32 at = base + i * 2u;
            acc = acc + in0[at];
            out0[at] = acc;
        }
    }
}
