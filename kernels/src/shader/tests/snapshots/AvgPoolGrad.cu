// AvgPoolGrad(int32[4], float32[2,3,5,3])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 180u) {
        const u32 channel = n % 3u;
        const u32 number = n / 3u;
        const u32 image = number / 30u;
        const u32 y = number / 5u % 6u;
        const u32 z = number % 5u;
        f32 sum = 0.0f;
        for (u32 offset = 0u; offset < 3u; offset++) {
            const u32 first = y - offset;
            const u32 window = first / 2u;
            if (first < 6u && first % 2u == 0u) {
                for (u32 offset_2 = 0u; offset_2 < 2u; offset_2++) {
                    const u32 first_2 = z - offset_2;
                    const u32 window_2 = first_2;
                    if (first_2 < 5u) {
                        const u32 kernel_offset = offset * 2u + offset_2;
                        const i32 start = i32(window * 2u) - 0;
                        const i32 start_2 = i32(window_2) - 0;
                        sum = sum + in0[((image * 3u + window) * 5u + window_2) * 3u + channel] / (f32(min(start + 3, 6) - max(start, 0)) * f32(min(start_2 + 2, 5) - max(start_2, 0)));
                    }
                }
            }
        }
        out0[n] = sum;
    }
}
