// AvgPoolGrad(int32[4], float32[2,3,5,3])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 192u;
    if (n < 180u) {
let channel = n % 3u;
let place = n / 3u;
let pz = place / 1u % 5u;
let py = place / 5u % 6u;
let px = place / 30u % 1u;
let image = place / 30u;
var sum = 0.0f;
for (var tx = 0u; tx < 1u; tx++) {
let fx = px + u32(i32(0)) - tx * 1u;
if (fx >= 1u || fx % 1u != 0u) { continue; }
let wx = fx / 1u;
for (var ty = 0u; ty < 3u; ty++) {
let fy = py + u32(i32(0)) - ty * 1u;
if (fy >= 6u || fy % 2u != 0u) { continue; }
let wy = fy / 2u;
for (var tz = 0u; tz < 2u; tz++) {
let fz = pz + u32(i32(0)) - tz * 1u;
if (fz >= 5u || fz % 1u != 0u) { continue; }
let wz = fz / 1u;
let tap = (tx * 3u + ty) * 2u + tz;
sum = sum + in0[(((image * 1u + wx) * 3u + wy) * 5u + wz) * 3u + channel] / (f32(min(i32(wx * 1u) - 0 + 1, 1) - max(i32(wx * 1u) - 0, 0)) * f32(min(i32(wy * 2u) - 0 + 3, 6) - max(i32(wy * 2u) - 0, 0)) * f32(min(i32(wz * 1u) - 0 + 2, 5) - max(i32(wz * 1u) - 0, 0)));
}
}
}
out0[n] = sum;
    }
}
