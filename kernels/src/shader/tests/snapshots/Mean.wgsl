// Mean(float32[3,1111], int32[1])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 3u) {
        let base = n * 1111u;
        var acc = 0.0f;
        var acc_2 = 0.0f;
        var acc_3 = 0.0f;
        var acc_4 = 0.0f;
        var acc_5 = 0.0f;
        var acc_6 = 0.0f;
        var acc_7 = 0.0f;
        var acc_8 = 0.0f;
        var acc_9 = 0.0f;
        var acc_10 = 0.0f;
        var acc_11 = 0.0f;
        var acc_12 = 0.0f;
        var acc_13 = 0.0f;
        var acc_14 = 0.0f;
        var acc_15 = 0.0f;
        var acc_16 = 0.0f;
        for (var i = 0u; i < 1104u; i = i + 16u) {
            acc = acc + in0[base + i];
            acc_2 = acc_2 + in0[base + (i + 1u)];
            acc_3 = acc_3 + in0[base + (i + 2u)];
            acc_4 = acc_4 + in0[base + (i + 3u)];
            acc_5 = acc_5 + in0[base + (i + 4u)];
            acc_6 = acc_6 + in0[base + (i + 5u)];
            acc_7 = acc_7 + in0[base + (i + 6u)];
            acc_8 = acc_8 + in0[base + (i + 7u)];
            acc_9 = acc_9 + in0[base + (i + 8u)];
            acc_10 = acc_10 + in0[base + (i + 9u)];
            acc_11 = acc_11 + in0[base + (i + 10u)];
            acc_12 = acc_12 + in0[base + (i + 11u)];
            acc_13 = acc_13 + in0[base + (i + 12u)];
            acc_14 = acc_14 + in0[base + (i + 13u)];
            acc_15 = acc_15 + in0[base + (i + 14u)];
            acc_16 = acc_16 + in0[base + (i + 15u)];
        }
        for (var i_2 = 1104u; i_2 < 1111u; i_2++) {
            acc = acc + in0[base + i_2];
        }
        acc = acc + acc_9;
        acc_2 = acc_2 + acc_10;
        acc_3 = acc_3 + acc_11;
        acc_4 = acc_4 + acc_12;
        acc_5 = acc_5 + acc_13;
        acc_6 = acc_6 + acc_14;
        acc_7 = acc_7 + acc_15;
        acc_8 = acc_8 + acc_16;
        acc = acc + acc_5;
        acc_2 = acc_2 + acc_6;
        acc_3 = acc_3 + acc_7;
        acc_4 = acc_4 + acc_8;
        acc = acc + acc_3;
        acc_2 = acc_2 + acc_4;
        acc = acc + acc_2;
        out0[n] = acc / 1111.0f;
    }
}
