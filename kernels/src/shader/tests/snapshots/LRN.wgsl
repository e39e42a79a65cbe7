// LRN(float32[1,2,3,7])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 42u) {
        let channel = n % 7u;
        let row = n - channel;
        var squares = 0.0f;
        for (var near = max(channel, 2u) - 2u; near < min(channel + 2u, 6u) + 1u; near++) {
            squares = squares + square_(in0[row + near]);
        }
        let norm = 1.5f + 0.3f * squares;
        out0[n] = in0[n] / pow_(norm, 0.6f);
    }
}
