// Sum(float32[3,1111], int32[1])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    __shared__ __align__(16) f32 parts[256];
    const u32 team = blockIdx.x;
    const u32 lane = threadIdx.x;
    const u32 subgroup_lane = threadIdx.x % 32u;
    const u32 subgroup = threadIdx.x / 32u;
    const u32 subgroups = blockDim.x / 32u;
    if (team < 3u) {
let base = (team) * 1111u;
var acc = 0.0f;
for (var i = lane; i < 1111u; i = i + 256u) { acc = acc + in0[base + i]; }
var folded_near = acc;
folded_near = folded_near + subgroup_xor_(folded_near, 16u);
folded_near = folded_near + subgroup_xor_(folded_near, 8u);
folded_near = folded_near + subgroup_xor_(folded_near, 4u);
folded_near = folded_near + subgroup_xor_(folded_near, 2u);
folded_near = folded_near + subgroup_xor_(folded_near, 1u);
if (subgroup_lane == 0u) { parts[subgroup] = folded_near; }
barrier_();
var folded = parts[0];
for (var i = 1u; i < subgroups; i++) { folded = folded + parts[i]; }
barrier_();
if (lane == 0u) { out0[team] = folded; }
    }
}
