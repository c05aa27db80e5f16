//! Hand-computed values: counting, repeating, cutting, joining, running reductions.

use crate::harness::{INFINITY, NAN, NEG_INFINITY, evaluate, f, gives, i};
use backfit_ir::DType::{Bool, F32, I8, I32, I64, U8, U64};
use backfit_ir::Literal;
use backfit_ir::op::Monoid;
use backfit_ir::ops::rng_bits::philox;

#[test]
fn cumulative_sums_run_from_either_end_with_or_without_the_element() {
    let x = [f(&[3], &[1.0, 2.0, 4.0])];
    gives(&x, |_, x| x[0].cumsum(0), &[3], &[1.0, 3.0, 7.0]);
    gives(&x, |_, x| x[0].cumulative(Monoid::Sum, 0, true, false), &[3], &[7.0, 6.0, 4.0]);
    gives(&x, |_, x| x[0].cumulative(Monoid::Sum, 0, false, true), &[3], &[0.0, 1.0, 3.0]);
    gives(&x, |_, x| x[0].cumulative(Monoid::Sum, 0, true, true), &[3], &[6.0, 4.0, 0.0]);
}

#[test]
fn cumulative_runs_along_its_axis_only() {
    let x = [f(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])];
    gives(&x, |_, x| x[0].cumsum(0), &[2, 3], &[1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
    gives(&x, |_, x| x[0].cumsum(-1), &[2, 3], &[1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
}

#[test]
fn exclusive_cumulative_extremes_start_with_the_neutral_element() {
    let x = [f(&[2], &[1.0, 2.0])];
    gives(&x, |_, x| x[0].cumulative(Monoid::Max, 0, false, true), &[2], &[NEG_INFINITY, 1.0]);
    gives(&x, |_, x| x[0].cumulative(Monoid::Min, 0, true, true), &[2], &[2.0, INFINITY]);
    gives(&[i(U8, &[2], &[7, 9])], |_, x| x[0].cumulative(Monoid::Min, 0, false, true), &[2], &[255.0, 7.0]);
    gives(&[i(I8, &[2], &[7, 9])], |_, x| x[0].cumulative(Monoid::Max, 0, false, true), &[2], &[-128.0, 7.0]);
}

#[test]
fn cumulative_extremes_keep_a_nan_and_integers_wrap() {
    let x = [f(&[3], &[1.0, NAN, 2.0])];
    gives(&x, |_, x| x[0].cumulative(Monoid::Max, 0, false, false), &[3], &[1.0, NAN, NAN]);
    gives(&[i(I8, &[3], &[100, 100, 100])], |_, x| x[0].cumsum(0), &[3], &[100.0, -56.0, 44.0]);
    gives(&[i(U8, &[2], &[20, 20])], |_, x| x[0].cumulative(Monoid::Product, 0, false, false), &[2], &[20.0, 144.0]);
}

#[test]
fn iota_counts_along_its_axis() {
    gives(&[], |g, _| g.iota(I32, [2, 3], 0), &[2, 3], &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    gives(&[], |g, _| g.iota(F32, [2, 3], 1), &[2, 3], &[0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    let wrapped = evaluate(&[], |g, _| vec![g.iota(I8, [130], 0)]);
    assert_eq!(&wrapped[0].as_ints()[126..], [126, 127, -128, -127]);
}

#[test]
fn broadcast_repeats_along_new_and_unit_axes() {
    let row = [f(&[3], &[1.0, 2.0, 3.0])];
    gives(&row, |_, x| x[0].broadcast_in_dim([2, 3], &[1]), &[2, 3], &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    gives(&row, |_, x| x[0].broadcast_in_dim([3, 2], &[0]), &[3, 2], &[1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
    let column = [f(&[2, 1], &[1.0, 2.0])];
    gives(&column, |_, x| x[0].broadcast_in_dim([2, 2], &[0, 1]), &[2, 2], &[1.0, 1.0, 2.0, 2.0]);
}

#[test]
fn slices_take_every_stride_th_element() {
    // The example of the StableHLO specification.
    let x = [f(&[3, 4], &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0])];
    gives(&x, |_, x| x[0].slice(&[1, 2], &[3, 4], &[1, 1]), &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let x = [i(I32, &[7], &[0, 1, 2, 3, 4, 5, 6])];
    gives(&x, |_, x| x[0].slice(&[1], &[7], &[3]), &[2], &[1.0, 4.0]);
    gives(&x, |_, x| x[0].slice(&[6], &[7], &[usize::MAX]), &[1], &[6.0]);
    gives(&x, |_, x| x[0].narrow(-1, 2, 3), &[3], &[2.0, 3.0, 4.0]);
}

#[test]
fn pad_adds_around_and_between_and_cuts() {
    // The example of the StableHLO specification.
    let x = [f(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])];
    let (a, b, z) =
        ([0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 3.0, 0.0], [0.0, 4.0, 0.0, 0.0, 5.0, 0.0, 0.0, 6.0, 0.0], [0.0; 9]);
    gives(&x, |_, x| x[0].pad(&[0, 1], &[2, 1], &[1, 2], 0.0), &[5, 9], &[a, z, b, z, z].concat());
    gives(&x, |_, x| x[0].pad(&[-1, -1], &[1, 0], &[0, 0], 9.0), &[2, 2], &[5.0, 6.0, 9.0, 9.0]);
    // Edges cut after the interior is added: 1 0 2 0 3 without its first and its last two.
    gives(&[f(&[3], &[1.0, 2.0, 3.0])], |_, x| x[0].pad(&[-1], &[-2], &[1], 0.0), &[2], &[0.0, 2.0]);
    gives(&[f(&[0], &[])], |_, x| x[0].pad(&[1], &[1], &[5], 7.0), &[2], &[7.0, 7.0]);
}

#[test]
fn concatenate_joins_along_its_axis() {
    let x = [f(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), f(&[1, 2], &[7.0, 8.0]), f(&[3, 1], &[7.0, 8.0, 9.0])];
    let rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    gives(&x, |g, x| g.concatenate(&[&x[0], &x[1]], 0), &[4, 2], &rows);
    let columns = [1.0, 2.0, 7.0, 3.0, 4.0, 8.0, 5.0, 6.0, 9.0];
    gives(&x, |g, x| g.concatenate(&[&x[0], &x[2]], -1), &[3, 3], &columns);
}

#[test]
fn reverse_turns_the_named_axes() {
    let x = [f(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])];
    gives(&x, |_, x| x[0].reverse(&[1]), &[3, 2], &[2.0, 1.0, 4.0, 3.0, 6.0, 5.0]);
    gives(&x, |_, x| x[0].reverse(&[-1, 0]), &[3, 2], &[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
}

#[test]
fn dynamic_slices_are_clamped_to_stay_inside() {
    // The examples of the StableHLO specification.
    let x = f(&[2, 4], &[0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0]);
    let at = |a, b| [x.clone(), i(I64, &[], &[a]), i(I64, &[], &[b])];
    gives(&at(-1, 3), |_, x| x[0].dynamic_slice(&[&x[1], &x[2]], &[2, 2]), &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    gives(&at(1, 1), |_, x| x[0].dynamic_slice(&[&x[1], &x[2]], &[1, 2]), &[1, 2], &[0.0, 3.0]);
    let update = |_: &_, x: &[backfit_ir::Tensor]| {
        x[0].dynamic_update_slice(&x[0].slice(&[1, 2], &[2, 4], &[1, 1]), &[&x[1], &x[2]])
    };
    gives(&at(0, -5), update, &[2, 4], &[3.0, 4.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0]);
    gives(&at(9, 1), update, &[2, 4], &[0.0, 0.0, 1.0, 2.0, 0.0, 3.0, 4.0, 4.0]);
    // −1 as u64 is the largest number, so it clamps to the end.
    let end = [i(I32, &[3], &[1, 2, 3]), i(U64, &[], &[-1])];
    gives(&end, |_, x| x[0].dynamic_slice(&[&x[1]], &[1]), &[1], &[3.0]);
}

#[test]
fn unit_axes_come_and_go() {
    let x = [f(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])];
    let shape = |y: Vec<backfit_ir::interp::Array>| y[0].shape().to_vec();
    assert_eq!(shape(evaluate(&x, |_, x| vec![x[0].unsqueeze(-1)])), [2, 3, 1]);
    assert_eq!(shape(evaluate(&x, |_, x| vec![x[0].unsqueeze(0)])), [1, 2, 3]);
    assert_eq!(shape(evaluate(&x, |_, x| vec![x[0].unsqueeze(1).squeeze(-2)])), [2, 3]);
}

#[test]
fn a_barrier_changes_nothing() {
    let x = [f(&[2], &[1.0, NAN]), i(Bool, &[1], &[1])];
    let y = evaluate(&x, |g, x| g.barrier(&[&x[0], &x[1]]));
    assert_eq!([y[0].to_literal(), y[1].to_literal()], x);
}

#[test]
fn philox_gives_the_known_answers() {
    let zero = philox([0; 4], [0; 2]);
    assert_eq!(zero, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    let ones = philox([u32::MAX; 4], [u32::MAX; 2]);
    assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    let pi = philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]);
    assert_eq!(pi, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
}

#[test]
fn random_bits_are_the_words_of_consecutive_counters() {
    let key = i(backfit_ir::DType::U32, &[4], &[0xa409_3822, 0x299f_31d0, 0x1319_8a2e, 0x0370_7344]);
    let bits = evaluate(&[key], |g, x| vec![g.rng_bits(&x[0], [2, 5])]);
    let block = |b| philox([b, 0, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]);
    let expected: Vec<i64> = [block(0), block(1), block(2)].concat()[..10].iter().map(|&v| i64::from(v)).collect();
    assert_eq!(bits[0].as_ints(), expected);
    let zero = Literal::zeros(backfit_ir::Type::new(backfit_ir::DType::U32, [4]));
    let first = evaluate(&[zero], |g, x| vec![g.rng_bits(&x[0], [1])]);
    assert_eq!(first[0].as_ints(), [0x6627_e8d5]);
}
