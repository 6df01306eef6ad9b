#!/usr/bin/env python3
"""Solves the cases of `attnproof emit` in PyTorch.

    attnproof emit --cases 50 cases
    python3 docs/scripts/attnproof_torch.py cases
    attnproof check cases

Needs `pip install torch safetensors`. With --device cuda it runs there; if PyTorch was told to round fp32
products to TF32, `attnproof check --rounds tf32` allows it. To have your own kernel judged, put it where
`attention` is: if it gives no LSE, check with --no-lse."""

import argparse
import json
import pathlib

import torch
from safetensors.torch import load_file, save_file

INFINITY = float("inf")


def attention(q, k, v, scale, mask, bias, sink):
    """O [B, Hq, Sq, Dv] and LSE [B, Hq, Sq] in fp32; docs/contract.md says what they mean.

    mask [B, Hq, Sq, Skv] is true where a pair attends, bias of that shape is added to the scaled score,
    sink [Hq] is one more logit that has no value. A row without a key has O = 0, LSE = -inf or its sink."""
    group = q.shape[1] // max(k.shape[1], 1)  # repeated in fp32, so that dK and dV are added up there
    k, v = (x.float().repeat_interleave(group, dim=1) for x in (k, v))
    scores = scale * (q.float() @ k.mT)
    logits = torch.where(mask, scores + bias, -INFINITY)
    column = sink[None, :, None, None].expand(*logits.shape[:3], 1)
    logits = torch.cat([logits, column], dim=3)
    top = logits.detach().amax(dim=3, keepdim=True)
    top = torch.where(top == -INFINITY, 0.0, top)  # of a row without a key
    weights = torch.exp(logits - top)
    total = weights.sum(dim=3, keepdim=True)
    total_or_one = torch.where(total > 0, total, 1.0)
    o = (weights[..., :-1] / total_or_one) @ v
    lse = torch.where(total > 0, top + torch.log(total_or_one), -INFINITY)
    return o, lse[..., 0]


def solve(case, tensors):
    """What the case wants to be written, by name."""
    storage, mask = tensors["q"].dtype, tensors["mask"].bool()
    q, k, v = (tensors[name].requires_grad_() for name in "qkv")
    bias = tensors.get("mod_bias", torch.zeros(mask.shape, device=q.device))
    sink = tensors.get("sink", torch.full((q.shape[1],), -INFINITY, device=q.device))
    o, lse = attention(q, k, v, float(case["scale"]), mask, bias, sink)
    outputs = {"o": o.to(storage), "lse": lse}
    if case["pass"] == "backward":
        incoming = (tensors["d_o"].float(), tensors.get("d_lse", torch.zeros_like(lse)))
        gradients = torch.autograd.grad((o, lse), (q, k, v), incoming)
        outputs.update(zip(("dq", "dk", "dv"), gradients))
    return {name: x.detach().contiguous() for name, x in outputs.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="which attnproof emit has filled")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    folder = arguments.folder
    cases = json.loads((folder / "manifest.json").read_text())["cases"]
    for case in cases:
        if case["mod"] not in ("score", "score + mod_bias[b, h, q, kv]"):
            print(f"{case['inputs']}: a mod that this script does not know: {case['mod']}")
            continue
        tensors = load_file(folder / case["inputs"], device=arguments.device)
        save_file(solve(case, tensors), folder / case["outputs"])
    print(f"{len(cases)} cases solved with PyTorch {torch.__version__} on {arguments.device}")


if __name__ == "__main__":
    main()
