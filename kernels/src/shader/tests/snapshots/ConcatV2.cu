// ConcatV2(float32[2,3], float32[2,1], int32[])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 8u) {
        const u32 row = n / 4u;
        const u32 at = n % 4u;
        if (at >= 0u && at < 3u) {
            out0[n] = in0[row * 3u + at];
        }
        if (at >= 3u && at < 4u) {
            out0[n] = in1[row + at - 3u];
        }
    }
}
