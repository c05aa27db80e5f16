//! The oracle's primitives.

use super::file::Case;
use backfit_ir::op::{Extreme, Monoid, ScatterMode};
use backfit_ir::ops::convolution::{Convolution, Layout};
use backfit_ir::ops::reduce_window::Window;
use backfit_ir::{Graph, Tensor};

/// Builds a primitive.
pub fn build(case: &Case, g: &Graph, x: &[Tensor]) -> Option<Vec<Tensor>> {
    if case.op == "sort" {
        return Some(x[0].sort(case.int("axis"), false, &[&x[1]]));
    }
    let one = match x {
        [a] => unary(&case.op, a),
        [a, b] => binary(&case.op, a, b),
        _ => None,
    };
    one.or_else(|| structural(case, g, x)).or_else(|| windowed(case, x)).map(|t| vec![t])
}

fn unary(op: &str, x: &Tensor) -> Option<Tensor> {
    Some(match op {
        "neg" => -x,
        "abs" => x.abs(),
        "sign" => x.sign(),
        "exp" => x.exp(),
        "expm1" => x.expm1(),
        "log" => x.log(),
        "log1p" => x.log1p(),
        "sqrt" => x.sqrt(),
        "rsqrt" => x.rsqrt(),
        "reciprocal" => x.reciprocal(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tan" => x.tan(),
        "tanh" => x.tanh(),
        "erf" => x.erf(),
        "floor" => x.floor(),
        "ceil" => x.ceil(),
        "round_even" => x.round_even(),
        _ => return None,
    })
}

fn binary(op: &str, a: &Tensor, b: &Tensor) -> Option<Tensor> {
    Some(match op {
        "add" => a + b,
        "sub" => a - b,
        "mul" => a * b,
        "div" => a / b,
        "rem" => a % b,
        "pow" => a.pow(b),
        "atan2" => a.atan2(b),
        "maximum" => a.maximum(b),
        "minimum" => a.minimum(b),
        _ => return None,
    })
}

/// The monoid that a name ends in.
fn monoid(op: &str) -> Monoid {
    match op.rsplit('_').next() {
        Some("sum") => Monoid::Sum,
        Some("product") => Monoid::Product,
        Some("max") => Monoid::Max,
        Some("min") => Monoid::Min,
        _ => panic!("{op} names no monoid"),
    }
}

/// The elements of a vector of indices, as scalars.
fn scalars(x: &Tensor) -> Vec<Tensor> {
    (0..x.dim(0)).map(|i| x.narrow(0, i, 1).reshape([])).collect()
}

fn structural(case: &Case, g: &Graph, x: &[Tensor]) -> Option<Tensor> {
    Some(match case.op.as_str() {
        "select" => x[0].select(&x[1], &x[2]),
        "clamp" => x[1].clamp(&x[0], &x[2]),
        "reduce_sum" | "reduce_product" | "reduce_max" | "reduce_min" => {
            x[0].reduce(monoid(&case.op), &case.ints("axes"))
        }
        "cumulative_sum" | "cumulative_product" | "cumulative_max" | "cumulative_min" => {
            x[0].cumulative(monoid(&case.op), case.int("axis"), case.bool("reverse"), false)
        }
        "reshape" => x[0].reshape(case.sizes("shape")),
        "transpose" => x[0].transpose(&case.sizes("permutation")),
        "broadcast" => x[0].broadcast_in_dim(case.sizes("shape"), &case.sizes("dimensions")),
        "slice" => x[0].slice(&case.sizes("start"), &case.sizes("limit"), &case.sizes("stride")),
        "pad" => x[0].pad_with(&case.ints("low"), &case.ints("high"), &case.sizes("interior"), &x[1]),
        "concatenate" => g.concatenate(&x.iter().collect::<Vec<_>>(), case.int("axis")),
        "reverse" => x[0].reverse(&case.ints("axes")),
        "dynamic_slice" => x[0].dynamic_slice(&scalars(&x[1]).iter().collect::<Vec<_>>(), &case.sizes("sizes")),
        "dynamic_update_slice" => x[0].dynamic_update_slice(&x[1], &scalars(&x[2]).iter().collect::<Vec<_>>()),
        "gather" => x[0].gather(&x[1], case.int("axis")),
        "scatter_set" => x[0].scatter(ScatterMode::Set, case.int("axis"), &x[1], &x[2]),
        "scatter_add" => x[0].scatter(ScatterMode::Add, case.int("axis"), &x[1], &x[2]),
        "dot_general" => {
            let pairs = |l: &str, r: &str| -> Vec<_> { case.sizes(l).into_iter().zip(case.sizes(r)).collect() };
            x[0].dot_general(&x[1], &pairs("lhs_batch", "rhs_batch"), &pairs("lhs_contract", "rhs_contract"))
        }
        _ => return None,
    })
}

fn windowed(case: &Case, x: &[Tensor]) -> Option<Tensor> {
    Some(match case.op.as_str() {
        "convolution" => {
            let [pad_low, pad_high] = case.padding();
            let spatial = x[0].rank() - 2;
            let convolution = Convolution {
                lhs: Layout::features_first(spatial),
                stride: case.sizes("strides"),
                pad_low,
                pad_high,
                lhs_dilation: case.sizes("lhs_dilation"),
                rhs_dilation: case.sizes("rhs_dilation"),
                feature_groups: case.int("groups") as usize,
                ..Convolution::dense(spatial, x[0].dtype())
            };
            x[0].convolution(&x[1], convolution)
        }
        "reduce_window_sum" | "reduce_window_max" => {
            let [low, high] = case.padding().map(|side| side.into_iter().map(|v| v as usize).collect());
            let spread: Vec<usize> = case.sizes("base_dilation").into_iter().map(|d| d - 1).collect();
            let none = vec![0; spread.len()];
            // Base dilation is written as padding between elements; only sums have it here.
            let base = if spread == none {
                x[0].clone()
            } else {
                x[0].pad(&vec![0; none.len()], &vec![0; none.len()], &spread, 0.0)
            };
            let window = Window {
                stride: case.sizes("strides"),
                dilation: case.sizes("window_dilation"),
                pad_low: low,
                pad_high: high,
                ..Window::dense(&case.sizes("window"))
            };
            base.reduce_window(monoid(&case.op), window)
        }
        "max_pool_grad" => {
            let axes = |name: &str, first: usize| [vec![first; 2], case.sizes(name)].concat();
            let window = Window {
                stride: axes("stride", 1),
                pad_low: axes("padding", 0),
                pad_high: axes("padding", 0),
                ..Window::dense(&axes("kernel", 1))
            };
            x[0].select_and_scatter(Extreme::Max, window, &x[1])
        }
        _ => return None,
    })
}
