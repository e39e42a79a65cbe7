// BatchMatMulV2(float16[2,1,65,20], float16[3,20,64])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 1664u;
    if (n < 1632u) {
        let column = n % 16u * 4u;
        let row = n / 16u % 17u * 4u;
        let matrix = n / 272u;
        let row_start = matrix / 3u * 1300u + min(row, 64u) * 20u;
        let row_start_2 = matrix / 3u * 1300u + min(row + 1u, 64u) * 20u;
        let row_start_3 = matrix / 3u * 1300u + min(row + 2u, 64u) * 20u;
        let row_start_4 = matrix / 3u * 1300u + min(row + 3u, 64u) * 20u;
        let column_start = matrix % 3u * 1280u + min(column, 63u);
        let column_start_2 = matrix % 3u * 1280u + min(column + 1u, 63u);
        let column_start_3 = matrix % 3u * 1280u + min(column + 2u, 63u);
        let column_start_4 = matrix % 3u * 1280u + min(column + 3u, 63u);
        var sum = 0.0f;
        var sum_2 = 0.0f;
        var sum_3 = 0.0f;
        var sum_4 = 0.0f;
        var sum_5 = 0.0f;
        var sum_6 = 0.0f;
        var sum_7 = 0.0f;
        var sum_8 = 0.0f;
        var sum_9 = 0.0f;
        var sum_10 = 0.0f;
        var sum_11 = 0.0f;
        var sum_12 = 0.0f;
        var sum_13 = 0.0f;
        var sum_14 = 0.0f;
        var sum_15 = 0.0f;
        var sum_16 = 0.0f;
        for (var i = 0u; i < 20u; i++) {
            let x = in0[row_start + i];
            let x_2 = in0[row_start_2 + i];
            let x_3 = in0[row_start_3 + i];
            let x_4 = in0[row_start_4 + i];
            let y = in1[column_start + i * 64u];
            let y_2 = in1[column_start_2 + i * 64u];
            let y_3 = in1[column_start_3 + i * 64u];
            let y_4 = in1[column_start_4 + i * 64u];
            sum = sum + x * y;
            sum_2 = sum_2 + x * y_2;
            sum_3 = sum_3 + x * y_3;
            sum_4 = sum_4 + x * y_4;
            sum_5 = sum_5 + x_2 * y;
            sum_6 = sum_6 + x_2 * y_2;
            sum_7 = sum_7 + x_2 * y_3;
            sum_8 = sum_8 + x_2 * y_4;
            sum_9 = sum_9 + x_3 * y;
            sum_10 = sum_10 + x_3 * y_2;
            sum_11 = sum_11 + x_3 * y_3;
            sum_12 = sum_12 + x_3 * y_4;
            sum_13 = sum_13 + x_4 * y;
            sum_14 = sum_14 + x_4 * y_2;
            sum_15 = sum_15 + x_4 * y_3;
            sum_16 = sum_16 + x_4 * y_4;
        }
        let first = matrix * 4160u;
        if (row < 65u && column < 64u) {
            out0[first + row * 64u + column] = round_f16_(sum);
        }
        if (row < 65u && column + 1u < 64u) {
            out0[first + row * 64u + column + 1u] = round_f16_(sum_2);
        }
        if (row < 65u && column + 2u < 64u) {
            out0[first + row * 64u + column + 2u] = round_f16_(sum_3);
        }
        if (row < 65u && column + 3u < 64u) {
            out0[first + row * 64u + column + 3u] = round_f16_(sum_4);
        }
        if (row + 1u < 65u && column < 64u) {
            out0[first + (row + 1u) * 64u + column] = round_f16_(sum_5);
        }
        if (row + 1u < 65u && column + 1u < 64u) {
            out0[first + (row + 1u) * 64u + column + 1u] = round_f16_(sum_6);
        }
        if (row + 1u < 65u && column + 2u < 64u) {
            out0[first + (row + 1u) * 64u + column + 2u] = round_f16_(sum_7);
        }
        if (row + 1u < 65u && column + 3u < 64u) {
            out0[first + (row + 1u) * 64u + column + 3u] = round_f16_(sum_8);
        }
        if (row + 2u < 65u && column < 64u) {
            out0[first + (row + 2u) * 64u + column] = round_f16_(sum_9);
        }
        if (row + 2u < 65u && column + 1u < 64u) {
            out0[first + (row + 2u) * 64u + column + 1u] = round_f16_(sum_10);
        }
        if (row + 2u < 65u && column + 2u < 64u) {
            out0[first + (row + 2u) * 64u + column + 2u] = round_f16_(sum_11);
        }
        if (row + 2u < 65u && column + 3u < 64u) {
            out0[first + (row + 2u) * 64u + column + 3u] = round_f16_(sum_12);
        }
        if (row + 3u < 65u && column < 64u) {
            out0[first + (row + 3u) * 64u + column] = round_f16_(sum_13);
        }
        if (row + 3u < 65u && column + 1u < 64u) {
            out0[first + (row + 3u) * 64u + column + 1u] = round_f16_(sum_14);
        }
        if (row + 3u < 65u && column + 2u < 64u) {
            out0[first + (row + 3u) * 64u + column + 2u] = round_f16_(sum_15);
        }
        if (row + 3u < 65u && column + 3u < 64u) {
            out0[first + (row + 3u) * 64u + column + 3u] = round_f16_(sum_16);
        }
    }
}
