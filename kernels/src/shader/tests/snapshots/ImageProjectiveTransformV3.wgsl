// ImageProjectiveTransformV3(float32[2,5,6,3], float32[1,8], int32[2], float32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 192u;
    if (n < 168u) {
let channel = n % 3u;
let x = n / 3u % 4u;
let y = n / 12u % 7u;
let image = n / 84u;
let t = 0u;
let u = f32(x);
let v = f32(y);
let projection = in1[t + 6u] * u + in1[t + 7u] * v + 1.0f;
var value = in2[0];
if (projection != 0.0f) {
var column = (in1[t] * u + in1[t + 1u] * v + in1[t + 2u]) / projection;
var row = (in1[t + 3u] * u + in1[t + 4u] * v + in1[t + 5u]) / projection;
let near_row = select(floor(row + 0.5f), -floor(0.5f - row), row < 0.0f);
let near_column = select(floor(column + 0.5f), -floor(0.5f - column), column < 0.0f);
var here = in2[0];
if (near_row >= 0.0f && near_row < 5.0f && near_column >= 0.0f && near_column < 6.0f) {
here = f32(in0[((image * 5u + u32(near_row)) * 6u + u32(near_column)) * 3u + channel]);
}
value = here;
}
out0[n] = value;
    }
}
