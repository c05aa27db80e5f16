//! Random nodes.

use super::generate::{DTYPES, Generator};
use backfit_ir::op::Precision;
use backfit_ir::op::{Binary, Comparison, Extreme, Monoid, ScatterMode, Unary};
use backfit_ir::ops::convolution::Convolution;
use backfit_ir::ops::dot_general::DotGeneral;
use backfit_ir::ops::reduce_window::Window;
use backfit_ir::{DType, Op, Tensor, Type};

/// Unary operators whose result is the exact one, rounded.
const EXACT: &[Unary] = &[
    Unary::Neg,
    Unary::Abs,
    Unary::Sign,
    Unary::Floor,
    Unary::Ceil,
    Unary::RoundEven,
    Unary::IsFinite,
    Unary::Not,
    Unary::Sqrt,
    Unary::Reciprocal,
];
const ROUNDED: &[Unary] = &[
    Unary::Exp,
    Unary::Expm1,
    Unary::Log,
    Unary::Log1p,
    Unary::Rsqrt,
    Unary::Sin,
    Unary::Cos,
    Unary::Tan,
    Unary::Tanh,
    Unary::Tanh,
    Unary::Erf,
];
const BINARY: &[Binary] = &[
    Binary::Add,
    Binary::Add,
    Binary::Sub,
    Binary::Mul,
    Binary::Mul,
    Binary::Div,
    Binary::Rem,
    Binary::Maximum,
    Binary::Minimum,
    Binary::And,
    Binary::Or,
    Binary::Xor,
    Binary::ShiftLeft,
    Binary::ShiftRight,
];
const MONOIDS: &[Monoid] =
    &[Monoid::Sum, Monoid::Sum, Monoid::Product, Monoid::Max, Monoid::Min, Monoid::And, Monoid::Or];
const RELATIONS: &[Comparison] =
    &[Comparison::Eq, Comparison::Ne, Comparison::Lt, Comparison::Le, Comparison::Gt, Comparison::Ge];

impl Generator {
    pub(super) fn movement(&mut self) {
        let x = self.any();
        let (shape, rank) = (x.shape().clone(), x.rank());
        let op = match self.random.below(8) {
            0 => Op::Reshape(self.random.factors(shape.elements())),
            1 | 2 => Op::Transpose(self.random.permutation(rank)),
            3 => return self.broadcast(&x),
            4 => {
                let starts: Vec<usize> = shape.iter().map(|&d| self.random.below(d + 1) / 2).collect();
                let limits =
                    shape.iter().zip(&starts).map(|(&d, &s)| s + (d > s) as usize + self.random.below(d - s)).collect();
                let strides = shape.iter().map(|_| self.random.pick(&[1, 1, 2, 3])).collect();
                Op::Slice { starts, limits, strides }
            }
            5 => return self.concatenate(&x),
            6 => return self.pad(&x),
            _ => Op::Reverse(self.random.subset(rank)),
        };
        self.push(op, &[&x]);
    }

    fn broadcast(&mut self, x: &Tensor) {
        let (mut shape, mut axes) = (Vec::new(), Vec::new());
        for &extent in x.shape().iter() {
            if self.random.chance(35) {
                shape.push(self.random.pick(&[1, 2, 3, 5]));
            }
            axes.push(shape.len());
            shape.push(if extent == 1 { self.random.pick(&[1, 1, 2, 4, 7]) } else { extent });
        }
        if self.random.chance(35) {
            shape.push(self.random.pick(&[1, 2, 3, 9]));
        }
        self.push(Op::Broadcast { shape: shape.into(), axes }, &[x]);
    }

    fn concatenate(&mut self, x: &Tensor) {
        if x.rank() == 0 {
            return;
        }
        let axis = self.random.below(x.rank());
        let mut parts = vec![x.clone()];
        for _ in 0..1 + self.random.below(2) {
            let mut shape = x.shape().to_vec();
            shape[axis] = self.random.pick(&[1, 2, 3, shape[axis]]);
            parts.push(self.like(&x.ty().with_shape(shape)));
        }
        self.push(Op::Concatenate { axis }, &parts.iter().collect::<Vec<_>>());
    }

    fn pad(&mut self, x: &Tensor) {
        let rank = x.rank();
        let edge = |g: &mut Generator| (0..rank).map(|_| g.random.pick(&[0, 0, 1, 2, -1])).collect::<Vec<i64>>();
        let (low, high) = (edge(self), edge(self));
        let interior = (0..rank).map(|_| self.random.pick(&[0, 0, 0, 1, 2])).collect();
        let value = self.like(&Type::new(x.dtype(), []));
        self.push(Op::Pad { low, high, interior }, &[x, &value]);
    }

