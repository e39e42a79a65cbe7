// MirrorPad(float32[3,2,4], int32[3,2])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 84u) {
        u32 at = n / 14u % 6u;
        if (at < 2u) {
            at = 2u - at;
        } else {
            at = at - 2u;
        }
        if (at >= 3u) {
            at = 4u - at;
        }
        u32 at_2 = n / 7u % 2u;
        u32 at_3 = n % 7u;
        if (at_3 >= 4u) {
            at_3 = 6u - at_3;
        }
        out0[n] = in0[at * 8u + at_2 * 4u + at_3];
    }
}
