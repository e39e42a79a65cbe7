// Dilation2D(float32[2,6,7,3], float32[3,2,3])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 126u) {
let channel = n % 3u;
let window = n / 3u;
let wz = window / 1u % 7u;
let wy = window / 7u % 3u;
let wx = window / 21u % 1u;
let image = window / 21u;
var largest = (-3.4028234663852886e38f);
var best = 0xffffffffu;
for (var tx = 0u; tx < 1u; tx++) {
let px = wx * 1u + tx * 1u - u32(i32(0));
if (px >= 1u) { continue; }
for (var ty = 0u; ty < 3u; ty++) {
let py = wy * 2u + ty * 1u - u32(i32(0));
if (py >= 6u) { continue; }
for (var tz = 0u; tz < 2u; tz++) {
let pz = wz * 1u + tz * 2u - u32(i32(1));
if (pz >= 7u) { continue; }
let tap = (tx * 3u + ty) * 2u + tz;
let sum = in0[(((image * 1u + px) * 6u + py) * 7u + pz) * 3u + channel] + in1[tap * 3u + channel];
if (sum > largest || best == 0xffffffffu) {
if (sum > largest) { largest = sum; best = tap; }
else if (best == 0xffffffffu) { best = tap; }
}
}
}
}
out0[n] = largest;
    }
}
