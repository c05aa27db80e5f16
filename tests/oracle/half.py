"""The perceptron of models.py with f32 weights and half-precision arithmetic, in NumPy.

Products have half-precision operands, sums in f32 and results that are rounded once; every elementwise operator is rounded;
softmax, loss, sums of gradients and the gradients of weights are f32.
"""

import math

import numpy as np

from common import HERE, write_json
from safetensors.numpy import load_file

F32 = np.float32
erf = np.vectorize(math.erf, otypes=[np.float64])


def bf16(x):
    """Rounded to the nearest bf16, ties to even; the numbers here are finite."""
    bits = np.asarray(x, F32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(F32)


def f16(x):
    return np.asarray(x, F32).astype(np.float16).astype(F32)


def perceptron(r, x, target, p):
    """Loss, logits and gradients where `r` rounds."""
    x, w1, b1, w2, b2 = (r(F32(v)) for v in (x, p["fc1.weight"], p["fc1.bias"], p["fc2.weight"], p["fc2.bias"]))
    z = r(r(x @ w1.T) + b1)
    share = r(r(r(erf(r(z * r(math.sqrt(0.5))))) + F32(1)) * F32(0.5))
    h = r(z * share)
    logits = r(r(h @ w2.T) + b2)
    rows = np.arange(len(target))
    shifted = logits - logits.max(1, keepdims=True)
    sums = np.exp(shifted).sum(1, keepdims=True)
    loss = (np.log(sums)[:, 0] - shifted[rows, target]).mean()
    slope = np.exp(shifted) / sums
    slope[rows, target] -= 1
    wide = F32(slope / len(target))
    g = r(wide)
    density = r(r(np.exp(r(r(z * z) * F32(-0.5)))) * r(1 / math.sqrt(2 * math.pi)))
    dz = r(r(g @ w2) * r(share + r(z * density)))
    grads = {"fc1.weight": dz.T @ x, "fc1.bias": dz.sum(0), "fc2.weight": g.T @ h, "fc2.bias": wide.sum(0)}
    return {"loss": loss, "logits": logits, **{f"grad/{k}": v for k, v in grads.items()}}


def write():
    tensors = load_file(HERE / "models.safetensors")
    p = {k.removeprefix("mlp/param/"): v for k, v in tensors.items() if k.startswith("mlp/param/")}
    rows = []
    for policy, r in [("bf16", bf16), ("f16", f16)]:
        for name, value in perceptron(r, tensors["mlp/input/x"], tensors["mlp/input/target"], p).items():
            rows.append({"policy": policy, "name": name, "values": [float(v) for v in np.ravel(F32(value))]})
    write_json("half.json", {}, "results", rows)
    return f"{len(rows)} results"
