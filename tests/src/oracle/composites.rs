//! The oracle's composites.

use super::file::Case;
use backfit_ir::op::Keyword;
use backfit_ir::ops::batch_norm::BatchNormParameters;
use backfit_ir::ops::clip_by_global_norm::clip_by_global_norm;
use backfit_ir::ops::conv_transpose2d::ConvTranspose2d;
use backfit_ir::ops::conv2d::Conv2d;
use backfit_ir::ops::cross_entropy::CrossEntropy;
use backfit_ir::ops::reduction::{LossOptions, Reduction};
use backfit_ir::ops::rotary_embedding::Rotary;
use backfit_ir::ops::scaled_dot_product_attention::Attention;
use backfit_ir::{DType, Tensor};

/// Builds a composite.
pub fn build(case: &Case, x: &[Tensor]) -> Option<Vec<Tensor>> {
    match case.op.as_str() {
        "batch_norm" => return Some(batch_norm(case, x)),
        "clip_by_global_norm" => {
            let (clipped, norm) = clip_by_global_norm(x, case.float("max_norm"));
            return Some(clipped.into_iter().chain(norm).collect());
        }
        _ => {}
    }
    activation(case, &x[0]).or_else(|| layer(case, x)).or_else(|| loss(case, x)).map(|t| vec![t])
}

fn activation(case: &Case, x: &Tensor) -> Option<Tensor> {
    Some(match case.op.as_str() {
        "square" => x.square(),
        "relu" => x.relu(),
        "relu6" => x.relu6(),
        "elu" => x.elu(1.0),
        "leaky_relu" => x.leaky_relu(case.float("slope")),
        "silu" => x.silu(),
        "sigmoid" => x.sigmoid(),
        "softplus" => x.softplus(),
        "gelu" if case.str("approximation") == "tanh" => x.gelu_tanh(),
        "gelu" => x.gelu(),
        "clip_by_value" => x.clip_by_value(case.float("lo"), case.float("hi")),
        "mean" => x.mean(&case.ints("axes")).reshape(&case.outputs[0].ty().shape),
        "variance" => x.variance(&case.ints("axes"), case.int("ddof") as usize).reshape(&case.outputs[0].ty().shape),
        "softmax" => x.softmax(case.int("axis")),
        "log_softmax" => x.log_softmax(case.int("axis")),
        "logsumexp" => x.logsumexp(&case.ints("axes")),
        "max_pool2d" => x.max_pool2d(case.pair("kernel"), case.pair("stride"), case.pair("padding")),
        "avg_pool2d" => x.avg_pool2d(case.pair("kernel"), case.pair("stride"), case.pair("padding")),
        "global_avg_pool" => x.global_avg_pool2d().reshape(&x.shape()[..2]),
        "one_hot" => x.one_hot(case.int("classes") as usize, DType::F64),
        "rotary" => x.rotary_embedding(Rotary {
            base: case.float("base"),
            interleaved: case.bool("interleaved"),
            offset: case.int("offset") as usize,
        }),
        _ => return None,
    })
}

fn layer(case: &Case, x: &[Tensor]) -> Option<Tensor> {
    Some(match case.op.as_str() {
        "linear" => x[0].linear(&x[1], x.get(2)),
        "matmul" => x[0].matmul(&x[1]),
        "take_along_axis" => x[0].take_along_axis(&x[1], case.int("axis")),
        "embedding" => x[0].embedding(&x[1]),
        "conv2d" => {
            let (stride, padding, dilation) = (case.pair("stride"), case.pair("padding"), case.pair("dilation"));
            x[0].conv2d(&x[1], x.get(2), Conv2d { stride, padding, dilation, groups: case.int("groups") as usize })
        }
        "conv_transpose2d" => {
            let options = ConvTranspose2d {
                stride: case.pair("stride"),
                padding: case.pair("padding"),
                output_padding: case.pair("output_padding"),
                dilation: case.pair("dilation"),
                groups: case.int("groups") as usize,
            };
            x[0].conv_transpose2d(&x[1], x.get(2), options)
        }
        "layer_norm" => {
            // Over several last axes: joined into one.
            let first = x[0].rank() as i64 - case.int("dims");
            let [rows, weight, bias] = [x[0].flatten(first), x[1].flatten(0), x[2].flatten(0)];
            rows.layer_norm(Some(&weight), Some(&bias), case.float("eps")).reshape(x[0].shape())
        }
        "rms_norm" => x[0].rms_norm(x.get(1), case.float("eps")),
        "group_norm" => x[0].group_norm(case.int("groups") as usize, x.get(1), x.get(2), case.float("eps")),
        "attention" => {
            let options = Attention { mask: x.get(3), causal: case.bool("causal"), scale: None };
            x[0].scaled_dot_product_attention(&x[1], &x[2], options)
        }
        _ => return None,
    })
}

/// With momentum 1 the running statistics are the batch's, the variance unbiased.
fn batch_norm(case: &Case, x: &[Tensor]) -> Vec<Tensor> {
    let zeros = x[1].like(0.0);
    let parameters = BatchNormParameters { weight: &x[1], bias: &x[2], running_mean: &zeros, running_var: &zeros };
    let out = x[0].batch_norm(parameters, None, 1.0, case.float("eps"));
    let n = (x[0].shape().elements() / x[0].dim(1)) as f64;
    vec![out.y, out.running_mean, out.running_var * ((n - 1.0) / n)]
}

fn loss(case: &Case, x: &[Tensor]) -> Option<Tensor> {
    let reduction = || Reduction::from_word(case.str("reduction")).expect("a reduction");
    let options = || LossOptions { weights: None, reduction: reduction() };
    Some(match case.op.as_str() {
        "cross_entropy" => {
            let label_smoothing = case.float("label_smoothing");
            x[0].cross_entropy_with(&x[1], CrossEntropy { label_smoothing, weights: None, reduction: reduction() })
        }
        "cross_entropy_soft" => {
            x[0].cross_entropy_with(&x[1], CrossEntropy { reduction: reduction(), ..CrossEntropy::default() })
        }
        "cross_entropy_weighted" => {
            x[0].cross_entropy_with(&x[1], CrossEntropy { weights: Some(&x[2]), ..CrossEntropy::default() })
        }
        "bce_with_logits" => x[0].binary_cross_entropy_with_logits_with(&x[1], options()),
        "mse" => x[0].mse_with(&x[1], options()),
        "l1" => x[0].l1_with(&x[1], options()),
        "huber" => x[0].huber_with(&x[1], case.float("delta"), options()),
        "accuracy" => x[0].accuracy(&x[1]),
        _ => return None,
    })
}
