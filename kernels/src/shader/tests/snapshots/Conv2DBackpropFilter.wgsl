// Conv2DBackpropFilter(float32[2,8,9,66], int32[4], float32[2,8,5,65])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 38656u;
    if (n < 38610u) {
        let feature = n % 65u;
        let channel = feature / 65u * 66u + n / 65u % 66u;
        let y = n / 4290u / 3u % 3u;
        let z = n / 4290u % 3u;
        var sum = 0.0f;
        for (var image = 0u; image < 2u; image++) {
            for (var offset = 0u; offset < 8u; offset++) {
                let position = offset + y - 1u;
                if (position < 8u) {
                    for (var offset_2 = 0u; offset_2 < 5u; offset_2++) {
                        let position_2 = offset_2 * 2u + z - 1u;
                        if (position_2 < 9u) {
                            sum = sum + in0[((image * 8u + position) * 9u + position_2) * 66u + channel] * in1[((image * 8u + offset) * 5u + offset_2) * 65u + feature];
                        }
                    }
                }
            }
        }
        out0[n] = sum;
    }
}
