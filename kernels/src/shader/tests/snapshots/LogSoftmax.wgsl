// LogSoftmax(float32[3,777])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 3u) {
let row = n;
let base = row * 777u;
var own1 = of_bits(4286578688u);
for (var i = 0u; i < 777u; i++) {
let at = base + i;
let v0 = in0[at];
own1 = max_(own1, v0);
}
let whole1 = own1;
let v1 = whole1;
var own5 = 0.0f;
for (var i = 0u; i < 777u; i++) {
let at = base + i;
let v0 = in0[at];
let v2 = flush_(v0);
let v3 = v2 - v1;
let v4 = exp_(v3);
own5 = own5 + v4;
}
let whole5 = own5;
let v5 = whole5;
let v6 = log_(v5);
for (var i = 0u; i < 777u; i++) {
let at = base + i;
let v0 = in0[at];
let v2 = flush_(v0);
let v3 = v2 - v1;
let v7 = v3 - v6;
let v8 = flush_(v7);
out0[at] = v8;
}
    }
}
