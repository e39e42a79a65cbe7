// Conv2DBackpropFilter(float32[2,8,9,66], int32[4], float32[2,8,5,65])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 38656u;
    if (n < 38610u) {
let feature = n % 65u;
let channel = feature / 65u * 66u + n / 65u % 66u;
let tap = n / 4290u;
let tz = tap % 3u;
let ty = tap / 3u % 3u;
let tx = tap / 9u;
var sum = 0.0f;
for (var image = 0u; image < 2u; image++) {
for (var wx = 0u; wx < 1u; wx++) {
let px = wx * 1u + tx * 1u - u32(i32(0));
if (px >= 1u) { continue; }
for (var wy = 0u; wy < 8u; wy++) {
let py = wy * 1u + ty * 1u - u32(i32(1));
if (py >= 8u) { continue; }
for (var wz = 0u; wz < 5u; wz++) {
let pz = wz * 2u + tz * 1u - u32(i32(1));
if (pz >= 9u) { continue; }
sum = sum + in0[(((image * 1u + px) * 8u + py) * 9u + pz) * 66u + channel] * in1[(((image * 1u + wx) * 8u + wy) * 5u + wz) * 65u + feature];
}
}
}
}
out0[n] = sum;
    }
}
