// DepthwiseConv2dNative(float32[2,6,5,4], float32[3,2,4,2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 512u;
    if (n < 480u) {
        let number = n / 8u;
        let feature = n % 8u;
        let group = feature / 2u;
        let image = number / 30u;
        let y = number / 5u % 6u;
        let z = number % 5u;
        var sum = 0.0f;
        for (var offset = 0u; offset < 3u; offset++) {
            let position = y + offset - 1u;
            if (position < 6u) {
                for (var offset_2 = 0u; offset_2 < 2u; offset_2++) {
                    let position_2 = z + offset_2;
                    if (position_2 < 5u) {
                        let kernel_offset = offset * 2u + offset_2;
                        let start = ((image * 6u + position) * 5u + position_2) * 4u + group;
                        let first = kernel_offset * 8u + feature;
                        let value = in0[start];
                        sum = sum + value * in1[first];
                    }
                }
            }
        }
        out0[number * 8u + feature] = sum;
    }
}
