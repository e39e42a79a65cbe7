// Cast(float32[3,1,5])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 15u) {
        let v = in0[n];
        out0[n] = v;
    }
}
