// MatrixDiagV3(float32[2,4,3], int32[2], int32[], int32[], float32[])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 24u) {
let r = n / 4u % 3u;
let c = n % 4u;
let d = i32(c) - i32(r);
let row = u32(max(-d, 0));
let column = u32(max(d, 0));
let len = u32(clamp(min(3 - i32(row), 4 - i32(column)), 0, 3));
let gap = 3u - len;
let start = select(0u, 0u, d > 0);
let k = min(r, c);
let matrix = n / 12u;
if (d >= -1 && d <= 2 && k < len) {
out0[n] = in0[(matrix * 4u + u32(2 - d)) * 3u + start + k];
} else { out0[n] = in1[0]; }
    }
}
