// StridedSliceGrad(int32[2], int32[2], int32[2], int32[2], float32[3,3])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 30u) {
var inside = true;
var at = 0u;
let c0 = n / 5u % 6u;
let d0 = 5u - c0;
inside = inside && d0 % 2u == 0u && d0 / 2u < 3u;
at = at + d0 / 2u * 3u;
let c1 = n / 1u % 5u;
let d1 = c1 - 0u;
inside = inside && d1 % 2u == 0u && d1 / 2u < 3u;
at = at + d1 / 2u * 1u;
if (inside) { out0[n] = in0[at]; } else { out0[n] = 0.0f; }
    }
}
