// TensorScatterMax(float32[5,2], int32[3,1], float32[3,2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 10u) {
        var acc = in0[n];
        let row = n / 2u;
        for (var i = 0u; i < 3u; i++) {
            let index = u32(in1[i]);
            if (index < 5u && index == row) {
                let update = in2[i * 2u + n % 2u];
                acc = select(acc, update, acc < update);
            }
        }
        out0[n] = acc;
    }
}
