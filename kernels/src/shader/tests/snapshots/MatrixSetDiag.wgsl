// MatrixSetDiag(float32[2,3,4], float32[2,3])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 24u) {
        let row = n / 4u % 3u;
        let column = n % 4u;
        let diagonal = i32(column) - i32(row);
        let first_row = u32(max(-diagonal, 0));
        let first_column = u32(max(diagonal, 0));
        let length = u32(clamp(min(i32(3u) - i32(first_row), i32(4u) - i32(first_column)), 0, 3));
        let start = select(0u, 0u, diagonal > 0);
        let at = min(row, column);
        if (diagonal >= 0 && diagonal <= 0 && at < length) {
            out0[n] = in0[(n / 12u + u32(0 - diagonal)) * 3u + start + at];
        } else {
            out0[n] = in1[n];
        }
    }
}
