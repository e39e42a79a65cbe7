// TopKV2(float32[2,9], int32[])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0, i32* __restrict__ out1) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 18u) {
        const u32 base = n / 9u * 9u;
        const f32 key = flush_(in0[n]);
        u32 rank = 0u;
        for (u32 i = 0u; i < 9u; i++) {
            const f32 other = flush_(in0[base + i]);
            if (other > key || (is_nan_(other) && !is_nan_(key)) || ((other == key || (is_nan_(other) && is_nan_(key))) && i < n % 9u)) {
                rank = rank + 1u;
            }
        }
        if (rank < 4u) {
            const u32 at = n / 9u * 4u + rank;
            out0[at] = in0[n];
            out1[at] = i32(n % 9u);
        }
    }
}
