// AddV2(float32[1049,1000], float32[1000])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    #pragma unroll
    for (u32 turn = 0u; turn < 4u; turn++) {
        const u32 n = (blockIdx.x * 4u + turn) * 256u + threadIdx.x;
        if (n < 1049000u) {
            const f32 v = in0[n];
            const f32 v_2 = in1[n % 1000u];
            const f32 v_3 = flush_(v);
            const f32 v_4 = flush_(v_2);
            const f32 v_5 = v_3 + v_4;
            const f32 v_6 = flush_(v_5);
            out0[n] = v_6;
        }
    }
}
