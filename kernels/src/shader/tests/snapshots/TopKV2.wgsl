// TopKV2(float32[2,9], int32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 18u) {
        let base = n / 9u * 9u;
        let key = flush_(in0[n]);
        var rank = 0u;
        for (var i = 0u; i < 9u; i++) {
            let other = flush_(in0[base + i]);
            if (other > key || (is_nan_(other) && !is_nan_(key)) || ((other == key || (is_nan_(other) && is_nan_(key))) && i < n % 9u)) {
                rank = rank + 1u;
            }
        }
        if (rank < 4u) {
            let at = n / 9u * 4u + rank;
            out0[at] = in0[n];
            out1[at] = i32(n % 9u);
        }
    }
}
