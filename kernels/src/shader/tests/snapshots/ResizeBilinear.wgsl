// ResizeBilinear(float32[2,4,5,3], int32[2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 128u;
    if (n < 126u) {
        let channel = n % 3u;
        let x = n / 3u % 3u;
        let y = n / 9u % 7u;
        let image = n / 63u;
        let position = f32(y) * 0.5714286f;
        let first = floor(position);
        let high = min(u32(max(ceil(position), 0.0f)), 3u);
        let low = min(u32(max(first, 0.0f)), high);
        let weight = position - first;
        let position_2 = f32(x) * 1.6666666f;
        let first_2 = floor(position_2);
        let high_2 = min(u32(max(ceil(position_2), 0.0f)), 4u);
        let low_2 = min(u32(max(first_2, 0.0f)), high_2);
        let weight_2 = position_2 - first_2;
        let value = in0[((image * 4u + low) * 5u + low_2) * 3u + channel];
        let value_2 = in0[((image * 4u + high) * 5u + low_2) * 3u + channel];
        let side = select((1.0f - weight) * value + weight * value_2, value, low == high);
        let value_3 = in0[((image * 4u + low) * 5u + high_2) * 3u + channel];
        let value_4 = in0[((image * 4u + high) * 5u + high_2) * 3u + channel];
        let side_2 = select((1.0f - weight) * value_3 + weight * value_4, value_3, low == high);
        out0[n] = select((1.0f - weight_2) * side + weight_2 * side_2, side, low_2 == high_2);
    }
}
