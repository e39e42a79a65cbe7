// Conv2DBackpropFilter(float32[2,8,9,66], int32[4], float32[2,8,5,65])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    __shared__ __align__(16) f32 tile_a[1040];
    __shared__ __align__(16) f32 tile_b[1040];
    const u32 workgroup = blockIdx.x;
    const u32 local = threadIdx.x;
    if (workgroup < 20u) {
        const u32 column = workgroup % 2u * 64u;
        const u32 row = workgroup / 2u % 10u * 64u;
        const u32 matrix = workgroup / 20u;
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
        for (u32 deep_start = 0u; deep_start < 80u; deep_start = deep_start + 16u) {
            for (u32 step = 0u; step < 4u; step++) {
                const u32 at = local + step * 256u;
                const u32 line = at % 64u;
                const u32 depth = at / 64u;
                const u32 along = row + line;
                const u32 deep = deep_start + depth;
                f32 x = 0.0f;
                if (along < 594u && deep < 80u) {
                    const u32 y = along / 66u / 3u % 3u;
                    const u32 z = along / 66u % 3u;
                    const u32 image = deep / 40u;
                    const u32 y_2 = deep / 5u % 8u;
                    const u32 z_2 = deep % 5u;
                    const u32 position = y_2 + y - 1u;
                    const u32 position_2 = z_2 * 2u + z - 1u;
                    if (position < 8u && position_2 < 9u) {
                        x = in0[((image * 8u + position) * 9u + position_2) * 66u + along % 66u];
                    }
                }
                tile_a[depth * 65u + line] = x;
            }
            for (u32 step_2 = 0u; step_2 < 4u; step_2++) {
                const u32 at_2 = local + step_2 * 256u;
                const u32 line_2 = at_2 % 64u;
                const u32 depth_2 = at_2 / 64u;
                const u32 along_2 = column + line_2;
                const u32 deep_2 = deep_start + depth_2;
                f32 x_2 = 0.0f;
                if (along_2 < 65u && deep_2 < 80u) {
                    x_2 = in1[deep_2 * 65u + along_2];
                }
                tile_b[depth_2 * 65u + line_2] = x_2;
            }
            barrier_();
            for (u32 i = 0u; i < 16u; i++) {
                const f32 x_3 = tile_a[i * 65u + below];
                const f32 x_4 = tile_a[i * 65u + below + 1u];
                const f32 x_5 = tile_a[i * 65u + below + 2u];
                const f32 x_6 = tile_a[i * 65u + below + 3u];
                const f32 y_3 = tile_b[i * 65u + right];
                const f32 y_4 = tile_b[i * 65u + right + 1u];
                const f32 y_5 = tile_b[i * 65u + right + 2u];
                const f32 y_6 = tile_b[i * 65u + right + 3u];
                sum = sum + x_3 * y_3;
                sum_2 = sum_2 + x_3 * y_4;
                sum_3 = sum_3 + x_3 * y_5;
                sum_4 = sum_4 + x_3 * y_6;
                sum_5 = sum_5 + x_4 * y_3;
                sum_6 = sum_6 + x_4 * y_4;
                sum_7 = sum_7 + x_4 * y_5;
                sum_8 = sum_8 + x_4 * y_6;
                sum_9 = sum_9 + x_5 * y_3;
                sum_10 = sum_10 + x_5 * y_4;
                sum_11 = sum_11 + x_5 * y_5;
                sum_12 = sum_12 + x_5 * y_6;
                sum_13 = sum_13 + x_6 * y_3;
                sum_14 = sum_14 + x_6 * y_4;
                sum_15 = sum_15 + x_6 * y_5;
                sum_16 = sum_16 + x_6 * y_6;
            }
            barrier_();
        }
        const u32 first = matrix * 38610u;
        const u32 row_2 = row + below;
        const u32 column_2 = column + right;
        if (row_2 < 594u && column_2 < 65u) {
            out0[first + row_2 * 65u + column_2] = sum;
        }
        if (row_2 < 594u && column_2 + 1u < 65u) {
            out0[first + row_2 * 65u + column_2 + 1u] = sum_2;
        }
        if (row_2 < 594u && column_2 + 2u < 65u) {
            out0[first + row_2 * 65u + column_2 + 2u] = sum_3;
        }
        if (row_2 < 594u && column_2 + 3u < 65u) {
            out0[first + row_2 * 65u + column_2 + 3u] = sum_4;
        }
        if (row_2 + 1u < 594u && column_2 < 65u) {
            out0[first + (row_2 + 1u) * 65u + column_2] = sum_5;
        }
        if (row_2 + 1u < 594u && column_2 + 1u < 65u) {
            out0[first + (row_2 + 1u) * 65u + column_2 + 1u] = sum_6;
        }
        if (row_2 + 1u < 594u && column_2 + 2u < 65u) {
            out0[first + (row_2 + 1u) * 65u + column_2 + 2u] = sum_7;
        }
        if (row_2 + 1u < 594u && column_2 + 3u < 65u) {
            out0[first + (row_2 + 1u) * 65u + column_2 + 3u] = sum_8;
        }
        if (row_2 + 2u < 594u && column_2 < 65u) {
            out0[first + (row_2 + 2u) * 65u + column_2] = sum_9;
        }
        if (row_2 + 2u < 594u && column_2 + 1u < 65u) {
            out0[first + (row_2 + 2u) * 65u + column_2 + 1u] = sum_10;
        }
        if (row_2 + 2u < 594u && column_2 + 2u < 65u) {
            out0[first + (row_2 + 2u) * 65u + column_2 + 2u] = sum_11;
        }
        if (row_2 + 2u < 594u && column_2 + 3u < 65u) {
            out0[first + (row_2 + 2u) * 65u + column_2 + 3u] = sum_12;
        }
        if (row_2 + 3u < 594u && column_2 < 65u) {
            out0[first + (row_2 + 3u) * 65u + column_2] = sum_13;
        }
        if (row_2 + 3u < 594u && column_2 + 1u < 65u) {
            out0[first + (row_2 + 3u) * 65u + column_2 + 1u] = sum_14;
        }
        if (row_2 + 3u < 594u && column_2 + 2u < 65u) {
            out0[first + (row_2 + 3u) * 65u + column_2 + 2u] = sum_15;
        }
        if (row_2 + 3u < 594u && column_2 + 3u < 65u) {
            out0[first + (row_2 + 3u) * 65u + column_2 + 3u] = sum_16;
        }
    }
}
