// ExtractImagePatches(float32[2,6,7,2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 512u;
    if (n < 504u) {
let channel = n % 2u;
let tap = n / 2u % 6u;
let patch_ = n / 12u;
let y = patch_ / 7u % 3u * 2u + tap / 3u * 2u - 0u;
let x = patch_ % 7u * 1u + tap % 3u * 1u - 1u;
let image = patch_ / 21u;
if (y < 6u && x < 7u) {
out0[n] = in0[((image * 6u + y) * 7u + x) * 2u + channel];
} else { out0[n] = 0.0f; }
    }
}
