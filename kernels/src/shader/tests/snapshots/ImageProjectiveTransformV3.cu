// ImageProjectiveTransformV3(float32[2,5,6,3], float32[1,8], int32[2], float32[])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, const f32* __restrict__ in2, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 168u) {
        const u32 channel = n % 3u;
        const u32 x = n / 3u % 4u;
        const u32 y = n / 12u % 7u;
        const u32 image = n / 84u;
        const f32 at = f32(x);
        const f32 at_2 = f32(y);
        const f32 projection = in1[6u] * at + in1[7u] * at_2 + 1.0f;
        f32 value = in2[0u];
        if (projection != 0.0f) {
            f32 column = (in1[0u] * at + in1[1u] * at_2 + in1[2u]) / projection;
            f32 row = (in1[3u] * at + in1[4u] * at_2 + in1[5u]) / projection;
            const f32 near = select(floor(row + 0.5f), -floor(0.5f - row), row < 0.0f);
            const f32 near_2 = select(floor(column + 0.5f), -floor(0.5f - column), column < 0.0f);
            f32 read = in2[0u];
            if (near >= 0.0f && near < 5.0f && near_2 >= 0.0f && near_2 < 6.0f) {
                read = in0[((image * 5u + u32(near)) * 6u + u32(near_2)) * 3u + channel];
            }
            value = read;
        }
        out0[n] = value;
    }
}
