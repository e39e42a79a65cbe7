// ResizeBilinear(float32[2,4,5,3], int32[2])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 126u) {
        const u32 channel = n % 3u;
        const u32 x = n / 3u % 3u;
        const u32 y = n / 9u % 7u;
        const u32 image = n / 63u;
        const f32 position = f32(y) * 0.5714286f;
        const f32 first = floor(position);
        const u32 high = min(u32(max(ceil(position), 0.0f)), 3u);
        const u32 low = min(u32(max(first, 0.0f)), high);
        const f32 weight = position - first;
        const f32 position_2 = f32(x) * 1.6666666f;
        const f32 first_2 = floor(position_2);
        const u32 high_2 = min(u32(max(ceil(position_2), 0.0f)), 4u);
        const u32 low_2 = min(u32(max(first_2, 0.0f)), high_2);
        const f32 weight_2 = position_2 - first_2;
        const f32 value = in0[((image * 4u + low) * 5u + low_2) * 3u + channel];
        const f32 value_2 = in0[((image * 4u + high) * 5u + low_2) * 3u + channel];
        const f32 side = select((1.0f - weight) * value + weight * value_2, value, low == high);
        const f32 value_3 = in0[((image * 4u + low) * 5u + high_2) * 3u + channel];
        const f32 value_4 = in0[((image * 4u + high) * 5u + high_2) * 3u + channel];
        const f32 side_2 = select((1.0f - weight) * value_3 + weight * value_4, value_3, low == high);
        out0[n] = select((1.0f - weight_2) * side + weight_2 * side_2, side, low_2 == high_2);
    }
}
