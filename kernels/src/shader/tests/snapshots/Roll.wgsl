// Roll(float32[3,4,5], int32[3], int32[3])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 60u) {
        var shift = 0u;
        var shift_2 = 0u;
        var shift_3 = 0u;
        for (var i = 0u; i < 3u; i++) {
            let named = in2[i];
            let axis = select(named, named + 3, named < 0);
            if (axis == 0) {
                shift = (shift + u32(floor_mod_i32_(in1[i], 3))) % 3u;
            }
            if (axis == 1) {
                shift_2 = (shift_2 + u32(floor_mod_i32_(in1[i], 4))) % 4u;
            }
            if (axis == 2) {
                shift_3 = (shift_3 + u32(floor_mod_i32_(in1[i], 5))) % 5u;
            }
        }
        out0[n] = in0[(n / 20u % 3u + 3u - shift) % 3u * 20u + (n / 5u % 4u + 4u - shift_2) % 4u * 5u + (n % 5u + 5u - shift_3) % 5u];
    }
}
