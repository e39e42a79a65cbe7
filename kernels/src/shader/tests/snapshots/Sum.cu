// Sum(float32[3,1111], int32[1])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    __shared__ __align__(16) f32 parts[256];
    const u32 workgroup = blockIdx.x;
    const u32 local = threadIdx.x;
    const u32 subgroup_lane = threadIdx.x % 32u;
    const u32 subgroup = threadIdx.x / 32u;
    const u32 subgroups = blockDim.x / 32u;
    if (workgroup < 3u) {
        const u32 base = workgroup * 1111u;
        f32 acc = 0.0f;
        for (u32 i = local; i < 1111u; i = i + 256u) {
            acc = acc + in0[base + i];
        }
        f32 near = acc;
        near = near + subgroup_xor_(near, 16u);
        near = near + subgroup_xor_(near, 8u);
        near = near + subgroup_xor_(near, 4u);
        near = near + subgroup_xor_(near, 2u);
        near = near + subgroup_xor_(near, 1u);
        if (subgroup_lane == 0u) {
            parts[subgroup] = near;
        }
        barrier_();
        f32 whole = parts[0u];
        for (u32 i_2 = 1u; i_2 < subgroups; i_2++) {
            whole = whole + parts[i_2];
        }
        barrier_();
        if (local == 0u) {
            out0[workgroup] = whole;
        }
    }
}
