// Cast(float32[3,1,5])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 15u) {
        const f32 v = in0[n];
        out0[n] = v;
    }
}
