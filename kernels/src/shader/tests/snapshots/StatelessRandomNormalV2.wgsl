// StatelessRandomNormalV2(int32[2], uint64[1], uint64[2], int32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 33u) {
let lane = n % 4u;
let block = u64(n / 4u);
let key = in0[0];
let below = in1[0] + block;
let above = in1[1] + select(u64(0), u64(1), below < block);
var k0 = u32(key & u64(0xffffffffu));
var k1 = u32(key >> 32u);
var w0 = u32(below & u64(0xffffffffu));
var w1 = u32(below >> 32u);
var w2 = u32(above & u64(0xffffffffu));
var w3 = u32(above >> 32u);
for (var i = 0u; i < 10u; i++) {
let high = mulhi_(3528531795u, w0);
let low = 3528531795u * w0;
let other_high = mulhi_(3449720151u, w2);
let other_low = 3449720151u * w2;
w0 = other_high ^ w1 ^ k0;
w1 = other_low;
w2 = high ^ w3 ^ k1;
w3 = low;
k0 = k0 + 2654435769u;
k1 = k1 + 3144134277u;
}
let first = select(w0, w2, lane >= 2u);
let second = select(w1, w3, lane >= 2u);
let share = max(of_bits(0x3f800000u | (first & 0x7fffffu)) - 1.0f, 1.0e-7f);
let radius = sqrt(-2.0f * log_(share));
let turn = 4.0f * (of_bits(0x3f800000u | (second & 0x7fffffu)) - 1.0f);
let whole = round(turn);
let part = (turn - whole) * 1.57079633f;
let quarter = (i32(whole) + i32(lane % 2u)) & 3;
let size = select(sin_part_(part), cos_part_(part), (quarter & 1) == 1);
let wave = select(size, -size, quarter >= 2);
let number = wave * radius;
out0[n] = number;
    }
}
