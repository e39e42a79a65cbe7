// BatchMatMulV2(float16[2,1,65,20], float16[3,20,64])
extern "C" __global__ void __launch_bounds__(256) entry(const unsigned short* __restrict__ in0_, const unsigned short* __restrict__ in1_, unsigned short* __restrict__ out0_) {
    const In_<Half_> in0{in0_};
    const In_<Half_> in1{in1_};
    const Out_<Half_> out0{out0_};
    __shared__ __align__(16) f32 tile_a[1040];
    __shared__ __align__(16) f32 tile_b[1040];
    const u32 workgroup = blockIdx.x;
    const u32 local = threadIdx.x;
    if (workgroup < 12u) {
        const u32 row = workgroup % 2u * 64u;
        const u32 matrix = workgroup / 2u;
        const u32 start = matrix / 3u * 1300u;
        const u32 start_2 = matrix % 3u * 1280u;
        const u32 right = local % 16u * 4u;
        const u32 below = local / 16u * 4u;
        f32 sum = 0.0f;
        f32 sum_2 = 0.0f;
        f32 sum_3 = 0.0f;
        f32 sum_4 = 0.0f;
        f32 sum_5 = 0.0f;
        f32 sum_6 = 0.0f;
        f32 sum_7 = 0.0f;
        f32 sum_8 = 0.0f;
        f32 sum_9 = 0.0f;
        f32 sum_10 = 0.0f;
        f32 sum_11 = 0.0f;
        f32 sum_12 = 0.0f;
        f32 sum_13 = 0.0f;
        f32 sum_14 = 0.0f;
        f32 sum_15 = 0.0f;
        f32 sum_16 = 0.0f;
        for (u32 deep_start = 0u; deep_start < 20u; deep_start = deep_start + 16u) {
            for (u32 step = 0u; step < 4u; step++) {
                const u32 at = local + step * 256u;
                const u32 line = at / 16u;
                const u32 depth = at % 16u;
                const u32 along = row + line;
                const u32 deep = deep_start + depth;
                f32 x = 0.0f;
                if (along < 65u && deep < 20u) {
                    x = in0[start + along * 20u + deep];
                }
                tile_a[depth * 65u + line] = x;
            }
            for (u32 step_2 = 0u; step_2 < 4u; step_2++) {
                const u32 at_2 = local + step_2 * 256u;
                const u32 line_2 = at_2 % 64u;
                const u32 depth_2 = at_2 / 64u;
                const u32 along_2 = line_2;
                const u32 deep_2 = deep_start + depth_2;
                f32 x_2 = 0.0f;
                if (along_2 < 64u && deep_2 < 20u) {
                    x_2 = in1[start_2 + along_2 + deep_2 * 64u];
                }
                tile_b[depth_2 * 65u + line_2] = x_2;
            }
            barrier_();
            for (u32 i = 0u; i < 16u; i++) {
                const f32 x_3 = tile_a[i * 65u + below];
                const f32 x_4 = tile_a[i * 65u + below + 1u];
                const f32 x_5 = tile_a[i * 65u + below + 2u];
                const f32 x_6 = tile_a[i * 65u + below + 3u];
                const f32 y = tile_b[i * 65u + right];
                const f32 y_2 = tile_b[i * 65u + right + 1u];
                const f32 y_3 = tile_b[i * 65u + right + 2u];
                const f32 y_4 = tile_b[i * 65u + right + 3u];
                sum = sum + x_3 * y;
                sum_2 = sum_2 + x_3 * y_2;
                sum_3 = sum_3 + x_3 * y_3;
                sum_4 = sum_4 + x_3 * y_4;
                sum_5 = sum_5 + x_4 * y;
                sum_6 = sum_6 + x_4 * y_2;
                sum_7 = sum_7 + x_4 * y_3;
                sum_8 = sum_8 + x_4 * y_4;
                sum_9 = sum_9 + x_5 * y;
                sum_10 = sum_10 + x_5 * y_2;
                sum_11 = sum_11 + x_5 * y_3;
                sum_12 = sum_12 + x_5 * y_4;
                sum_13 = sum_13 + x_6 * y;
                sum_14 = sum_14 + x_6 * y_2;
                sum_15 = sum_15 + x_6 * y_3;
                sum_16 = sum_16 + x_6 * y_4;
            }
            barrier_();
        }
        const u32 first = matrix * 4160u;
        const u32 row_2 = row + below;
        const u32 column = right;
        if (row_2 < 65u && column < 64u) {
            out0[first + row_2 * 64u + column] = round_f16_(sum);
        }
        if (row_2 < 65u && column + 1u < 64u) {
            out0[first + row_2 * 64u + column + 1u] = round_f16_(sum_2);
        }
        if (row_2 < 65u && column + 2u < 64u) {
            out0[first + row_2 * 64u + column + 2u] = round_f16_(sum_3);
        }
        if (row_2 < 65u && column + 3u < 64u) {
            out0[first + row_2 * 64u + column + 3u] = round_f16_(sum_4);
        }
        if (row_2 + 1u < 65u && column < 64u) {
            out0[first + (row_2 + 1u) * 64u + column] = round_f16_(sum_5);
        }
        if (row_2 + 1u < 65u && column + 1u < 64u) {
            out0[first + (row_2 + 1u) * 64u + column + 1u] = round_f16_(sum_6);
        }
        if (row_2 + 1u < 65u && column + 2u < 64u) {
            out0[first + (row_2 + 1u) * 64u + column + 2u] = round_f16_(sum_7);
        }
        if (row_2 + 1u < 65u && column + 3u < 64u) {
            out0[first + (row_2 + 1u) * 64u + column + 3u] = round_f16_(sum_8);
        }
        if (row_2 + 2u < 65u && column < 64u) {
            out0[first + (row_2 + 2u) * 64u + column] = round_f16_(sum_9);
        }
        if (row_2 + 2u < 65u && column + 1u < 64u) {
            out0[first + (row_2 + 2u) * 64u + column + 1u] = round_f16_(sum_10);
        }
        if (row_2 + 2u < 65u && column + 2u < 64u) {
            out0[first + (row_2 + 2u) * 64u + column + 2u] = round_f16_(sum_11);
        }
        if (row_2 + 2u < 65u && column + 3u < 64u) {
            out0[first + (row_2 + 2u) * 64u + column + 3u] = round_f16_(sum_12);
        }
        if (row_2 + 3u < 65u && column < 64u) {
            out0[first + (row_2 + 3u) * 64u + column] = round_f16_(sum_13);
        }
        if (row_2 + 3u < 65u && column + 1u < 64u) {
            out0[first + (row_2 + 3u) * 64u + column + 1u] = round_f16_(sum_14);
        }
        if (row_2 + 3u < 65u && column + 2u < 64u) {
            out0[first + (row_2 + 3u) * 64u + column + 2u] = round_f16_(sum_15);
        }
        if (row_2 + 3u < 65u && column + 3u < 64u) {
            out0[first + (row_2 + 3u) * 64u + column + 3u] = round_f16_(sum_16);
        }
    }
}
