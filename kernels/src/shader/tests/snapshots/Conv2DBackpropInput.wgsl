// Conv2DBackpropInput(int32[4], float32[3,3,66,65], float32[2,8,5,65])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 9536u;
    if (n < 9504u) {
let channel = n % 66u;
let group = channel / 66u;
let place = n / 66u;
let pz = place / 1u % 9u;
let py = place / 9u % 8u;
let px = place / 72u % 1u;
let image = place / 72u;
var sum = 0.0f;
for (var tx = 0u; tx < 1u; tx++) {
let fx = px + u32(i32(0)) - tx * 1u;
if (fx >= 1u || fx % 1u != 0u) { continue; }
let wx = fx / 1u;
for (var ty = 0u; ty < 3u; ty++) {
let fy = py + u32(i32(1)) - ty * 1u;
if (fy >= 8u || fy % 1u != 0u) { continue; }
let wy = fy / 1u;
for (var tz = 0u; tz < 3u; tz++) {
let fz = pz + u32(i32(1)) - tz * 1u;
if (fz >= 10u || fz % 2u != 0u) { continue; }
let wz = fz / 2u;
let tap = (tx * 3u + ty) * 3u + tz;
let window = (((image * 1u + wx) * 8u + wy) * 5u + wz);
let first = (tap * 66u + channel % 66u) * 65u + group * 65u;
for (var f = 0u; f < 65u; f++) {
sum = sum + in0[first + f] * in1[window * 65u + group * 65u + f];
}
}
}
}
out0[n] = sum;
    }
}
