// Dilation2D(float32[2,6,7,3], float32[3,2,3])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 128u;
    if (n < 126u) {
        let channel = n % 3u;
        let number = n / 3u;
        let image = number / 21u;
        let y = number / 7u % 3u;
        let z = number % 7u;
        var largest = (-3.4028234663852886e38f);
        var best = 4294967295u;
        for (var offset = 0u; offset < 3u; offset++) {
            let position = y * 2u + offset;
            if (position < 6u) {
                for (var offset_2 = 0u; offset_2 < 2u; offset_2++) {
                    let position_2 = z + offset_2 * 2u - 1u;
                    if (position_2 < 7u) {
                        let kernel_offset = offset * 2u + offset_2;
                        let sum = in0[((image * 6u + position) * 7u + position_2) * 3u + channel] + in1[kernel_offset * 3u + channel];
                        if (sum > largest || best == 4294967295u) {
                            if (sum > largest) {
                                largest = sum;
                            }
                            best = kernel_offset;
                        }
                    }
                }
            }
        }
        out0[n] = largest;
    }
}
