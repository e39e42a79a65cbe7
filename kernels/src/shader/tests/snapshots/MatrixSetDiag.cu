// MatrixSetDiag(float32[2,3,4], float32[2,3])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 24u) {
        const u32 row = n / 4u % 3u;
        const u32 column = n % 4u;
        const i32 diagonal = i32(column) - i32(row);
        const u32 first_row = u32(max(-diagonal, 0));
        const u32 first_column = u32(max(diagonal, 0));
        const u32 length = u32(clamp(min(i32(3u) - i32(first_row), i32(4u) - i32(first_column)), 0, 3));
        const u32 start = select(0u, 0u, diagonal > 0);
        const u32 at = min(row, column);
        if (diagonal >= 0 && diagonal <= 0 && at < length) {
            out0[n] = in0[(n / 12u + u32(0 - diagonal)) * 3u + start + at];
        } else {
            out0[n] = in1[n];
        }
    }
}
