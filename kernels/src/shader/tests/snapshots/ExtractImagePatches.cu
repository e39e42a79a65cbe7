// ExtractImagePatches(float32[2,6,7,2])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 504u) {
        const u32 offset = n / 2u % 6u;
        const u32 number = n / 12u;
        const u32 y = number / 7u % 3u * 2u + offset / 3u * 2u;
        const u32 x = number % 7u + offset % 3u - 1u;
        if (y < 6u && x < 7u) {
            out0[n] = in0[((number / 21u * 6u + y) * 7u + x) * 2u + n % 2u];
        } else {
            out0[n] = 0.0f;
        }
    }
}
