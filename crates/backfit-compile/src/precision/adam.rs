//! Adam in f16, for engines that update weights themselves.
//!
//! The store keeps w, m and v as f32. The engine takes m, g and r = √v as f16, since v itself would vanish below 10⁻⁷, and
//! computes with s = max(r, |g|, 2⁻¹⁴)
//!
//! r ← s √(β₂ (r/s)² + (1 − β₂) (g/s)²), m ← m + (1 − β₁) (g − m), d = m / bias_correction1 / (r / √bias_correction2 + ε),
//!
//! in which no square exceeds 1 and ε is at least 2⁻¹⁴. The host squares r and subtracts lr · d from w, in f32: f16 weights would
//! lose what is below half of their last bit.

use super::class::Class;
use super::engine::SMALLEST;
use super::narrow::Narrower;
use super::policy::Compute;
use backfit_ir::op::{Binary, Unary};
use backfit_ir::ops::adam_update::AdamUpdate;
use backfit_ir::{DType, Node, Op, ValueId};

/// Rewrites an update whose policy has updates in f16; whether it did.
pub(super) fn rewrite(n: &mut Narrower, node: &Node, rule: AdamUpdate) -> bool {
    let declared = node.operands.iter().all(|&v| n.is_f32(v));
    if n.policy.compute(Class::Update, &node.scope) != Compute::F16 || !declared {
        return false;
    }
    let mut update = Update { n, node };
    let [w, _, v, _, rate, _, correction2] = update.read(DType::F32);
    let [w16, m, _, g, _, correction1, _] = update.read(DType::F16);
    let g = match rule.weight_decay {
        decay if decay != 0.0 && !rule.decoupled => {
            let pull = update.scaled(w16, decay);
            update.binary(Binary::Add, g, pull)
        }
        _ => g,
    };
    let root = update.root(v);
    let root2 = update.root(correction2);
    let m = update.mean(m, g, rule.beta1);
    let r = update.root_mean_square(root, g, rule.beta2);
    let d = update.direction(m, r, [correction1, root2], rule.epsilon);
    let new = update.stepped(w, d, rate, rule);
    let wide = update.cast(r, DType::F32);
    let v = update.binary(Binary::Mul, wide, wide);
    let m = update.cast(m, DType::F32);
    node.results.iter().zip([new, m, v]).for_each(|(&old, new)| n.out.map_value(old, new));
    true
}

/// The nodes of one update.
struct Update<'n, 'a> {
    n: &'n mut Narrower<'a>,
    node: &'n Node,
}

impl Update<'_, '_> {
    /// w, m, v, g, lr and the bias corrections. Casts that nothing reads are dropped later.
    fn read(&mut self, dtype: DType) -> [ValueId; 7] {
        let operands = self.n.operands(self.node, dtype);
        std::array::from_fn(|i| operands[i])
    }

    fn emit(&mut self, op: Op, operands: Vec<ValueId>) -> ValueId {
        self.n.emit(self.node, op, operands)
    }

    fn cast(&mut self, value: ValueId, dtype: DType) -> ValueId {
        self.emit(Op::Cast(dtype), vec![value])
    }

    /// A scalar is repeated to the shape of the other operand.
    fn binary(&mut self, op: Binary, a: ValueId, b: ValueId) -> ValueId {
        let shape = |value| self.n.out.function.ty(value).shape.clone();
        let (left, right) = (shape(a), shape(b));
        let b = if left == right { b } else { self.emit(Op::Broadcast { shape: left, axes: vec![] }, vec![b]) };
        self.emit(Op::Binary(op), vec![a, b])
    }

    fn number(&mut self, like: ValueId, value: f64) -> ValueId {
        let ty = self.n.out.function.ty(like).clone();
        self.n.splat(self.node, ty, value)
    }

    fn scaled(&mut self, value: ValueId, factor: f64) -> ValueId {
        let factor = self.number(value, factor);
        self.binary(Binary::Mul, value, factor)
    }

    /// The root of an f32, as f16.
    fn root(&mut self, value: ValueId) -> ValueId {
        let root = self.emit(Op::Unary(Unary::Sqrt), vec![value]);
        self.cast(root, DType::F16)
    }

    fn mean(&mut self, m: ValueId, g: ValueId, beta: f64) -> ValueId {
        let away = self.binary(Binary::Sub, g, m);
        let part = self.scaled(away, 1.0 - beta);
        self.binary(Binary::Add, m, part)
    }

    fn root_mean_square(&mut self, root: ValueId, g: ValueId, beta: f64) -> ValueId {
        let size = self.emit(Op::Unary(Unary::Abs), vec![g]);
        let floor = self.number(g, SMALLEST);
        let scale = self.binary(Binary::Maximum, root, size);
        let scale = self.binary(Binary::Maximum, scale, floor);
        let mut square = |value, share| {
            let part = self.binary(Binary::Div, value, scale);
            let square = self.binary(Binary::Mul, part, part);
            self.scaled(square, share)
        };
        let (old, new) = (square(root, beta), square(g, 1.0 - beta));
        let total = self.binary(Binary::Add, old, new);
        let total = self.emit(Op::Unary(Unary::Sqrt), vec![total]);
        self.binary(Binary::Mul, scale, total)
    }

    fn direction(&mut self, m: ValueId, r: ValueId, [correction, root]: [ValueId; 2], epsilon: f64) -> ValueId {
        let m = self.binary(Binary::Div, m, correction);
        let r = self.binary(Binary::Div, r, root);
        let epsilon = self.number(r, epsilon.max(SMALLEST));
        let r = self.binary(Binary::Add, r, epsilon);
        self.binary(Binary::Div, m, r)
    }

    /// The new weight, in f32.
    fn stepped(&mut self, w: ValueId, d: ValueId, rate: ValueId, rule: AdamUpdate) -> ValueId {
        let w = match rule.decoupled && rule.weight_decay != 0.0 {
            true => {
                let pull = self.binary(Binary::Mul, w, rate);
                let pull = self.scaled(pull, rule.weight_decay);
                self.binary(Binary::Sub, w, pull)
            }
            false => w,
        };
        let d = self.cast(d, DType::F32);
        let d = self.binary(Binary::Mul, d, rate);
        self.binary(Binary::Sub, w, d)
    }
}
