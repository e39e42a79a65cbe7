// ResizeBilinear(float32[2,4,5,3], int32[2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 128u;
    if (n < 126u) {
let channel = n % 3u;
let x = n / 3u % 3u;
let y = n / 9u % 7u;
let image = n / 63u;
let py = f32(y) * 0.5714286f;
let fy = floor(py);
let hy = min(u32(max(ceil(py), 0.0f)), 3u);
let ly = min(u32(max(fy, 0.0f)), hy);
let wy = py - fy;
let px = f32(x) * 1.6666666f;
let fx = floor(px);
let hx = min(u32(max(ceil(px), 0.0f)), 4u);
let lx = min(u32(max(fx, 0.0f)), hx);
let wx = px - fx;
let left_low = f32(in0[((image * 4u + ly) * 5u + lx) * 3u + channel]);
let left_high = f32(in0[((image * 4u + hy) * 5u + lx) * 3u + channel]);
let left = select((1.0f - wy) * left_low + wy * left_high, left_low, ly == hy);
let right_low = f32(in0[((image * 4u + ly) * 5u + hx) * 3u + channel]);
let right_high = f32(in0[((image * 4u + hy) * 5u + hx) * 3u + channel]);
let right = select((1.0f - wy) * right_low + wy * right_high, right_low, ly == hy);
out0[n] = select((1.0f - wx) * left + wx * right, left, lx == hx);
    }
}
