// LRN(float32[1,2,3,7])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 42u) {
        const u32 channel = n % 7u;
        const u32 row = n - channel;
        f32 squares = 0.0f;
        for (u32 near = max(channel, 2u) - 2u; near < min(channel + 2u, 6u) + 1u; near++) {
            squares = squares + square_(in0[row + near]);
        }
        const f32 norm = 1.5f + 0.3f * squares;
        out0[n] = in0[n] / pow_(norm, 0.6f);
    }
}