    pub(super) fn elementwise(&mut self) {
        let x = self.any();
        match self.random.below(12) {
            0 | 1 => {
                let op = if self.rounded && self.random.chance(60) {
                    self.random.pick(ROUNDED)
                } else {
                    self.random.pick(EXACT)
                };
                self.push(Op::Unary(op), &[&x]);
            }
            2..6 => {
                let op = match self.random.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) {
                    9 if self.rounded || !x.dtype().is_float() => self.random.pick(&[Binary::Pow, Binary::Atan2]),
                    _ => self.random.pick(BINARY),
                };
                let y = self.like(x.ty());
                self.push(Op::Binary(op), &[&x, &y]);
            }
            6 => {
                let y = self.like(x.ty());
                let relation = self.random.pick(RELATIONS);
                self.push(Op::Compare(relation), &[&x, &y]);
            }
            7 | 8 => {
                let condition = self.like(&x.ty().with_dtype(DType::Bool));
                let y = self.like(x.ty());
                self.push(Op::Select, &[&condition, &x, &y]);
            }
            9 => {
                let (low, high) = (self.like(x.ty()), self.like(x.ty()));
                self.push(Op::Clamp, &[&low, &x, &high]);
            }
            10 => {
                let dtype = self.random.pick(DTYPES);
                self.push(Op::Cast(dtype), &[&x]);
            }
            _ => self.rare(&x),
        }
    }

    fn rare(&mut self, x: &Tensor) {
        match self.random.below(4) {
            0 => drop(self.push(Op::ReducePrecision { exponent: 8, mantissa: 7 }, &[x])),
            1 => {
                let y = self.any();
                self.push(Op::Barrier, &[x, &y]);
            }
            2 => {
                let key = self.like(&Type::new(DType::U32, [4]));
                let shape = self.random.shape(300);
                self.push(Op::RngBits(shape), &[&key]);
            }
            _ => {
                // Payloads of NaN may change, so floats are not read as integers.
                let to = if x.dtype() == DType::I32 { DType::U32 } else { DType::I32 };
                if !x.dtype().is_float() {
                    self.push(Op::Bitcast(to), &[x]);
                }
            }
        }
    }

    /// A monoid for a dtype; sums of floats only where rounding may differ.
    fn monoid(&mut self, dtype: DType) -> Monoid {
        let monoid = self.random.pick(MONOIDS);
        let rounds = dtype.is_float() && matches!(monoid, Monoid::Sum | Monoid::Product);
        if rounds && !self.rounded { self.random.pick(&[Monoid::Max, Monoid::Min]) } else { monoid }
    }

    /// A value of a dtype whose sums are exact, or any number.
    fn summable(&mut self) -> Option<Tensor> {
        let rounded = self.rounded;
        self.such(|t| t.dtype() != DType::Bool && (rounded || !t.dtype().is_float()))
    }

    pub(super) fn structured(&mut self) {
        match self.random.below(24) {
            0..6 => {
                let x = self.any();
                let (monoid, axes) = (self.monoid(x.dtype()), self.random.subset(x.rank()));
                self.push(Op::Reduce { monoid, axes, accumulator: x.dtype().accumulator() }, &[&x]);
            }
            6 => {
                let x = self.any();
                let axis = self.random.below(x.rank().max(1));
                let extreme = self.random.pick(&[Extreme::Max, Extreme::Min]);
                self.push(Op::ArgReduce { extreme, axis }, &[&x]);
            }
            7..9 => {
                let x = self.any();
                let (monoid, axis) = (self.monoid(x.dtype()), self.random.below(x.rank().max(1)));
                let (reverse, exclusive) = (self.random.chance(50), self.random.chance(40));
                self.push(Op::Cumulative { monoid, axis, reverse, exclusive }, &[&x]);
            }
            9 => {
                let x = self.any();
                let payload = self.like(x.ty());
                let (axis, descending) = (self.random.below(x.rank().max(1)), self.random.chance(50));
                self.push(Op::Sort { axis, descending }, &[&x, &payload]);
            }
            10..15 => self.product(),
            15..17 => self.convolution(),
            17..19 => self.windows(),
            _ => self.indexed(),
        }
    }

    fn product(&mut self) {
        let Some(x) = self.summable() else { return };
        let axes = self.random.permutation(x.rank());
        let batch = self.random.below(2).min(axes.len());
        let contract = self.random.below(3).min(axes.len() - batch);
        let (lhs_batch, lhs_contract) = (axes[..batch].to_vec(), axes[batch..batch + contract].to_vec());
        // The other operand has these axes too, and one of its own, in some order.
        let mut extents: Vec<usize> = axes[..batch + contract].iter().map(|&a| x.shape()[a]).collect();
        extents.extend((0..self.random.below(3)).map(|_| self.random.pick(&[1, 2, 3, 5, 8])));
        let order = self.random.permutation(extents.len());
        let place = |axis: usize| order.iter().position(|&o| o == axis).expect("a permutation");
        let shape: Vec<usize> = order.iter().map(|&o| extents[o]).collect();
        let y = self.like(&x.ty().with_shape(shape));
        let dot = DotGeneral {
            lhs_batch,
            rhs_batch: (0..batch).map(place).collect(),
            lhs_contract,
            rhs_contract: (batch..batch + contract).map(place).collect(),
            accumulator: x.dtype().accumulator(),
            result: x.dtype(),
            precision: Precision::Full,
        };
        self.push(Op::DotGeneral(dot), &[&x, &y]);
    }

    fn convolution(&mut self) {
        let Some(x) = self.summable() else { return };
        let spatial = 1 + self.random.below(2);
        let groups = self.random.pick(&[1, 1, 2]);
        let mut shape = vec![1 + self.random.below(2), groups * (1 + self.random.below(2))];
        let mut kernel = vec![groups * (1 + self.random.below(2)), shape[1] / groups];
        (0..spatial).for_each(|_| shape.push(1 + self.random.below(7)));
        (0..spatial).for_each(|_| kernel.push(1 + self.random.below(3)));
        let x = self.coerce(&x, &x.ty().with_shape(shape));
        let w = self.like(&x.ty().with_shape(kernel));
        let mut conv = Convolution::dense(spatial, x.dtype());
        conv.feature_groups = groups;
        for axis in 0..spatial {
            conv.stride[axis] = self.random.pick(&[1, 1, 2]);
            conv.pad_low[axis] = self.random.pick(&[0, 1, 2, -1]);
            conv.pad_high[axis] = self.random.pick(&[0, 1, 2, -1]);
            conv.lhs_dilation[axis] = self.random.pick(&[1, 1, 2]);
            conv.rhs_dilation[axis] = self.random.pick(&[1, 1, 2]);
            conv.reverse[axis] = self.random.chance(30);
        }
        self.push(Op::Convolution(conv), &[&x, &w]);
    }

    fn windows(&mut self) {
        let Some(x) = self.summable() else { return };
        let plain = x.rank().saturating_sub(3);
        let size: Vec<usize> = x
            .shape()
            .iter()
            .enumerate()
            .map(|(axis, &d)| if axis < plain { 1 } else { 1 + self.random.below(d.min(3)) })
            .collect();
        let mut window = Window::dense(&size);
        // The CPU target offers windows along three axes.
        for axis in size.len().saturating_sub(3)..size.len() {
            window.stride[axis] = self.random.pick(&[1, 1, 2, 3]);
            window.dilation[axis] = self.random.pick(&[1, 1, 2]);
            window.pad_low[axis] = self.random.pick(&[0, 0, 1]);
            window.pad_high[axis] = self.random.pick(&[0, 0, 1]);
        }
        if self.random.chance(60) {
            let monoid = self.monoid(x.dtype());
            self.push(Op::ReduceWindow { monoid, window }, &[&x]);
        } else if let Ok(count) = window.count(x.ty()) {
            let source = self.like(&x.ty().with_shape(count));
            let extreme = self.random.pick(&[Extreme::Max, Extreme::Min]);
            self.push(Op::SelectAndScatter { extreme, window }, &[&x, &source]);
        }
    }

    fn indexed(&mut self) {
        let x = self.any();
        let index = self.random.pick(&[DType::I32, DType::I64, DType::U8]);
        let axis = self.random.below(x.rank().max(1));
        match self.random.below(5) {
            0 | 1 => {
                let shape = self.random.shape(12);
                let indices = self.like(&Type::new(index, shape));
                self.push(Op::Gather { axis }, &[&x, &indices]);
            }
            2 if x.rank() > 0 => {
                let indices = Type::new(index, self.random.shape(6));
                let indices = self.like(&indices);
                let updates = backfit_ir::ops::gather::taken(x.ty(), indices.ty(), axis);
                if updates.shape.rank() > 6 {
                    return;
                }
                let updates = self.like(&updates);
                let exact = !x.dtype().is_float() || self.rounded;
                let mode =
                    if exact { self.random.pick(&[ScatterMode::Set, ScatterMode::Add]) } else { ScatterMode::Set };
                self.push(Op::Scatter { mode, axis }, &[&x, &indices, &updates]);
            }
            other => {
                let sizes: Vec<usize> = x.shape().iter().map(|&d| 1 + self.random.below(d)).collect();
                let starts: Vec<Tensor> = (0..x.rank()).map(|_| self.like(&Type::new(index, []))).collect();
                if other == 3 {
                    let operands: Vec<&Tensor> = [&x].into_iter().chain(&starts).collect();
                    self.push(Op::DynamicSlice { sizes }, &operands);
                } else {
                    let update = self.like(&x.ty().with_shape(sizes));
                    let operands: Vec<&Tensor> = [&x, &update].into_iter().chain(&starts).collect();
                    self.push(Op::DynamicUpdateSlice, &operands);
                }
            }
        }
    }
}
