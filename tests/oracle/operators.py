"""operators.safetensors, operators.json: outputs and vector-Jacobian products of single operators."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import nn
from common import DTYPES, Rng, f32_exact, write_json, write_tensors

TENSORS, CASES = {}, []


def case(op, variant, fn, make, attrs=None, diff=None, ct=None):
    """`fn` takes the arrays of `make(rng)`, a dict, in order, then `attrs` by name.

    diff: names of the inputs to differentiate (all float ones). ct: outputs that get a cotangent (all float ones).
    """
    name = f"{op}.{variant}"
    assert all(c["name"] != name for c in CASES), name
    attrs = attrs or {}
    rng = Rng(name)
    inputs = {k: f32_exact(v) if np.asarray(v).dtype == np.float64 else v for k, v in make(rng).items()}
    call = lambda *xs: as_tuple(fn(*xs, **attrs))
    is_float = lambda a: a.dtype == np.float64
    diff = [k for k, v in inputs.items() if is_float(v)] if diff is None else diff

    def of_diff(*xs):
        return call(*(jnp.asarray(v) for v in {**inputs, **dict(zip(diff, xs))}.values()))

    outs, pull = jax.vjp(of_diff, *(jnp.asarray(inputs[k]) for k in diff))
    row = {"name": name, "op": op, "attrs": attrs, "inputs": [], "outputs": []}
    cts = []
    for j, out in enumerate(outs):
        key, ct_key = f"{name}/out{j}", None
        TENSORS[key] = np.asarray(out)
        if not is_float(out):
            cts.append(np.zeros(out.shape, jax.dtypes.float0))
        elif diff and (ct is None or j in ct):
            ct_key = f"{name}/ct{j}"
            TENSORS[ct_key] = rng.normal(*out.shape)
            cts.append(jnp.asarray(TENSORS[ct_key]))
        else:
            cts.append(jnp.zeros(out.shape))
        row["outputs"].append(entry(out, key) | {"ct": ct_key})
    grads = dict(zip(diff, pull(tuple(cts))))
    for i, (k, v) in enumerate(inputs.items()):
        key, vjp_key = f"{name}/in{i}", None
        TENSORS[key] = v
        if k in grads:
            vjp_key = f"{name}/vjp{i}"
            TENSORS[vjp_key] = np.asarray(grads[k])
            assert np.isfinite(TENSORS[vjp_key]).all(), name
        row["inputs"].append({"name": k} | entry(v, key) | {"vjp": vjp_key})
    CASES.append(row)


def as_tuple(v):
    return tuple(v) if isinstance(v, (tuple, list)) else (v,)


def entry(a, key):
    return {"key": key, "dtype": DTYPES[str(a.dtype)], "shape": list(a.shape)}


def normals(**shapes):
    return lambda r: {k: r.normal(*s) for k, s in shapes.items()}


def unary():
    real = lambda r, *s: r.normal(*s, std=2.0)
    wide = lambda r, *s: r.uniform(-12, 12, *s)
    positive = lambda r, *s: r.uniform(0.05, 6, *s)
    small = lambda r, *s: r.normal(*s, std=1e-4)
    above_minus_one = lambda r, *s: r.uniform(-0.95, 5, *s)
    functions = {
        "neg": (lax.neg, real, None),
        "abs": (lax.abs, real, None),
        "sign": (lax.sign, real, None),
        "exp": (lax.exp, real, wide),
        "expm1": (lax.expm1, real, small),
        "log": (lax.log, positive, lambda r, *s: r.uniform(1e-6, 1e6, *s)),
        "log1p": (lax.log1p, above_minus_one, small),
        "sqrt": (lax.sqrt, positive, None),
        "rsqrt": (lax.rsqrt, positive, None),
        "reciprocal": (lambda x: 1.0 / x, lambda r, *s: r.uniform(0.2, 4, *s) * r.rng.choice([-1.0, 1.0], s), None),
        "sin": (lax.sin, real, wide),
        "cos": (lax.cos, real, wide),
        "tan": (lax.tan, lambda r, *s: r.uniform(-1.4, 1.4, *s), None),
        "tanh": (lax.tanh, real, wide),
        "erf": (lax.erf, lambda r, *s: r.normal(*s), small),
        "floor": (lax.floor, real, None),
        "ceil": (lax.ceil, real, None),
        "round_even": (functools.partial(lax.round, rounding_method=lax.RoundingMethod.TO_NEAREST_EVEN), real, None),
        "square": (jnp.square, real, None),
        "relu": (jax.nn.relu, real, None),
        "elu": (jax.nn.elu, real, None),
        "relu6": (jax.nn.relu6, lambda r, *s: r.normal(*s, mean=3, std=4), None),
        "silu": (jax.nn.silu, real, wide),
        "sigmoid": (jax.nn.sigmoid, real, lambda r, *s: r.uniform(-40, 40, *s)),
        "softplus": (jax.nn.softplus, real, None),
    }
    for op, (fn, first, second) in functions.items():
        case(op, "3x5", fn, lambda r: {"x": first(r, 3, 5)})
        case(op, "17", fn, lambda r: {"x": (second or first)(r, 17)})
    case("round_even", "halves", functions["round_even"][0],
         lambda r: {"x": np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 0.49999997, 8388609.0])})
    case("softplus", "far", jax.nn.softplus, lambda r: {"x": np.array([-40.0, -20.0, -1e-3, 0.0, 1e-3, 20.0, 40.0])})
    case("sigmoid", "far", jax.nn.sigmoid, lambda r: {"x": np.array([-700.0, -40.0, 0.0, 40.0, 700.0])})
    case("leaky_relu", "3x5", lambda x, slope: jax.nn.leaky_relu(x, slope), lambda r: {"x": real(r, 3, 5)}, {"slope": 0.01})
    for approximation in ["none", "tanh"]:
        fn = lambda x, approximation: jax.nn.gelu(x, approximate=approximation == "tanh")
        case("gelu", approximation, fn, lambda r: {"x": real(r, 3, 7)}, {"approximation": approximation})


def binary():
    away = lambda r, *s: r.uniform(0.3, 3, *s) * r.rng.choice([-1.0, 1.0], s)
    positive = lambda r, *s: r.uniform(0.2, 3, *s)
    real = lambda r, *s: r.normal(*s)
    functions = {
        "add": (jnp.add, real, real),
        "sub": (jnp.subtract, real, real),
        "mul": (jnp.multiply, real, real),
        "div": (jnp.divide, real, away),
        "rem": (lambda x, y: lax.rem(*jnp.broadcast_arrays(x, y)), lambda r, *s: r.normal(*s, std=5), away),
        "pow": (jnp.power, positive, real),
        "atan2": (jnp.arctan2, real, real),
        "maximum": (jnp.maximum, real, real),
        "minimum": (jnp.minimum, real, real),
    }
    shapes = {"same": ((3, 5), (3, 5)), "row": ((3, 5), (5,)), "both": ((4, 1, 3), (2, 1)), "scalar": ((7,), ())}
    for op, (fn, first, second) in functions.items():
        for variant, (a, b) in shapes.items():
            case(op, variant, fn, lambda r: {"x": first(r, *a), "y": second(r, *b)})
    case("pow", "negative_base", jnp.power,
         lambda r: {"x": away(r, 4, 6), "y": np.array([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0])}, diff=["x"])


def choose():
    case("select", "same", jnp.where, lambda r: {"pred": r.bools(3, 5), "on_true": r.normal(3, 5), "on_false": r.normal(3, 5)})
    case("select", "broadcast", jnp.where, lambda r: {"pred": r.bools(4, 1), "on_true": r.normal(3), "on_false": r.normal()})
    clamp = lambda lo, x, hi: lax.clamp(*jnp.broadcast_arrays(lo, x, hi))
    case("clamp", "scalar", clamp, lambda r: {"lo": np.array(-0.5), "x": r.normal(3, 7), "hi": np.array(0.75)})
    case("clamp", "same", clamp,
         lambda r: {"lo": r.uniform(-1, 0, 3, 7), "x": r.normal(3, 7), "hi": r.uniform(0, 1, 3, 7)})
    case("clip_by_value", "3x7", lambda x, lo, hi: jnp.clip(x, lo, hi), normals(x=(3, 7)), {"lo": -0.5, "hi": 0.75})


def reductions():
    ops = {"sum": jnp.sum, "product": jnp.prod, "max": jnp.max, "min": jnp.min}
    for kind, f in ops.items():
        fn = lambda x, axes: f(x, axis=tuple(axes))
        for axes in [[0], [2], [0, 2], [0, 1, 2]]:
            case(f"reduce_{kind}", "axes_" + "".join(map(str, axes)), fn, normals(x=(3, 5, 2)), {"axes": axes})

    def with_zeros(r):
        x = r.normal(4, 3)
        x[0, 1] = x[2, 0] = x[2, 2] = 0.0
        return {"x": x}

    case("reduce_product", "zeros", lambda x, axes: jnp.prod(x, axis=tuple(axes)), with_zeros, {"axes": [1]})
    cumulative = {"sum": lax.cumsum, "product": lax.cumprod, "max": lax.cummax, "min": lax.cummin}
    for kind, f in cumulative.items():
        fn = lambda x, axis, reverse: f(x, axis=axis, reverse=reverse)
        for axis, reverse in [(0, False), (1, False), (1, True)]:
            variant = f"axis_{axis}" + ("_reverse" if reverse else "")
            case(f"cumulative_{kind}", variant, fn, normals(x=(5, 4)), {"axis": axis, "reverse": reverse})
    case("cumulative_product", "zeros", lambda x, axis, reverse: lax.cumprod(x, axis=axis, reverse=reverse),
         with_zeros, {"axis": 1, "reverse": False})

    mean = lambda x, axes, keepdims: jnp.mean(x, axis=tuple(axes), keepdims=keepdims)
    variance = lambda x, axes, ddof, keepdims: nn.variance(x, tuple(axes), ddof, keepdims)
    for axes, keep in [([1], False), ([0, 2], True), ([0, 1, 2], False)]:
        variant = "axes_" + "".join(map(str, axes))
        case("mean", variant, mean, normals(x=(3, 5, 2)), {"axes": axes, "keepdims": keep})
        for ddof in [0, 1]:
            case("variance", f"{variant}_ddof_{ddof}", variance, normals(x=(3, 5, 2)), {"axes": axes, "ddof": ddof, "keepdims": keep})
    case("variance", "far_mean", variance, lambda r: {"x": r.normal(4, 9, mean=1000.0)}, {"axes": [1], "ddof": 0, "keepdims": False})


def movement():
    case("reshape", "split", lambda x, shape: x.reshape(shape), normals(x=(6, 5)), {"shape": [2, 3, 5]})
    case("reshape", "scalar", lambda x, shape: x.reshape(shape), normals(x=(1, 1)), {"shape": []})
    for permutation in [[1, 0, 2], [2, 0, 1], [0, 2, 1]]:
        case("transpose", "".join(map(str, permutation)), lambda x, permutation: x.transpose(permutation),
             normals(x=(2, 3, 5)), {"permutation": permutation})
    broadcast = lambda x, shape, dimensions: lax.broadcast_in_dim(x, shape, dimensions)
    case("broadcast", "scalar", broadcast, normals(x=()), {"shape": [2, 3], "dimensions": []})
    case("broadcast", "row", broadcast, normals(x=(3,)), {"shape": [2, 3, 5], "dimensions": [1]})
    case("broadcast", "ones", broadcast, normals(x=(1, 3)), {"shape": [2, 4, 3], "dimensions": [1, 2]})
    cut = lambda x, start, limit, stride: lax.slice(x, start, limit, stride)
    case("slice", "plain", cut, normals(x=(5, 7)), {"start": [1, 2], "limit": [4, 7], "stride": [1, 1]})
    case("slice", "strided", cut, normals(x=(7, 9)), {"start": [1, 0], "limit": [7, 8], "stride": [2, 3]})
    pad = lambda x, value, low, high, interior: lax.pad(x, value, list(zip(low, high, interior)))
    case("pad", "edges", pad, normals(x=(3, 4), value=()), {"low": [1, 0], "high": [2, 3], "interior": [0, 0]})
    case("pad", "interior", pad, normals(x=(3, 4), value=()), {"low": [0, 1], "high": [1, 0], "interior": [2, 1]})
    case("pad", "negative", pad, normals(x=(5, 6), value=()), {"low": [-1, 2], "high": [1, -2], "interior": [0, 0]})
    case("pad", "negative_interior", pad, normals(x=(4, 5), value=()), {"low": [-2, -1], "high": [-1, 2], "interior": [1, 2]})
    for axis, shapes in [(0, [(2, 3), (1, 3)]), (1, [(2, 3), (2, 1), (2, 4)])]:
        case("concatenate", f"axis_{axis}", lambda *xs, axis: jnp.concatenate(xs, axis),
             lambda r: {f"x{i}": r.normal(*s) for i, s in enumerate(shapes)}, {"axis": axis})
    case("reverse", "axis_1", lambda x, axes: lax.rev(x, axes), normals(x=(3, 5)), {"axes": [1]})
    case("reverse", "axes_02", lambda x, axes: lax.rev(x, axes), normals(x=(3, 2, 5)), {"axes": [0, 2]})

    starts = {"inside": [1, 2], "clamped": [4, 9]}
    for variant, start in starts.items():
        index = np.array(start, np.int32)
        case("dynamic_slice", variant, lambda x, start, sizes: lax.dynamic_slice(x, list(start), sizes),
             lambda r: {"x": r.normal(5, 7), "start": index}, {"sizes": [2, 3]})
        case("dynamic_update_slice", variant, lambda x, update, start: lax.dynamic_update_slice(x, update, list(start)),
             lambda r: {"x": r.normal(5, 7), "update": r.normal(2, 3), "start": index})

    take = lambda x, index, axis: jnp.take(x, index, axis=axis)
    case("gather", "axis_0", take, lambda r: {"x": r.normal(5, 3), "index": np.array([4, 0, 2, 0], np.int32)}, {"axis": 0})
    case("gather", "axis_1", take, lambda r: {"x": r.normal(2, 6, 3), "index": np.array([5, 5, 1], np.int32)}, {"axis": 1})
    case("gather", "matrix_index", take, lambda r: {"x": r.normal(5, 3), "index": r.ints(0, 5, 2, 4)}, {"axis": 0})
    for axis, shape in [(0, (3, 4)), (1, (5, 2))]:
        case("take_along_axis", f"axis_{axis}", lambda x, index, axis: jnp.take_along_axis(x, index, axis=axis),
             lambda r: {"x": r.normal(5, 4), "index": r.ints(0, (5, 4)[axis], *shape)}, {"axis": axis})

    def scatter(x, index, update, axis, kind):
        at = x.at[(slice(None),) * axis + (index,)]
        return at.set(update) if kind == "set" else at.add(update)

    for axis, update in [(0, (3, 4)), (1, (5, 3))]:
        for kind, index in [("set", [3, 0, 2]), ("add", [2, 0, 2])]:
            case(f"scatter_{kind}", f"axis_{axis}", functools.partial(scatter, kind=kind),
                 lambda r: {"x": r.normal(5, 4), "index": np.array(index, np.int32), "update": r.normal(*update)}, {"axis": axis})

    sort = lambda keys, payload, axis: lax.sort((keys, payload), dimension=axis, is_stable=True, num_keys=1)
    for axis in [0, 1]:
        case("sort", f"axis_{axis}", sort, lambda r: {"keys": r.normal(5, 4), "payload": r.normal(5, 4)}, {"axis": axis})
    case("sort", "stable", sort,
         lambda r: {"keys": r.ints(-2, 3, 13).astype(np.float64), "payload": np.arange(13, dtype=np.int32)}, {"axis": 0}, diff=[])


def contractions():
    def dot(lhs, rhs, lhs_contract, rhs_contract, lhs_batch, rhs_batch):
        return lax.dot_general(lhs, rhs, ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch)))

    dims = lambda lc, rc, lb, rb: {"lhs_contract": lc, "rhs_contract": rc, "lhs_batch": lb, "rhs_batch": rb}
    case("dot_general", "matrix", dot, normals(lhs=(3, 5), rhs=(5, 2)), dims([1], [0], [], []))
    case("dot_general", "batch", dot, normals(lhs=(2, 3, 5), rhs=(2, 7, 5)), dims([2], [2], [0], [0]))
    case("dot_general", "two_batch", dot, normals(lhs=(3, 4, 2, 5), rhs=(2, 5, 3, 6)), dims([3], [1], [0, 2], [2, 0]))
    case("dot_general", "two_contract", dot, normals(lhs=(2, 3, 4, 5), rhs=(2, 5, 3)), dims([1, 3], [2, 1], [0], [0]))

    def convolution(x, w, strides, padding, lhs_dilation, rhs_dilation, groups):
        names = {3: ("NCH", "OIH", "NCH"), 4: ("NCHW", "OIHW", "NCHW")}[x.ndim]
        return lax.conv_general_dilated(x, w, strides, padding, lhs_dilation, rhs_dilation, names, groups)

    def conv_case(variant, x, w, **attrs):
        n = len(x) - 2
        full = {"strides": [1] * n, "padding": [[0, 0]] * n, "lhs_dilation": [1] * n, "rhs_dilation": [1] * n, "groups": 1}
        case("convolution", variant, convolution, normals(x=x, w=w), full | attrs)

    conv_case("1d", (2, 3, 9), (4, 3, 3))
    conv_case("1d_stride_pad", (2, 3, 10), (4, 3, 4), strides=[2], padding=[[1, 2]])
    conv_case("1d_all", (1, 4, 7), (6, 2, 3), strides=[3], padding=[[2, 1]], lhs_dilation=[2], rhs_dilation=[2], groups=2)
    conv_case("2d", (2, 2, 5, 6), (3, 2, 3, 2))
    conv_case("2d_stride_pad", (2, 2, 7, 6), (3, 2, 3, 3), strides=[2, 3], padding=[[1, 1], [0, 2]])
    conv_case("2d_lhs_dilation", (1, 2, 4, 3), (3, 2, 3, 3), padding=[[1, 2], [2, 1]], lhs_dilation=[2, 3])
    conv_case("2d_rhs_dilation", (1, 2, 8, 7), (3, 2, 3, 2), padding=[[1, 0], [0, 1]], rhs_dilation=[2, 3])
    conv_case("2d_groups", (2, 4, 5, 5), (6, 2, 3, 3), padding=[[1, 1], [1, 1]], groups=2)
    conv_case("2d_depthwise", (1, 3, 6, 5), (6, 1, 3, 3), strides=[2, 1], padding=[[1, 1], [1, 1]], groups=3)
    conv_case("2d_negative_pad", (1, 2, 7, 6), (2, 2, 2, 3), padding=[[-1, 1], [2, -2]])

    linear = lambda x, weight, *bias: nn.linear(x, weight, *bias)
    case("linear", "bias", linear, normals(x=(4, 3), weight=(5, 3), bias=(5,)))
    case("linear", "no_bias_3d", linear, normals(x=(2, 3, 4), weight=(5, 4)))
    shapes = {"1d_1d": ((4,), (4,)), "2d_2d": ((3, 4), (4, 5)), "1d_2d": ((4,), (4, 3)), "2d_1d": ((3, 4), (4,)),
              "batched": ((2, 3, 4), (2, 4, 5)), "broadcast": ((2, 1, 3, 4), (5, 4, 2)), "1d_3d": ((4,), (2, 4, 3))}
    for variant, (a, b) in shapes.items():
        case("matmul", variant, jnp.matmul, normals(x=a, y=b))
    for variant, x, w, attrs in [
        ("plain", (2, 3, 6, 5), (4, 3, 3, 3), {"stride": 1, "padding": 1, "dilation": 1, "groups": 1}),
        ("stride_dilation_groups", (2, 4, 9, 8), (6, 2, 3, 2), {"stride": 2, "padding": 2, "dilation": 2, "groups": 2}),
    ]:
        case("conv2d", variant, nn.conv2d, normals(x=x, weight=w, bias=(w[0],)), attrs)
    for variant, w, attrs in [
        ("output_padding", (3, 4, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1, "dilation": 1, "groups": 1}),
        ("no_output_padding", (3, 2, 4, 3), {"stride": 2, "padding": 1, "output_padding": 0, "dilation": 1, "groups": 1}),
        ("groups_dilation", (3, 2, 3, 2), {"stride": 2, "padding": 1, "output_padding": 1, "dilation": 2, "groups": 3}),
    ]:
        case("conv_transpose2d", variant, nn.conv_transpose2d,
             normals(x=(2, 3, 4, 5), weight=w, bias=(w[1] * attrs["groups"],)), attrs)


def windows():
    kinds = {"sum": (0.0, lax.add), "max": (-math.inf, lax.max)}

    def reduce_window(x, window, strides, padding, base_dilation, window_dilation, kind):
        init, f = kinds[kind]
        return lax.reduce_window(x, init, f, window, strides, padding, base_dilation, window_dilation)

    def window_case(kind, variant, x, window, **attrs):
        n = len(x)
        full = {"window": window, "strides": [1] * n, "padding": [[0, 0]] * n, "base_dilation": [1] * n, "window_dilation": [1] * n}
        case(f"reduce_window_{kind}", variant, functools.partial(reduce_window, kind=kind), normals(x=x), full | attrs)

    for kind in kinds:
        window_case(kind, "1d", (9,), [3])
        window_case(kind, "2d_stride", (7, 8), [3, 2], strides=[2, 3])
        window_case(kind, "4d_pad", (2, 2, 5, 6), [1, 1, 3, 3], strides=[1, 1, 2, 2], padding=[[0, 0], [0, 0], [1, 1], [0, 2]])
    window_case("sum", "dilated", (8, 5), [3, 2], padding=[[2, 1], [1, 1]], base_dilation=[1, 2], window_dilation=[2, 2])

    def max_pool_grad(x, dy, **attrs):
        return jax.vjp(lambda v: nn.max_pool2d(v, **attrs), x)[1](dy)[0]

    case("max_pool_grad", "apart", max_pool_grad, normals(x=(2, 2, 6, 4), dy=(2, 2, 3, 2)),
         {"kernel": [2, 2], "stride": [2, 2], "padding": [0, 0]}, diff=[])
    case("max_pool_grad", "overlap_pad", max_pool_grad, normals(x=(1, 2, 7, 6), dy=(1, 2, 4, 3)),
         {"kernel": [3, 3], "stride": [2, 2], "padding": [1, 1]}, diff=[])
    for variant, attrs in [
        ("apart", {"kernel": [2, 2], "stride": [2, 2], "padding": [0, 0]}),
        ("overlap_pad", {"kernel": [3, 2], "stride": [2, 1], "padding": [1, 1]}),
    ]:
        case("max_pool2d", variant, nn.max_pool2d, normals(x=(2, 2, 7, 5)), attrs)
        case("avg_pool2d", variant, nn.avg_pool2d, normals(x=(2, 2, 7, 5)), attrs | {"count_include_pad": True})
    case("global_avg_pool", "4d", lambda x: x.mean((2, 3)), normals(x=(2, 3, 5, 3)))


def networks():
    affine = lambda r, n: {"weight": r.normal(*n, mean=1.0, std=0.3), "bias": r.normal(*n, std=0.3)}
    layer = lambda x, weight, bias, dims, eps: nn.layer_norm(x, weight, bias, dims, eps)
    case("layer_norm", "last", layer, lambda r: {"x": r.normal(3, 2, 7)} | affine(r, (7,)), {"dims": 1, "eps": 1e-5})
    case("layer_norm", "last_two", layer, lambda r: {"x": r.normal(3, 4, 5, mean=2.0)} | affine(r, (4, 5)), {"dims": 2, "eps": 1e-5})
    case("rms_norm", "last", nn.rms_norm, lambda r: {"x": r.normal(3, 2, 7), "weight": affine(r, (7,))["weight"]}, {"eps": 1e-5})
    case("group_norm", "3_groups", nn.group_norm, lambda r: {"x": r.normal(2, 6, 3, 5)} | affine(r, (6,)), {"groups": 3, "eps": 1e-5})
    case("group_norm", "1_group", nn.group_norm, lambda r: {"x": r.normal(2, 4, 7)} | affine(r, (4,)), {"groups": 1, "eps": 1e-5})
    for variant, shape, ct in [("4d", (4, 3, 3, 2), [0]), ("4d_statistics", (2, 3, 4, 3), None), ("2d", (7, 3), [0])]:
        case("batch_norm", variant, nn.batch_norm, lambda r: {"x": r.normal(*shape, mean=0.5, std=2)} | affine(r, (shape[1],)), {"eps": 1e-5}, ct=ct)

    far = lambda r: {"x": r.normal(3, 5, std=400.0)}
    for op, f in [("softmax", jax.nn.softmax), ("log_softmax", jax.nn.log_softmax)]:
        fn = lambda x, axis: f(x, axis=axis)
        for axis in [0, 1, 2]:
            case(op, f"axis_{axis}", fn, normals(x=(2, 5, 3)), {"axis": axis})
        case(op, "far", fn, far, {"axis": 1})
    logsumexp = lambda x, axes: jax.scipy.special.logsumexp(x, axis=tuple(axes))
    for axes in [[0], [2], [0, 2], [0, 1, 2]]:
        case("logsumexp", "axes_" + "".join(map(str, axes)), logsumexp, normals(x=(2, 5, 3)), {"axes": axes})
    case("logsumexp", "far", logsumexp, far, {"axes": [1]})

    case("embedding", "duplicates", lambda table, ids: table[ids],
         lambda r: {"table": r.normal(6, 4), "ids": np.array([[1, 5, 1], [0, 1, 3]], np.int32)})
    case("one_hot", "2x3", lambda ids, classes: jax.nn.one_hot(ids, classes, dtype=jnp.float64),
         lambda r: {"ids": np.array([[1, 4, 0], [3, 1, 2]], np.int32)}, {"classes": 5})

    qkv = normals(q=(2, 4, 5, 6), k=(2, 4, 5, 6), v=(2, 4, 5, 6))
    gqa = normals(q=(2, 4, 5, 6), k=(2, 2, 5, 6), v=(2, 2, 5, 6))
    sdpa = lambda q, k, v, *mask, causal: nn.attention(q, k, v, *mask, causal=causal)
    case("attention", "plain", sdpa, normals(q=(1, 2, 3, 4), k=(1, 2, 5, 4), v=(1, 2, 5, 4)), {"causal": False})
    case("attention", "causal", sdpa, qkv, {"causal": True})
    case("attention", "mask", sdpa, normals(q=(2, 2, 3, 4), k=(2, 2, 5, 4), v=(2, 2, 5, 4), mask=(2, 1, 3, 5)), {"causal": False})
    case("attention", "grouped", sdpa, gqa, {"causal": False})
    case("attention", "grouped_causal", sdpa, gqa, {"causal": True})
    for interleaved in [False, True]:
        for offset in [0, 3]:
            variant = ("interleaved" if interleaved else "half") + (f"_offset_{offset}" if offset else "")
            case("rotary", variant, nn.rotary, normals(x=(2, 2, 5, 6)), {"base": 10000.0, "offset": offset, "interleaved": interleaved})

    def clip(*xs, max_norm):
        norm = jnp.sqrt(sum(jnp.square(x).sum() for x in xs))
        scale = jnp.minimum(1.0, max_norm / norm)
        return (*(x * scale for x in xs), norm)

    case("clip_by_global_norm", "above", clip, normals(x0=(3, 4), x1=(5,), x2=()), {"max_norm": 1.0})
    case("clip_by_global_norm", "below", clip, lambda r: {"x0": r.normal(3, std=0.1), "x1": r.normal(2, 2, std=0.1)}, {"max_norm": 1.0})


def losses():
    hard = lambda r: {"logits": r.normal(6, 5, std=2.0), "target": r.ints(0, 5, 6)}
    for reduction in ["mean", "sum", "none"]:
        case("cross_entropy", reduction, nn.cross_entropy, hard, {"reduction": reduction, "label_smoothing": 0.0})
    case("cross_entropy", "tokens", nn.cross_entropy, lambda r: {"logits": r.normal(2, 3, 7), "target": r.ints(0, 7, 2, 3)},
         {"reduction": "mean", "label_smoothing": 0.0})
    case("cross_entropy", "far", nn.cross_entropy, lambda r: {"logits": r.normal(4, 5, std=300.0), "target": r.ints(0, 5, 4)},
         {"reduction": "mean", "label_smoothing": 0.0})
    for reduction in ["mean", "sum"]:
        case("cross_entropy", f"smoothing_{reduction}", nn.cross_entropy, hard, {"reduction": reduction, "label_smoothing": 0.1})
    case("cross_entropy_weighted", "mean", lambda logits, target, weight: nn.cross_entropy(logits, target, weight=weight),
         lambda r: hard(r) | {"weight": r.uniform(0.1, 2, 6)})
    case("cross_entropy_weighted", "zeros", lambda logits, target, weight: nn.cross_entropy(logits, target, weight=weight),
         lambda r: hard(r) | {"weight": np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])})
    soft = lambda r: {"logits": r.normal(4, 5), "target": np.asarray(jax.nn.softmax(r.normal(4, 5), axis=-1))}
    for reduction in ["mean", "sum"]:
        case("cross_entropy_soft", reduction, nn.cross_entropy_soft, soft, {"reduction": reduction})
    case("cross_entropy_soft", "one_hot", nn.cross_entropy_soft,
         lambda r: {"logits": r.normal(4, 5), "target": np.eye(5)[[2, 0, 4, 2]]}, {"reduction": "mean"})

    for reduction in ["mean", "sum"]:
        attrs = {"reduction": reduction}
        case("bce_with_logits", reduction, nn.bce_with_logits, lambda r: {"x": r.normal(3, 4, std=3.0), "target": r.uniform(0, 1, 3, 4)}, attrs)
        pair = normals(x=(3, 5), target=(3, 5))
        case("mse", reduction, lambda x, target, reduction: nn.reduce(jnp.square(x - target), reduction), pair, attrs)
        case("l1", reduction, lambda x, target, reduction: nn.reduce(jnp.abs(x - target), reduction), pair, attrs)
        case("huber", reduction, nn.huber, lambda r: {"x": r.normal(3, 5, std=2.0), "target": r.normal(3, 5)}, {"delta": 1.0} | attrs)
    case("bce_with_logits", "far", nn.bce_with_logits,
         lambda r: {"x": np.array([-800.0, -40.0, 40.0, 800.0]), "target": np.array([1.0, 0.0, 1.0, 0.25])}, {"reduction": "none"})
    case("accuracy", "7", lambda logits, target: (jnp.argmax(logits, -1) == target).astype(jnp.float64).mean(),
         lambda r: {"logits": r.normal(7, 3), "target": r.ints(0, 3, 7)}, diff=[])


def write():
    for section in [unary, binary, choose, reductions, movement, contractions, windows, networks, losses]:
        section()
    write_tensors("operators.safetensors", TENSORS)
    write_json("operators.json", {}, "cases", CASES)
    return f"{len(CASES)} cases of {len({c['op'] for c in CASES})} operators"
