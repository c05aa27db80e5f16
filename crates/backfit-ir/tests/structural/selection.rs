//! Hand-computed values: taking, putting, sorting, extremes, windows.

use crate::harness::{INFINITY, NAN, NEG_INFINITY, evaluate, f, gives, i};
use backfit_ir::DType::{F32, I8, I16, I32, I64, U8, U16, U32, U64};
use backfit_ir::op::{Extreme, Monoid, ScatterMode};
use backfit_ir::ops::reduce_window::Window;

#[test]
fn gather_takes_along_an_axis_as_numpy_take() {
    let x = [f(&[6], &[4.0, 3.0, 5.0, 7.0, 6.0, 8.0]), i(I32, &[3], &[0, 1, 4]), i(I32, &[2, 2], &[0, 1, 2, 3])];
    gives(&x, |_, x| x[0].gather(&x[1], 0), &[3], &[4.0, 3.0, 6.0]);
    gives(&x, |_, x| x[0].gather(&x[2], 0), &[2, 2], &[4.0, 3.0, 5.0, 7.0]);
    let x = [f(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), i(I32, &[2], &[2, 0]), i(I32, &[], &[1])];
    gives(&x, |_, x| x[0].gather(&x[1], 1), &[2, 2], &[3.0, 1.0, 6.0, 4.0]);
    gives(&x, |_, x| x[0].gather(&x[2], 0), &[3], &[4.0, 5.0, 6.0]);
}

#[test]
fn gather_clamps_indices_of_every_integer_dtype() {
    for dtype in [I64, I32, I16, I8] {
        let x = [f(&[2], &[1.0, 2.0]), i(dtype, &[3], &[-1, 1, 100])];
        gives(&x, |_, x| x[0].gather(&x[1], 0), &[3], &[1.0, 2.0, 2.0]);
    }
    for dtype in [U64, U32, U16, U8] {
        let x = [f(&[2], &[1.0, 2.0]), i(dtype, &[3], &[-1, 1, 0])];
        gives(&x, |_, x| x[0].gather(&x[1], 0), &[3], &[2.0, 2.0, 1.0]);
    }
}

#[test]
fn scatter_adds_all_and_sets_the_last_and_drops_what_is_out_of_range() {
    let indices =
        |dtype| [f(&[3], &[10.0, 20.0, 30.0]), i(dtype, &[4], &[1, -1, 1, 3]), f(&[4], &[1.0, 2.0, 4.0, 8.0])];
    for dtype in [I64, I32, I16, I8, U64, U32, U16, U8] {
        let x = indices(dtype);
        gives(&x, |_, x| x[0].scatter(ScatterMode::Add, 0, &x[1], &x[2]), &[3], &[10.0, 25.0, 30.0]);
        gives(&x, |_, x| x[0].scatter(ScatterMode::Set, 0, &x[1], &x[2]), &[3], &[10.0, 4.0, 30.0]);
    }
}

#[test]
fn scatter_puts_slices_along_an_inner_axis() {
    let x = [f(&[2, 3], &[0.0; 6]), i(I32, &[2], &[2, 0]), f(&[2, 2], &[1.0, 2.0, 3.0, 4.0])];
    gives(&x, |_, x| x[0].scatter(ScatterMode::Set, 1, &x[1], &x[2]), &[2, 3], &[2.0, 0.0, 1.0, 4.0, 0.0, 3.0]);
}

