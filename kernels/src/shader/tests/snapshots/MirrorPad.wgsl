// MirrorPad(float32[3,2,4], int32[3,2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 128u;
    if (n < 84u) {
        var at = n / 14u % 6u;
        if (at < 2u) {
            at = 2u - at;
        } else {
            at = at - 2u;
        }
        if (at >= 3u) {
            at = 4u - at;
        }
        var at_2 = n / 7u % 2u;
        var at_3 = n % 7u;
        if (at_3 >= 4u) {
            at_3 = 6u - at_3;
        }
        out0[n] = in0[at * 8u + at_2 * 4u + at_3];
    }
}
