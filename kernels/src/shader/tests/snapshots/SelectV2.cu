// SelectV2(bool[3,1,5], float32[4,5], float32[1])
extern "C" __global__ void __launch_bounds__(256) entry(const unsigned char* __restrict__ in0_, const f32* __restrict__ in1, const f32* __restrict__ in2, f32* __restrict__ out0) {
    const In_<Int_<unsigned char, u32>> in0{in0_};
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 60u) {
        const bool v = in0[n % 5u + n / 20u * 5u] != 0u;
        const f32 v_2 = in1[n % 20u];
        const f32 v_3 = in2[0u];
        const f32 v_4 = select(v_3, v_2, v);
        out0[n] = v_4;
    }
}