#[test]
fn sort_is_stable_and_permutes_payloads() {
    // The example of the StableHLO specification.
    let x = [i(I32, &[2, 3], &[1, 2, 3, 3, 2, 1]), i(I32, &[2, 3], &[3, 2, 1, 1, 2, 3])];
    gives(&x, |_, x| x[0].sort(0, true, &[&x[1]]).swap_remove(0), &[2, 3], &[3.0, 2.0, 3.0, 1.0, 2.0, 1.0]);
    gives(&x, |_, x| x[0].sort(0, true, &[&x[1]]).swap_remove(1), &[2, 3], &[1.0, 2.0, 1.0, 3.0, 2.0, 3.0]);
    let ties = [f(&[4], &[1.0, 0.0, 1.0, 0.0]), i(I32, &[4], &[0, 1, 2, 3])];
    gives(&ties, |_, x| x[0].sort(0, false, &[&x[1]]).swap_remove(1), &[4], &[1.0, 3.0, 0.0, 2.0]);
    gives(&ties, |_, x| x[0].sort(0, true, &[&x[1]]).swap_remove(1), &[4], &[0.0, 2.0, 1.0, 3.0]);
}

#[test]
fn sort_puts_nan_last_in_both_directions() {
    let x = [f(&[5], &[NAN, 1.0, INFINITY, NEG_INFINITY, 2.0])];
    gives(&x, |_, x| x[0].sort(0, false, &[]).swap_remove(0), &[5], &[NEG_INFINITY, 1.0, 2.0, INFINITY, NAN]);
    gives(&x, |_, x| x[0].sort(0, true, &[]).swap_remove(0), &[5], &[INFINITY, 2.0, 1.0, NEG_INFINITY, NAN]);
}

#[test]
fn unsigned_numbers_are_ordered_as_unsigned() {
    let x = [i(U64, &[3], &[1, -1, 5])];
    let sorted = evaluate(&x, |_, x| x[0].sort(0, false, &[]));
    assert_eq!(sorted[0].as_ints(), [1, 5, -1]);
    gives(&x, |_, x| x[0].arg_max(0), &[], &[1.0]);
    gives(&x, |_, x| x[0].arg_min(0), &[], &[0.0]);
}

#[test]
fn arg_extremes_are_the_first_and_nan_wins() {
    let x = [f(&[2, 3], &[1.0, 3.0, 3.0, 2.0, 0.0, 0.0]), f(&[4], &[1.0, NAN, 9.0, NAN])];
    gives(&x, |_, x| x[0].arg_max(1), &[2], &[1.0, 0.0]);
    gives(&x, |_, x| x[0].arg_min(-1), &[2], &[0.0, 1.0]);
    gives(&x, |_, x| x[0].arg_max(0), &[3], &[1.0, 0.0, 0.0]);
    gives(&x, |_, x| x[1].arg_max(0), &[], &[1.0]);
    gives(&x, |_, x| x[1].arg_min(0), &[], &[1.0]);
    assert_eq!(evaluate(&x, |_, x| vec![x[0].arg_max(1)])[0].ty.dtype, I32);
}

fn pool(size: &[usize], stride: &[usize]) -> Window {
    Window { stride: stride.to_vec(), ..Window::dense(size) }
}

#[test]
fn windows_reduce_what_they_hold() {
    let x = [f(&[4, 4], &[1.0, 1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0, 3.0, 2.0, 1.0, 0.0, 1.0, 2.0, 3.0, 4.0])];
    gives(&x, |_, x| x[0].reduce_window(Monoid::Max, pool(&[2, 2], &[2, 2])), &[2, 2], &[6.0, 8.0, 3.0, 4.0]);
    gives(&x, |_, x| x[0].reduce_window(Monoid::Sum, pool(&[2, 2], &[2, 2])), &[2, 2], &[13.0, 21.0, 8.0, 8.0]);
    gives(&x, |_, x| x[0].reduce_window(Monoid::Min, pool(&[3, 4], &[1, 1])), &[2, 1], &[0.0, 0.0]);
    let x = [f(&[5], &[1.0, 2.0, 3.0, 4.0, 5.0])];
    let dilated = Window { dilation: vec![2], ..Window::dense(&[2]) };
    gives(&x, |_, x| x[0].reduce_window(Monoid::Product, dilated.clone()), &[3], &[3.0, 8.0, 15.0]);
}

