// PadV2(float32[2,3], int32[2,2], float32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 20u) {
        if (n / 4u % 5u >= 1u && n / 4u % 5u < 3u && n % 4u >= 0u && n % 4u < 3u) {
            out0[n] = in0[(n / 4u % 5u - 1u) * 3u + n % 4u];
        } else {
            out0[n] = in1[0u];
        }
    }
}
