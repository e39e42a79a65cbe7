// Conv2D(float32[2,13,12,5], float32[3,2,5,70])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 11776u;
    if (n < 11760u) {
let window = n / 70u;
let feature = n % 70u * 1u;
let group = feature / 70u;
let wz = window / 1u % 12u;
let wy = window / 12u % 7u;
let wx = window / 84u % 1u;
let image = window / 84u;
var sum0 = 0.0f;
for (var tx = 0u; tx < 1u; tx++) {
let px = wx * 1u + tx * 1u - u32(i32(0));
if (px >= 1u) { continue; }
for (var ty = 0u; ty < 3u; ty++) {
let py = wy * 2u + ty * 1u - u32(i32(1));
if (py >= 13u) { continue; }
for (var tz = 0u; tz < 2u; tz++) {
let pz = wz * 1u + tz * 1u - u32(i32(0));
if (pz >= 12u) { continue; }
let tap = (tx * 3u + ty) * 2u + tz;
let at = (((image * 1u + px) * 13u + py) * 12u + pz) * 5u + group * 5u;
let first = (tap * 5u + 0u) * 70u + feature;
for (var c = 0u; c < 5u; c++) {
let value = in0[at + c];
sum0 = sum0 + value * in1[first + c * 70u + 0u];
}
}
}
}
out0[window * 70u + feature + 0u] = sum0;
    }
}
