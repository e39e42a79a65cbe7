// LogSoftmax(float32[3,777])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, f32* __restrict__ out0) {
    __shared__ __align__(16) f32 parts[256];
    f32 kept[4];
    const u32 workgroup = blockIdx.x;
    const u32 local = threadIdx.x;
    const u32 subgroup_lane = threadIdx.x % 32u;
    const u32 subgroup = threadIdx.x / 32u;
    const u32 subgroups = blockDim.x / 32u;
    if (workgroup < 3u) {
        const u32 number = workgroup + local / 256u;
        const u32 row = min(number, 2u);
        const u32 first = local % 256u;
        const u32 base = row * 777u;
        f32 acc = of_bits(4286578688u);
        #pragma unroll
        for (u32 step = 0u; step < 4u; step++) {
            const u32 column = first + step * 256u;
            if (column < 777u) {
                const u32 at = base + column;
                const f32 v = in0[at];
                kept[step] = v;
                acc = max_(acc, v);
            }
        }
        f32 near = acc;
        near = max_(near, subgroup_xor_(near, 16u));
        near = max_(near, subgroup_xor_(near, 8u));
        near = max_(near, subgroup_xor_(near, 4u));
        near = max_(near, subgroup_xor_(near, 2u));
        near = max_(near, subgroup_xor_(near, 1u));
        if (subgroup_lane == 0u) {
            parts[subgroup] = near;
        }
        barrier_();
        f32 whole = parts[0u];
        for (u32 i = 1u; i < subgroups; i++) {
            whole = max_(whole, parts[i]);
        }
        barrier_();
        const f32 v_2 = whole;
        f32 acc_2 = 0.0f;
        #pragma unroll
        for (u32 step_2 = 0u; step_2 < 4u; step_2++) {
            const u32 column_2 = first + step_2 * 256u;
            if (column_2 < 777u) {
                const u32 at_2 = base + column_2;
                const f32 v_3 = flush_(kept[step_2]);
                const f32 v_4 = v_3 - v_2;
                const f32 v_5 = exp_(v_4);
                acc_2 = acc_2 + v_5;
            }
        }
        f32 near_2 = acc_2;
        near_2 = near_2 + subgroup_xor_(near_2, 16u);
        near_2 = near_2 + subgroup_xor_(near_2, 8u);
        near_2 = near_2 + subgroup_xor_(near_2, 4u);
        near_2 = near_2 + subgroup_xor_(near_2, 2u);
        near_2 = near_2 + subgroup_xor_(near_2, 1u);
        if (subgroup_lane == 0u) {
            parts[subgroup] = near_2;
        }
        barrier_();
        f32 whole_2 = parts[0u];
        for (u32 i_2 = 1u; i_2 < subgroups; i_2++) {
            whole_2 = whole_2 + parts[i_2];
        }
        barrier_();
        const f32 v_6 = whole_2;
        const f32 v_7 = flush_(v_6);
        const f32 v_8 = log_(v_7);
        #pragma unroll
        for (u32 step_3 = 0u; step_3 < 4u; step_3++) {
            const u32 column_3 = first + step_3 * 256u;
            if (column_3 < 777u) {
                const u32 at_3 = base + column_3;
                const f32 v_9 = flush_(kept[step_3]);
                const f32 v_10 = v_9 - v_2;
                const f32 v_11 = v_10 - v_8;
                const f32 v_12 = flush_(v_11);
                out0[at_3] = v_12;
            }
        }
    }
}
