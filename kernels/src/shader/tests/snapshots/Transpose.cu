// Transpose(float32[2,3,4], int32[3])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 24u) {
        out0[n] = in0[n % 6u * 4u + n / 6u];
    }
}
