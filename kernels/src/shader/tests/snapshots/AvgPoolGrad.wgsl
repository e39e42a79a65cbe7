// AvgPoolGrad(int32[4], float32[2,3,5,3])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 192u;
    if (n < 180u) {
        let channel = n % 3u;
        let number = n / 3u;
        let image = number / 30u;
        let y = number / 5u % 6u;
        let z = number % 5u;
        var sum = 0.0f;
        for (var offset = 0u; offset < 3u; offset++) {
            let first = y - offset;
            let window = first / 2u;
            if (first < 6u && first % 2u == 0u) {
                for (var offset_2 = 0u; offset_2 < 2u; offset_2++) {
                    let first_2 = z - offset_2;
                    let window_2 = first_2;
                    if (first_2 < 5u) {
                        let kernel_offset = offset * 2u + offset_2;
                        let start = i32(window * 2u) - 0;
                        let start_2 = i32(window_2) - 0;
                        sum = sum + in0[((image * 3u + window) * 5u + window_2) * 3u + channel] / (f32(min(start + 3, 6) - max(start, 0)) * f32(min(start_2 + 2, 5) - max(start_2, 0)));
                    }
                }
            }
        }
        out0[n] = sum;
    }
}
