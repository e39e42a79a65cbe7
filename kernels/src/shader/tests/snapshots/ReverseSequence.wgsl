// ReverseSequence(float32[3,4,5], int64[3])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 60u) {
let given = in1[n / 20u % 3u];
let end = min(select(0xffffffffu, u32(given), given >= i64(0) && given < i64(0x7fffffff)), 4u);
let step = n / 5u % 4u;
var source = n;
if (step < end) { source = n - step * 5u + (end - 1u - step) * 5u; }
out0[n] = in0[source];
    }
}
