"""optimizers.json: the formulas of torch.optim and optax, and sequences of steps of one tensor in f64."""

import jax.numpy as jnp
import numpy as np

from common import Rng, write_json


def sgd(p, g, state, t, lr, momentum=0.0, dampening=0.0, nesterov=False, weight_decay=0.0):
    g = g + weight_decay * p
    if momentum:
        buf = g if t == 1 else momentum * state["momentum"] + (1 - dampening) * g
        g = g + momentum * buf if nesterov else buf
        state = {"momentum": buf}
    return p - lr * g, state


def adam(p, g, state, t, lr, betas, eps, weight_decay=0.0, decoupled=False):
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    m = betas[0] * state["m"] + (1 - betas[0]) * g
    v = betas[1] * state["v"] + (1 - betas[1]) * g * g
    root = jnp.sqrt(v) / (1 - betas[1] ** t) ** 0.5 + eps
    return p - lr / (1 - betas[0] ** t) * m / root, {"m": m, "v": v}


def rmsprop(p, g, state, t, lr, alpha, eps, weight_decay=0.0, momentum=0.0, centered=False):
    g = g + weight_decay * p
    v = alpha * state["v"] + (1 - alpha) * g * g
    new = {"v": v}
    if centered:
        new["mean"] = alpha * state["mean"] + (1 - alpha) * g
        v = v - new["mean"] * new["mean"]
    step = g / (jnp.sqrt(v) + eps)
    if momentum:
        step = new["momentum"] = momentum * state["momentum"] + step
    return p - lr * step, new


def lion(p, g, state, t, lr, betas, weight_decay=0.0):
    step = jnp.sign(betas[0] * state["m"] + (1 - betas[0]) * g) + weight_decay * p
    return p - lr * step, {"m": betas[1] * state["m"] + (1 - betas[1]) * g}


def adafactor(p, g, state, t, lr, beta2_decay=-0.8, eps=(2.0**-52, 1e-3), d=1.0, weight_decay=0.0):
    share = t**beta2_decay
    rms = lambda x: jnp.sqrt(jnp.mean(x * x))
    mixed = lambda old, new: old + share * (new - old)
    rate = jnp.maximum(eps[1], rms(p)) * min(lr, t**-0.5)
    p = p * (1 - lr * weight_decay)
    if p.ndim > 1:
        row = mixed(state["row"], jnp.mean(g * g, axis=-1, keepdims=True))
        column = mixed(state["column"], jnp.mean(g * g, axis=-2, keepdims=True))
        new = {"row": row, "column": column}
        v = row * column / jnp.maximum(jnp.mean(row, axis=-2, keepdims=True), eps[0])
    else:
        v = mixed(state["v"], g * g)
        new = {"v": v}
    step = g / jnp.sqrt(jnp.maximum(v, eps[0] ** 2))
    return p - rate / jnp.maximum(1.0, rms(step) / d) * step, new


RULES = {"sgd": sgd, "adam": adam, "rmsprop": rmsprop, "lion": lion, "adafactor": adafactor}


def initial_state(config, p):
    if config["rule"] == "adafactor" and p.ndim > 1:
        return {"row": jnp.zeros_like(p[..., :1]), "column": jnp.zeros_like(p[..., :1, :])}
    names = {
        "sgd": ["momentum"] if config.get("momentum") else [],
        "adam": ["m", "v"],
        "lion": ["m"],
        "adafactor": ["v"],
        "rmsprop": ["v"] + ["mean"] * config.get("centered", False) + ["momentum"] * bool(config.get("momentum")),
    }
    return {name: jnp.zeros_like(p) for name in names[config["rule"]]}


def step(config, p, g, state, t):
    """`t` counts from 1."""
    return RULES[config["rule"]](p, g, state, t, **{k: v for k, v in config.items() if k != "rule"})


ADAM = {"rule": "adam", "lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8}
RMSPROP = {"rule": "rmsprop", "lr": 1e-2, "alpha": 0.99, "eps": 1e-8}
SEQUENCES = {
    "sgd": {"rule": "sgd", "lr": 0.1},
    "sgd_weight_decay": {"rule": "sgd", "lr": 0.1, "weight_decay": 0.05},
    "sgd_momentum": {"rule": "sgd", "lr": 0.1, "momentum": 0.9},
    "sgd_dampening": {"rule": "sgd", "lr": 0.1, "momentum": 0.9, "dampening": 0.3},
    "sgd_nesterov": {"rule": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": True},
    "sgd_nesterov_weight_decay": {"rule": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05},
    "adam": ADAM,
    "adam_l2": ADAM | {"lr": 0.01, "weight_decay": 0.1},
    "adam_large_eps": ADAM | {"lr": 0.05, "betas": [0.8, 0.95], "eps": 0.1},
    "adamw": ADAM | {"lr": 0.01, "weight_decay": 0.1, "decoupled": True},
    "rmsprop": RMSPROP,
    "rmsprop_momentum": RMSPROP | {"momentum": 0.9},
    "rmsprop_centered": RMSPROP | {"centered": True},
    "rmsprop_all": RMSPROP | {"momentum": 0.9, "centered": True, "weight_decay": 0.05},
}
# Ten steps of these; shapes other than [4].
LION = {"rule": "lion", "lr": 0.01, "betas": [0.9, 0.99]}
LONG = {
    "lion": (LION, [4]),
    "lion_weight_decay": (LION | {"betas": [0.95, 0.98], "weight_decay": 0.1}, [4]),
    "adafactor_vector": ({"rule": "adafactor", "lr": 0.01}, [4]),
    "adafactor_matrix": ({"rule": "adafactor", "lr": 0.05}, [3, 5]),
    "adafactor_all": ({"rule": "adafactor", "lr": 0.6, "beta2_decay": -0.5, "eps": [1e-4, 0.1], "d": 1.25, "weight_decay": 0.1}, [2, 3, 4]),
}


def sequence(name, config, shape=(4,), steps=5):
    rng = Rng(f"optimizer.{name}")
    start, grads = rng.normal(*shape), rng.normal(steps, *shape)
    grads[2].flat[1] = 0.0
    p, state, rows = jnp.asarray(start), initial_state(config, jnp.asarray(start)), []
    for t, g in enumerate(grads, 1):
        p, state = step(config, p, jnp.asarray(g), state, t)
        rows.append({"param": as_list(p)} | {k: as_list(v) for k, v in state.items()})
    start, grads = as_list(start), [as_list(g) for g in grads]
    row = {"name": name, "config": config, "start": start, "grads": grads, "steps": rows}
    return row if shape == (4,) else row | {"shape": list(shape)}


def as_list(a):
    return np.asarray(a).ravel().tolist()


def write():
    rows = [sequence(k, c) for k, c in SEQUENCES.items()]
    rows += [sequence(k, c, tuple(shape), 10) for k, (c, shape) in LONG.items()]
    write_json("optimizers.json", {}, "sequences", rows)
    return f"{len(rows)} sequences"
