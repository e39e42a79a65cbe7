// Cumsum(float32[3,4,2], int32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 6u) {
        let base = n / 2u * 8u + n % 2u;
        var acc = 0.0f;
        for (var i = 0u; i < 4u; i++) {
            let at = base + i * 2u;
            acc = acc + in0[at];
            out0[at] = acc;
        }
    }
}
