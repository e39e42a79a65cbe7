// ScatterNd(int32[3,1], float32[3,2], int32[2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 10u) {
        var acc = 0.0f;
        let row = n / 2u;
        for (var i = 0u; i < 3u; i++) {
            let index = u32(in0[i]);
            if (index < 5u && index == row) {
                let update = in1[i * 2u + n % 2u];
                acc = acc + update;
            }
        }
        out0[n] = acc;
    }
}
