// ImageProjectiveTransformV3(float32[2,5,6,3], float32[1,8], int32[2], float32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 192u;
    if (n < 168u) {
        let channel = n % 3u;
        let x = n / 3u % 4u;
        let y = n / 12u % 7u;
        let image = n / 84u;
        let at = f32(x);
        let at_2 = f32(y);
        let projection = in1[6u] * at + in1[7u] * at_2 + 1.0f;
        var value = in2[0u];
        if (projection != 0.0f) {
            var column = (in1[0u] * at + in1[1u] * at_2 + in1[2u]) / projection;
            var row = (in1[3u] * at + in1[4u] * at_2 + in1[5u]) / projection;
            let near = select(floor(row + 0.5f), -floor(0.5f - row), row < 0.0f);
            let near_2 = select(floor(column + 0.5f), -floor(0.5f - column), column < 0.0f);
            var read = in2[0u];
            if (near >= 0.0f && near < 5.0f && near_2 >= 0.0f && near_2 < 6.0f) {
                read = in0[((image * 5u + u32(near)) * 6u + u32(near_2)) * 3u + channel];
            }
            value = read;
        }
        out0[n] = value;
    }
}
