// UnsortedSegmentSum(float32[4,3], int32[4], int32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 12u) {
        var acc = 0.0f;
        let segment = n / 3u;
        for (var i = 0u; i < 4u; i++) {
            if (u32(in1[i]) == segment) {
                let update = in0[i * 3u + n % 3u];
                acc = acc + update;
            }
        }
        out0[n] = acc;
    }
}
