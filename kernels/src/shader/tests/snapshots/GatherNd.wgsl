// GatherNd(float32[3,2,2], int32[2,2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 4u) {
        let index = u32(in1[n / 2u * 2u]);
        let index_2 = u32(in1[n / 2u * 2u + 1u]);
        if (index < 3u && index_2 < 2u) {
            out0[n] = in0[(index * 2u + index_2) * 2u + n % 2u];
        } else {
            out0[n] = 0.0f;
        }
    }
}
