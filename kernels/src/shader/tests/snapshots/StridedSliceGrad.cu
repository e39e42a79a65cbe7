// StridedSliceGrad(int32[2], int32[2], int32[2], int32[2], float32[3,3])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 30u) {
        const u32 at = n / 5u % 6u;
        const u32 far = 5u - at;
        const u32 at_2 = n % 5u;
        const u32 far_2 = at_2;
        if (far % 2u == 0u && far / 2u < 3u && far_2 % 2u == 0u && far_2 / 2u < 3u) {
            out0[n] = in0[far / 2u * 3u + far_2 / 2u];
        } else {
            out0[n] = 0.0f;
        }
    }
}
