// Mean(float32[3,1111], int32[1])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 3u) {
let base = (n) * 1111u;
var acc0 = 0.0f;
var acc1 = 0.0f;
var acc2 = 0.0f;
var acc3 = 0.0f;
var acc4 = 0.0f;
var acc5 = 0.0f;
var acc6 = 0.0f;
var acc7 = 0.0f;
var acc8 = 0.0f;
var acc9 = 0.0f;
var acc10 = 0.0f;
var acc11 = 0.0f;
var acc12 = 0.0f;
var acc13 = 0.0f;
var acc14 = 0.0f;
var acc15 = 0.0f;
for (var i = 0u; i < 1104u; i++) {
acc0 = acc0 + in0[base + i];
i++;
acc1 = acc1 + in0[base + i];
i++;
acc2 = acc2 + in0[base + i];
i++;
acc3 = acc3 + in0[base + i];
i++;
acc4 = acc4 + in0[base + i];
i++;
acc5 = acc5 + in0[base + i];
i++;
acc6 = acc6 + in0[base + i];
i++;
acc7 = acc7 + in0[base + i];
i++;
acc8 = acc8 + in0[base + i];
i++;
acc9 = acc9 + in0[base + i];
i++;
acc10 = acc10 + in0[base + i];
i++;
acc11 = acc11 + in0[base + i];
i++;
acc12 = acc12 + in0[base + i];
i++;
acc13 = acc13 + in0[base + i];
i++;
acc14 = acc14 + in0[base + i];
i++;
acc15 = acc15 + in0[base + i];
}
for (var i = 1104u; i < 1111u; i++) {
acc0 = acc0 + in0[base + i];
}
acc0 = acc0 + acc8;
acc1 = acc1 + acc9;
acc2 = acc2 + acc10;
acc3 = acc3 + acc11;
acc4 = acc4 + acc12;
acc5 = acc5 + acc13;
acc6 = acc6 + acc14;
acc7 = acc7 + acc15;
acc0 = acc0 + acc4;
acc1 = acc1 + acc5;
acc2 = acc2 + acc6;
acc3 = acc3 + acc7;
acc0 = acc0 + acc2;
acc1 = acc1 + acc3;
acc0 = acc0 + acc1;
out0[n] = acc0 / 1111.0f;
    }
}
