// GatherNd(float32[3,2,2], int32[2,2])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const i32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 4u) {
        const u32 index = u32(in1[n / 2u * 2u]);
        const u32 index_2 = u32(in1[n / 2u * 2u + 1u]);
        if (index < 3u && index_2 < 2u) {
            out0[n] = in0[(index * 2u + index_2) * 2u + n % 2u];
        } else {
            out0[n] = 0.0f;
        }
    }
}
