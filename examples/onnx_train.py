"""Trains with a step that Backfit exported, by numpy and onnxruntime alone.

    backfit export digits --step --samples -o out
    python examples/onnx_train.py out [EPOCHS]
"""

import sys

import numpy as np
import onnxruntime


def load(name):
    """A model, and which of its outputs is the next value of which input."""
    session = onnxruntime.InferenceSession(f"{folder}/{name}.onnx", providers=["CPUExecutionProvider"])
    metadata = session.get_modelmeta().custom_metadata_map
    return session, {key[8:]: value for key, value in metadata.items() if key.startswith("updates:")}


def run(model, fed, state):
    """Results by name; the state takes its new values."""
    session, updates = model
    inputs = {i.name: fed[i.name] if i.name in fed else state[i.name] for i in session.get_inputs()}
    names = [output.name for output in session.get_outputs()]
    results = dict(zip(names, session.run(names, inputs)))
    state.update((updates[name], results.pop(name)) for name in names if name in updates)
    return results


def batches(model, part, order):
    """Batches of as many rows as the model takes; the last one is filled up, and `valid` says with how many."""
    size = next(i.shape[0] for i in model[0].get_inputs() if i.name in part)
    for rows in np.array_split(order, range(size, len(order), size)):
        spare = size - len(rows)
        batch = {name: values[np.pad(rows, (0, spare), mode="wrap")] for name, values in part.items()}
        batch["valid"] = np.pad(np.ones(len(rows), np.float32), (0, spare))
        yield len(rows), batch


folder, epochs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
step, evaluate = load("step"), load("eval")
state, hypers = dict(np.load(f"{folder}/state.npz")), dict(np.load(f"{folder}/hypers.npz"))
samples = np.load(f"{folder}/samples.npz")
train, test = ({n.split(".", 1)[1]: samples[n] for n in samples if n.startswith(p)} for p in ("train.", "test."))
count, held_back = (len(next(iter(part.values()), ())) for part in (train, test))
random, number = np.random.default_rng(0), 0
for epoch in range(epochs):
    losses = []
    for _, batch in batches(step, train, random.permutation(count)):
        at = {name: np.array(values[min(number, len(values) - 1)]) for name, values in hypers.items()}
        results = run(step, batch | at, state)
        if results.get("finite", True):  # Else the step was skipped: it changed no weight, and does not count.
            losses.append(results["loss"])
            number += 1
    print(f"epoch {epoch + 1}: loss {np.mean(losses) if losses else np.nan:.4f}", end=", held back: " if test else "\n")
    if test:
        judged = [(n, run(evaluate, batch, state)) for n, batch in batches(evaluate, test, np.arange(held_back))]
        means = {name: sum(n * float(results[name]) for n, results in judged) / held_back for name in judged[0][1]}
        print(*(f"{name} {value:.4f}" for name, value in means.items()))
