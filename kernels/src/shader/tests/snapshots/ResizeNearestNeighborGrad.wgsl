// ResizeNearestNeighborGrad(float32[2,7,3,3], int32[2])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 128u;
    if (n < 120u) {
let channel = n % 3u;
let x = n / 3u % 5u;
let y = n / 15u % 4u;
let image = n / 60u;
var sum = 0.0f;
for (var iy = select(0u, table0[max(y, 1u) - 1u], y > 0u); iy < table0[y]; iy++) {
let py = table0[4u + 2u * iy];
let wy = of_bits(table0[4u + 2u * iy + 1u]);
var part = 0.0f;
for (var ix = select(0u, table1[max(x, 1u) - 1u], x > 0u); ix < table1[x]; ix++) {
let px = table1[5u + 2u * ix];
let wx = of_bits(table1[5u + 2u * ix + 1u]);
part = part + wx * in0[((image * 7u + py) * 3u + px) * 3u + channel];
}
sum = sum + wy * part;
}
out0[n] = sum;
    }
}