#[test]
fn windows_ignore_padding() {
    let padded = Window { pad_low: vec![1], pad_high: vec![3], ..Window::dense(&[2]) };
    let x = [f(&[2], &[-1.0, -2.0])];
    let reduce = |monoid| {
        let window = padded.clone();
        move |_: &_, x: &[backfit_ir::Tensor]| x[0].reduce_window(monoid, window.clone())
    };
    gives(&x, reduce(Monoid::Max), &[5], &[-1.0, -1.0, -2.0, NEG_INFINITY, NEG_INFINITY]);
    gives(&x, reduce(Monoid::Product), &[5], &[-1.0, 2.0, -2.0, 1.0, 1.0]);
    gives(&[i(U8, &[2], &[7, 9])], reduce(Monoid::Min), &[5], &[7.0, 7.0, 9.0, 255.0, 255.0]);
    gives(&[f(&[2], &[NAN, 1.0])], reduce(Monoid::Max), &[5], &[NAN, NAN, 1.0, NEG_INFINITY, NEG_INFINITY]);
}

#[test]
fn huge_padding_costs_nothing_where_no_element_is_near() {
    let size = 1usize << 50;
    let window = Window { pad_low: vec![size], pad_high: vec![size], stride: vec![size], ..Window::dense(&[size]) };
    gives(&[f(&[2], &[1.0, 2.0])], |_, x| x[0].reduce_window(Monoid::Sum, window.clone()), &[2], &[0.0, 3.0]);
}

#[test]
fn select_and_scatter_adds_at_the_extreme_of_each_window() {
    // The example of the StableHLO specification.
    let x = [f(&[4, 2], &[1.0, 5.0, 2.0, 5.0, 3.0, 6.0, 4.0, 4.0]), f(&[2, 2], &[5.0, 6.0, 7.0, 8.0])];
    let window = Window { pad_high: vec![1, 0], ..pool(&[3, 1], &[2, 1]) };
    let scatter = |extreme, window: Window| {
        move |_: &_, x: &[backfit_ir::Tensor]| x[0].select_and_scatter(extreme, window.clone(), &x[1])
    };
    gives(&x, scatter(Extreme::Max, window), &[4, 2], &[0.0, 0.0, 0.0, 0.0, 5.0, 14.0, 7.0, 0.0]);
    let pairs = Window::dense(&[2]);
    let ties = [f(&[4], &[1.0, 1.0, 0.0, 0.0]), f(&[3], &[1.0, 2.0, 4.0])];
    gives(&ties, scatter(Extreme::Max, pairs.clone()), &[4], &[1.0, 2.0, 4.0, 0.0]);
    gives(&ties, scatter(Extreme::Min, pairs.clone()), &[4], &[1.0, 0.0, 6.0, 0.0]);
    let nan = [f(&[3], &[9.0, NAN, NAN]), f(&[2], &[1.0, 2.0])];
    gives(&nan, scatter(Extreme::Max, pairs), &[3], &[0.0, 3.0, 0.0]);
}

#[test]
fn sources_of_windows_wholly_in_padding_are_dropped() {
    let window = Window { pad_low: vec![2], pad_high: vec![2], ..Window::dense(&[2]) };
    let x = [f(&[1], &[NEG_INFINITY]), f(&[4], &[1.0, 2.0, 4.0, 8.0])];
    gives(&x, |_, x| x[0].select_and_scatter(Extreme::Max, window.clone(), &x[1]), &[1], &[6.0]);
}

#[test]
fn results_keep_the_dtype_of_what_is_moved() {
    let x = [i(I16, &[3], &[3, 1, 2]), i(U8, &[1], &[2]), f(&[3], &[1.0, 2.0, 3.0])];
    let y = evaluate(&x, |_, x| vec![x[0].gather(&x[1], 0), x[0].sort(0, false, &[&x[2]]).swap_remove(1)]);
    assert_eq!([y[0].ty.dtype, y[1].ty.dtype], [I16, F32]);
}
