// FakeQuantWithMinMaxArgs(float32[30])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 30u) {
let first_ = (-1.3f);
let last_ = 2.1f;
let unset = false;
let scale = (last_ - first_) / 30.0f;
let inverse = 30.0f / (last_ - first_);
let exact = 1.0f - first_ / scale;
var zero = floor(exact + 0.5f);
if (exact < 1.0f) { zero = 1.0f; }
if (exact > 31.0f) { zero = 31.0f; }
let low = (1.0f - zero) * scale;
let high = (31.0f - zero) * scale;
let x = in0[n];
let inside = max_(min_(x, high), low);
var y = floor((inside - low) * inverse - floor(-low * inverse + 0.5f) + 0.5f) * scale;
if (unset) { y = 0.0f; }
out0[n] = y;
    }
}
