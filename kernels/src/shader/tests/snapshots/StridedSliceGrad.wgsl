// StridedSliceGrad(int32[2], int32[2], int32[2], int32[2], float32[3,3])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 30u) {
        let at = n / 5u % 6u;
        let far = 5u - at;
        let at_2 = n % 5u;
        let far_2 = at_2;
        if (far % 2u == 0u && far / 2u < 3u && far_2 % 2u == 0u && far_2 / 2u < 3u) {
            out0[n] = in0[far / 2u * 3u + far_2 / 2u];
        } else {
            out0[n] = 0.0f;
        }
    }
}
