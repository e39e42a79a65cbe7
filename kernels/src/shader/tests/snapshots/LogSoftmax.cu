// LogSoftmax(float32[3,777])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    __shared__ __align__(16) f32 parts[256];
    f32 kept0[4];
    const u32 team = blockIdx.x;
    const u32 lane = threadIdx.x;
    const u32 subgroup_lane = threadIdx.x % 32u;
    const u32 subgroup = threadIdx.x / 32u;
    const u32 subgroups = blockDim.x / 32u;
    if (team < 3u) {
let own_row = team * 1u + lane / 256u;
let row = min(own_row, 2u);
let first = lane % 256u;
let base = row * 777u;
var own1 = of_bits(4286578688u);
unroll_ for (var k = 0u; k < 4u; k++) {
let i = first + k * 256u;
if (i < 777u) {
let at = base + i;
let v0 = in0[at];
kept0[k] = v0;
own1 = max_(own1, v0);
}
}
var whole1_near = own1;
whole1_near = max_(whole1_near, subgroup_xor_(whole1_near, 16u));
whole1_near = max_(whole1_near, subgroup_xor_(whole1_near, 8u));
whole1_near = max_(whole1_near, subgroup_xor_(whole1_near, 4u));
whole1_near = max_(whole1_near, subgroup_xor_(whole1_near, 2u));
whole1_near = max_(whole1_near, subgroup_xor_(whole1_near, 1u));
if (subgroup_lane == 0u) { parts[subgroup] = whole1_near; }
barrier_();
var whole1 = parts[0];
for (var i = 1u; i < subgroups; i++) { whole1 = max_(whole1, parts[i]); }
barrier_();
let v1 = whole1;
var own5 = 0.0f;
unroll_ for (var k = 0u; k < 4u; k++) {
let i = first + k * 256u;
if (i < 777u) {
let at = base + i;
let v2 = flush_(kept0[k]);
let v3 = v2 - v1;
let v4 = exp_(v3);
own5 = own5 + v4;
}
}
var whole5_near = own5;
whole5_near = whole5_near + subgroup_xor_(whole5_near, 16u);
whole5_near = whole5_near + subgroup_xor_(whole5_near, 8u);
whole5_near = whole5_near + subgroup_xor_(whole5_near, 4u);
whole5_near = whole5_near + subgroup_xor_(whole5_near, 2u);
whole5_near = whole5_near + subgroup_xor_(whole5_near, 1u);
if (subgroup_lane == 0u) { parts[subgroup] = whole5_near; }
barrier_();
var whole5 = parts[0];
for (var i = 1u; i < subgroups; i++) { whole5 = whole5 + parts[i]; }
barrier_();
let v5 = whole5;
let v6 = log_(v5);
unroll_ for (var k = 0u; k < 4u; k++) {
let i = first + k * 256u;
if (i < 777u) {
let at = base + i;
let v2 = flush_(kept0[k]);
let v3 = v2 - v1;
let v7 = v3 - v6;
let v8 = flush_(v7);
out0[at] = v8;
}
}
    }
}
