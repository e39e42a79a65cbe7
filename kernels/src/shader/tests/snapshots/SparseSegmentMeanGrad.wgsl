// SparseSegmentMeanGrad(float32[4,3], int32[5], int32[5], int32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 15u) {
        let row = n / 3u;
        var sum = 0.0f;
        for (var i = 0u; i < 5u; i++) {
            let segment = u32(in2[i]);
            if (u32(in1[i]) == row && segment < 4u) {
                var count = 0u;
                for (var j = 0u; j < 5u; j++) {
                    if (u32(in2[j]) == segment) {
                        count = count + 1u;
                    }
                }
                sum = sum + in0[segment * 3u + n % 3u] / f32(count);
            }
        }
        out0[n] = sum;
    }
}
