// DepthwiseConv2dNative(float32[2,6,5,4], float32[3,2,4,2])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 480u) {
        const u32 number = n / 8u;
        const u32 feature = n % 8u;
        const u32 group = feature / 2u;
        const u32 image = number / 30u;
        const u32 y = number / 5u % 6u;
        const u32 z = number % 5u;
        f32 sum = 0.0f;
        for (u32 offset = 0u; offset < 3u; offset++) {
            const u32 position = y + offset - 1u;
            if (position < 6u) {
                for (u32 offset_2 = 0u; offset_2 < 2u; offset_2++) {
                    const u32 position_2 = z + offset_2;
                    if (position_2 < 5u) {
                        const u32 kernel_offset = offset * 2u + offset_2;
                        const u32 start = ((image * 6u + position) * 5u + position_2) * 4u + group;
                        const u32 first = kernel_offset * 8u + feature;
                        const f32 value = in0[start];
                        sum = sum + value * in1[first];
                    }
                }
            }
        }
        out0[number * 8u + feature] = sum;
    }
}
