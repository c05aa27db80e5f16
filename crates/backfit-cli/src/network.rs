//! From a recipe to the graph of its model and its training program.

use crate::interface::{Interface, Output};
use crate::recipe::Loaded;
use crate::recipe::model::{self as recipe, Activation, Kind, LossName, Model, Norm, Reduction};
use crate::recipe::optimizer::{LossScale, Optimizer, OptimizerName};
use crate::samples::{LABEL, NEXT, TARGET};
use backfit::models::Llama;
use backfit::prelude::*;
use backfit::prelude::{CrossEntropy, LossOptions};
use backfit::train::VALID;
use backfit::{Result, TrainModule};

/// The training program of a recipe for samples of this kind. Operators carry the line of the recipe they stem from.
///
/// # Errors
/// A model that cannot take samples of this shape.
pub fn training_program(loaded: &Loaded, interface: &Interface) -> Result<TrainModule> {
    let recipe = &loaded.recipe;
    check(loaded, interface)?;
    let g = Graph::new();
    let rows = recipe.rows();
    let dims: Vec<usize> = [rows].into_iter().chain(interface.shape.iter().copied()).collect();
    let dtype = if matches!(interface.output, Output::Text { .. }) { I32 } else { F32 };
    let input = g.parameter(&interface.input, Type::new(dtype, dims), backfit::ir::Role::Input, None);
    let valid = g.input(VALID, F32, [rows]);
    let network = Network { g: &g, loaded, valid };
    let out = network.build(&input, interface.output.width());
    let (loss, accuracy) = network.from("loss.name", "loss", || network.loss(&out, interface));
    let mut step = TrainStep::new(&loss).predict(&out);
    if let Some(accuracy) = &accuracy {
        step = step.report("accuracy", accuracy);
    }
    if let Some(norm) = recipe.optimizer.clip_norm {
        step = step.clip(Clip::GlobalNorm(norm));
    }
    let parts = recipe.accumulate.unwrap_or(1);
    step = if parts > 1 { step.accumulate(parts, Some(&network.valid)) } else { step };
    step = recipe.unroll.into_iter().fold(step, TrainStep::unroll);
    step = recipe.loss_scale.iter().map(LossScale::settings).fold(step, TrainStep::loss_scale);
    step = recipe.optimizer.ema.into_iter().fold(step, TrainStep::ema);
    step = grouped(step, loaded, &g)?;
    optimized(step, &recipe.optimizer).build()
}

/// The groups of the recipe.
fn grouped(step: TrainStep, loaded: &Loaded, g: &Graph) -> Result<TrainStep> {
    let weights: Vec<String> = g.inspect(|f| {
        let weights = f.params.iter().filter(|p| matches!(p.role, backfit::ir::Role::Weight { .. }));
        weights.map(|p| p.name.clone()).collect()
    });
    let groups = loaded.recipe.optimizer.groups.as_deref().unwrap_or_default();
    for group in groups {
        if !weights.iter().any(|name| Group::fits(&group.pattern, name)) {
            let what = format!("no weight has a name like '{}'", group.pattern);
            let problem = loaded.problem("optimizer.groups", what);
            return Err(problem.help(format!("the weights are: {}", weights.join(", "))).into());
        }
    }
    let last = |name: &String| groups.iter().rev().find(|group| Group::fits(&group.pattern, name));
    if weights.iter().all(|name| last(name).is_some_and(|group| group.frozen == Some(true))) {
        let problem = loaded.problem("optimizer.groups", "every weight is frozen");
        return Err(problem.help("leave at least one to be trained").into());
    }
    Ok(groups.iter().fold(step, |step, group| step.group(&group.pattern, group.settings())))
}

fn check(loaded: &Loaded, interface: &Interface) -> Result<()> {
    let (kind, shape) = (loaded.recipe.model.kind, &interface.shape);
    if kind == Kind::Cnn {
        let [_, height, width] = shape[..] else {
            let what = format!("a cnn takes images [channels, height, width], and a sample is {shape:?}");
            return Err(loaded.problem("model.kind", what).help("set model.kind to \"mlp\"").into());
        };
        let halvings = loaded.recipe.model.channels.as_ref().map_or(0, Vec::len);
        if height.min(width) >> halvings.min(63) == 0 {
            let what = format!("{halvings} convolutions halve an image of {height}×{width} to nothing");
            return Err(loaded.problem("model.channels", what).help("give fewer channels").into());
        }
    }
    if kind == Kind::Polynomial && shape.len() != 1 {
        let what = format!("a polynomial takes features, and a sample is {shape:?}");
        return Err(loaded.problem("model.kind", what).help("set model.kind to \"mlp\" or \"cnn\"").into());
    }
    Ok(())
}

