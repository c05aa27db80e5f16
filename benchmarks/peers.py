#!/usr/bin/env python3
"""The steps of crates/backfit/examples/step_bench.rs in PyTorch and JAX, whichever this Python has: median milliseconds.

Threads: BACKFIT_BENCH_THREADS, else all.
"""
import importlib.util
import os
import statistics
import time

THREADS = int(os.environ.get("BACKFIT_BENCH_THREADS", os.cpu_count() or 1))
WORKLOADS = [("mlp", 64), ("mlp", 512), ("cnn", 64)]
CHANNELS = [(3, 32), (32, 32), (32, 64), (64, 64)]
LR, B1, B2, EPS = 1e-3, 0.9, 0.999, 1e-8


def shape(kind, batch):
    return (batch, 784) if kind == "mlp" else (batch, 3, 32, 32)


def report(peer, kind, batch, step):
    for _ in range(10):
        step()
    times, begun = [], time.perf_counter()
    while len(times) < 20 or (len(times) < 400 and time.perf_counter() - begun < 4):
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    print(f"{kind} {batch:4}  {THREADS} threads  {peer:16} {statistics.median(times):8.3f} ms", flush=True)


def torch_steps():
    import torch
    from torch import nn

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)

    def model(kind):
        if kind == "mlp":
            return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
        layers = []
        for i, (inputs, outputs) in enumerate(CHANNELS):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()] + ([nn.MaxPool2d(2)] if i % 2 else [])
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4096, 256), nn.ReLU(), nn.Linear(256, 10))

    for kind, batch in WORKLOADS:
        net = model(kind)
        optimizer = torch.optim.Adam(net.parameters(), lr=LR, fused=True)
        x, y = torch.rand(shape(kind, batch)), torch.randint(0, 10, (batch,))

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            return loss.item()

        report(f"torch {torch.__version__}", kind, batch, step)


def jax_steps():
    os.environ["JAX_PLATFORMS"] = "cpu"
    if THREADS == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})  # the only way to hold XLA's pool to one thread
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(0)

    def weights(kind):
        sizes = [(784, 128), (128, 10)] if kind == "mlp" else [(4096, 256), (256, 10)]
        uniform = lambda s, fan: jnp.asarray(rng.uniform(-1, 1, s) / fan**0.5, jnp.float32)
        dense = [(uniform((i, o), i), uniform((o,), i)) for i, o in sizes]
        convs = [] if kind == "mlp" else [(uniform((o, i, 3, 3), 9 * i), uniform((o,), 9 * i)) for i, o in CHANNELS]
        return convs, dense

    def logits(params, x):
        convs, dense = params
        for i, (w, b) in enumerate(convs):
            x = jax.nn.relu(jax.lax.conv_general_dilated(x, w, (1, 1), "SAME") + b[:, None, None])
            if i % 2:
                x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        x = x.reshape(x.shape[0], -1)
        for i, (w, b) in enumerate(dense):
            x = (jax.nn.relu(x) if i else x) @ w + b
        return x

    def loss(params, x, y):
        return -jnp.take_along_axis(jax.nn.log_softmax(logits(params, x)), y[:, None], 1).mean()

    def update(params, m, v, t, x, y):
        value, g = jax.value_and_grad(loss)(params, x, y)
        m = jax.tree.map(lambda m, g: B1 * m + (1 - B1) * g, m, g)
        v = jax.tree.map(lambda v, g: B2 * v + (1 - B2) * g * g, v, g)
        c1, c2 = 1 - B1**t, 1 - B2**t
        new = lambda p, m, v: p - LR / c1 * m / (jnp.sqrt(v / c2) + EPS)
        return jax.tree.map(new, params, m, v), m, v, t + 1, value

    update = jax.jit(update, donate_argnums=(0, 1, 2))
    for kind, batch in WORKLOADS:
        params = weights(kind)
        state = [params, jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params), jnp.float32(1)]
        x = jnp.asarray(rng.random(shape(kind, batch)), jnp.float32)
        y = jnp.asarray(rng.integers(0, 10, batch))

        def step():
            *state[:], value = update(*state, x, y)
            return value.block_until_ready()

        report(f"jax {jax.__version__}", kind, batch, step)


found = [(name, steps) for name, steps in [("torch", torch_steps), ("jax", jax_steps)] if importlib.util.find_spec(name)]
for _, steps in found:
    steps()
if not found:
    print("this Python has neither torch nor jax: nothing to compare with")
