// FloorDiv(float32[3,1,5], float32[4,5])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 60u) {
        let v = in0[n % 5u + n / 20u * 5u];
        let v_2 = in1[n % 20u];
        let v_3 = flush_(v);
        let v_4 = flush_(v_2);
        let v_5 = v_3 / v_4;
        let v_6 = flush_(v_5);
        let v_7 = floor(v_6);
        let v_8 = flush_(v_7);
        out0[n] = v_8;
    }
}
