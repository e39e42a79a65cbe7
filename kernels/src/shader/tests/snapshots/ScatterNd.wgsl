// ScatterNd(int32[3,1], float32[3,2], int32[2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 10u) {
let place = n / 2u;
var acc = 0.0f;
for (var i = 0u; i < 3u; i++) {
var at = 0u;
var inside = true;
let index0 = in0[i * 1u + 0u];
let at0 = u32(index0);
inside = inside && at0 < 5u;
at = at * 5u + at0;
if (inside && at == place) { acc = acc + in1[i * 2u + n % 2u];
 }
}
out0[n] = acc;
    }
}
