// DenseBincount(int32[6], int32[], float32[6])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 5u) {
        let bin = n % 5u;
        let first = n / 5u * 6u;
        var sum = 0.0f;
        for (var i = 0u; i < 6u; i++) {
            let at = first + i;
            if (u32(in0[at]) == bin) {
                sum = 1.0f;
            }
        }
        out0[n] = sum;
    }
}
