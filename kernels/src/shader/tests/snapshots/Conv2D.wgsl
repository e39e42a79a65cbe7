// Conv2D(float32[2,13,12,5], float32[3,2,5,70])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 11776u;
    if (n < 11760u) {
        let number = n / 70u;
        let feature = n % 70u;
        let group = feature / 70u;
        let image = number / 84u;
        let y = number / 12u % 7u;
        let z = number % 12u;
        var sum = 0.0f;
        for (var offset = 0u; offset < 3u; offset++) {
            let position = y * 2u + offset - 1u;
            if (position < 13u) {
                for (var offset_2 = 0u; offset_2 < 2u; offset_2++) {
                    let position_2 = z + offset_2;
                    if (position_2 < 12u) {
                        let kernel_offset = offset * 2u + offset_2;
                        let start = ((image * 13u + position) * 12u + position_2) * 5u + group * 5u;
                        let first = kernel_offset * 5u * 70u + feature;
                        for (var channel = 0u; channel < 5u; channel++) {
                            let value = in0[start + channel];
                            sum = sum + value * in1[first + channel * 70u];
                        }
                    }
                }
            }
        }
        out0[number * 70u + feature] = sum;
    }
}
