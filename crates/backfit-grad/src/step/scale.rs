//! Loss scaling: the cotangent of the loss is a number greater than one, so that small gradients stay above the smallest
//! numbers of half precision (Micikevicius et al. 2018). Gradients are divided by it before anything else is done with them.

use backfit_ir::{DType, Graph, Init, Problem, Role, Tensor, Type};

/// The resident scalar that holds a dynamic scale, `f32`.
pub const LOSS_SCALE: &str = "optimizer.loss_scale";
/// The resident scalar that counts the good steps since a dynamic scale last changed, `i32`.
pub const GOOD_STEPS: &str = "optimizer.good_steps";
/// The name of the result that holds the scale of a step, where it is dynamic.
pub const SCALE: &str = "loss_scale";
/// A dynamic scale never grows beyond this, 2¹⁰⁰, nor falls below 1.
const LARGEST: f64 = 1_267_650_600_228_229_401_496_703_205_376.0;

/// By what the loss is multiplied before it is differentiated.
///
/// Powers of two change no bit of the result, where nothing over- or underflows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossScale {
    /// The same number throughout, at least 1.
    Static(f64),
    /// A number that adapts: multiplied by `growth` after `interval` good steps in a row, and by `backoff` after every
    /// step whose gradients are not finite, which is skipped. As `torch.amp.GradScaler`; it stays between 1 and 2¹⁰⁰.
    Dynamic {
        /// The scale of the first step, at least 1.
        initial: f64,
        /// More than 1.
        growth: f64,
        /// Between 0 and 1.
        backoff: f64,
        /// Good steps before it grows.
        interval: u32,
    },
}

impl LossScale {
    /// PyTorch's dynamic scale: 2¹⁶, doubled after 2000 good steps, halved after a bad one.
    pub fn dynamic() -> Self {
        LossScale::Dynamic { initial: 65536.0, growth: 2.0, backoff: 0.5, interval: 2000 }
    }

    /// What is wrong with the numbers.
    pub(super) fn flaw(self) -> Option<Problem> {
        let scale = |s: f64| (1.0..=LARGEST).contains(&s);
        let what = match self {
            LossScale::Static(s) if !scale(s) => format!("a loss scale of {s}; it must be between 1 and 2^100"),
            LossScale::Dynamic { initial, .. } if !scale(initial) => {
                format!("an initial loss scale of {initial}; it must be between 1 and 2^100")
            }
            LossScale::Dynamic { growth, .. } if !(growth > 1.0 && growth.is_finite()) => {
                format!("a loss scale that grows by the factor {growth}; it must be more than 1")
            }
            LossScale::Dynamic { backoff, .. } if !(backoff > 0.0 && backoff < 1.0) => {
                format!("a loss scale that backs off by the factor {backoff}; it must be between 0 and 1")
            }
            LossScale::Dynamic { interval, .. } if interval > i32::MAX as u32 => {
                format!("a loss scale that grows after {interval} good steps; the most that are counted are 2^31 - 1")
            }
            LossScale::Dynamic { interval: 0, .. } => "a loss scale that grows after 0 good steps".to_owned(),
            _ => return None,
        };
        Some(Problem::new(what).help("`LossScale::dynamic()` has values that fit most models"))
    }
}

/// The scale within a function.
pub(super) struct Scale {
    rule: LossScale,
    /// A scalar.
    pub factor: Tensor,
}

impl Scale {
    /// The constant, or the resident parameter of this function.
    pub fn of(graph: &Graph, rule: LossScale) -> Self {
        let factor = match rule {
            LossScale::Static(s) => graph.scalar(DType::F32, s),
            LossScale::Dynamic { initial, .. } => {
                let init = Some(Init::Constant(initial));
                graph.parameter(LOSS_SCALE, Type::new(DType::F32, []), Role::State, init)
            }
        };
        Scale { rule, factor }
    }

    /// Returns a dynamic scale, and lets it grow or back off.
    pub fn adapt(&self, graph: &Graph, finite: &Tensor) {
        let LossScale::Dynamic { growth, backoff, interval, .. } = self.rule else { return };
        let scale = &self.factor;
        graph.result(SCALE, scale);
        let good = graph.parameter(GOOD_STEPS, Type::new(DType::I32, []), Role::State, Some(Init::ZEROS));
        let next = &good + 1.0;
        let due = next.ge(&next.like(f64::from(interval)));
        let zero = good.like(0.0);
        let grown = due.select(&(scale * growth).minimum(&scale.like(LARGEST)), scale);
        let smaller = (scale * backoff).maximum(&scale.like(1.0));
        graph.update(scale, &finite.select(&grown, &smaller));
        graph.update(&good, &finite.select(&due.select(&zero, &next), &zero));
    }
}
