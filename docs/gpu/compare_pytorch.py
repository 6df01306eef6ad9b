#!/usr/bin/env python3
"""Times PyTorch's attention on the shapes that `attnproof gpu-check` timed, on the same GPU.

    attnproof-gpu gpu-check --json gpu-check.json
    python3 compare_pytorch.py gpu-check.json --out compare.json

Each shape runs on the back ends of scaled_dot_product_attention that can express it (flash,
efficient, cudnn, math) and on FlexAttention, compiled. Before each timed run the second-level cache
is overwritten, as gpu-check does. A table of ratios goes to stdout, everything measured to --out.

Exit status: 0 done; 2 bad usage; 3 there is no PyTorch or no GPU.
"""

import argparse
import json
import re
import statistics
import sys
import time

BAD_USAGE, CANNOT = 2, 3
SOFT_CAP, WINDOW, DOCUMENTS = 20.0, 1024, 8
SDPA = ("flash", "efficient", "cudnn", "math")
BACKENDS = SDPA + ("flex",)


def stop(status, message):
    print(f"compare_pytorch: {message}", file=sys.stderr)
    sys.exit(status)


# ---- the table: no PyTorch needed ----------------------------------------------------------------


def backends_for(row):
    """What can express a row: SDPA knows no mods, and no masks but causal without a bias."""
    return BACKENDS if row["variant"] in ("full", "causal") else ("flex",)


def ratio(row, backend):
    """How many times faster attnproof was; None where one of the two was not measured."""
    theirs = row.get("pytorch", {}).get(backend, {}).get("ms")
    ours = row.get("ms")
    return theirs["mean"] / ours["mean"] if ours and theirs else None


def cell(row, backend):
    """TFLOPS and ratio, or why there are none."""
    result = row.get("pytorch", {}).get(backend)
    if result is None:
        return "-"
    if "ms" not in result:
        return result.get("skipped", "failed")
    times = ratio(row, backend)
    return f"{result['tflops']:.1f}" + ("" if times is None else f" ({times:.2f}x)")


