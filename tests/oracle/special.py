"""special.json: f32 at NaN, infinities, zeros and extremes; integers that wrap."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from common import write_json

F32 = np.finfo(np.float32)
VALUES = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, F32.max, -F32.max, F32.tiny, 1e-40, -1e-40, F32.smallest_subnormal,
     1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, -1.5, 100.0, -100.0],
    np.float32,
)


def rounded(fn):
    """`fn` in f64, rounded once to f32."""
    return lambda *xs: fn(*(x.astype(np.float64) for x in xs)).astype(np.float32)


def numpy_erf(x):
    return np.array([math.erf(v) for v in x])


# (numpy, jax): the operations that IEEE 754 rounds exactly are evaluated in f32.
UNARY = {
    "neg": (np.negative, lax.neg),
    "abs": (np.abs, lax.abs),
    "sign": (np.sign, lax.sign),
    "exp": (rounded(np.exp), lax.exp),
    "expm1": (rounded(np.expm1), lax.expm1),
    "log": (rounded(np.log), lax.log),
    "log1p": (rounded(np.log1p), lax.log1p),
    "sqrt": (np.sqrt, lax.sqrt),
    "rsqrt": (rounded(lambda x: 1 / np.sqrt(x)), lax.rsqrt),
    "reciprocal": (np.reciprocal, lambda x: 1 / x),
    "sin": (rounded(np.sin), lax.sin),
    "cos": (rounded(np.cos), lax.cos),
    "tan": (rounded(np.tan), lax.tan),
    "tanh": (rounded(np.tanh), lax.tanh),
    "erf": (rounded(numpy_erf), lax.erf),
    "floor": (np.floor, lax.floor),
    "ceil": (np.ceil, lax.ceil),
    "round_even": (np.rint, jnp.round),
}
BINARY = {
    "add": (np.add, lax.add),
    "sub": (np.subtract, lax.sub),
    "mul": (np.multiply, lax.mul),
    "div": (np.divide, lax.div),
    "rem": (np.fmod, lax.rem),
    "pow": (rounded(np.power), lax.pow),
    "atan2": (rounded(np.arctan2), lax.atan2),
    "maximum": (lambda x, y: ordered_zeros(np.maximum, x, y), lax.max),
    "minimum": (lambda x, y: ordered_zeros(np.minimum, x, y), lax.min),
}
INTEGERS = {
    "i8": [-128, -127, -64, -3, -1, 0, 1, 2, 7, 64, 127],
    "u8": [0, 1, 2, 3, 16, 127, 128, 200, 255],
    "i32": [-(2**31), -(2**31) + 1, -65536, -3, -1, 0, 1, 2, 46341, 65536, 2**31 - 1],
}


def text(v):
    """The shortest decimal that reads back as the same f32; `NaN`, `inf`, `-inf`."""
    if np.isnan(v):
        return "NaN"
    return np.format_float_scientific(v, unique=True, trim="0") if np.isfinite(v) else str(v)


def subnormal(v):
    return (np.abs(v) < F32.tiny) & (v != 0)


def ordered_zeros(extreme, x, y):
    """NumPy leaves open which of two zeros it takes; IEEE 754-2019 puts -0 below +0."""
    sign = np.signbit(x) | np.signbit(y) if extreme is np.minimum else np.signbit(x) & np.signbit(y)
    return np.where((x == 0) & (y == 0), np.where(sign, np.float32(-0.0), np.float32(0.0)), extreme(x, y))


def float_row(op, fns, *args):
    with np.errstate(all="ignore"):
        want = fns[0](*args)
        other = np.asarray(fns[1](*(jnp.asarray(a) for a in args)))
        near = np.abs(want.astype(np.float64) - other) <= 1e-5 * np.abs(want)
    assert want.dtype == other.dtype == np.float32, op
    same = np.isnan(want) & np.isnan(other) | (want == other) & (np.signbit(want) == np.signbit(other))
    same |= near & (want != 0) & (other != 0)
    for v in (want, *args):  # XLA's CPU backend flushes them
        same |= subnormal(v)
    differs = [[int(i), text(other[i])] for i in np.flatnonzero(~same)]
    return {"op": op, "dtype": "f32", "out": [text(v) for v in want], "jax_differs": differs}


def wrap(v, dtype):
    bits = np.iinfo(dtype).bits
    v %= 1 << bits
    return v - (1 << bits) if np.issubdtype(dtype, np.signedinteger) and v >> (bits - 1) else v


def integer_rows(name, values):
    dtype = {"i8": np.int8, "u8": np.uint8, "i32": np.int32}[name]
    quotient = lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    unary = {"neg": (lambda x: -x, lax.neg), "abs": (abs, jnp.abs), "sign": (lambda x: (x > 0) - (x < 0), jnp.sign)}
    binary = {
        "add": (lambda x, y: x + y, lax.add),
        "sub": (lambda x, y: x - y, lax.sub),
        "mul": (lambda x, y: x * y, lax.mul),
        "div": (quotient, lax.div),
        "rem": (lambda x, y: x - y * quotient(x, y), lax.rem),
    }
    array = lambda vs: jnp.asarray(np.array(vs, dtype))
    for op, (fn, jax_fn) in unary.items():
        out = [wrap(fn(x), dtype) for x in values]
        assert np.array_equal(jax_fn(array(values)), out), (name, op)
        yield {"op": op, "dtype": name, "x": values, "out": out}
    for op, (fn, jax_fn) in binary.items():
        pairs = [(x, y) for x in values for y in values if y or op not in ("div", "rem")]
        xs, ys = map(list, zip(*pairs))
        out = [wrap(fn(x, y), dtype) for x, y in pairs]
        assert np.array_equal(jax_fn(array(xs), array(ys)), out), (name, op)
        yield {"op": op, "dtype": name, "x": xs, "y": ys, "out": out}


def write():
    n = len(VALUES)
    x, y = np.repeat(VALUES, n), np.tile(VALUES, n)
    rows = [float_row(op, fns, VALUES) for op, fns in UNARY.items()]
    rows += [float_row(op, fns, x, y) for op, fns in BINARY.items()]
    for name, values in INTEGERS.items():
        rows += integer_rows(name, values)
    write_json("special.json", {"values": [text(v) for v in VALUES]}, "rows", rows)
    return f"{len(rows)} rows"
