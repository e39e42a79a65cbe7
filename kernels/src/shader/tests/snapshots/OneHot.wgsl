// OneHot(int32[2,2], int32[], float32[], float32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 12u) {
        if (u32(in0[n / 3u]) == n % 3u) {
            out0[n] = in1[0u];
        } else {
            out0[n] = in2[0u];
        }
    }
}
