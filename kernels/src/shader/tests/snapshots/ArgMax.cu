// ArgMax(float32[3,4], int32[])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, i64* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 3u) {
        const u32 base = n * 4u;
        f32 best = of_bits(4286578688u);
        u32 position = 0u;
        for (u32 i = 0u; i < 4u; i++) {
            const f32 x = flush_(in0[base + i]);
            if (x > best) {
                best = x;
                position = i;
            }
        }
        out0[n] = i64(position);
    }
}
