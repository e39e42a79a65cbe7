// TopKV2(float32[2,9], int32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 18u) {
let base = n / 9u * 9u;
let place = n % 9u;
let own = in0[n];
let key = flush_(own);
var rank = 0u;
for (var i = 0u; i < 9u; i++) {
let other = flush_(in0[base + i]);
if ((other > key || (is_nan_(other) && !is_nan_(key))) || ((other == key || (is_nan_(other) && is_nan_(key))) && i < place)) { rank++; }
}
if (rank < 4u) {
let at = n / 9u * 4u + rank;
out0[at] = own;
out1[at] = i32(place);
}
    }
}
