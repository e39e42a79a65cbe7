#!/usr/bin/env python3
"""The other side of `cargo xtask bench gpu`: the same rows in PyTorch.

    peer_torch.py --device cuda:0          names on standard input, a line of JSON for each
    peer_torch.py --list [--small]         the names of the rows; needs no PyTorch

bench/gpu/mod.rs says what a row's name means and bench/gpu/measure.rs how rows are timed: `latency` with a
wait after each call, `throughput` with a wait after many. Inputs and weights are made of the same seeds in
the same order, results are told by the same three numbers (bench/gpu/check.rs). `torch_rows` has the functions.

What is chosen in PyTorch's favour: attention is `scaled_dot_product_attention`, layer normalisation one op,
Adam is fused, memory formats are its own (channels first, weights of `linear` transposed). `float32` is
computed as such: TF32 is off but for the rows that ask for it. `--mode` says how functions are run: `eager`,
`compile` (`torch.compile`), or `graph` (captured by `torch.cuda.graph` and replayed).
"""
import argparse
import json
import sys
import time

FULL = """elementwise.chain_16777216
gemm.f32_1024 gemm.f32_4096 gemm.f32_8192
gemm.tf32_1024 gemm.tf32_4096 gemm.tf32_8192
gemm.bf16_1024 gemm.bf16_4096 gemm.bf16_8192
softmax.f32_16384x1024 layer_norm.f32_16384x1024
attention.f32_8x12x512x64 attention.bf16_8x12x512x64
launch.chain_100 launch.mixed_100
infer.mobilenetv2_224_b1 infer.mobilenetv2_224_b8
infer.bert_12x768x128_b1 infer.bert_12x768x128_b8
train.mlp_784x512x256x10_b128""".split()

SMALL = """elementwise.chain_4096
gemm.f32_48 gemm.tf32_48 gemm.bf16_48
softmax.f32_8x32 layer_norm.f32_8x32
attention.f32_2x2x16x8 attention.bf16_2x2x16x8
launch.chain_100 launch.mixed_100
infer.mobilenetv2_32_b1 infer.mobilenetv2_32_b2
infer.bert_2x128x16_b1 infer.bert_2x128x16_b2
train.mlp_48x32x16x10_b8""".split()

SAMPLE, SAMPLES, CALLS = 0.02, 100, 1000


def find(name, mode):
    """What a call runs."""
    from torch_rows import functions, models

    family, rest = name.split(".", 1)
    torch.compiler.reset()
    torch.backends.cuda.matmul.allow_tf32 = False
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if family == "infer":
        family = rest.split("_")[0]
    if family == "train":
        if mode == "graph":
            raise RuntimeError("not available: a step that updates is not captured")
        function, args = models.train(rest, compiles=mode == "compile")
        return lambda: function(*args)
    make = getattr(functions, family, None) or getattr(models, family)
    function, args = make(rest)
    if mode == "graph":
        return captured(function, args)
    function = torch.compile(function) if mode == "compile" else function
    return lambda: function(*args)


def captured(function, args):
    """The function as a CUDA graph, which reads `args` where they are. Its result is the same memory each time."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function(*args)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(*args)

    def replay(_kept=args):
        graph.replay()
        return result

    return replay


def wait():
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def sample(call, calls):
    wait()
    began = time.perf_counter()
    for _ in range(calls):
        call()
    wait()
    return (time.perf_counter() - began) / calls


def samples(call, budget, calls):
    began, found = time.perf_counter(), []
    while len(found) < 3 or (time.perf_counter() - began < budget and len(found) < SAMPLES):
        found.append(sample(call, calls))
    return sorted(found)


def measure(call, budget):
    sample(call, 1)
    latency = samples(call, budget, 1)
    calls = int(min(max(SAMPLE / latency[0], 1), CALLS))
    figures = lambda s: {"min": s[0], "median": (s[(len(s) - 1) // 2] + s[len(s) // 2]) / 2, "n": len(s)}
    return {"latency": figures(latency), "throughput": figures(samples(call, budget, calls)), "calls": calls}


def answer(line):
    print(json.dumps(line), flush=True)


def start(device, mode, threads):
    """PyTorch, and what is known of this side before anything runs."""
    global torch
    import torch
    from torch_rows.inputs import Place

    kind, _, index = device.partition(":")
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"{device} is neither cpu nor cuda")
    Place.device = kind
    torch.set_num_threads(threads)
    torch.backends.cudnn.allow_tf32 = False
    facts = {"ready": f"PyTorch {torch.__version__}, {mode}", "device": device, "model": None}
    if kind == "cuda":
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch finds no CUDA device")
        torch.cuda.set_device(int(index or 0))
        facts["model"] = torch.cuda.get_device_name()
    elif mode == "graph":
        raise RuntimeError("CUDA graphs are for CUDA devices")
    return facts


def serve(mode, budget):
    from torch_rows.inputs import check

    last, call = None, None
    for name in map(str.strip, sys.stdin):
        try:
            line = {"name": name}
            with torch.set_grad_enabled(name.startswith("train.")):
                if name != last:
                    # First, as rows take much of a device's memory.
                    last, call = None, None
                    call = find(name, mode)
                    line["check"] = check([call().clone() for _ in range(4 if name.startswith("train.") else 1)])
                    last = name
                line.update(measure(call, budget))
            answer(line)
        except Exception as error:
            answer({"name": name, "error": " ".join(str(error).split())[:300]})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0", help="cpu, or cuda:N")
    parser.add_argument("--mode", choices=["eager", "compile", "graph"], default="eager")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--list", action="store_true")
    flags = parser.parse_args()
    if flags.list:
        return print("\n".join(SMALL if flags.small else FULL))
    try:
        facts = start(flags.device, flags.mode, flags.threads)
    except Exception as error:
        return answer({"error": f"{type(error).__name__}: {error}"})
    answer(facts)
    serve(flags.mode, 0.05 if flags.small else 0.5)


main()
