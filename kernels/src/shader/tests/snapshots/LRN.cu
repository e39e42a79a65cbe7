// LRN(float32[1,2,3,7])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 42u) {
let channel = n % 7u;
let row = n - channel;
var squares = 0.0f;
for (var j = u32(max(i32(channel) - 2, 0)); j <= min(channel + 2u, 6u); j++) {
squares = squares + square_(in0[row + j]);
}
let norm = 1.5f + 0.3f * squares;
out0[n] = in0[n] / pow_(norm, 0.6f);
    }
}
