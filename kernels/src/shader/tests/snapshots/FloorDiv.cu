// FloorDiv(float32[3,1,5], float32[4,5])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 60u) {
let v0 = in0[(n % 5u) + (n / 20u) * 5u];
let v1 = in1[(n % 20u)];
let v2 = flush_(v0);
let v3 = flush_(v1);
let v4 = v2 / v3;
let v5 = flush_(v4);
let v6 = floor(v5);
let v7 = flush_(v6);
out0[n] = v7;
    }
}
