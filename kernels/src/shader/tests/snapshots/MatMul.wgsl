// MatMul(float32[70,33], float32[33,131])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 640u;
    if (n < 594u) {
let column = n % 33u * 4u;
let row = n / 33u % 18u * 4u;
let matrix = n / 594u;
let a = 0u;
let b = 0u;
let a0 = a + min(row + 0u, 69u) * 33u;
let a1 = a + min(row + 1u, 69u) * 33u;
let a2 = a + min(row + 2u, 69u) * 33u;
let a3 = a + min(row + 3u, 69u) * 33u;
let b0 = b + min(column + 0u, 130u) * 1u;
let b1 = b + min(column + 1u, 130u) * 1u;
let b2 = b + min(column + 2u, 130u) * 1u;
let b3 = b + min(column + 3u, 130u) * 1u;
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
for (var i = 0u; i < 33u; i++) {
let x0 = in0[a0 + i * 1u];
let x1 = in0[a1 + i * 1u];
let x2 = in0[a2 + i * 1u];
let x3 = in0[a3 + i * 1u];
let y0 = in1[b0 + i * 131u];
let y1 = in1[b1 + i * 131u];
let y2 = in1[b2 + i * 131u];
let y3 = in1[b3 + i * 131u];
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
let c = matrix * 9170u;
if (row + 0u < 70u && column + 0u < 131u) { out0[c + (row + 0u) * 131u + column + 0u] = c00;
 }
if (row + 0u < 70u && column + 1u < 131u) { out0[c + (row + 0u) * 131u + column + 1u] = c01;
 }
if (row + 0u < 70u && column + 2u < 131u) { out0[c + (row + 0u) * 131u + column + 2u] = c02;
 }
if (row + 0u < 70u && column + 3u < 131u) { out0[c + (row + 0u) * 131u + column + 3u] = c03;
 }
if (row + 1u < 70u && column + 0u < 131u) { out0[c + (row + 1u) * 131u + column + 0u] = c10;
 }
if (row + 1u < 70u && column + 1u < 131u) { out0[c + (row + 1u) * 131u + column + 1u] = c11;
 }
if (row + 1u < 70u && column + 2u < 131u) { out0[c + (row + 1u) * 131u + column + 2u] = c12;
 }
if (row + 1u < 70u && column + 3u < 131u) { out0[c + (row + 1u) * 131u + column + 3u] = c13;
 }
if (row + 2u < 70u && column + 0u < 131u) { out0[c + (row + 2u) * 131u + column + 0u] = c20;
 }
if (row + 2u < 70u && column + 1u < 131u) { out0[c + (row + 2u) * 131u + column + 1u] = c21;
 }
if (row + 2u < 70u && column + 2u < 131u) { out0[c + (row + 2u) * 131u + column + 2u] = c22;
 }
if (row + 2u < 70u && column + 3u < 131u) { out0[c + (row + 2u) * 131u + column + 3u] = c23;
 }
if (row + 3u < 70u && column + 0u < 131u) { out0[c + (row + 3u) * 131u + column + 0u] = c30;
 }
if (row + 3u < 70u && column + 1u < 131u) { out0[c + (row + 3u) * 131u + column + 1u] = c31;
 }
if (row + 3u < 70u && column + 2u < 131u) { out0[c + (row + 3u) * 131u + column + 2u] = c32;
 }
if (row + 3u < 70u && column + 3u < 131u) { out0[c + (row + 3u) * 131u + column + 3u] = c33;
 }
    }
}
