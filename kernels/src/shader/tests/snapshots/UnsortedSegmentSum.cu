// UnsortedSegmentSum(float32[4,3], int32[4], int32[])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const i32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 12u) {
        f32 acc = 0.0f;
        const u32 segment = n / 3u;
        for (u32 i = 0u; i < 4u; i++) {
            if (u32(in1[i]) == segment) {
                const f32 update = in0[i * 3u + n % 3u];
                acc = acc + update;
            }
        }
        out0[n] = acc;
    }
}
