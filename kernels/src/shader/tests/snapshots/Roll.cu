// Roll(float32[3,4,5], int32[3], int32[3])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const i32* __restrict__ in1, const i32* __restrict__ in2, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 60u) {
var by0 = 0u;
var by1 = 0u;
var by2 = 0u;
for (var i = 0u; i < 3u; i++) {
let given = in2[i];
let axis = select(given, given + i32(3), given < 0);
if (axis == i32(0)) { by0 = (by0 + u32(floor_mod_i32_(in1[i], i32(3)))) % 3u; }
if (axis == i32(1)) { by1 = (by1 + u32(floor_mod_i32_(in1[i], i32(4)))) % 4u; }
if (axis == i32(2)) { by2 = (by2 + u32(floor_mod_i32_(in1[i], i32(5)))) % 5u; }
}
var source = 0u;
source = source + (n / 20u % 3u + 3u - by0) % 3u * 20u;
source = source + (n / 5u % 4u + 4u - by1) % 4u * 5u;
source = source + (n / 1u % 5u + 5u - by2) % 5u * 1u;
out0[n] = in0[source];
    }
}
