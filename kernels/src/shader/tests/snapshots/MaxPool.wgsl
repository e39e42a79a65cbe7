// MaxPool(float32[2,6,5,3])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 128u;
    if (n < 90u) {
        let channel = n % 3u;
        let number = n / 3u;
        let image = number / 15u;
        let y = number / 5u % 3u;
        let z = number % 5u;
        var acc = (-3.4028234663852886e38f);
        var count = 0u;
        for (var offset = 0u; offset < 3u; offset++) {
            let position = y * 2u + offset;
            if (position < 6u) {
                for (var offset_2 = 0u; offset_2 < 2u; offset_2++) {
                    let position_2 = z + offset_2;
                    if (position_2 < 5u) {
                        let kernel_offset = offset * 2u + offset_2;
                        let x = in0[((image * 6u + position) * 5u + position_2) * 3u + channel];
                        acc = select(acc, x, x > acc);
                        count = count + 1u;
                    }
                }
            }
        }
        out0[n] = acc;
    }
}
