//! Cases of `convolution`.

use super::super::definition::{Sample, values};
use super::{Convolution, Layout};
use crate::builder::Tensor;
use crate::dtype::DType;

type Change = fn(&mut Convolution);

fn case(label: &str, lhs: &[usize], rhs: &[usize], change: Change) -> Sample {
    let spatial = lhs.len() - 2;
    let inputs = vec![values::tensor(lhs, -2.0, 2.0, 1), values::tensor(rhs, -2.0, 2.0, 2)];
    Sample::floats(label, inputs, move |_, x: &[Tensor]| {
        vec![x[0].convolution(&x[1], attributes(spatial, x[0].dtype(), change))]
    })
}

fn attributes(spatial: usize, dtype: DType, change: Change) -> Convolution {
    let mut conv = Convolution::dense(spatial, dtype);
    change(&mut conv);
    conv
}

fn pad(conv: &mut Convolution, low: &[i64], high: &[i64]) {
    conv.pad_low = low.to_vec();
    conv.pad_high = high.to_vec();
}

/// Plain, strided, padded, dilated, grouped, in other layouts; edge shapes.
pub(super) fn samples() -> Vec<Sample> {
    let mut all = plain();
    all.extend(grouped());
    all.extend(edges());
    let inputs = vec![values::integers([1, 1, 4], &[100, -3, 5, 7]), values::integers([1, 1, 2], &[2, 100])];
    all.push(Sample::integers("integers wrap", inputs, |_, x| {
        vec![x[0].convolution(&x[1], Convolution::dense(1, x[0].dtype()))]
    }));
    all
}

fn plain() -> Vec<Sample> {
    vec![
        case("dense", &[2, 3, 5, 4], &[2, 3, 3, 2], |_| {}),
        case("same padding", &[1, 2, 4, 4], &[3, 2, 3, 3], |c| pad(c, &[1, 1], &[1, 1])),
        case("stride that does not divide", &[1, 2, 6, 7], &[2, 2, 2, 3], |c| c.stride = vec![3, 2]),
        case("negative padding", &[1, 1, 6, 5], &[1, 1, 2, 2], |c| pad(c, &[-1, 2], &[1, -2])),
        case("kernel dilation", &[1, 2, 7, 5], &[2, 2, 3, 2], |c| c.rhs_dilation = vec![2, 3]),
        case("transposed: input dilation", &[1, 2, 3, 4], &[2, 2, 3, 2], |c| {
            c.lhs_dilation = vec![2, 3];
            pad(c, &[2, 1], &[3, 1]);
        }),
        case("reversed kernel", &[1, 2, 5, 4], &[2, 2, 3, 2], |c| c.reverse = vec![true, false]),
        case("everything at once", &[2, 2, 6, 5], &[4, 1, 2, 3], |c| {
            c.stride = vec![2, 3];
            c.lhs_dilation = vec![3, 1];
            c.rhs_dilation = vec![2, 2];
            c.reverse = vec![true, true];
            c.feature_groups = 2;
            pad(c, &[3, -1], &[-2, 4]);
        }),
        case("features last", &[2, 5, 4, 3], &[3, 2, 3, 2], |c| {
            c.lhs = Layout { batch: 0, feature: 3, spatial: vec![1, 2] };
            c.rhs = Layout { batch: 3, feature: 2, spatial: vec![0, 1] };
            c.out = Layout { batch: 0, feature: 3, spatial: vec![1, 2] };
        }),
        case("spatial axes exchanged", &[5, 2, 3, 4], &[2, 3, 2, 2], |c| {
            c.lhs = Layout { batch: 1, feature: 2, spatial: vec![3, 0] };
            c.rhs = Layout { batch: 2, feature: 1, spatial: vec![0, 3] };
            c.out = Layout { batch: 3, feature: 0, spatial: vec![2, 1] };
            c.stride = vec![1, 2];
        }),
        case("one axis", &[2, 2, 6], &[3, 2, 3], |c| c.stride = vec![2]),
        case("three axes", &[1, 2, 3, 4, 3], &[2, 2, 2, 2, 2], |c| pad(c, &[1, 0, 0], &[0, 0, 1])),
        case("no spatial axis: a matrix product", &[3, 4], &[2, 4], |_| {}),
    ]
}

fn grouped() -> Vec<Sample> {
    vec![
        case("feature groups", &[2, 4, 4, 3], &[6, 2, 2, 2], |c| {
            c.feature_groups = 2;
            c.stride = vec![2, 1];
        }),
        case("depthwise", &[1, 3, 4, 4], &[3, 1, 3, 3], |c| {
            c.feature_groups = 3;
            pad(c, &[1, 1], &[1, 1]);
        }),
        case("batch groups", &[4, 3, 4, 4], &[6, 3, 2, 2], |c| {
            c.batch_groups = 2;
            c.rhs_dilation = vec![2, 1];
        }),
        case("feature groups, features last", &[1, 4, 4], &[2, 2, 4], |c| {
            c.lhs = Layout { batch: 0, feature: 2, spatial: vec![1] };
            c.rhs = Layout { batch: 2, feature: 1, spatial: vec![0] };
            c.out = Layout { batch: 0, feature: 2, spatial: vec![1] };
            c.feature_groups = 2;
        }),
        case("batch groups, batch last", &[3, 4, 4], &[2, 3, 4], |c| {
            c.lhs = Layout { batch: 2, feature: 0, spatial: vec![1] };
            c.rhs = Layout { batch: 2, feature: 1, spatial: vec![0] };
            c.out = Layout { batch: 2, feature: 0, spatial: vec![1] };
            c.batch_groups = 4;
        }),
    ]
}

fn edges() -> Vec<Sample> {
    vec![
        case("one element", &[1, 1, 1, 1], &[1, 1, 1, 1], |_| {}),
        case("kernel as large as the input", &[1, 2, 3, 3], &[2, 2, 3, 3], |_| {}),
        case("kernel that does not fit", &[1, 1, 2, 3], &[1, 1, 3, 1], |_| {}),
        case("only padding", &[1, 1, 1], &[1, 1, 2], |c| pad(c, &[4], &[3])),
        case("no batch", &[0, 2, 3], &[2, 2, 2], |_| {}),
        case("no features", &[1, 0, 3], &[2, 0, 2], |_| {}),
        case("no input", &[1, 1, 0], &[1, 1, 2], |c| pad(c, &[2], &[2])),
    ]
}
