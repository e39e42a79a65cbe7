// SparseSegmentMeanGrad(float32[4,3], int32[5], int32[5], int32[])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const i32* __restrict__ in1, const i32* __restrict__ in2, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 15u) {
        const u32 row = n / 3u;
        f32 sum = 0.0f;
        for (u32 i = 0u; i < 5u; i++) {
            const u32 segment = u32(in2[i]);
            if (u32(in1[i]) == row && segment < 4u) {
                u32 count = 0u;
                for (u32 j = 0u; j < 5u; j++) {
                    if (u32(in2[j]) == segment) {
                        count = count + 1u;
                    }
                }
                sum = sum + in0[segment * 3u + n % 3u] / f32(count);
            }
        }
        out0[n] = sum;
    }
}
