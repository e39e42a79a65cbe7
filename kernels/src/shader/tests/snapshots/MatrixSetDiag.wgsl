// MatrixSetDiag(float32[2,3,4], float32[2,3])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 24u) {
let r = n / 4u % 3u;
let c = n % 4u;
let d = i32(c) - i32(r);
let row = u32(max(-d, 0));
let column = u32(max(d, 0));
let len = u32(clamp(min(3 - i32(row), 4 - i32(column)), 0, 3));
let gap = 3u - len;
let start = select(0u, 0u, d > 0);
let k = min(r, c);
let matrix = n / 12u;
if (d >= 0 && d <= 0 && k < len) {
out0[n] = in0[(matrix * 1u + u32(0 - d)) * 3u + start + k];
} else { out0[n] = in1[n]; }
    }
}
