"""Composite functions in jax.numpy. Weight layouts and formulas are PyTorch's."""

import math

import jax
import jax.numpy as jnp
from jax import lax


def variance(x, axes=None, ddof=0, keepdims=False):
    return jnp.var(x, axis=axes, ddof=ddof, keepdims=keepdims)


def layer_norm(x, weight, bias, dims=1, eps=1e-5):
    axes = tuple(range(x.ndim - dims, x.ndim))
    mean = x.mean(axes, keepdims=True)
    var = jnp.square(x - mean).mean(axes, keepdims=True)
    return (x - mean) / jnp.sqrt(var + eps) * weight + bias


def rms_norm(x, weight, eps=1e-5):
    return x / jnp.sqrt(jnp.square(x).mean(-1, keepdims=True) + eps) * weight


def channels(v, ndim):
    return v.reshape((1, -1) + (1,) * (ndim - 2))


def group_norm(x, weight, bias, groups, eps=1e-5):
    g = x.reshape(x.shape[0], groups, -1)
    mean = g.mean(-1, keepdims=True)
    var = jnp.square(g - mean).mean(-1, keepdims=True)
    y = ((g - mean) / jnp.sqrt(var + eps)).reshape(x.shape)
    return y * channels(weight, x.ndim) + channels(bias, x.ndim)


def batch_norm(x, weight, bias, eps=1e-5):
    """Training mode. Gives the output, the batch mean and the biased batch variance."""
    axes = (0,) + tuple(range(2, x.ndim))
    mean = x.mean(axes)
    var = jnp.square(x - channels(mean, x.ndim)).mean(axes)
    y = (x - channels(mean, x.ndim)) / jnp.sqrt(channels(var, x.ndim) + eps)
    return y * channels(weight, x.ndim) + channels(bias, x.ndim), mean, var


def linear(x, weight, bias=None):
    y = x @ weight.T
    return y if bias is None else y + bias


def conv(x, weight, stride=1, padding=0, dilation=1, groups=1):
    n = x.ndim - 2
    names = {1: ("NCH", "OIH", "NCH"), 2: ("NCHW", "OIHW", "NCHW")}[n]
    each = lambda v: tuple(v) if isinstance(v, (list, tuple)) else (v,) * n
    return lax.conv_general_dilated(
        x,
        weight,
        window_strides=each(stride),
        padding=[(p, p) for p in each(padding)],
        rhs_dilation=each(dilation),
        feature_group_count=groups,
        dimension_numbers=names,
    )


def conv2d(x, weight, bias, **attrs):
    return conv(x, weight, **attrs) + channels(bias, 4)


def conv_transpose2d(x, weight, bias, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
    """weight: [in, out / groups, kh, kw]. The gradient of `conv` with respect to its input."""
    extent = lambda i, k: (i - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1
    h, w = extent(x.shape[2], weight.shape[2]), extent(x.shape[3], weight.shape[3])
    like = jax.ShapeDtypeStruct((x.shape[0], weight.shape[1] * groups, h, w), x.dtype)
    forward = lambda z: conv(z, weight, stride, padding, dilation, groups)
    (y,) = jax.linear_transpose(forward, like)(x)
    return y + channels(bias, 4)


def pool_args(kernel, stride, padding):
    pads = ((0, 0), (0, 0)) + tuple((p, p) for p in padding)
    return (1, 1, *kernel), (1, 1, *stride), pads


def max_pool2d(x, kernel, stride, padding=(0, 0)):
    return lax.reduce_window(x, -jnp.inf, lax.max, *pool_args(kernel, stride, padding))


def avg_pool2d(x, kernel, stride, padding=(0, 0), count_include_pad=True):
    args = pool_args(kernel, stride, padding)
    total = lax.reduce_window(x, 0.0, lax.add, *args)
    if count_include_pad:
        return total / math.prod(kernel)
    return total / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, *args)


def attention(q, k, v, mask=None, causal=False):
    """q: [B,H,S,D]; k, v: [B,Hkv,T,D]. Query head h reads key-value head h // (H / Hkv)."""
    repeat = q.shape[1] // k.shape[1]
    k, v = jnp.repeat(k, repeat, axis=1), jnp.repeat(v, repeat, axis=1)
    scores = jnp.einsum("bhsd,bhtd->bhst", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + mask
    if causal:
        s, t = scores.shape[-2:]
        scores = jnp.where(jnp.arange(t) <= jnp.arange(s)[:, None], scores, -jnp.inf)
    return jnp.einsum("bhst,bhtd->bhsd", jax.nn.softmax(scores, axis=-1), v)


def rotary(x, base=10000.0, offset=0, interleaved=False):
    """x: [..., S, D]. Pair i turns by position * base^(-2i/D)."""
    s, d = x.shape[-2:]
    i = jnp.arange(d // 2, dtype=jnp.float64)
    angle = (offset + jnp.arange(s, dtype=jnp.float64))[:, None] * base ** (-2.0 * i / d)
    cos, sin = jnp.cos(angle).astype(x.dtype), jnp.sin(angle).astype(x.dtype)
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
    else:
        a, b = x[..., : d // 2], x[..., d // 2 :]
    turned = a * cos - b * sin, b * cos + a * sin
    if interleaved:
        return jnp.stack(turned, axis=-1).reshape(x.shape)
    return jnp.concatenate(turned, axis=-1)


def log_probability(logits, target):
    logp = jax.nn.log_softmax(logits, axis=-1)
    return jnp.take_along_axis(logp, target[..., None], axis=-1)[..., 0]


def cross_entropy(logits, target, reduction="mean", label_smoothing=0.0, weight=None):
    """Classes on the last axis. `weight` has one value a sample: sum(w * loss) / sum(w)."""
    loss = -log_probability(logits, target)
    if label_smoothing:
        uniform = -jax.nn.log_softmax(logits, axis=-1).mean(-1)
        loss = (1 - label_smoothing) * loss + label_smoothing * uniform
    if weight is not None:
        return (weight * loss).sum() / weight.sum()
    return reduce(loss, reduction)


def cross_entropy_soft(logits, target, reduction="mean"):
    return reduce(-(target * jax.nn.log_softmax(logits, axis=-1)).sum(-1), reduction)


def bce_with_logits(x, target, reduction="mean"):
    return reduce(jnp.maximum(x, 0) - x * target + jnp.log1p(jnp.exp(-jnp.abs(x))), reduction)


def huber(x, target, delta=1.0, reduction="mean"):
    d = jnp.abs(x - target)
    return reduce(jnp.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction)


def reduce(loss, reduction):
    return {"mean": jnp.mean, "sum": jnp.sum, "none": lambda v: v}[reduction](loss)
