// MaxPoolWithArgmax(float32[2,6,5,3])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0, i64* __restrict__ out1) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 90u) {
let channel = n % 3u;
let window = n / 3u;
let wz = window / 1u % 5u;
let wy = window / 5u % 3u;
let wx = window / 15u % 1u;
let image = window / 15u;
var found = false;
var largest = 0.0f;
var place = image * 90u;
for (var tx = 0u; tx < 1u; tx++) {
let px = wx * 1u + tx * 1u - u32(i32(0));
if (px >= 1u) { continue; }
for (var ty = 0u; ty < 3u; ty++) {
let py = wy * 2u + ty * 1u - u32(i32(0));
if (py >= 6u) { continue; }
for (var tz = 0u; tz < 2u; tz++) {
let pz = wz * 1u + tz * 1u - u32(i32(0));
if (pz >= 5u) { continue; }
let tap = (tx * 3u + ty) * 2u + tz;
let at = (((image * 1u + px) * 6u + py) * 5u + pz) * 3u + channel;
let x = in0[at];
if (!found || x > largest) {
found = true;
largest = x;
place = at;
}
}
}
}
out0[n] = largest;
out1[n] = i64(place - image * 90u);
    }
}
