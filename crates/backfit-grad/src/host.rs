//! Optimizers on the host: the update of a weight in plain f32, with the bits of the update within a program.

use crate::optimizer::Optimizer;
use backfit_ir::ops::adam_update::AdamUpdate;
use backfit_ir::ops::lion_update::LionUpdate;
use backfit_ir::ops::rmsprop_update::RmspropUpdate;
use backfit_ir::ops::sgd_update::SgdUpdate;
use backfit_ir::{DType, Error, Problem};
use std::sync::Arc;

/// What the host needs to know to update a weight.
#[derive(Clone, Debug)]
pub struct HostWeight {
    /// The weight. A step returns its gradient as the result [`HostWeight::gradient`].
    pub name: String,
    /// The learning rate is multiplied by this, in f32.
    pub rate: f64,
    /// The rule.
    pub optimizer: Arc<dyn Optimizer>,
}

impl HostWeight {
    /// # Errors
    /// The weight is not f32; the optimizer has no form for the host.
    pub(crate) fn new(name: &str, dtype: DType, rate: f64, optimizer: Arc<dyn Optimizer>) -> Result<Self, Error> {
        let mut nothing =
            HostUpdate { weight: &mut [], slots: &mut [], gradient: &[], hypers: &[0.0; 8], flush: false };
        if dtype != DType::F32 {
            let what = format!("the weight '{name}' is {dtype}, and the optimizer on the host computes in f32");
            return Err(Problem::new(what).help("remove `optimizer_on_host`").into());
        }
        if !optimizer.update_on_host(&mut nothing) {
            let what = format!("{optimizer:?} cannot update on the host");
            return Err(Problem::new(what).help("implement `Optimizer::update_on_host`").into());
        }
        Ok(HostWeight { name: name.to_owned(), rate, optimizer })
    }

    /// The name of the result that is the gradient.
    pub fn gradient(&self) -> String {
        format!("{}{}", crate::step::GRADIENT, self.name)
    }

    /// The names of the optimizer's state in the resident store, in the order of [`Optimizer::slots`].
    pub fn slots(&self) -> Vec<String> {
        self.optimizer.slots().iter().map(|slot| format!("optimizer.{slot}.{}", self.name)).collect()
    }
}

/// A weight and what its update is made from.
pub struct HostUpdate<'a> {
    /// The weight, old and then new.
    pub weight: &'a mut [f32],
    /// The optimizer's state, old and then new.
    pub slots: &'a mut [Vec<f32>],
    /// The gradient.
    pub gradient: &'a [f32],
    /// The fed scalars.
    pub hypers: &'a [f32],
    /// Whether subnormal numbers count as zero, as they do on a target that flushes them.
    pub flush: bool,
}

impl HostUpdate<'_> {
    /// A number as the target would hold it.
    fn held(&self, x: f32) -> f32 {
        if self.flush && x.is_subnormal() { 0.0_f32.copysign(x) } else { x }
    }

    /// g + λw.
    fn regularised(&self, g: f32, w: f32, decay: f64) -> f32 {
        if decay == 0.0 { g } else { self.held(g + self.held(w * decay as f32)) }
    }

    /// The rule of [`backfit_ir::ops::sgd_update`].
    pub(crate) fn sgd(&mut self, rule: &SgdUpdate) {
        let momentum = rule.momentum as f32;
        let lr = self.held(self.hypers[0]);
        for i in 0..self.weight.len() {
            let w = self.held(self.weight[i]);
            let mut g = self.regularised(self.held(self.gradient[i]), w, rule.weight_decay);
            if let Some(velocity) = self.slots.first().map(|v| self.held(v[i])) {
                let velocity = self.held(self.held(velocity * momentum) + g);
                self.slots[0][i] = velocity;
                g = if rule.nesterov { self.held(g + self.held(velocity * momentum)) } else { velocity };
            }
            self.weight[i] = self.held(w - self.held(lr * g));
        }
    }

    /// The rule of [`backfit_ir::ops::adam_update`].
    pub(crate) fn adam(&mut self, rule: &AdamUpdate) {
        let [lr, correction1, correction2] = [0, 1, 2].map(|i| self.held(self.hypers[i]));
        let [keep1, keep2, take1, take2] =
            [rule.beta1, rule.beta2, 1.0 - rule.beta1, 1.0 - rule.beta2].map(|v| v as f32);
        let shrink = 1.0 - self.held(lr * rule.weight_decay as f32);
        let (rate, root) = (self.held(lr / correction1), 1.0 / correction2.sqrt());
        for i in 0..self.weight.len() {
            let (mut w, mut g) = (self.held(self.weight[i]), self.held(self.gradient[i]));
            match (rule.weight_decay, rule.decoupled) {
                (0.0, _) => {}
                (_, true) => w = self.held(w * shrink),
                (decay, false) => g = self.regularised(g, w, decay),
            }
            let [m, v] = [0, 1].map(|slot| self.held(self.slots[slot][i]));
            let m = self.held(self.held(m * keep1) + self.held(g * take1));
            let v = self.held(self.held(v * keep2) + self.held(self.held(g * g) * take2));
            (self.slots[0][i], self.slots[1][i]) = (m, v);
            let divisor = self.held(self.held(v.sqrt() * root) + rule.epsilon as f32);
            self.weight[i] = self.held(w - self.held(self.held(rate * m) / divisor));
        }
    }

    /// The rule of [`backfit_ir::ops::lion_update`].
    pub(crate) fn lion(&mut self, rule: &LionUpdate) {
        let lr = self.held(self.hypers[0]);
        for i in 0..self.weight.len() {
            let [w, m, g] = [self.weight[i], self.slots[0][i], self.gradient[i]].map(|x| self.held(x));
            let average = |beta: f64| self.held(self.held(m * beta as f32) + self.held(g * (1.0 - beta) as f32));
            let mean = average(rule.beta1);
            let sign = if mean == 0.0 { mean } else { 1.0_f32.copysign(mean) };
            let step = self.regularised(sign, w, rule.weight_decay);
            let new = average(rule.beta2);
            self.slots[0][i] = new;
            self.weight[i] = self.held(w - self.held(lr * step));
        }
    }

    /// The rule of [`backfit_ir::ops::rmsprop_update`].
    pub(crate) fn rmsprop(&mut self, rule: &RmspropUpdate) {
        let (keep, take, lr) = (rule.alpha as f32, (1.0 - rule.alpha) as f32, self.held(self.hypers[0]));
        let average = |host: &Self, old: f32, new: f32| host.held(host.held(old * keep) + host.held(new * take));
        for i in 0..self.weight.len() {
            let w = self.held(self.weight[i]);
            let g = self.regularised(self.held(self.gradient[i]), w, rule.weight_decay);
            let square = average(self, self.held(self.slots[0][i]), self.held(g * g));
            self.slots[0][i] = square;
            let mut spread = square;
            if rule.centered {
                let mean = average(self, self.held(self.slots[1][i]), g);
                self.slots[1][i] = mean;
                // Not `f32::max`, which loses NaN.
                let centered = self.held(square - self.held(mean * mean));
                spread = if centered <= 0.0 { 0.0 } else { centered };
            }
            let mut step = self.held(g / self.held(self.held(spread.sqrt()) + rule.epsilon as f32));
            if rule.momentum != 0.0 {
                let slot = usize::from(rule.centered) + 1;
                let velocity = self.held(self.slots[slot][i]);
                step = self.held(self.held(velocity * rule.momentum as f32) + step);
                self.slots[slot][i] = step;
            }
            self.weight[i] = self.held(w - self.held(lr * step));
        }
    }
}
