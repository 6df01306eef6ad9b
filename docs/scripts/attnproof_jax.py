#!/usr/bin/env python3
"""Solves the cases of `attnproof emit` in JAX, on whatever device it finds.

    attnproof emit --cases 50 cases
    python3 docs/scripts/attnproof_jax.py cases
    attnproof check cases

Needs `pip install jax safetensors`. To have your own kernel judged, put it where `attention` is."""

import functools
import json
import pathlib
import sys

import jax
import jax.numpy as jnp
from safetensors.flax import load_file, save_file

INFINITY = float("inf")


def attention(q, k, v, scale, mask, bias, sink):
    """O [B, Hq, Sq, Dv] and LSE [B, Hq, Sq] in fp32; docs/contract.md says what they mean.

    mask [B, Hq, Sq, Skv] is true where a pair attends, bias of that shape is added to the scaled score,
    sink [Hq] is one more logit that has no value. A row without a key has O = 0, LSE = -inf or its sink."""
    group = q.shape[1] // max(k.shape[1], 1)
    k, v = jnp.repeat(k, group, axis=1), jnp.repeat(v, group, axis=1)
    scores = scale * jnp.einsum("bhid,bhjd->bhij", q, k, precision="highest")
    logits = jnp.where(mask, scores + bias, -INFINITY)
    column = jnp.broadcast_to(sink[None, :, None, None], (*logits.shape[:3], 1))
    logits = jnp.concatenate([logits, column], axis=3)
    top = jax.lax.stop_gradient(jnp.max(logits, axis=3, keepdims=True))
    top = jnp.where(jnp.isneginf(top), 0.0, top)  # of a row without a key
    weights = jnp.exp(logits - top)
    total = jnp.sum(weights, axis=3, keepdims=True)
    total_or_one = jnp.where(total > 0, total, 1.0)
    o = jnp.einsum("bhij,bhjd->bhid", weights[..., :-1] / total_or_one, v, precision="highest")
    lse = jnp.where(total > 0, top + jnp.log(total_or_one), -INFINITY)
    return o, lse[..., 0]


def solve(case, tensors):
    """What the case wants to be written, by name."""
    q, k, v = tensors["q"], tensors["k"], tensors["v"]
    storage, mask = q.dtype, tensors["mask"].astype(bool)
    bias = tensors.get("mod_bias", jnp.zeros(mask.shape, jnp.float32))
    sink = tensors.get("sink", jnp.full(q.shape[1], -INFINITY, jnp.float32))

    def forward(q, k, v):
        return attention(q, k, v, float(case["scale"]), mask, bias, sink)

    inputs = [x.astype(jnp.float32) for x in (q, k, v)]
    if case["pass"] == "forward":
        o, lse = forward(*inputs)
        return {"o": o.astype(storage), "lse": lse}
    (o, lse), backward = jax.vjp(forward, *inputs)
    d_lse = tensors.get("d_lse", jnp.zeros(lse.shape, jnp.float32))
    gradients = backward((tensors["d_o"].astype(jnp.float32), d_lse))
    named = zip(("dq", "dk", "dv"), (x.astype(storage) for x in gradients))
    return {"o": o.astype(storage), "lse": lse, **dict(named)}


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: attnproof_jax.py FOLDER, which attnproof emit has filled")
    folder = pathlib.Path(sys.argv[1])
    cases = json.loads((folder / "manifest.json").read_text())["cases"]
    for case in cases:
        if case["mod"] not in ("score", "score + mod_bias[b, h, q, kv]"):
            print(f"{case['inputs']}: a mod that this script does not know: {case['mod']}")
            continue
        solve_it = jax.jit(functools.partial(solve, case))
        save_file(solve_it(load_file(folder / case["inputs"])), folder / case["outputs"])
    print(f"{len(cases)} cases solved with JAX {jax.__version__} on {jax.devices()[0].platform}")


if __name__ == "__main__":
    main()
