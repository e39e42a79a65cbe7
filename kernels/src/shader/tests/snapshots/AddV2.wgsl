// AddV2(float32[1049,1000], float32[1000])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 1049024u;
    if (n < 1049000u) {
let v0 = in0[n];
let v1 = in1[(n % 1000u)];
let v2 = flush_(v0);
let v3 = flush_(v1);
let v4 = v2 + v3;
let v5 = flush_(v4);
out0[n] = v5;
    }
}