def table(rows):
    """Markdown: TFLOPS of attnproof and, for each back end, TFLOPS and ratio of the times."""
    head = ["shape", "attnproof", *BACKENDS]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for row in rows:
        ours = f"{row['tflops']:.1f}" if "tflops" in row else row.get("skipped", "failed")
        cells = [row["name"], ours, *(cell(row, backend) for backend in BACKENDS)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(times_ms, flops, peak_bytes):
    mean = statistics.fmean(times_ms)
    return {
        "ms": {
            "mean": mean,
            "std": statistics.pstdev(times_ms),
            "min": min(times_ms),
            "max": max(times_ms),
            "runs": len(times_ms),
        },
        "tflops": flops / mean / 1e9,
        "peak_bytes": peak_bytes,
    }


# ---- PyTorch -------------------------------------------------------------------------------------


class Shape:
    """Inputs of one row on the GPU, and the functions that run it."""

    def __init__(self, torch, row):
        self.torch, self.row = torch, row
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[row["dtype"]]
        self.backward = row["pass"] == "backward"
        self.length, self.keys = row["Sq"], row["Skv"]

        def tensor(heads, length):
            shape = (row["B"], heads, length, row["D"])
            values = torch.rand(shape, device="cuda", dtype=dtype) * 2 - 1
            return values.requires_grad_(self.backward)

        self.q = tensor(row["Hq"], self.length)
        self.k = tensor(row["Hkv"], self.keys)
        self.v = tensor(row["Hkv"], self.keys)
        self.captured = []

    def sdpa(self, backend):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        kernels = {
            "flash": SDPBackend.FLASH_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION,
            "cudnn": SDPBackend.CUDNN_ATTENTION,
            "math": SDPBackend.MATH,
        }
        attention = self.torch.nn.functional.scaled_dot_product_attention
        options = {"is_causal": self.row["variant"] == "causal"}
        if self.row["Hq"] != self.row["Hkv"]:
            options["enable_gqa"] = True

        def run():
            with sdpa_kernel(kernels[backend]):
                return attention(self.q, self.k, self.v, **options)

        return run

    def flex(self):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        torch, variant = self.torch, self.row["variant"]
        options = {"enable_gqa": self.row["Hq"] != self.row["Hkv"]}

        def causal(b, h, q, kv):
            return kv <= q

        def window(b, h, q, kv):
            return (kv <= q) & (q - kv < WINDOW)

        ids = torch.arange(self.keys, device="cuda") // max(1, self.keys // DOCUMENTS)

        def documents(b, h, q, kv):
            return (kv <= q) & (ids[q] == ids[kv])

        heads = self.row["Hq"]
        slope = torch.tensor([2.0 ** (-8 * (h + 1) / heads) for h in range(heads)], device="cuda")
        slope.requires_grad_(self.backward and variant == "soft_cap_alibi")

        def soft_cap_alibi(score, b, h, q, kv):
            return SOFT_CAP * torch.tanh((score + slope[h] * (kv - q)) / SOFT_CAP)

        def checkerboard(score, b, h, q, kv):
            return torch.where((kv - q) % 2 == 0, score / 2, score * 2)

        mods = {"soft_cap_alibi": soft_cap_alibi, "checkerboard": checkerboard}
        masks = {
            "causal": causal,
            "soft_cap_alibi": causal,
            "window": window,
            "documents": documents,
        }
        if variant in mods:
            options["score_mod"] = mods[variant]
        if variant in masks:
            options["block_mask"] = create_block_mask(
                masks[variant], None, None, self.length, self.keys, device="cuda"
            )
        if slope.requires_grad:
            self.captured = [slope]
        compiled = torch.compile(flex_attention, dynamic=False)
        return lambda: compiled(self.q, self.k, self.v, **options)

    def timed(self, backend):
        """The function to time: the forward pass, or the backward pass of one that has run."""
        forward = self.flex() if backend == "flex" else self.sdpa(backend)
        if not self.backward:
            return forward
        out = forward()
        gradient = self.torch.rand_like(out)
        wanted = [self.q, self.k, self.v, *self.captured]
        return lambda: self.torch.autograd.grad(out, wanted, gradient, retain_graph=True)


def measure(torch, run, flops, seconds):
    """Runs for about `seconds`; each run alone between two events."""
    run()  # compiles, loads
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    cache = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    start, stop_event = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times, began = [], time.monotonic()
    while len(times) < 3 or (len(times) < 200 and time.monotonic() - began < seconds):
        cache.zero_()
        torch.cuda._sleep(1_000_000)  # the host queues what is timed in the meantime
        start.record()
        run()
        stop_event.record()
        stop_event.synchronize()
        times.append(start.elapsed_time(stop_event))
    return summary(times, flops, torch.cuda.max_memory_allocated() - cache.numel())


def compare_row(torch, row, backends, seconds):
    """Fills row["pytorch"]; what a back end cannot do is part of the result."""
    results = row["pytorch"] = {}
    for backend in backends:
        if backend not in backends_for(row):
            continue
        try:
            shape = Shape(torch, row)
            results[backend] = measure(torch, shape.timed(backend), row["flops"], seconds)
        except torch.cuda.OutOfMemoryError:
            results[backend] = {"skipped": "out of memory"}
        except Exception as error:  # a back end refuses a shape in many ways
            results[backend] = {"skipped": "refused", "reason": str(error).splitlines()[:1]}
        shape = None
        torch.cuda.empty_cache()
    torch._dynamo.reset()


def read_rows(path):
    try:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["bench"]
        if not isinstance(rows, list):
            raise KeyError("bench")
        return rows
    except (OSError, ValueError, KeyError, TypeError) as error:
        stop(BAD_USAGE, f"{path}: not a result of attnproof gpu-check with benches ({error!r})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", help="the JSON file of attnproof gpu-check")
    parser.add_argument("--out", default="compare.json", help="what was measured (%(default)s)")
    parser.add_argument("--filter", default="", help="a regular expression of the names of shapes")
    parser.add_argument("--backends", default=",".join(BACKENDS), help="some of %(default)s")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each measurement")
    parser.add_argument("--budget", type=float, default=600, help="seconds for everything")
    arguments = parser.parse_args()
    backends = arguments.backends.split(",")
    for backend in backends:
        if backend not in BACKENDS:
            stop(BAD_USAGE, f"--backends: '{backend}', expected some of {', '.join(BACKENDS)}")
    try:
        wanted = re.compile(arguments.filter)
    except re.error as error:
        stop(BAD_USAGE, f"--filter: {error}")
    rows = [row for row in read_rows(arguments.result) if wanted.search(row["name"])]

    try:
        import torch
    except ImportError:
        stop(CANNOT, "there is no PyTorch here")
    if not torch.cuda.is_available():
        stop(CANNOT, "there is no GPU here, or this PyTorch cannot use it")

    began, done = time.monotonic(), []
    for row in rows:
        if time.monotonic() - began > arguments.budget:
            row["pytorch"] = {b: {"skipped": "out of time"} for b in backends_for(row)}
        else:
            compare_row(torch, row, backends, arguments.seconds)
        done.append(row)
        result = {
            "torch": torch.__version__,
            "gpu": torch.cuda.get_device_name(),
            "seconds": time.monotonic() - began,
            "bench": done,
        }
        with open(arguments.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
    print(table(done))


if __name__ == "__main__":
    main()