/// The language model of a recipe for this many characters.
pub fn llama(model: &Model, characters: usize) -> Llama {
    let (width, heads) = (model.width.unwrap_or(1), model.heads.unwrap_or(1));
    let plain = Llama::new(characters, model.blocks.unwrap_or(1), width, heads);
    Llama {
        kv_heads: model.kv_heads.unwrap_or(heads),
        hidden: model.hidden.unwrap_or(plain.hidden),
        tied: model.tied.unwrap_or(true),
        stack: model.taps.as_ref().map(|taps| match taps {
            recipe::Taps::All => Taps::All,
            recipe::Taps::Inputs => Taps::Inputs,
            recipe::Taps::Named(names) => Taps::Named(names.clone()),
            recipe::Taps::Budget(bytes) => Taps::Budget(*bytes),
        }),
        ..plain
    }
}

struct Network<'a> {
    g: &'a Graph,
    loaded: &'a Loaded,
    /// The mask of rows that are samples.
    valid: Tensor,
}

impl Network<'_> {
    /// Builds operators that carry the line of this key.
    fn from<T>(&self, key: &str, scope: &str, build: impl FnOnce() -> T) -> T {
        self.g.originate(self.loaded.source.loc(key), scope.into(), build)
    }

    fn build(&self, x: &Tensor, outputs: usize) -> Tensor {
        let model = &self.loaded.recipe.model;
        match model.kind {
            Kind::Linear => self.linear("out", "model.kind", &flat(x), outputs),
            Kind::Polynomial => {
                let powers = self.from("model.degree", "powers", || powers(x, model.degree.unwrap_or(1)));
                self.linear("out", "model.kind", &powers, outputs)
            }
            Kind::Mlp => self.mlp(x, outputs),
            Kind::Cnn => self.mlp(&self.convolutions(x), outputs),
            Kind::Transformer => self.from("model.kind", "transformer", || llama(model, outputs).apply(self.g, x)),
        }
    }

    fn linear(&self, name: &str, key: &str, x: &Tensor, width: usize) -> Tensor {
        self.from(key, name, || nn::linear(self.g, name, x, width))
    }

    fn mlp(&self, x: &Tensor, outputs: usize) -> Tensor {
        let model = &self.loaded.recipe.model;
        let mut h = self.from("model.kind", "flatten", || flat(x));
        for (i, width) in model.layers.iter().flatten().enumerate() {
            let name = format!("fc{}", i + 1);
            h = self.activated(&self.linear(&name, "model.layers", &h, *width), &name);
            if let Some(rate) = model.dropout {
                h = self.from("model.dropout", &name, || h.dropout(rate));
            }
        }
        self.linear("out", "model.kind", &h, outputs)
    }

    fn convolutions(&self, x: &Tensor) -> Tensor {
        let model = &self.loaded.recipe.model;
        let kernel = model.kernel.unwrap_or(3);
        let mut h = x.clone();
        for (i, channels) in model.channels.iter().flatten().enumerate() {
            let name = format!("conv{}", i + 1);
            let conv = nn::Conv2d::new(&name, *channels, [kernel; 2]).padding([kernel / 2; 2]);
            // A norm takes away whatever a bias adds.
            let conv = conv.bias(model.norm.is_none());
            h = self.from("model.channels", &name, || conv.apply(self.g, &h));
            h = self.activated(&self.normed(&h, &format!("norm{}", i + 1)), &name);
            h = self.from("model.channels", &name, || h.max_pool2d([2, 2], [2, 2], [0, 0]));
        }
        h
    }

    fn normed(&self, x: &Tensor, name: &str) -> Tensor {
        let build = |norm| match norm {
            Norm::Batch => nn::BatchNorm::new(name).mask(&self.valid).apply(self.g, x),
            Norm::Group => nn::group_norm(self.g, name, x, x.dim(1) / Norm::GROUP),
        };
        let norm = self.loaded.recipe.model.norm;
        norm.map_or_else(|| x.clone(), |norm| self.from("model.norm", name, || build(norm)))
    }

    fn activated(&self, x: &Tensor, scope: &str) -> Tensor {
        let model = &self.loaded.recipe.model;
        let key = if model.activation.is_some() { "model.activation" } else { "model.kind" };
        self.from(key, scope, || match model.activation.unwrap_or_default() {
            Activation::Relu => x.relu(),
            Activation::LeakyRelu => x.leaky_relu(0.01),
            Activation::Elu => x.elu(1.0),
            Activation::Gelu => x.gelu(),
            Activation::GeluTanh => x.gelu_tanh(),
            Activation::Silu => x.silu(),
            Activation::Tanh => x.tanh(),
            Activation::Sigmoid => x.sigmoid(),
        })
    }

    /// The loss, and the accuracy of classes. Rows that fill up a batch do not count.
    fn loss(&self, out: &Tensor, interface: &Interface) -> (Tensor, Option<Tensor>) {
        let loss = &self.loaded.recipe.loss;
        let rows = self.loaded.recipe.rows();
        let weights = Some(&self.valid);
        let reduction = match loss.reduction {
            Reduction::Mean => backfit::prelude::Reduction::Mean,
            Reduction::Sum => backfit::prelude::Reduction::Sum,
        };
        let target = match interface.output {
            Output::Classes { .. } => self.g.input(LABEL, I32, [rows]),
            Output::Values { width, .. } => self.g.input(TARGET, F32, [rows, width]),
            Output::Text { .. } => self.g.input(NEXT, I32, [rows, out.dim(1)]),
        };
        let options = LossOptions { weights, reduction };
        match loss.name {
            LossName::CrossEntropy => {
                let label_smoothing = loss.label_smoothing.unwrap_or(0.0);
                let value = out.cross_entropy_with(&target, CrossEntropy { label_smoothing, weights, reduction });
                (value, Some(out.accuracy_with(&target, weights)))
            }
            LossName::Mse => (out.mse_with(&target, options), None),
            LossName::L1 => (out.l1_with(&target, options), None),
            LossName::Huber => (out.huber_with(&target, loss.delta.unwrap_or(1.0), options), None),
        }
    }
}

