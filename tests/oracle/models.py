"""models.safetensors, models.json: whole models, their gradients and ten steps of training."""

import math

import jax
import jax.numpy as jnp
import numpy as np

import nn
from common import DTYPES, Rng, write_json, write_tensors
from optimizers import ADAM, RMSPROP, initial_state, step

STEPS = 10
OPTIMIZERS = {
    "sgd": {"rule": "sgd", "lr": 0.1},
    "nesterov": {"rule": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": True},
    "adam": ADAM,
    "adamw": ADAM | {"weight_decay": 0.01, "decoupled": True},
    "rmsprop": RMSPROP | {"lr": 1e-3},
}


class Params(dict):
    """Fills in parameters with PyTorch's bounds; norms are off their ones and zeros, so that they count."""

    def __init__(self, name):
        self.rng = Rng(f"model.{name}")

    def weight(self, name, *shape, bias=True):
        bound = 1 / math.sqrt(math.prod(shape[1:]))
        self[f"{name}.weight"] = self.rng.uniform(-bound, bound, *shape)
        if bias:
            self[f"{name}.bias"] = self.rng.uniform(-bound, bound, shape[0])

    def norm(self, name, n, bias=True):
        self[f"{name}.weight"] = self.rng.uniform(0.7, 1.3, n)
        if bias:
            self[f"{name}.bias"] = self.rng.uniform(-0.3, 0.3, n)

    def table(self, name, *shape):
        self[f"{name}.weight"] = self.rng.normal(*shape)


def of(p, name):
    """The weight of a layer and, where it has one, the bias."""
    return [p[f"{name}.{k}"] for k in ("weight", "bias") if f"{name}.{k}" in p]


def mlp():
    p = Params("mlp")
    p.weight("fc1", 16, 20)
    p.weight("fc2", 5, 16)
    inputs = {"x": p.rng.normal(8, 20), "target": p.rng.ints(0, 5, 8)}

    def forward(p, x):
        h = jax.nn.gelu(nn.linear(x, *of(p, "fc1")), approximate=False)
        return nn.linear(h, *of(p, "fc2")), {}

    return p, inputs, forward


def cnn():
    p = Params("cnn")
    p.weight("conv1", 4, 2, 3, 3)
    p.norm("bn1", 4)
    p.weight("conv2", 8, 4, 3, 3)
    p.norm("bn2", 8)
    p.weight("fc", 5, 8)
    inputs = {"x": p.rng.normal(4, 2, 8, 8), "target": p.rng.ints(0, 5, 4)}

    def forward(p, x):
        aux = {}

        def block(x, i):
            y = nn.conv2d(x, *of(p, f"conv{i}"), padding=1)
            y, aux[f"bn{i}.mean"], aux[f"bn{i}.var"] = nn.batch_norm(y, *of(p, f"bn{i}"))
            return jax.nn.relu(y)

        h = nn.max_pool2d(block(x, 1), (2, 2), (2, 2))
        h = block(h, 2).mean((2, 3))
        return nn.linear(h, *of(p, "fc")), aux

    return p, inputs, forward


def heads(x, n):
    """[B,S,H*D] to [B,H,S,D]."""
    b, s, width = x.shape
    return x.reshape(b, s, n, width // n).transpose(0, 2, 1, 3)


def merge(x):
    b, h, s, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b, s, h * d)


def transformer():
    p = Params("transformer")
    p.table("tok", 11, 16)
    p.table("pos", 6, 16)
    p.norm("ln1", 16)
    for name in "qkvo":
        p.weight(f"attn.{name}", 16, 16)
    p.norm("ln2", 16)
    p.weight("mlp.fc1", 64, 16)
    p.weight("mlp.fc2", 16, 64)
    p.norm("lnf", 16)
    p.weight("head", 11, 16)
    inputs = {"x": p.rng.ints(0, 11, 2, 6), "target": p.rng.ints(0, 11, 2, 6)}

    def forward(p, ids):
        x = p["tok.weight"][ids] + p["pos.weight"]
        h = nn.layer_norm(x, *of(p, "ln1"))
        q, k, v = (heads(nn.linear(h, *of(p, f"attn.{n}")), 4) for n in "qkv")
        x = x + nn.linear(merge(nn.attention(q, k, v, causal=True)), *of(p, "attn.o"))
        h = nn.linear(nn.layer_norm(x, *of(p, "ln2")), *of(p, "mlp.fc1"))
        x = x + nn.linear(jax.nn.gelu(h, approximate=True), *of(p, "mlp.fc2"))
        return nn.linear(nn.layer_norm(x, *of(p, "lnf")), *of(p, "head")), {}

    return p, inputs, forward


def llama():
    p = Params("llama")
    p.table("tok", 11, 16)
    p.norm("attn_norm", 16, bias=False)
    for name, rows in [("q", 16), ("k", 8), ("v", 8), ("o", 16)]:
        p.weight(f"attn.{name}", rows, 16, bias=False)
    p.norm("mlp_norm", 16, bias=False)
    p.weight("mlp.gate", 40, 16, bias=False)
    p.weight("mlp.up", 40, 16, bias=False)
    p.weight("mlp.down", 16, 40, bias=False)
    p.norm("norm", 16, bias=False)
    p.weight("head", 11, 16, bias=False)
    inputs = {"x": p.rng.ints(0, 11, 2, 6), "target": p.rng.ints(0, 11, 2, 6)}

    def forward(p, ids):
        x = p["tok.weight"][ids]
        h = nn.rms_norm(x, *of(p, "attn_norm"))
        q, k, v = (heads(nn.linear(h, *of(p, f"attn.{n}")), c) for n, c in [("q", 4), ("k", 2), ("v", 2)])
        y = nn.attention(nn.rotary(q), nn.rotary(k), v, causal=True)
        x = x + nn.linear(merge(y), *of(p, "attn.o"))
        h = nn.rms_norm(x, *of(p, "mlp_norm"))
        h = jax.nn.silu(nn.linear(h, *of(p, "mlp.gate"))) * nn.linear(h, *of(p, "mlp.up"))
        x = x + nn.linear(h, *of(p, "mlp.down"))
        return nn.linear(nn.rms_norm(x, *of(p, "norm")), *of(p, "head")), {}

    return p, inputs, forward


MODELS = {"mlp": (mlp, True), "cnn": (cnn, True), "transformer": (transformer, True), "llama": (llama, False)}


def run(name, params, inputs, forward, dtype, trained):
    """Every result of one model in one precision, by key."""
    cast = lambda v: jnp.asarray(v, dtype) if v.dtype == np.float64 else jnp.asarray(v)
    x, target = cast(inputs["x"]), jnp.asarray(inputs["target"])

    def loss(p):
        logits, aux = forward(p, x)
        return nn.cross_entropy(logits, target), (logits, aux)

    value_and_grad = jax.jit(jax.value_and_grad(loss, has_aux=True))
    start = {k: cast(v) for k, v in params.items()}
    (value, (logits, aux)), grads = value_and_grad(start)
    out = {"loss": value, "logits": logits}
    out |= {f"aux/{k}": v for k, v in aux.items()} | {f"grad/{k}": v for k, v in grads.items()}
    for label, config in OPTIMIZERS.items() if trained else []:
        p, losses = dict(start), []
        state = {k: initial_state(config, v) for k, v in p.items()}
        for t in range(1, STEPS + 1):
            (value, _), grads = value_and_grad(p)
            losses.append(value)
            for k in p:
                p[k], state[k] = step(config, p[k], grads[k], state[k], t)
        out[f"{label}/losses"] = jnp.stack(losses)
        out |= {f"{label}/final/{k}": v for k, v in p.items()}
    assert all(v.dtype == dtype and np.isfinite(v).all() for v in out.values()), name
    short = DTYPES[np.dtype(dtype).name]
    return {f"{name}/{short}/{k}": np.asarray(v) for k, v in out.items()}


def write():
    tensors, rows = {}, []
    for name, (make, trained) in MODELS.items():
        params, inputs, forward = make()
        tensors |= {f"{name}/input/{k}": v for k, v in inputs.items()}
        tensors |= {f"{name}/param/{k}": v for k, v in params.items()}
        wide = run(name, params, inputs, forward, np.float64, trained)
        narrow = run(name, params, inputs, forward, np.float32, trained)
        tensors |= wide | narrow
        zero = [k for k in params if np.abs(wide[f"{name}/f64/grad/{k}"]).max() < 1e-14]

        def distance(prefix):
            """Of the f32 results from the f64 ones, but for the parameters whose gradient is only rounding."""
            keys = [k for k in wide if k.startswith(f"{name}/f64/{prefix}") and not k.endswith(tuple(f"/{z}" for z in zero))]
            return max(float(np.abs(wide[k] - narrow[k.replace("/f64/", "/f32/")]).max()) for k in keys)

        labels = list(OPTIMIZERS) if trained else []
        prefixes = ["loss", "logits", "grad/"] + [f"{o}/{part}" for o in labels for part in ("losses", "final/")]
        rows.append({
            "name": name,
            "inputs": {k: {"dtype": DTYPES[str(v.dtype)], "shape": list(v.shape)} for k, v in inputs.items()},
            "params": [{"name": k, "shape": list(v.shape)} for k, v in params.items()],
            "aux": [k.split("/aux/")[1] for k in wide if "/aux/" in k],
            "optimizers": labels,
            "zero_gradient": zero,
            "f32_distance": {k.rstrip("/"): float(f"{distance(k):.2e}") for k in prefixes},
        })
    write_tensors("models.safetensors", tensors)
    write_json("models.json", {"steps": STEPS, "optimizers": OPTIMIZERS}, "models", rows)
    return f"{len(rows)} models, {len(tensors)} tensors"
