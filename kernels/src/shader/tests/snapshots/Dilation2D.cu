// Dilation2D(float32[2,6,7,3], float32[3,2,3])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 126u) {
        const u32 channel = n % 3u;
        const u32 number = n / 3u;
        const u32 image = number / 21u;
        const u32 y = number / 7u % 3u;
        const u32 z = number % 7u;
        f32 largest = (-3.4028234663852886e38f);
        u32 best = 4294967295u;
        for (u32 offset = 0u; offset < 3u; offset++) {
            const u32 position = y * 2u + offset;
            if (position < 6u) {
                for (u32 offset_2 = 0u; offset_2 < 2u; offset_2++) {
                    const u32 position_2 = z + offset_2 * 2u - 1u;
                    if (position_2 < 7u) {
                        const u32 kernel_offset = offset * 2u + offset_2;
                        const f32 sum = in0[((image * 6u + position) * 7u + position_2) * 3u + channel] + in1[kernel_offset * 3u + channel];
                        if (sum > largest || best == 4294967295u) {
                            if (sum > largest) {
                                largest = sum;
                            }
                            best = kernel_offset;
                        }
                    }
                }
            }
        }
        out0[n] = largest;
    }
}
