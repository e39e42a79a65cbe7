// OneHot(int32[2,2], int32[], float32[], float32[])
extern "C" __global__ void __launch_bounds__(256) entry(const i32* __restrict__ in0, const f32* __restrict__ in1, const f32* __restrict__ in2, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 12u) {
        if (u32(in0[n / 3u]) == n % 3u) {
            out0[n] = in1[0u];
        } else {
            out0[n] = in2[0u];
        }
    }
}
