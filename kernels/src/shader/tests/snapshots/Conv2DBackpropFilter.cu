// Conv2DBackpropFilter(float32[2,8,9,66], int32[4], float32[2,8,5,65])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    __shared__ __align__(16) f32 tile_a[1040];
    __shared__ __align__(16) f32 tile_b[1040];
    const u32 team = blockIdx.x;
    const u32 lane = threadIdx.x;
    if (team < 20u) {
let column = team % 2u * 64u;
let row = team / 2u % 10u * 64u;
let matrix = team / 20u;
let right = lane % 16u * 4u;
let below = lane / 16u * 4u;
var c00 = 0.0f;
var c01 = 0.0f;
var c02 = 0.0f;
var c03 = 0.0f;
var c10 = 0.0f;
var c11 = 0.0f;
var c12 = 0.0f;
var c13 = 0.0f;
var c20 = 0.0f;
var c21 = 0.0f;
var c22 = 0.0f;
var c23 = 0.0f;
var c30 = 0.0f;
var c31 = 0.0f;
var c32 = 0.0f;
var c33 = 0.0f;
for (var first = 0u; first < 80u; first = first + 16u) {
for (var s = 0u; s < 4u; s++) {
let at = lane + s * 256u;
let own = at % 64u;
let depth = at / 64u;
let along = row + own;
let deep = first + depth;
var x = 0.0f;
if (along < 594u && deep < 80u) { let tap = along / 66u;
let tz = tap % 3u;
let ty = tap / 3u % 3u;
let tx = tap / 9u;
let wz = deep / 1u % 5u;
let wy = deep / 5u % 8u;
let wx = deep / 40u % 1u;
let image = deep / 40u;
let px = wx * 1u + tx * 1u - u32(i32(0));
let py = wy * 1u + ty * 1u - u32(i32(1));
let pz = wz * 2u + tz * 1u - u32(i32(1));
if (px < 1u && py < 8u && pz < 9u) { x = in0[(((image * 1u + px) * 8u + py) * 9u + pz) * 66u + along % 66u]; }
 }
tile_a[depth * 65u + own] = x;
}
for (var s = 0u; s < 4u; s++) {
let at = lane + s * 256u;
let own = at % 64u;
let depth = at / 64u;
let along = column + own;
let deep = first + depth;
var x = 0.0f;
if (along < 65u && deep < 80u) { x = in1[deep * 65u + along]; }
tile_b[depth * 65u + own] = x;
}
barrier_();
for (var i = 0u; i < 16u; i++) {
let x0 = tile_a[i * 65u + below + 0u];
let y0 = tile_b[i * 65u + right + 0u];
let x1 = tile_a[i * 65u + below + 1u];
let y1 = tile_b[i * 65u + right + 1u];
let x2 = tile_a[i * 65u + below + 2u];
let y2 = tile_b[i * 65u + right + 2u];
let x3 = tile_a[i * 65u + below + 3u];
let y3 = tile_b[i * 65u + right + 3u];
c00 = c00 + x0 * y0;
c01 = c01 + x0 * y1;
c02 = c02 + x0 * y2;
c03 = c03 + x0 * y3;
c10 = c10 + x1 * y0;
c11 = c11 + x1 * y1;
c12 = c12 + x1 * y2;
c13 = c13 + x1 * y3;
c20 = c20 + x2 * y0;
c21 = c21 + x2 * y1;
c22 = c22 + x2 * y2;
c23 = c23 + x2 * y3;
c30 = c30 + x3 * y0;
c31 = c31 + x3 * y1;
c32 = c32 + x3 * y2;
c33 = c33 + x3 * y3;
}
barrier_();
}
let c = matrix * 38610u;
if (row + below + 0u < 594u && column + right + 0u < 65u) { out0[c + (row + below + 0u) * 65u + column + right + 0u] = c00;
 }
if (row + below + 0u < 594u && column + right + 1u < 65u) { out0[c + (row + below + 0u) * 65u + column + right + 1u] = c01;
 }
if (row + below + 0u < 594u && column + right + 2u < 65u) { out0[c + (row + below + 0u) * 65u + column + right + 2u] = c02;
 }
if (row + below + 0u < 594u && column + right + 3u < 65u) { out0[c + (row + below + 0u) * 65u + column + right + 3u] = c03;
 }
if (row + below + 1u < 594u && column + right + 0u < 65u) { out0[c + (row + below + 1u) * 65u + column + right + 0u] = c10;
 }
if (row + below + 1u < 594u && column + right + 1u < 65u) { out0[c + (row + below + 1u) * 65u + column + right + 1u] = c11;
 }
if (row + below + 1u < 594u && column + right + 2u < 65u) { out0[c + (row + below + 1u) * 65u + column + right + 2u] = c12;
 }
if (row + below + 1u < 594u && column + right + 3u < 65u) { out0[c + (row + below + 1u) * 65u + column + right + 3u] = c13;
 }
if (row + below + 2u < 594u && column + right + 0u < 65u) { out0[c + (row + below + 2u) * 65u + column + right + 0u] = c20;
 }
if (row + below + 2u < 594u && column + right + 1u < 65u) { out0[c + (row + below + 2u) * 65u + column + right + 1u] = c21;
 }
if (row + below + 2u < 594u && column + right + 2u < 65u) { out0[c + (row + below + 2u) * 65u + column + right + 2u] = c22;
 }
if (row + below + 2u < 594u && column + right + 3u < 65u) { out0[c + (row + below + 2u) * 65u + column + right + 3u] = c23;
 }
if (row + below + 3u < 594u && column + right + 0u < 65u) { out0[c + (row + below + 3u) * 65u + column + right + 0u] = c30;
 }
if (row + below + 3u < 594u && column + right + 1u < 65u) { out0[c + (row + below + 3u) * 65u + column + right + 1u] = c31;
 }
if (row + below + 3u < 594u && column + right + 2u < 65u) { out0[c + (row + below + 3u) * 65u + column + right + 2u] = c32;
 }
if (row + below + 3u < 594u && column + right + 3u < 65u) { out0[c + (row + below + 3u) * 65u + column + right + 3u] = c33;
 }
    }
}
