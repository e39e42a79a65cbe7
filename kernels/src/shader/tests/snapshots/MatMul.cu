// MatMul(float32[70,33], float32[33,131])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    __shared__ __align__(16) f32 tile_a[1040];
    __shared__ __align__(16) f32 tile_b[1040];
    const u32 team = blockIdx.x;
    const u32 lane = threadIdx.x;
    if (team < 6u) {
let column = team % 3u * 64u;
let row = team / 3u % 2u * 64u;
let matrix = team / 6u;
let a = 0u;
let b = 0u;
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
for (var first = 0u; first < 33u; first = first + 16u) {
for (var s = 0u; s < 4u; s++) {
let at = lane + s * 256u;
let own = at / 16u;
let depth = at % 16u;
let along = row + own;
let deep = first + depth;
var x = 0.0f;
if (along < 70u && deep < 33u) { x = in0[a + along * 33u + deep * 1u]; }
tile_a[depth * 65u + own] = x;
}
for (var s = 0u; s < 4u; s++) {
let at = lane + s * 256u;
let own = at % 64u;
let depth = at / 64u;
let along = column + own;
let deep = first + depth;
var x = 0.0f;
if (along < 131u && deep < 33u) { x = in1[b + along * 1u + deep * 131u]; }
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
let c = matrix * 9170u;
if (row + below + 0u < 70u && column + right + 0u < 131u) { out0[c + (row + below + 0u) * 131u + column + right + 0u] = c00;
 }
if (row + below + 0u < 70u && column + right + 1u < 131u) { out0[c + (row + below + 0u) * 131u + column + right + 1u] = c01;
 }
if (row + below + 0u < 70u && column + right + 2u < 131u) { out0[c + (row + below + 0u) * 131u + column + right + 2u] = c02;
 }
if (row + below + 0u < 70u && column + right + 3u < 131u) { out0[c + (row + below + 0u) * 131u + column + right + 3u] = c03;
 }
if (row + below + 1u < 70u && column + right + 0u < 131u) { out0[c + (row + below + 1u) * 131u + column + right + 0u] = c10;
 }
if (row + below + 1u < 70u && column + right + 1u < 131u) { out0[c + (row + below + 1u) * 131u + column + right + 1u] = c11;
 }
if (row + below + 1u < 70u && column + right + 2u < 131u) { out0[c + (row + below + 1u) * 131u + column + right + 2u] = c12;
 }
if (row + below + 1u < 70u && column + right + 3u < 131u) { out0[c + (row + below + 1u) * 131u + column + right + 3u] = c13;
 }
if (row + below + 2u < 70u && column + right + 0u < 131u) { out0[c + (row + below + 2u) * 131u + column + right + 0u] = c20;
 }
if (row + below + 2u < 70u && column + right + 1u < 131u) { out0[c + (row + below + 2u) * 131u + column + right + 1u] = c21;
 }
if (row + below + 2u < 70u && column + right + 2u < 131u) { out0[c + (row + below + 2u) * 131u + column + right + 2u] = c22;
 }
if (row + below + 2u < 70u && column + right + 3u < 131u) { out0[c + (row + below + 2u) * 131u + column + right + 3u] = c23;
 }
if (row + below + 3u < 70u && column + right + 0u < 131u) { out0[c + (row + below + 3u) * 131u + column + right + 0u] = c30;
 }
if (row + below + 3u < 70u && column + right + 1u < 131u) { out0[c + (row + below + 3u) * 131u + column + right + 1u] = c31;
 }
if (row + below + 3u < 70u && column + right + 2u < 131u) { out0[c + (row + below + 3u) * 131u + column + right + 2u] = c32;
 }
if (row + below + 3u < 70u && column + right + 3u < 131u) { out0[c + (row + below + 3u) * 131u + column + right + 3u] = c33;
 }
    }
}
