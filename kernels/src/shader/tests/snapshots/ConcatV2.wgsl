// ConcatV2(float32[2,3], float32[2,1], int32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 8u) {
        let row = n / 4u;
        let at = n % 4u;
        if (at >= 0u && at < 3u) {
            out0[n] = in0[row * 3u + at];
        }
        if (at >= 3u && at < 4u) {
            out0[n] = in1[row + at - 3u];
        }
    }
}
