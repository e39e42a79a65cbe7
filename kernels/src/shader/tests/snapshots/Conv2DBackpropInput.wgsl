// Conv2DBackpropInput(int32[4], float32[3,3,66,65], float32[2,8,5,65])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 9536u;
    if (n < 9504u) {
        let channel = n % 66u;
        let group = channel / 66u;
        let image = n / 66u / 72u;
        let y = n / 66u / 9u % 8u;
        let z = n / 66u % 9u;
        var sum = 0.0f;
        for (var offset = 0u; offset < 3u; offset++) {
            let first = y + 1u - offset;
            let window = first;
            if (first < 8u) {
                for (var offset_2 = 0u; offset_2 < 3u; offset_2++) {
                    let first_2 = z + 1u - offset_2;
                    let window_2 = first_2 / 2u;
                    if (first_2 < 10u && first_2 % 2u == 0u) {
                        let kernel_offset = offset * 3u + offset_2;
                        let number = (image * 8u + window) * 5u + window_2;
                        let first_3 = (kernel_offset * 66u + channel % 66u) * 65u + group * 65u;
                        for (var feature = 0u; feature < 65u; feature++) {
                            sum = sum + in0[first_3 + feature] * in1[number * 65u + group * 65u + feature];
                        }
                    }
                }
            }
        }
        out0[n] = sum;
    }
}
