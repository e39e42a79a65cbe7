// LowerBound(float32[1,8], float32[1,11])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, i32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 11u) {
        const u32 base = n / 11u * 8u;
        const f32 value = flush_(in1[n]);
        u32 low = 0u;
        u32 high = 8u;
        for (u32 i = 0u; i < 32u; i++) {
            if (low >= high) {
                break;
            }
            const u32 middle = (low + high) / 2u;
            const f32 element = flush_(in0[base + middle]);
            if (element < value) {
                low = middle + 1u;
            } else {
                high = middle;
            }
        }
        out0[n] = i32(low);
    }
}
