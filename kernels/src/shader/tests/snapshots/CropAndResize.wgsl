// CropAndResize(float32[2,6,5,3], float32[3,4], int32[3], int32[2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 192u;
    if (n < 135u) {
let channel = n % 3u;
let x = n / 3u % 5u;
let y = n / 15u % 3u;
let which = n / 45u;
let image = u32(in2[which]);
var inside = true;
let at_y = in1[which * 4u + 0u] * 5.0f + f32(y) * ((in1[which * 4u + 2u] - in1[which * 4u + 0u]) * 5.0f / 2.0f);
inside = inside && at_y >= 0.0f && at_y <= 5.0f;
let low_y = u32(clamp(floor(at_y), 0.0f, 5.0f));
let high_y = u32(clamp(ceil(at_y), 0.0f, 5.0f));
let part_y = at_y - floor(at_y);
let at_x = in1[which * 4u + 1u] * 4.0f + f32(x) * ((in1[which * 4u + 3u] - in1[which * 4u + 1u]) * 4.0f / 4.0f);
inside = inside && at_x >= 0.0f && at_x <= 4.0f;
let low_x = u32(clamp(floor(at_x), 0.0f, 4.0f));
let high_x = u32(clamp(ceil(at_x), 0.0f, 4.0f));
let part_x = at_x - floor(at_x);
var value = 0.25f;
if (inside && image < 2u) {
let a = f32(in0[((image * 6u + low_y) * 5u + low_x) * 3u + channel]);
let b = f32(in0[((image * 6u + low_y) * 5u + high_x) * 3u + channel]);
let c = f32(in0[((image * 6u + high_y) * 5u + low_x) * 3u + channel]);
let d = f32(in0[((image * 6u + high_y) * 5u + high_x) * 3u + channel]);
let top = a + (b - a) * part_x;
let bottom = c + (d - c) * part_x;
value = top + (bottom - top) * part_y;
}
out0[n] = value;
    }
}
