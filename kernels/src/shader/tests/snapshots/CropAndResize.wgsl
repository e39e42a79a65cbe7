// CropAndResize(float32[2,6,5,3], float32[3,4], int32[3], int32[2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 192u;
    if (n < 135u) {
        let channel = n % 3u;
        let x = n / 3u % 5u;
        let y = n / 15u % 3u;
        let image = n / 45u;
        let source = u32(in2[image]);
        let at = in1[image * 4u] * 5.0f + f32(y) * ((in1[image * 4u + 2u] - in1[image * 4u]) * 5.0f / 2.0f);
        let low = u32(clamp(floor(at), 0.0f, 5.0f));
        let high = u32(clamp(ceil(at), 0.0f, 5.0f));
        let part = at - floor(at);
        let at_2 = in1[image * 4u + 1u] * 4.0f + f32(x) * ((in1[image * 4u + 3u] - in1[image * 4u + 1u]) * 4.0f / 4.0f);
        let low_2 = u32(clamp(floor(at_2), 0.0f, 4.0f));
        let high_2 = u32(clamp(ceil(at_2), 0.0f, 4.0f));
        let part_2 = at_2 - floor(at_2);
        let inside = at >= 0.0f && at <= 5.0f && (at_2 >= 0.0f && at_2 <= 4.0f);
        var value = 0.25f;
        if (inside && source < 2u) {
            let corner = in0[((source * 6u + low) * 5u + low_2) * 3u + channel];
            let corner_2 = in0[((source * 6u + low) * 5u + high_2) * 3u + channel];
            let corner_3 = in0[((source * 6u + high) * 5u + low_2) * 3u + channel];
            let corner_4 = in0[((source * 6u + high) * 5u + high_2) * 3u + channel];
            let top = corner + (corner_2 - corner) * part_2;
            let bottom = corner_3 + (corner_4 - corner_3) * part_2;
            value = top + (bottom - top) * part;
        }
        out0[n] = value;
    }
}
