// MaxPool(float32[2,6,5,3])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 90u) {
        const u32 channel = n % 3u;
        const u32 number = n / 3u;
        const u32 image = number / 15u;
        const u32 y = number / 5u % 3u;
        const u32 z = number % 5u;
        f32 acc = (-3.4028234663852886e38f);
        u32 count = 0u;
        for (u32 offset = 0u; offset < 3u; offset++) {
            const u32 position = y * 2u + offset;
            if (position < 6u) {
                for (u32 offset_2 = 0u; offset_2 < 2u; offset_2++) {
                    const u32 position_2 = z + offset_2;
                    if (position_2 < 5u) {
                        const u32 kernel_offset = offset * 2u + offset_2;
                        const f32 x = in0[((image * 6u + position) * 5u + position_2) * 3u + channel];
                        acc = select(acc, x, x > acc);
                        count = count + 1u;
                    }
                }
            }
        }
        out0[n] = acc;
    }
}
