"""Models, and a step of training: those of bench/gpu/{mobilenet,bert,train}.rs."""
import torch
import torch.nn.functional as F

from .inputs import Weights, floats, ids, sizes

# How often MobileNetV2's blocks widen, the channels they give, how many there are, the first one's stride.
BLOCKS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
# The words there are, and the size of a head.
WORDS, HEAD = 30522, 64


def mobilenetv2(rest):
    side, batch = rest.removeprefix("mobilenetv2_").split("_b")
    side, batch = int(side), int(batch)
    weights = Weights()

    def conv(kind, channels, out, stride, clipped):
        dims, fan_in = {
            "full": ([3, 3, channels, out], 9 * channels),
            "depthwise": ([3, 3, channels, 1], 9),
            "pointwise": ([1, 1, channels, out], channels),
        }[kind]
        weight = weights.scaled(dims, fan_in, 2.0)
        weight = weight.permute(2, 3, 0, 1) if kind == "depthwise" else weight.permute(3, 2, 0, 1)
        bounds = [(0.8, 1.2), (-0.2, 0.2), (-0.2, 0.2), (0.8, 1.2)]
        norm = [weights.between([out], low, high) for low, high in bounds]
        groups = channels if kind == "depthwise" else 1
        return weight.contiguous(), norm, stride, 0 if kind == "pointwise" else 1, groups, clipped

    blocks = [([conv("full", 3, 32, 2, True)], False)]
    channels = 32
    for widen, out, count, first_stride in BLOCKS:
        for number in range(count):
            stride, wide = first_stride if number == 0 else 1, widen * channels
            convs = [conv("pointwise", channels, wide, 1, True)] if widen > 1 else []
            convs += [conv("depthwise", wide, wide, stride, True), conv("pointwise", wide, out, 1, False)]
            blocks.append((convs, stride == 1 and channels == out))
            channels = out
    blocks.append(([conv("pointwise", channels, 1280, 1, True)], False))
    dense, bias = weights.scaled([1280, 1000], 1280, 1.0).t().contiguous(), weights.between([1000], -0.5, 0.5)

    def model(x):
        for convs, adds_input in blocks:
            y = x
            for weight, (scale, shift, mean, variance), stride, padding, groups, clipped in convs:
                y = F.conv2d(y, weight, None, stride, padding, 1, groups)
                y = F.batch_norm(y, mean, variance, scale, shift, False, 0.0, 1e-3)
                y = F.relu6(y) if clipped else y
            x = x + y if adds_input else y
        return F.linear(x.mean([2, 3]), dense, bias)

    return model, (floats(31, [batch, side, side, 3], -1.0, 1.0).permute(0, 3, 1, 2).contiguous(),)


def bert(rest):
    dims, batch = rest.removeprefix("bert_").split("_b")
    (layers, width, steps), batch = sizes(dims), int(batch)
    weights = Weights()
    dense = lambda a, b: (weights.scaled([a, b], a, 1.0).t().contiguous(), weights.between([b], -0.1, 0.1))
    norm = lambda: (weights.between([width], 0.8, 1.2), weights.between([width], -0.1, 0.1))
    words, positions = weights.between([WORDS, width], -1.0, 1.0), weights.between([steps, width], -1.0, 1.0)
    first = norm()
    parts = [(width, width)] * 4, [(width, 4 * width), (4 * width, width)]
    made = [([dense(*p) for p in parts[0]], norm(), [dense(*p) for p in parts[1]], norm()) for _ in range(layers)]
    normalized = lambda x, gain, offset: F.layer_norm(x, [width], gain, offset, 1e-5)

    def model(words_of_batch):
        x = normalized(F.embedding(words_of_batch, words) + positions, *first)
        for (query, key, value, out), attention_norm, (widen, narrow), last_norm in made:
            heads = [F.linear(x, *p).view(batch, steps, -1, HEAD).transpose(1, 2) for p in (query, key, value)]
            found = F.scaled_dot_product_attention(*heads).transpose(1, 2).reshape(batch, steps, width)
            x = normalized(x + F.linear(found, *out), *attention_norm)
            x = normalized(x + F.linear(F.gelu(F.linear(x, *widen)), *narrow), *last_norm)
        return x

    return model, (ids(31, [batch, steps], WORDS),)


def train(rest, compiles):
    widths, batch = rest.removeprefix("mlp_").split("_b")
    widths, batch = sizes(widths), int(batch)
    weights, pairs = Weights(), []
    for a, b in zip(widths, widths[1:]):
        pairs.append((weights.scaled([a, b], a, 1.0).t().contiguous(), weights.between([b], -0.1, 0.1)))
    params = [p.requires_grad_() for pair in pairs for p in pair]
    # TensorFlow's epsilon is added before the correction of the first steps, which is next to nothing.
    optimizer = torch.optim.Adam(params, lr=1e-3, eps=1e-7, fused=True)

    def loss_of(x, y):
        for index, (weight, bias) in enumerate(pairs):
            x = F.linear(F.relu(x) if index else x, weight, bias)
        return F.cross_entropy(x, y)

    forward = torch.compile(loss_of) if compiles else loss_of

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, (floats(41, [batch, widths[0]], 0.0, 1.0), ids(42, [batch], widths[-1]))