fn flat(x: &Tensor) -> Tensor {
    if x.rank() > 2 { x.flatten(1) } else { x.clone() }
}

/// x, x², … side by side.
fn powers(x: &Tensor, degree: usize) -> Tensor {
    let mut all = vec![x.clone()];
    for _ in 1..degree {
        let next = &all[all.len() - 1] * x;
        all.push(next);
    }
    let refs: Vec<&Tensor> = all.iter().collect();
    x.graph().concatenate(&refs, 1)
}

fn optimized(step: TrainStep, table: &Optimizer) -> TrainStep {
    let rate = table.learning_rate;
    let [beta1, beta2] = table.betas.unwrap_or([0.9, 0.999]);
    let epsilon = table.epsilon.unwrap_or(1e-8);
    let momentum = table.momentum.unwrap_or(0.0);
    let decay = table.weight_decay;
    match table.name {
        OptimizerName::Sgd => {
            let sgd = Sgd::new(rate).momentum(momentum).weight_decay(decay.unwrap_or(0.0));
            step.optimizer(if table.nesterov == Some(true) { sgd.nesterov() } else { sgd })
        }
        OptimizerName::Adam => {
            step.optimizer(Adam::new(rate).betas(beta1, beta2).epsilon(epsilon).weight_decay(decay.unwrap_or(0.0)))
        }
        OptimizerName::AdamW => {
            step.optimizer(AdamW::new(rate).betas(beta1, beta2).epsilon(epsilon).weight_decay(decay.unwrap_or(0.01)))
        }
        OptimizerName::RmsProp => {
            let rule = RmsProp::new(rate).alpha(table.alpha.unwrap_or(0.99)).epsilon(epsilon).momentum(momentum);
            let rule = rule.weight_decay(decay.unwrap_or(0.0));
            step.optimizer(if table.centered == Some(true) { rule.centered() } else { rule })
        }
        OptimizerName::Lion => {
            let [beta1, beta2] = table.betas.unwrap_or([0.9, 0.99]);
            step.optimizer(Lion::new(rate).betas(beta1, beta2).weight_decay(decay.unwrap_or(0.0)))
        }
        OptimizerName::Adafactor => step.optimizer(Adafactor::new(rate).weight_decay(decay.unwrap_or(0.0))),
    }
}
