// CropAndResize(float32[2,6,5,3], float32[3,4], int32[3], int32[2])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, const i32* __restrict__ in2, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 135u) {
        const u32 channel = n % 3u;
        const u32 x = n / 3u % 5u;
        const u32 y = n / 15u % 3u;
        const u32 image = n / 45u;
        const u32 source = u32(in2[image]);
        const f32 at = in1[image * 4u] * 5.0f + f32(y) * ((in1[image * 4u + 2u] - in1[image * 4u]) * 5.0f / 2.0f);
        const u32 low = u32(clamp(floor(at), 0.0f, 5.0f));
        const u32 high = u32(clamp(ceil(at), 0.0f, 5.0f));
        const f32 part = at - floor(at);
        const f32 at_2 = in1[image * 4u + 1u] * 4.0f + f32(x) * ((in1[image * 4u + 3u] - in1[image * 4u + 1u]) * 4.0f / 4.0f);
        const u32 low_2 = u32(clamp(floor(at_2), 0.0f, 4.0f));
        const u32 high_2 = u32(clamp(ceil(at_2), 0.0f, 4.0f));
        const f32 part_2 = at_2 - floor(at_2);
        const bool inside = at >= 0.0f && at <= 5.0f && (at_2 >= 0.0f && at_2 <= 4.0f);
        f32 value = 0.25f;
        if (inside && source < 2u) {
            const f32 corner = in0[((source * 6u + low) * 5u + low_2) * 3u + channel];
            const f32 corner_2 = in0[((source * 6u + low) * 5u + high_2) * 3u + channel];
            const f32 corner_3 = in0[((source * 6u + high) * 5u + low_2) * 3u + channel];
            const f32 corner_4 = in0[((source * 6u + high) * 5u + high_2) * 3u + channel];
            const f32 top = corner + (corner_2 - corner) * part_2;
            const f32 bottom = corner_3 + (corner_4 - corner_3) * part_2;
            value = top + (bottom - top) * part;
        }
        out0[n] = value;
    }
}
