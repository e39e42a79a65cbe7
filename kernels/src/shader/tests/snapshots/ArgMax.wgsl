// ArgMax(float32[3,4], int32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 3u) {
let base = n / 1u * 4u + n % 1u;
var best = of_bits(4286578688u);
var place = 0u;
for (var i = 0u; i < 4u; i++) {
let x = flush_(in0[base + i * 1u]);
if (x > best) { best = x; place = i; }
}
out0[n] = i64(place);
    }
}
