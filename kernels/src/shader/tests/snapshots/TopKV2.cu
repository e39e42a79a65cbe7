// TopKV2(float32[2,9], int32[])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0, i32* __restrict__ out1) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 18u) {
let base = n / 9u * 9u;
let place = n % 9u;
let own = in0[n];
let key = flush_(own);
var rank = 0u;
for (var i = 0u; i < 9u; i++) {
let other = flush_(in0[base + i]);
if ((other > key || (is_nan_(other) && !is_nan_(key))) || ((other == key || (is_nan_(other) && is_nan_(key))) && i < place)) { rank++; }
}
if (rank < 4u) {
let at = n / 9u * 4u + rank;
out0[at] = own;
out1[at] = i32(place);
}
    }
}
