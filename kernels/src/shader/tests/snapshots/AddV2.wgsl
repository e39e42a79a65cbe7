// AddV2(float32[1049,1000], float32[1000])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 1049024u;
    if (n < 1049000u) {
        let v = in0[n];
        let v_2 = in1[n % 1000u];
        let v_3 = flush_(v);
        let v_4 = flush_(v_2);
        let v_5 = v_3 + v_4;
        let v_6 = flush_(v_5);
        out0[n] = v_6;
    }
}
