// ExtractImagePatches(float32[2,6,7,2])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 504u) {
let channel = n % 2u;
let tap = n / 2u % 6u;
let patch_ = n / 12u;
let y = patch_ / 7u % 3u * 2u + tap / 3u * 2u - 0u;
let x = patch_ % 7u * 1u + tap % 3u * 1u - 1u;
let image = patch_ / 21u;
if (y < 6u && x < 7u) {
out0[n] = in0[((image * 6u + y) * 7u + x) * 2u + channel];
} else { out0[n] = 0.0f; }
    }
}
