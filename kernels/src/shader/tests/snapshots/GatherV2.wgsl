// GatherV2(float32[3,4], int32[2,2], int32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 16u) {
        let row = n / 16u;
        let at = u32(in1[row * 4u + n / 4u % 4u]);
        if (at < 3u) {
            out0[n] = in0[(row * 3u + at) * 4u + n % 4u];
        } else {
            out0[n] = 0.0f;
        }
    }
}
