// AddV2(float32[1049,1000], float32[1000])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    #pragma unroll
    for (u32 turn = 0u; turn < 4u; turn++) {
        const u32 n = (blockIdx.x * 4u + turn) * 256u + threadIdx.x;
        if (n < 1049000u) {
let v0 = in0[n];
let v1 = in1[(n % 1000u)];
let v2 = flush_(v0);
let v3 = flush_(v1);
let v4 = v2 + v3;
let v5 = flush_(v4);
out0[n] = v5;
        }
    }
}
