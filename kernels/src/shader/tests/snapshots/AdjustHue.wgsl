// AdjustHue(float32[2,4,3], float32[])
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) place: vec3<u32>) {
    let n = place.x + place.y * 64u;
    if (n < 8u) {
        var channel = in0[3u * n];
        var channel_2 = in0[3u * n + 1u];
        var channel_3 = in0[3u * n + 2u];
        let most = max(max(channel, channel_2), channel_3);
        let least = min(min(channel, channel_2), channel_3);
        let middle = max(min(channel, channel_2), min(max(channel, channel_2), channel_3));
        var sixth = 5.0f;
        let rises = channel < channel_2;
        if (rises) {
            sixth = 2.0f;
        }
        if (rises && channel_3 < channel) {
            sixth = 1.0f;
        }
        if (rises && channel_3 > channel_2) {
            sixth = 3.0f;
        }
        if (!rises && channel_3 < channel_2) {
            sixth = 0.0f;
        }
        if (!rises && channel_3 > channel) {
            sixth = 4.0f;
        }
        var hue = (middle - least) / (most - least);
        if (sixth == 1.0f || sixth == 3.0f || sixth == 5.0f) {
            hue = 1.0f - hue;
        }
        hue = sixth + hue;
        if (most == least) {
            hue = 0.0f;
        }
        hue = hue + in1[0u] * 6.0f;
        hue = hue - 6.0f * floor(hue / 6.0f);
        sixth = min(floor(hue), 5.0f);
        var part = hue - sixth;
        if (sixth == 1.0f || sixth == 3.0f || sixth == 5.0f) {
            part = 1.0f - part;
        }
        part = least + part * (most - least);
        channel = least;
        channel_2 = least;
        channel_3 = least;
        if (sixth == 0.0f) {
            channel = most;
            channel_2 = part;
        }
        if (sixth == 1.0f) {
            channel_2 = most;
            channel = part;
        }
        if (sixth == 2.0f) {
            channel_2 = most;
            channel_3 = part;
        }
        if (sixth == 3.0f) {
            channel_3 = most;
            channel_2 = part;
        }
        if (sixth == 4.0f) {
            channel_3 = most;
            channel = part;
        }
        if (sixth == 5.0f) {
            channel = most;
            channel_3 = part;
        }
        out0[3u * n] = channel;
        out0[3u * n + 1u] = channel_2;
        out0[3u * n + 2u] = channel_3;
    }
}
