// StatelessRandomNormalV2(int32[2], uint64[1], uint64[2], int32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 33u) {
        let block = u64(n / 4u);
        let below = in1[0u] + block;
        let above = in1[1u] + select(u64(0u), u64(1u), below < block);
        let key = in0[0u];
        var half = u32(key & u64(4294967295u));
        var half_2 = u32(key >> 32u);
        var half_3 = u32(below & u64(4294967295u));
        var half_4 = u32(below >> 32u);
        var half_5 = u32(above & u64(4294967295u));
        var half_6 = u32(above >> 32u);
        for (var i = 0u; i < 10u; i++) {
            let high = mulhi_(3528531795u, half_3);
            let low = 3528531795u * half_3;
            let high_2 = mulhi_(3449720151u, half_5);
            let low_2 = 3449720151u * half_5;
            half_3 = (high_2 ^ half_4) ^ half;
            half_4 = low_2;
            half_5 = (high ^ half_6) ^ half_2;
            half_6 = low;
            half = half + 2654435769u;
            half_2 = half_2 + 3144134277u;
        }
        let number = n % 4u;
        let share = max(of_bits((select(half_3, half_5, number >= 2u) & 8388607u) | 1065353216u) - 1.0f, 1e-7f);
        let radius = sqrt((-2.0f) * log_(share));
        let turn = 4.0f * (of_bits((select(half_4, half_6, number >= 2u) & 8388607u) | 1065353216u) - 1.0f);
        let whole = round(turn);
        let part = (turn - whole) * 1.5707964f;
        let quarter = (i32(whole) + i32(number % 2u)) & 3;
        let size = select(sin_part_(part), cos_part_(part), (quarter & 1) == 1);
        out0[n] = select(size, -size, quarter >= 2) * radius;
    }
}
