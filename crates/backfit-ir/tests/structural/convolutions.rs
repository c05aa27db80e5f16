//! Hand-computed convolutions.

use crate::harness::{f, gives, i};
use backfit_ir::DType::{F16, F32, I8, I32};
use backfit_ir::ops::convolution::{Convolution, Layout};
use backfit_ir::{Attributes, Graph, Op};

fn dense(change: impl Fn(&mut Convolution)) -> Convolution {
    let mut conv = Convolution::dense(1, F32);
    change(&mut conv);
    conv
}

#[test]
fn the_example_of_the_stablehlo_specification_holds() {
    let image = [1., 2., 5., 6., 3., 4., 7., 8., 10., 11., 14., 15., 12., 13., 16., 17.];
    let conv = Convolution {
        lhs: Layout { batch: 0, feature: 3, spatial: vec![1, 2] },
        rhs: Layout { batch: 3, feature: 2, spatial: vec![0, 1] },
        out: Layout { batch: 0, feature: 3, spatial: vec![1, 2] },
        stride: vec![4, 4],
        lhs_dilation: vec![2, 2],
        ..Convolution::dense(2, F32)
    };
    let x = [f(&[1, 4, 4, 1], &image), f(&[3, 3, 1, 1], &[1.0; 9])];
    gives(&x, |_, x| x[0].convolution(&x[1], conv.clone()), &[1, 2, 2, 1], &[10.0, 26.0, 46.0, 62.0]);
}

#[test]
fn a_reversed_kernel_with_full_padding_is_numpy_convolve() {
    let x = [f(&[1, 1, 3], &[1.0, 2.0, 3.0]), f(&[1, 1, 3], &[0.0, 1.0, 0.5])];
    let full = dense(|c| {
        c.reverse = vec![true];
        (c.pad_low, c.pad_high) = (vec![2], vec![2]);
    });
    gives(&x, |_, x| x[0].convolution(&x[1], full.clone()), &[1, 1, 5], &[0.0, 1.0, 2.5, 4.0, 1.5]);
    let correlate = dense(|_| {});
    gives(&x, |_, x| x[0].convolution(&x[1], correlate.clone()), &[1, 1, 1], &[3.5]);
}

#[test]
fn negative_padding_cuts_the_input() {
    let x = [f(&[1, 1, 5], &[1.0, 2.0, 4.0, 8.0, 16.0]), f(&[1, 1, 2], &[1.0, 1.0])];
    let cut = dense(|c| (c.pad_low, c.pad_high) = (vec![-1], vec![-1]));
    gives(&x, |_, x| x[0].convolution(&x[1], cut.clone()), &[1, 1, 2], &[6.0, 12.0]);
}

#[test]
fn kernel_dilation_skips_elements_and_input_dilation_inserts_zeros() {
    let x = [f(&[1, 1, 4], &[1.0, 2.0, 4.0, 8.0]), f(&[1, 1, 2], &[1.0, 10.0])];
    let skip = dense(|c| c.rhs_dilation = vec![2]);
    gives(&x, |_, x| x[0].convolution(&x[1], skip.clone()), &[1, 1, 2], &[41.0, 82.0]);
    let insert = dense(|c| c.lhs_dilation = vec![2]);
    let expected = [1.0, 20.0, 2.0, 40.0, 4.0, 80.0];
    gives(&x, |_, x| x[0].convolution(&x[1], insert.clone()), &[1, 1, 6], &expected);
}

#[test]
fn feature_groups_read_their_own_features() {
    let x = [f(&[1, 4, 1], &[1.0, 2.0, 3.0, 4.0]), f(&[2, 2, 1], &[1.0, 10.0, 1.0, 10.0])];
    let grouped = dense(|c| c.feature_groups = 2);
    gives(&x, |_, x| x[0].convolution(&x[1], grouped.clone()), &[1, 2, 1], &[21.0, 43.0]);
}

#[test]
fn batch_groups_read_their_own_part_of_the_batch() {
    // Output feature 0 reads batch elements 0 and 1, output feature 1 reads 2 and 3.
    let x = [f(&[4, 1, 1], &[1.0, 2.0, 3.0, 4.0]), f(&[2, 1, 1], &[10.0, 100.0])];
    let grouped = dense(|c| c.batch_groups = 2);
    gives(&x, |_, x| x[0].convolution(&x[1], grouped.clone()), &[2, 2, 1], &[10.0, 300.0, 20.0, 400.0]);
}

#[test]
fn integers_are_summed_in_the_result_dtype() {
    let x = [i(I8, &[1, 1, 2], &[100, 100]), i(I8, &[1, 1, 2], &[2, 2])];
    let wide = Convolution { result: I32, accumulator: I32, ..Convolution::dense(1, I8) };
    gives(&x, |_, x| x[0].convolution(&x[1], wide.clone()), &[1, 1, 1], &[400.0]);
    gives(&x, |_, x| x[0].convolution(&x[1], Convolution::dense(1, I8)), &[1, 1, 1], &[-112.0]);
}

#[test]
fn half_precision_is_accumulated_in_f32() {
    assert_eq!(Convolution::dense(2, F16).accumulator, F32);
}

#[test]
fn flops_are_two_for_every_product() {
    let g = Graph::new();
    let (x, w) = (g.input("x", F32, [2, 4, 6]), g.input("w", F32, [8, 2, 3]));
    let op = Op::Convolution(dense(|c| c.feature_groups = 2));
    let y = x.convolution(&w, dense(|c| c.feature_groups = 2));
    let flops = (op.primitive().flops)(&op, &[x.ty().clone(), w.ty().clone()], &[y.ty().clone()]);
    assert_eq!(flops, 2 * (2 * 8 * 4) * (2 * 3));
}

#[test]
fn attributes_that_do_not_make_sense_are_not_parsed() {
    let rules = Op::Convolution(Convolution::dense(1, F32));
    let whole = (rules.primitive().attributes)(&rules);
    let changed = |name: &str, value: Vec<i64>| {
        let rest = whole.iter().filter(|(n, _)| *n != name);
        rest.fold(Attributes::new(), |all, (n, v)| all.with(n, v.clone())).with(name, value)
    };
    let why = |a: Attributes| (rules.primitive().parse)(&a).unwrap_err();
    assert!(why(changed("reverse", vec![2])).contains("its entries are 0 and 1"));
    assert!(why(changed("lhs", vec![0])).contains("names the batch axis"));
    assert!(why(changed("stride", vec![-1])).contains("not a list of sizes"));
}
