// ArgMax(float32[3,4], int32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 3u) {
        let base = n * 4u;
        var best = of_bits(4286578688u);
        var position = 0u;
        for (var i = 0u; i < 4u; i++) {
            let x = flush_(in0[base + i]);
            if (x > best) {
                best = x;
                position = i;
            }
        }
        out0[n] = i64(position);
    }
}
