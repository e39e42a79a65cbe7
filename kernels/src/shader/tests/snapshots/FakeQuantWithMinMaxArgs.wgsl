// FakeQuantWithMinMaxArgs(float32[30])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 30u) {
        var first = (-1.3f);
        var last = 2.1f;
        let scale = (last - first) / 30.0f;
        let inverse = 30.0f / (last - first);
        let exact = 1.0f - first / scale;
        var zero = floor(exact + 0.5f);
        if (exact < 1.0f) {
            zero = 1.0f;
        }
        if (exact > 31.0f) {
            zero = 31.0f;
        }
        let low = (1.0f - zero) * scale;
        let high = (31.0f - zero) * scale;
        let x = in0[n];
        let nearest = floor((max_(min_(x, high), low) - low) * inverse - floor(-low * inverse + 0.5f) + 0.5f) * scale;
        out0[n] = select(nearest, 0.0f, false);
    }
}
