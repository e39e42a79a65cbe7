// LogSoftmax(float32[3,777])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 3u) {
        let base = n * 777u;
        var acc = of_bits(4286578688u);
        for (var column = 0u; column < 777u; column++) {
            let at = base + column;
            let v = in0[at];
            acc = max_(acc, v);
        }
        let v_2 = acc;
        var acc_2 = 0.0f;
        for (var column_2 = 0u; column_2 < 777u; column_2++) {
            let at_2 = base + column_2;
            let v_3 = in0[at_2];
            let v_4 = flush_(v_3);
            let v_5 = v_4 - v_2;
            let v_6 = exp_(v_5);
            acc_2 = acc_2 + v_6;
        }
        let v_7 = acc_2;
        let v_8 = flush_(v_7);
        let v_9 = log_(v_8);
        for (var column_3 = 0u; column_3 < 777u; column_3++) {
            let at_3 = base + column_3;
            let v_10 = in0[at_3];
            let v_11 = flush_(v_10);
            let v_12 = v_11 - v_2;
            let v_13 = v_12 - v_9;
            let v_14 = flush_(v_13);
            out0[at_3] = v_14;
        }
    }
}
