// ArgMax(float32[3,4], int32[])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, i64* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 3u) {
let base = n / 1u * 4u + n % 1u;
var best = of_bits(4286578688u);
var place = 0u;
for (var i = 0u; i < 4u; i++) {
let x = flush_(in0[base + i * 1u]);
if (x > best) { best = x; place = i; }
}
out0[n] = i64(place);
    }
}
