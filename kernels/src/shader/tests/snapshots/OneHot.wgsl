// OneHot(int32[2,2], int32[], float32[], float32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 12u) {
let index = in0[n / 3u * 1u + n % 1u];
if (u32(index) == n / 1u % 3u) { out0[n] = in1[0]; } else { out0[n] = in2[0]; }
    }
}
