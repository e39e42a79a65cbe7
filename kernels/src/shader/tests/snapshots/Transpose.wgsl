// Transpose(float32[2,3,4], int32[3])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 24u) {
        out0[n] = in0[n % 6u * 4u + n / 6u];
    }
}
