//! What the operators refuse, and in which words.

use crate::harness::{f, i, refuses};
use backfit_ir::DType::{Bool, F16, F32, I32, I64, U32};
use backfit_ir::op::{Extreme, Monoid, ScatterMode};
use backfit_ir::ops::convolution::{Convolution, Layout};
use backfit_ir::ops::reduce_window::Window;
use backfit_ir::{Literal, Op, Shape, Tensor, Type};

fn x23() -> Literal {
    f(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
}

#[test]
fn axes_that_are_not_there_are_refused() {
    refuses("f32[2,3] has no axis 2", &[x23()], |_, x| x[0].cumsum(2));
    refuses("f32[2,3] has no axis -3", &[x23()], |_, x| x[0].cumsum(-3));
    refuses("has no axis 9223372036854775807", &[x23()], |_, x| x[0].arg_max(i64::MAX));
    refuses("has no axis -9223372036854775808", &[x23()], |_, x| x[0].narrow(i64::MIN, 0, 1));
    refuses("has no axis 5", &[x23()], |_, x| x[0].sort(5, false, &[]).swap_remove(0));
    refuses("has no axis 2", &[], |g, _| g.iota(F32, [2, 3], 2));
    refuses("out of range or named twice", &[x23()], |_, x| x[0].reverse(&[0, -2]));
    refuses("no place 4 for a new axis", &[x23()], |_, x| x[0].unsqueeze(4));
    refuses("axis 0 of f32[2,3] is not one of extent 1", &[x23()], |_, x| x[0].squeeze(0));
    refuses("has no axis 7", &[x23()], |_, x| x[0].graph().push1(Op::Gather { axis: 7 }, &[&x[0], &x[0]]));
}

#[test]
fn dtypes_that_do_not_fit_are_refused() {
    refuses("'and' is not defined on f32", &[x23()], |_, x| x[0].cumulative(Monoid::And, 0, false, false));
    refuses("not bool", &[], |g, _| g.iota(Bool, [2], 0));
    refuses("indices have an integer dtype, not f32", &[x23()], |_, x| x[0].gather(&x[0], 0));
    let bits = [i(Bool, &[2], &[1, 0]), i(I32, &[1], &[0]), i(Bool, &[1], &[1])];
    refuses("'add' is not defined on bool", &bits, |_, x| x[0].scatter(ScatterMode::Add, 0, &x[1], &x[2]));
    refuses("'sum' is not defined on bool", &bits, |_, x| x[0].reduce_window(Monoid::Sum, Window::dense(&[1])));
    refuses("numbers, not bool", &bits, |_, x| x[0].select_and_scatter(Extreme::Max, Window::dense(&[1]), &x[0]));
    refuses("the key is f32[2,3]; it must be u32[4]", &[x23()], |g, x| g.rng_bits(&x[0], [1]));
    let packed = [Literal::zeros(Type::new(backfit_ir::DType::U4, [4]))];
    refuses("u4 is packed", &packed, |_, x| x[0].reverse(&[0]));
    refuses("u4 is packed", &packed, |g, x| g.barrier(&[&x[0]]).swap_remove(0));
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let x = [x23(), f(&[2], &[1.0, 2.0]), i(I64, &[], &[0]), f(&[], &[1.0])];
    refuses("cannot be repeated to extent 4", &x, |_, x| x[0].broadcast_in_dim([2, 4], &[0, 1]));
    refuses("not in increasing order", &x, |_, x| x[0].broadcast_in_dim([3, 2], &[1, 0]));
    refuses("'axes' has 1 entries for 2 axes", &x, |_, x| x[0].broadcast_in_dim([2, 3], &[0]));
    refuses("may differ in that axis only", &x, |g, x| g.concatenate(&[&x[0], &x[1]], 0));
    refuses("at least one operand", &x, |g, _| g.concatenate(&[], 0));
    refuses("at least one operand", &x, |g, _| g.barrier(&[]).swap_remove(0));
    refuses("1 start indices for the 2 axes", &x, |_, x| x[0].dynamic_slice(&[&x[2]], &[1, 1]));
    refuses("a window of 4 does not fit into axis 1", &x, |_, x| x[0].dynamic_slice(&[&x[2], &x[2]], &[1, 4]));
    refuses("must be a scalar", &[x23(), i(I32, &[1], &[0])], |_, x| x[0].dynamic_slice(&[&x[1], &x[1]], &[1, 1]));
    refuses("is not of the dtype and rank", &x, |_, x| x[0].dynamic_update_slice(&x[1], &[&x[2], &x[2]]));
    refuses("it must have the shape of the keys", &x, |_, x| x[0].sort(0, false, &[&x[1]]).swap_remove(0));
    refuses("must be a scalar f32[]", &x, |_, x| x[0].pad_with(&[0, 0], &[0, 0], &[0, 0], &x[1]));
    let scatter = [x23(), i(I32, &[1], &[0]), f(&[2, 2], &[0.0; 4])];
    refuses("must be f32[1,3]", &scatter, |_, x| x[0].scatter(ScatterMode::Set, 0, &x[1], &x[2]));
    refuses("the source is f32[2]; for these windows it must be f32[1,3]", &x, |_, x| {
        x[0].select_and_scatter(Extreme::Max, Window::dense(&[2, 1]), &x[1])
    });
}

#[test]
fn empty_axes_have_no_extreme_and_nothing_to_take() {
    let x = [f(&[0], &[]), i(I32, &[1], &[0])];
    refuses("must have between 1 and", &x, |_, x| x[0].arg_max(0));
    refuses("has no elements to take", &x, |_, x| x[0].gather(&x[1], 0));
}

#[test]
fn slices_and_pads_out_of_bounds_are_refused() {
    let x = [x23()];
    refuses("2..4 is not within axis 1", &x, |_, x| x[0].narrow(1, 2, 2));
    refuses("is not within axis 1", &x, |_, x| x[0].narrow(1, usize::MAX, usize::MAX));
    refuses("2..1 is not within axis 0", &x, |_, x| x[0].slice(&[2, 0], &[1, 3], &[1, 1]));
    refuses("the stride of axis 0 is 0", &x, |_, x| x[0].slice(&[0, 0], &[1, 3], &[0, 1]));
    refuses("'limits' has 1 entries for 2 axes", &x, |_, x| x[0].slice(&[0, 0], &[1], &[1, 1]));
    refuses("edges -3 and 0 cut more of axis 0 than its 2", &x, |_, x| x[0].pad(&[-3, 0], &[0, 0], &[0, 0], 0.0));
}

#[test]
fn numbers_that_overflow_are_refused() {
    let x = [x23()];
    refuses("too large to address", &x, |_, x| x[0].pad(&[i64::MIN, 0], &[i64::MAX, 0], &[0, 0], 0.0));
    refuses("too large to address", &x, |_, x| x[0].pad(&[0, 0], &[0, 0], &[usize::MAX, 0], 0.0));
    refuses("would have extent", &x, |_, x| x[0].pad(&[0, 0], &[0, 0], &[0, 1 << 59], 0.0));
    refuses("too large to address", &x, |_, x| x[0].pad(&[1 << 59, 1 << 59], &[0, 0], &[0, 0], 0.0));
    refuses("too large to address", &x, |_, x| x[0].sum_all().broadcast_in_dim([usize::MAX, 2], &[]));
    refuses("too large to address", &[], |g, _| g.iota(F32, [usize::MAX, 0], 0));
    refuses("at most 8 is supported", &x, |_, x| x[0].sum_all().broadcast_in_dim([1; 9], &[]));
    let window = |change: fn(&mut Window)| {
        move |_: &_, x: &[Tensor]| {
            let mut window = Window::dense(&[1, 1]);
            change(&mut window);
            x[0].reduce_window(Monoid::Max, window)
        }
    };
    refuses("'size' has an entry 0", &x, window(|w| w.size[0] = 0));
    refuses("'stride' has an entry 0", &x, window(|w| w.stride[1] = 0));
    refuses("'pad_low' has an entry 18446744073709551615", &x, window(|w| w.pad_low[0] = usize::MAX));
    refuses("'dilation' has 1 entries for 2 axes", &x, window(|w| w.dilation.truncate(1)));
    refuses("would have extent", &x, window(|w| (w.pad_low[0], w.pad_high[0]) = (1 << 59, 1 << 59)));
}

fn refuses_conv(words: &str, lhs: &[usize], rhs: &[usize], change: impl Fn(&mut Convolution)) {
    let zeros = |shape: &[usize]| Literal::zeros(Type::new(F32, shape));
    refuses(words, &[zeros(lhs), zeros(rhs)], |_, x| {
        let mut conv = Convolution::dense(lhs.len().saturating_sub(2), F32);
        change(&mut conv);
        x[0].convolution(&x[1], conv)
    });
}

#[test]
fn convolutions_that_do_not_fit_are_refused() {
    let (x, w) = ([2, 4, 6], [6, 4, 3]);
    refuses_conv("must be of one rank", &x, &[6, 4], |_| {});
    refuses_conv("must be of one rank, 2 to 7", &[1; 8], &[1; 8], |_| {});
    refuses_conv("the kernel reads 3 features, the input has 4 per group", &x, &[6, 3, 3], |_| {});
    refuses_conv("'stride' has 2 entries for 1 axes", &x, &w, |c| c.stride.push(1));
    refuses_conv("'reverse' has 0 entries for 1 axes", &x, &w, |c| c.reverse.clear());
    refuses_conv("'stride' has an entry 0", &x, &w, |c| c.stride[0] = 0);
    refuses_conv("'rhs_dilation' has an entry 0", &x, &w, |c| c.rhs_dilation[0] = 0);
    refuses_conv("a padding of -9223372036854775808 is too large", &x, &w, |c| c.pad_low[0] = i64::MIN);
    refuses_conv("the padded input is too large", &x, &w, |c| c.lhs_dilation[0] = 1 << 59);
    refuses_conv("the layout [0, 0, 2] of the kernel", &x, &w, |c| c.rhs.feature = 0);
    refuses_conv("the layout [0, 1] of the result", &x, &w, |c| c.out = Layout { spatial: vec![], ..c.out.clone() });
    refuses_conv("4 input features are not divided by 3 groups", &x, &w, |c| c.feature_groups = 3);
    refuses_conv("2 batch elements are not divided by 3 groups", &x, &w, |c| c.batch_groups = 3);
    refuses_conv("0 feature groups", &x, &w, |c| c.feature_groups = 0);
    refuses_conv("2 feature groups and 2 batch groups", &x, &w, |c| (c.feature_groups, c.batch_groups) = (2, 2));
    refuses_conv("has no elements along axis 2", &x, &[6, 4, 0], |_| {});
    refuses_conv("the dtype of the result is i32", &x, &w, |c| c.result = I32);
    refuses_conv("the dtype of the accumulator is bool", &x, &w, |c| c.accumulator = Bool);
    let mixed = [f(&[1, 1], &[1.0]), Literal::zeros(Type::new(F16, [1, 1]))];
    refuses("the operands are f32 and f16; cast one of them", &mixed, |_, x| {
        x[0].convolution(&x[1], Convolution::dense(0, F32))
    });
}

#[test]
fn operands_that_are_missing_are_refused() {
    let x = [x23()];
    let key = [i(U32, &[4], &[0; 4])];
    refuses("it takes 2 operands, not 1", &x, |g, x| {
        g.push1(Op::Pad { low: vec![0, 0], high: vec![0, 0], interior: vec![0, 0] }, &[&x[0]])
    });
    refuses("it takes 3 operands, not 1", &x, |g, x| {
        g.push1(Op::Scatter { mode: ScatterMode::Set, axis: 0 }, &[&x[0]])
    });
    refuses("a tensor, an update and one start", &x, |g, x| g.push1(Op::DynamicUpdateSlice, &[&x[0]]));
    refuses("a tensor and one start index", &x, |g, _| g.push1(Op::DynamicSlice { sizes: vec![] }, &[]));
    refuses("keys, and payloads", &x, |g, _| g.push1(Op::Sort { axis: 0, descending: false }, &[]));
    refuses("it takes 1 operands, not 2", &key, |g, x| g.push1(Op::RngBits(Shape::scalar()), &[&x[0], &x[0]]));
}
