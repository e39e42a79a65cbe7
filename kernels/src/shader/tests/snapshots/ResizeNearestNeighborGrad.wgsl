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
        for (var i = select(0u, table0[max(y, 1u) - 1u], y > 0u); i < table0[y]; i++) {
            let position = table0[4u + 2u * i];
            let weight = of_bits(table0[4u + 2u * i + 1u]);
            var part = 0.0f;
            for (var i_2 = select(0u, table1[max(x, 1u) - 1u], x > 0u); i_2 < table1[x]; i_2++) {
                let position_2 = table1[5u + 2u * i_2];
                let weight_2 = of_bits(table1[5u + 2u * i_2 + 1u]);
                part = part + weight_2 * in0[((image * 7u + position) * 3u + position_2) * 3u + channel];
            }
            sum = sum + weight * part;
        }
        out0[n] = sum;
    }
}
