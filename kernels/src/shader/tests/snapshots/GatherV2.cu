// GatherV2(float32[3,4], int32[2,2], int32[])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const i32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 16u) {
        const u32 row = n / 16u;
        const u32 at = u32(in1[row * 4u + n / 4u % 4u]);
        if (at < 3u) {
            out0[n] = in0[(row * 3u + at) * 4u + n % 4u];
        } else {
            out0[n] = 0.0f;
        }
    }
}
