// LowerBound(float32[1,8], float32[1,11])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 11u) {
        let base = n / 11u * 8u;
        let value = flush_(in1[n]);
        var low = 0u;
        var high = 8u;
        for (var i = 0u; i < 32u; i++) {
            if (low >= high) {
                break;
            }
            let middle = (low + high) / 2u;
            let element = flush_(in0[base + middle]);
            if (element < value) {
                low = middle + 1u;
            } else {
                high = middle;
            }
        }
        out0[n] = i32(low);
    }
}
