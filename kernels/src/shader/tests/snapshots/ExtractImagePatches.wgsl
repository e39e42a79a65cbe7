// ExtractImagePatches(float32[2,6,7,2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 512u;
    if (n < 504u) {
        let offset = n / 2u % 6u;
        let number = n / 12u;
        let y = number / 7u % 3u * 2u + offset / 3u * 2u;
        let x = number % 7u + offset % 3u - 1u;
        if (y < 6u && x < 7u) {
            out0[n] = in0[((number / 21u * 6u + y) * 7u + x) * 2u + n % 2u];
        } else {
            out0[n] = 0.0f;
        }
    }
}
