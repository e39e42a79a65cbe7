// UnsortedSegmentSum(float32[4,3], int32[4], int32[])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const i32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 12u) {
let segment = n / 3u;
var acc = 0.0f;
for (var i = 0u; i < 4u; i++) {
let id = in1[i];
if (u32(id) == segment) { acc = acc + in0[i * 3u + n % 3u];
 }
}
out0[n] = acc;
    }
}
