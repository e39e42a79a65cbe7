// AdjustHue(float32[2,4,3], float32[])
extern "C" __global__ void __launch_bounds__(256) entry(const f32* __restrict__ in0, const f32* __restrict__ in1, f32* __restrict__ out0) {
    const u32 n = blockIdx.x * 256u + threadIdx.x;
    if (n < 8u) {
        f32 channel = in0[3u * n];
        f32 channel_2 = in0[3u * n + 1u];
        f32 channel_3 = in0[3u * n + 2u];
        const f32 most = max(max(channel, channel_2), channel_3);
        const f32 least = min(min(channel, channel_2), channel_3);
        const f32 middle = max(min(channel, channel_2), min(max(channel, channel_2), channel_3));
        f32 sixth = 5.0f;
        const bool rises = channel < channel_2;
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
        f32 hue = (middle - least) / (most - least);
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
        f32 part = hue - sixth;
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
