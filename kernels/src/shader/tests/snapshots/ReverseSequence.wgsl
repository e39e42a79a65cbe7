// ReverseSequence(float32[3,4,5], int64[3])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 60u) {
        let wide = in1[n / 20u % 3u];
        let end = min(select(4294967295u, u32(wide), wide >= i64(0) && wide < i64(2147483647)), 4u);
        let step = n / 5u % 4u;
        var source = n;
        if (step < end) {
            source = n - step * 5u + (end - 1u - step) * 5u;
        }
        out0[n] = in0[source];
    }
}
