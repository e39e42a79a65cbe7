// DepthwiseConv2dNative(float32[2,6,5,4], float32[3,2,4,2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 512u;
    if (n < 480u) {
let window = n / 8u;
let feature = n % 8u * 1u;
let group = feature / 2u;
let wz = window / 1u % 5u;
let wy = window / 5u % 6u;
let wx = window / 30u % 1u;
let image = window / 30u;
var sum0 = 0.0f;
for (var tx = 0u; tx < 1u; tx++) {
let px = wx * 1u + tx * 1u - u32(i32(0));
if (px >= 1u) { continue; }
for (var ty = 0u; ty < 3u; ty++) {
let py = wy * 1u + ty * 1u - u32(i32(1));
if (py >= 6u) { continue; }
for (var tz = 0u; tz < 2u; tz++) {
let pz = wz * 1u + tz * 1u - u32(i32(0));
if (pz >= 5u) { continue; }
let tap = (tx * 3u + ty) * 2u + tz;
let at = (((image * 1u + px) * 6u + py) * 5u + pz) * 4u + group * 1u;
let first = (tap * 1u + 0u) * 8u + feature;
for (var c = 0u; c < 1u; c++) {
let value = in0[at + c];
sum0 = sum0 + value * in1[first + c * 8u + 0u];
}
}
}
}
out0[window * 8u + feature + 0u] = sum0;
    }
}
