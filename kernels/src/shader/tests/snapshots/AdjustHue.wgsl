// AdjustHue(float32[2,4,3], float32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 8u) {
var x = in0[3u * n];
var y = in0[3u * n + 1u];
var z = in0[3u * n + 2u];
let most = max(max(x, y), z);
let least = min(min(x, y), z);
let middle = max(min(x, y), min(max(x, y), z));
var sixth = 5.0f;
if (x < y) { sixth = 2.0f; }
if (x < y && z < x) { sixth = 1.0f; }
if (x < y && z > y) { sixth = 3.0f; }
if (!(x < y) && z < y) { sixth = 0.0f; }
if (!(x < y) && z > x) { sixth = 4.0f; }
var hue = (middle - least) / (most - least);
if (sixth == 1.0f || sixth == 3.0f || sixth == 5.0f) { hue = 1.0f - hue; }
hue = sixth + hue;
if (most == least) { hue = 0.0f; }
hue = hue + in1[0] * 6.0f;
hue = hue - 6.0f * floor(hue / 6.0f);
sixth = min(floor(hue), 5.0f);
var part = hue - sixth;
if (sixth == 1.0f || sixth == 3.0f || sixth == 5.0f) { part = 1.0f - part; }
part = least + part * (most - least);
x = least;
y = least;
z = least;
if (sixth == 0.0f) { x = most; y = part; }
if (sixth == 1.0f) { y = most; x = part; }
if (sixth == 2.0f) { y = most; z = part; }
if (sixth == 3.0f) { z = most; y = part; }
if (sixth == 4.0f) { z = most; x = part; }
if (sixth == 5.0f) { x = most; z = part; }
out0[3u * n + 0u] = x;
out0[3u * n + 1u] = y;
out0[3u * n + 2u] = z;
    }
}
