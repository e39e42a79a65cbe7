// MirrorPad(float32[3,2,4], int32[3,2])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 84u) {
var source = 0u;
var at0 = n / 14u % 6u;
if (at0 < 2u) { at0 = 2u - at0; }
else { at0 = at0 - 2u; }
if (at0 >= 3u) { at0 = 4u - at0; }
source = source + at0 * 8u;
var at1 = n / 7u % 2u;
source = source + at1 * 4u;
var at2 = n / 1u % 7u;
if (at2 >= 4u) { at2 = 6u - at2; }
source = source + at2 * 1u;
out0[n] = in0[source];
    }
}
