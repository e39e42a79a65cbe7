// ScatterNd(int32[3,1], float32[3,2], int32[2])
extern "C" __global__ void __launch_bounds__(256) entry(const i32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 10u) {
let place = n / 2u;
var acc = 0.0f;
for (var i = 0u; i < 3u; i++) {
var at = 0u;
var inside = true;
let index0 = in0[i * 1u + 0u];
let at0 = u32(index0);
inside = inside && at0 < 5u;
at = at * 5u + at0;
if (inside && at == place) { acc = acc + in1[i * 2u + n % 2u];
 }
}
out0[n] = acc;
    }
}
