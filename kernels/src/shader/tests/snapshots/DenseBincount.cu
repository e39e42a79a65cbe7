// DenseBincount(int32[6], int32[], float32[6])
extern "C" __global__ void __launch_bounds__(256) entry(const i32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 5u) {
        const u32 bin = n % 5u;
        const u32 first = n / 5u * 6u;
        f32 sum = 0.0f;
        for (u32 i = 0u; i < 6u; i++) {
            const u32 at = first + i;
            if (u32(in0[at]) == bin) {
                sum = 1.0f;
            }
        }
        out0[n] = sum;
    }
}
