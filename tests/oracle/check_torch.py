"""Compares the oracle files with PyTorch, in f64 on the CPU. Prints the largest differences; fails above the limits."""

import collections
import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import load_file

HERE = pathlib.Path(__file__).resolve().parent
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def load(name):
    return json.loads((HERE / f"{name}.json").read_text()), load_file(HERE / f"{name}.safetensors")


def tensor(a, dtype=None):
    t = torch.tensor(a)
    return t.long() if t.dtype == torch.int32 else t.to(dtype) if dtype and t.is_floating_point() else t


def difference(ours, theirs):
    """Relative to the largest magnitude where that is above 1."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    return float(np.max(np.abs(ours - theirs), initial=0.0) / max(1.0, np.max(np.abs(theirs), initial=0.0)))


def batch_norm(x, weight, bias, eps):
    axes = [i for i in range(x.ndim) if i != 1]
    return F.batch_norm(x, None, None, weight, bias, True, 0.0, eps), x.mean(axes), x.var(axes, correction=0)


def rotary(x, base, offset, interleaved):
    """As multiplication of complex numbers."""
    s, d = x.shape[-2:]
    pairs = x.unflatten(-1, (-1, 2)) if interleaved else x.unflatten(-1, (2, -1)).transpose(-1, -2)
    angle = torch.outer(torch.arange(s) + float(offset), base ** (-torch.arange(0, d, 2) / d))
    turned = torch.view_as_complex(pairs.contiguous()) * torch.polar(torch.ones_like(angle), angle)
    turned = torch.view_as_real(turned)
    return (turned if interleaved else turned.transpose(-1, -2)).flatten(-2)


def attention(q, k, v, *mask, causal):
    return F.scaled_dot_product_attention(q, k, v, *mask, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])


def swapped(logits, target):
    return (logits.movedim(-1, 1), target) if logits.ndim > 2 else (logits, target)


def weighted(logits, target, weight):
    return (weight * F.cross_entropy(logits, target, reduction="none")).sum() / weight.sum()


def cumulative(f):
    return lambda x, axis, reverse: f(x.flip(axis), axis).flip(axis) if reverse else f(x, axis)


def slices(x, start, limit, stride):
    return x[tuple(slice(*v) for v in zip(start, limit, stride))]


def scatter(f):
    return lambda x, index, update, axis: f(x, axis, index, update)


def dot_general(lhs, rhs, lhs_contract, rhs_contract, lhs_batch, rhs_batch):
    a, b = list(range(lhs.ndim)), list(range(10, 10 + rhs.ndim))
    for i, j in [*zip(lhs_contract, rhs_contract), *zip(lhs_batch, rhs_batch)]:
        b[j] = a[i]
    batch = [a[i] for i in lhs_batch]
    free = [a[i] for i in range(lhs.ndim) if i not in lhs_contract + lhs_batch]
    free += [b[i] for i in range(rhs.ndim) if i not in rhs_contract + rhs_batch]
    return torch.einsum(lhs, a, rhs, b, batch + free)


def convolution(x, w, strides, padding, lhs_dilation, rhs_dilation, groups):
    n = x.ndim - 2
    extents = [(d - 1) * k + 1 for d, k in zip(x.shape[2:], lhs_dilation)]
    wide = x.new_zeros(*x.shape[:2], *extents)
    wide[(..., *(slice(None, None, k) for k in lhs_dilation))] = x
    wide = F.pad(wide, [v for low_high in reversed(padding) for v in low_high])
    return [F.conv1d, F.conv2d][n - 1](wide, w, None, strides, 0, rhs_dilation, groups)


def pool(f):
    return lambda x, kernel, stride, padding, **rest: f(x, kernel, stride, padding, **rest)


def max_pool_grad(x, dy, kernel, stride, padding):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(F.max_pool2d(x, kernel, stride, padding), x, dy)[0]


def clip(*xs, max_norm):
    # torch.nn.utils.clip_grad_norm_ adds 1e-6 to the norm.
    norm = torch.linalg.vector_norm(torch.cat([x.flatten() for x in xs]))
    return (*(x * torch.clamp(max_norm / norm, max=1.0) for x in xs), norm)


def product(x, axes):
    for axis in reversed(axes):
        x = x.prod(axis)
    return x


def sort(keys, payload, axis):
    out, order = torch.sort(keys, dim=axis, stable=True)
    return out, payload.gather(axis, order)


OPERATORS = {
    **{k: getattr(torch, k) for k in "neg abs sign exp expm1 log log1p sqrt rsqrt reciprocal sin cos tan tanh".split()},
    **{k: getattr(torch, k) for k in "erf floor ceil add sub mul div pow atan2 maximum minimum sigmoid square matmul".split()},
    **{k: getattr(F, k) for k in "relu elu relu6 silu linear".split()},
    "round_even": torch.round,
    "rem": torch.fmod,
    "softplus": lambda x: F.softplus(x, threshold=800),
    "leaky_relu": lambda x, slope: F.leaky_relu(x, slope),
    "gelu": lambda x, approximation: F.gelu(x, approximate=approximation),
    "select": torch.where,
    "clamp": lambda lo, x, hi: torch.clamp(x, lo, hi),
    "clip_by_value": lambda x, lo, hi: torch.clamp(x, lo, hi),
    "reduce_sum": lambda x, axes: x.sum(axes),
    "reduce_product": product,
    "reduce_max": lambda x, axes: x.amax(axes),
    "reduce_min": lambda x, axes: x.amin(axes),
    "cumulative_sum": cumulative(torch.cumsum),
    "cumulative_product": cumulative(torch.cumprod),
    "cumulative_max": cumulative(lambda x, axis: torch.cummax(x, axis)[0]),
    "cumulative_min": cumulative(lambda x, axis: torch.cummin(x, axis)[0]),
    "mean": lambda x, axes, keepdims: x.mean(axes, keepdims),
    "variance": lambda x, axes, ddof, keepdims: x.var(axes, correction=ddof, keepdim=keepdims),
    "reshape": lambda x, shape: x.reshape(shape),
    "transpose": lambda x, permutation: x.permute(permutation),
    "slice": slices,
    "concatenate": lambda *xs, axis: torch.cat(xs, axis),
    "reverse": lambda x, axes: x.flip(axes),
    "gather": lambda x, index, axis: x.movedim(axis, 0)[index].movedim(list(range(index.ndim)), list(range(axis, axis + index.ndim))),
    "take_along_axis": lambda x, index, axis: x.gather(axis, index),
    "scatter_set": scatter(torch.index_copy),
    "scatter_add": scatter(torch.index_add),
    "sort": sort,
    "dot_general": dot_general,
    "convolution": convolution,
    "conv2d": lambda x, weight, bias, **attrs: F.conv2d(x, weight, bias, **attrs),
    "conv_transpose2d": lambda x, weight, bias, **attrs: F.conv_transpose2d(x, weight, bias, **attrs),
    "max_pool2d": pool(F.max_pool2d),
    "avg_pool2d": pool(F.avg_pool2d),
    "max_pool_grad": max_pool_grad,
    "global_avg_pool": lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1),
    "layer_norm": lambda x, weight, bias, dims, eps: F.layer_norm(x, x.shape[-dims:], weight, bias, eps),
    "rms_norm": lambda x, weight, eps: F.rms_norm(x, x.shape[-1:], weight, eps),
    "group_norm": lambda x, weight, bias, groups, eps: F.group_norm(x, groups, weight, bias, eps),
    "batch_norm": batch_norm,
    "softmax": lambda x, axis: F.softmax(x, axis),
    "log_softmax": lambda x, axis: F.log_softmax(x, axis),
    "logsumexp": lambda x, axes: torch.logsumexp(x, axes),
    "embedding": lambda table, ids: F.embedding(ids, table),
    "one_hot": lambda ids, classes: F.one_hot(ids, classes),
    "attention": attention,
    "rotary": rotary,
    "cross_entropy": lambda logits, target, **attrs: F.cross_entropy(*swapped(logits, target), **attrs),
    "cross_entropy_weighted": weighted,
    "cross_entropy_soft": lambda logits, target, reduction: F.cross_entropy(logits, target, reduction=reduction),
    "bce_with_logits": lambda x, target, reduction: F.binary_cross_entropy_with_logits(x, target, reduction=reduction),
    "mse": lambda x, target, reduction: F.mse_loss(x, target, reduction=reduction),
    "l1": lambda x, target, reduction: F.l1_loss(x, target, reduction=reduction),
    "huber": lambda x, target, delta, reduction: F.huber_loss(x, target, reduction=reduction, delta=delta),
    "accuracy": lambda logits, target: (logits.argmax(-1) == target).double().mean(),
    "clip_by_global_norm": clip,
}


def check_operators():
    index, data = load("operators")
    worst, skipped = collections.Counter(), set()
    for case in index["cases"]:
        if case["op"] not in OPERATORS:
            skipped.add(case["op"])
            continue
        inputs = [tensor(data[i["key"]]) for i in case["inputs"]]
        for x, i in zip(inputs, case["inputs"]):
            x.requires_grad_(i["vjp"] is not None)
        outs = OPERATORS[case["op"]](*inputs, **case["attrs"])
        outs = outs if isinstance(outs, tuple) else (outs,)
        assert len(outs) == len(case["outputs"]), case["name"]
        value = max(difference(data[o["key"]], v.detach()) for o, v in zip(case["outputs"], outs))
        pairs = [(v, tensor(data[o["ct"]])) for o, v in zip(case["outputs"], outs) if o["ct"]]
        wanted = [(x, data[i["vjp"]]) for x, i in zip(inputs, case["inputs"]) if i["vjp"]]
        grads = 0.0
        if wanted:
            values, cts = zip(*pairs)
            got = torch.autograd.grad(values, [x for x, _ in wanted], cts, allow_unused=True)
            grads = max(difference(w, torch.zeros(w.shape) if g is None else g) for (_, w), g in zip(wanted, got))
        worst[case["name"]] = max(value, grads)
    print(f"operators: {len(worst)} cases compared; not compared: {', '.join(sorted(skipped))}")
    print("  largest:", ", ".join(f"{k} {v:.1e}" for k, v in worst.most_common(8)))
    return worst


def parameters(data, name, dtype):
    prefix = f"{name}/param/"
    return {k.removeprefix(prefix): tensor(v, dtype).requires_grad_() for k, v in data.items() if k.startswith(prefix)}


def of(p, name):
    return [p[f"{name}.{k}"] for k in ("weight", "bias") if f"{name}.{k}" in p]


def mlp(p, x):
    return F.linear(F.gelu(F.linear(x, *of(p, "fc1"))), *of(p, "fc2"))


def cnn(p, x):
    block = lambda x, i: F.relu(F.batch_norm(F.conv2d(x, *of(p, f"conv{i}"), padding=1), None, None, *of(p, f"bn{i}"), True))
    return F.linear(block(F.max_pool2d(block(x, 1), 2), 2).mean((2, 3)), *of(p, "fc"))


def heads(x, n):
    return x.unflatten(-1, (n, -1)).transpose(1, 2)


def transformer(p, ids):
    x = F.embedding(ids, p["tok.weight"]) + p["pos.weight"]
    h = F.layer_norm(x, (16,), *of(p, "ln1"))
    q, k, v = (heads(F.linear(h, *of(p, f"attn.{n}")), 4) for n in "qkv")
    x = x + F.linear(attention(q, k, v, causal=True).transpose(1, 2).flatten(2), *of(p, "attn.o"))
    h = F.linear(F.layer_norm(x, (16,), *of(p, "ln2")), *of(p, "mlp.fc1"))
    x = x + F.linear(F.gelu(h, approximate="tanh"), *of(p, "mlp.fc2"))
    return F.linear(F.layer_norm(x, (16,), *of(p, "lnf")), *of(p, "head"))


def llama(p, ids):
    x = F.embedding(ids, p["tok.weight"])
    h = F.rms_norm(x, (16,), *of(p, "attn_norm"), 1e-5)
    q, k, v = (heads(F.linear(h, *of(p, f"attn.{n}")), c) for n, c in [("q", 4), ("k", 2), ("v", 2)])
    q, k = (rotary(t, 10000.0, 0, False).to(t.dtype) for t in (q, k))
    x = x + F.linear(attention(q, k, v, causal=True).transpose(1, 2).flatten(2), *of(p, "attn.o"))
    h = F.rms_norm(x, (16,), *of(p, "mlp_norm"), 1e-5)
    h = F.silu(F.linear(h, *of(p, "mlp.gate"))) * F.linear(h, *of(p, "mlp.up"))
    x = x + F.linear(h, *of(p, "mlp.down"))
    return F.linear(F.rms_norm(x, (16,), *of(p, "norm"), 1e-5), *of(p, "head"))


def optimizer(params, config):
    settings = {k: v for k, v in config.items() if k not in ("rule", "decoupled")}
    rule = "adamw" if config.get("decoupled") else config["rule"]
    make = {
        "sgd": torch.optim.SGD,
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
        "rmsprop": torch.optim.RMSprop,
        "adafactor": torch.optim.Adafactor,
    }[rule]
    return make(params, **({"weight_decay": 0.0} | settings))


def check_models():
    index, data = load("models")
    worst = collections.Counter()
    for model in index["models"]:
        name, zero = model["name"], model["zero_gradient"]
        for dtype, short in [(torch.float64, "f64"), (torch.float32, "f32")]:
            x, target = tensor(data[f"{name}/input/x"], dtype), tensor(data[f"{name}/input/target"])

            def loss(p):
                logits = globals()[name](p, x)
                return logits, F.cross_entropy(logits.flatten(0, -2), target.flatten())

            def compare(label, key, value):
                d = difference(data[f"{name}/{short}/{key}"], value.detach())
                worst[f"{short} {label}"] = max(worst[f"{short} {label}"], d)

            p = parameters(data, name, dtype)
            logits, value = loss(p)
            value.backward()
            compare("loss", "loss", value)
            compare("logits", "logits", logits)
            for k, v in p.items():
                compare("gradients", f"grad/{k}", v.grad)
            for label in model["optimizers"]:
                p = parameters(data, name, dtype)
                rule = optimizer(p.values(), index["optimizers"][label])
                losses = []
                for _ in range(index["steps"]):
                    rule.zero_grad()
                    value = loss(p)[1]
                    losses.append(value.detach())
                    value.backward()
                    rule.step()
                compare("losses in training", f"{label}/losses", torch.stack(losses))
                for k, v in p.items():
                    compare("final, zero gradient" if k in zero else "final parameters", f"{label}/final/{k}", v)
    print("models:", "; ".join(f"{k} {v:.1e}" for k, v in sorted(worst.items())))
    return worst


def lion(row):
    """PyTorch has no Lion: optax, where it is installed."""
    try:
        import jax
        import optax
    except ModuleNotFoundError:
        print(f"{row['name']} is not compared: optax is missing")
        return 0.0
    jax.config.update("jax_enable_x64", True)
    b1, b2 = row["config"]["betas"]
    rule = optax.lion(row["config"]["lr"], b1, b2, weight_decay=row["config"].get("weight_decay", 0.0))
    p, worst = jax.numpy.asarray(row["start"]), 0.0
    state = rule.init(p)
    for grad, want in zip(row["grads"], row["steps"]):
        updates, state = rule.update(jax.numpy.asarray(grad), state, p)
        p = optax.apply_updates(p, updates)
        worst = max(worst, difference(want["param"], tensor(np.array(p))), difference(want["m"], tensor(np.array(state[0].mu))))
    return worst


def check_optimizers():
    worst = collections.Counter()
    names = {
        "momentum": "momentum_buffer", "m": "exp_avg", "v": "exp_avg_sq", "mean": "grad_avg", "row": "row_var", "column": "col_var",
    }
    for row in json.loads((HERE / "optimizers.json").read_text())["sequences"]:
        if row["config"]["rule"] == "lion":
            worst[row["name"]] = lion(row)
            continue
        shape = row.get("shape", [4])
        p = tensor(row["start"]).reshape(shape).requires_grad_()
        rule = optimizer([p], row["config"])
        for grad, want in zip(row["grads"], row["steps"]):
            p.grad = tensor(grad).reshape(shape)
            rule.step()
            state = rule.state[p]
            for k, v in want.items():
                squares = [n for n in ("square_avg", "variance") if k == "v" and n in state]
                name = squares[0] if squares else names.get(k)
                d = difference(v, (p.detach() if k == "param" else state[name]).flatten())
                worst[row["name"]] = max(worst[row["name"]], d)
    print(f"optimizers: {len(worst)} sequences; largest: {max(worst.values()):.1e}")
    return worst


def main():
    print(f"torch {torch.__version__}, numpy {np.__version__}")
    bad = {k: v for k, v in check_operators().items() if not v < 1e-12}
    for k, v in check_models().items():
        limit = 1e-5 if k.startswith("f32") else 1e-9 if "zero" in k else 1e-12
        if not v < limit and k != "f32 final, zero gradient":
            bad[k] = v
    bad |= {k: v for k, v in check_optimizers().items() if not v < 1e-14}
    assert not bad, bad


if __name__ == "__main__":
    main()
