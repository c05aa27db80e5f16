"""language_models.safetensors: decoder-only transformers of published shapes, made small, by PyTorch in f64."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from common import Rng, write_tensors

MODELS = {
    "stories": {"layers": 2, "width": 16, "hidden": 24, "heads": 4, "kv": 4, "head": 4, "norm": False, "interleaved": True, "base": 1e4, "eps": 1e-5},
    "qwen3": {"layers": 3, "width": 12, "hidden": 20, "heads": 4, "kv": 2, "head": 6, "norm": True, "interleaved": False, "base": 1e6, "eps": 1e-6},
}
VOCABULARY, BATCH, LENGTH = 13, 2, 7


def parameters(name, c):
    rng, p = Rng(f"language.{name}"), {}
    linear = lambda key, rows, columns: p.update({f"{key}.weight": rng.normal(rows, columns, std=0.3)})
    norm = lambda key, n: p.update({f"{key}.weight": rng.uniform(0.7, 1.3, n)})
    linear("tokens", VOCABULARY, c["width"])
    for i in range(c["layers"]):
        norm(f"block{i}.norm1", c["width"])
        linear(f"block{i}.attn.q", c["heads"] * c["head"], c["width"])
        linear(f"block{i}.attn.k", c["kv"] * c["head"], c["width"])
        linear(f"block{i}.attn.v", c["kv"] * c["head"], c["width"])
        linear(f"block{i}.attn.o", c["width"], c["heads"] * c["head"])
        if c["norm"]:
            norm(f"block{i}.attn.q_norm", c["head"])
            norm(f"block{i}.attn.k_norm", c["head"])
        norm(f"block{i}.norm2", c["width"])
        linear(f"block{i}.mlp.gate", c["hidden"], c["width"])
        linear(f"block{i}.mlp.up", c["hidden"], c["width"])
        linear(f"block{i}.mlp.down", c["width"], c["hidden"])
    norm("norm", c["width"])
    x, y = (rng.ints(0, VOCABULARY, BATCH, LENGTH) for _ in range(2))
    return p, x, y


def turned(x, c):
    """Rotary embedding by complex numbers; pairs are neighbours, or first and second half."""
    d = c["head"]
    angle = torch.arange(LENGTH, dtype=torch.float64)[:, None] * c["base"] ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    turn = torch.polar(torch.ones_like(angle), angle)
    pairs = x.unflatten(-1, (-1, 2)) if c["interleaved"] else x.unflatten(-1, (2, -1)).transpose(-1, -2)
    out = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    return (out if c["interleaved"] else out.transpose(-1, -2)).flatten(-2)


def logits(p, c, ids):
    norm = lambda x, key: F.rms_norm(x, x.shape[-1:], p[f"{key}.weight"], c["eps"])
    linear = lambda x, key: F.linear(x, p[f"{key}.weight"])
    heads = lambda x: x.unflatten(-1, (-1, c["head"])).transpose(1, 2)
    x = F.embedding(ids, p["tokens.weight"])
    for i in range(c["layers"]):
        h = norm(x, f"block{i}.norm1")
        q, k, v = (heads(linear(h, f"block{i}.attn.{n}")) for n in "qkv")
        if c["norm"]:
            q, k = norm(q, f"block{i}.attn.q_norm"), norm(k, f"block{i}.attn.k_norm")
        mixed = F.scaled_dot_product_attention(turned(q, c), turned(k, c), v, is_causal=True, enable_gqa=True)
        x = x + linear(mixed.transpose(1, 2).flatten(2), f"block{i}.attn.o")
        h = norm(x, f"block{i}.norm2")
        x = x + linear(F.silu(linear(h, f"block{i}.mlp.gate")) * linear(h, f"block{i}.mlp.up"), f"block{i}.mlp.down")
    return F.linear(norm(x, "norm"), p["tokens.weight"])


def write():
    tensors = {}
    for name, c in MODELS.items():
        start, x, y = parameters(name, c)
        p = {k: torch.tensor(v, requires_grad=True) for k, v in start.items()}
        out = logits(p, c, torch.tensor(x, dtype=torch.int64))
        loss = F.cross_entropy(out.flatten(0, 1), torch.tensor(y, dtype=torch.int64).flatten())
        loss.backward()
        assert math.isfinite(loss.item())
        tensors |= {f"{name}/input/x": x, f"{name}/input/y": y}
        tensors |= {f"{name}/loss": loss.detach().numpy(), f"{name}/logits": out.detach().numpy()}
        tensors |= {f"{name}/param/{k}": np.asarray(v) for k, v in start.items()}
        tensors |= {f"{name}/grad/{k}": v.grad.numpy() for k, v in p.items()}
    write_tensors("language_models.safetensors", tensors)
    return f"{len(MODELS)} models, {len(tensors)} tensors; PyTorch {torch.__version__}"
