// SelectV2(bool[3,1,5], float32[4,5], float32[1])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 60u) {
        let v = in0[n % 5u + n / 20u * 5u] != 0u;
        let v_2 = in1[n % 20u];
        let v_3 = in2[0u];
        let v_4 = select(v_3, v_2, v);
        out0[n] = v_4;
    }
}
