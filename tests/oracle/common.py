"""Shared by the generator's modules: seeds, arrays, files."""

import json
import pathlib
import platform
import zlib

import jax
import jaxlib
import numpy as np
import safetensors
from safetensors.numpy import save

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

HERE = pathlib.Path(__file__).resolve().parent

META = {
    "format": 1,
    "generator": "tests/oracle/generate.py",
    "python": platform.python_version(),
    "jax": jax.__version__,
    "jaxlib": jaxlib.__version__,
    "numpy": np.__version__,
    "safetensors": safetensors.__version__,
}

DTYPES = {"float64": "f64", "float32": "f32", "int32": "i32", "int64": "i64", "bool": "bool"}


class Rng:
    """Random arrays whose values are exact in f32, so that one file serves tests in f32 and in f64."""

    def __init__(self, name):
        # Seeded by name: a new case leaves the others as they are.
        self.rng = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))

    def normal(self, *shape, mean=0.0, std=1.0):
        return f32_exact(mean + std * self.rng.standard_normal(shape))

    def uniform(self, lo, hi, *shape):
        return f32_exact(self.rng.uniform(lo, hi, shape))

    def ints(self, lo, hi, *shape):
        return self.rng.integers(lo, hi, shape).astype(np.int32)

    def bools(self, *shape):
        return self.rng.random(shape) < 0.5


def f32_exact(x):
    return np.asarray(np.asarray(x, np.float32), np.float64)


def write_json(name, fields, key, rows):
    """One row of `key` a line, so that differences can be read."""
    dump = lambda v: json.dumps(v, separators=(",", ":"), allow_nan=False)
    lines = [f"{dump(k)}:{dump(v)},\n" for k, v in {"meta": META, **fields}.items()]
    body = ",\n".join(dump(r) for r in rows)
    (HERE / name).write_text("{" + "".join(lines) + f'"{key}":[\n{body}\n]}}\n')


def write_tensors(name, tensors):
    # One metadata entry: the writer does not fix the order of several.
    arrays = {k: np.ascontiguousarray(v).reshape(np.shape(v)) for k, v in tensors.items()}
    (HERE / name).write_bytes(save(arrays, metadata={"meta": json.dumps(META)}))
