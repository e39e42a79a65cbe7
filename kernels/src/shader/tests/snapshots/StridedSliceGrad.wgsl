// StridedSliceGrad(int32[2], int32[2], int32[2], int32[2], float32[3,3])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 30u) {
var inside = true;
var at = 0u;
let c0 = n / 5u % 6u;
let d0 = 5u - c0;
inside = inside && d0 % 2u == 0u && d0 / 2u < 3u;
at = at + d0 / 2u * 3u;
let c1 = n / 1u % 5u;
let d1 = c1 - 0u;
inside = inside && d1 % 2u == 0u && d1 / 2u < 3u;
at = at + d1 / 2u * 1u;
if (inside) { out0[n] = in0[at]; } else { out0[n] = 0.0f; }
    }
}
