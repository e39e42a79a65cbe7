// MatMul(float32[70,33], float32[33,131])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 640u;
    if (n < 594u) {
        let column = n % 33u * 4u;
        let row = n / 33u % 18u * 4u;
        let matrix = n / 594u;
        let row_start = min(row, 69u) * 33u;
        let row_start_2 = min(row + 1u, 69u) * 33u;
        let row_start_3 = min(row + 2u, 69u) * 33u;
        let row_start_4 = min(row + 3u, 69u) * 33u;
        let column_start = min(column, 130u);
        let column_start_2 = min(column + 1u, 130u);
        let column_start_3 = min(column + 2u, 130u);
        let column_start_4 = min(column + 3u, 130u);
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
        for (var i = 0u; i < 33u; i++) {
            let x = in0[row_start + i];
            let x_2 = in0[row_start_2 + i];
            let x_3 = in0[row_start_3 + i];
            let x_4 = in0[row_start_4 + i];
            let y = in1[column_start + i * 131u];
            let y_2 = in1[column_start_2 + i * 131u];
            let y_3 = in1[column_start_3 + i * 131u];
            let y_4 = in1[column_start_4 + i * 131u];
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
        let first = matrix * 9170u;
        if (row < 70u && column < 131u) {
            out0[first + row * 131u + column] = sum;
        }
        if (row < 70u && column + 1u < 131u) {
            out0[first + row * 131u + column + 1u] = sum_2;
        }
        if (row < 70u && column + 2u < 131u) {
            out0[first + row * 131u + column + 2u] = sum_3;
        }
        if (row < 70u && column + 3u < 131u) {
            out0[first + row * 131u + column + 3u] = sum_4;
        }
        if (row + 1u < 70u && column < 131u) {
            out0[first + (row + 1u) * 131u + column] = sum_5;
        }
        if (row + 1u < 70u && column + 1u < 131u) {
            out0[first + (row + 1u) * 131u + column + 1u] = sum_6;
        }
        if (row + 1u < 70u && column + 2u < 131u) {
            out0[first + (row + 1u) * 131u + column + 2u] = sum_7;
        }
        if (row + 1u < 70u && column + 3u < 131u) {
            out0[first + (row + 1u) * 131u + column + 3u] = sum_8;
        }
        if (row + 2u < 70u && column < 131u) {
            out0[first + (row + 2u) * 131u + column] = sum_9;
        }
        if (row + 2u < 70u && column + 1u < 131u) {
            out0[first + (row + 2u) * 131u + column + 1u] = sum_10;
        }
        if (row + 2u < 70u && column + 2u < 131u) {
            out0[first + (row + 2u) * 131u + column + 2u] = sum_11;
        }
        if (row + 2u < 70u && column + 3u < 131u) {
            out0[first + (row + 2u) * 131u + column + 3u] = sum_12;
        }
        if (row + 3u < 70u && column < 131u) {
            out0[first + (row + 3u) * 131u + column] = sum_13;
        }
        if (row + 3u < 70u && column + 1u < 131u) {
            out0[first + (row + 3u) * 131u + column + 1u] = sum_14;
        }
        if (row + 3u < 70u && column + 2u < 131u) {
            out0[first + (row + 3u) * 131u + column + 2u] = sum_15;
        }
        if (row + 3u < 70u && column + 3u < 131u) {
            out0[first + (row + 3u) * 131u + column + 3u] = sum_16;
        }
    }
}
