// FloorDiv(float32[3,1,5], float32[4,5])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 60u) {
        const f32 v = in0[n % 5u + n / 20u * 5u];
        const f32 v_2 = in1[n % 20u];
        const f32 v_3 = flush_(v);
        const f32 v_4 = flush_(v_2);
        const f32 v_5 = v_3 / v_4;
        const f32 v_6 = flush_(v_5);
        const f32 v_7 = floor(v_6);
        const f32 v_8 = flush_(v_7);
        out0[n] = v_8;
    }
}
