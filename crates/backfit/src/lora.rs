//! Low-rank adaptation: training small corrections of frozen weights.

use backfit_grad::Group;
use backfit_ir::ops::{linear, lora_linear};
use backfit_ir::{
    Attributes, FuncId, Function, Graph, Init, Literal, Op, Place, Problem, RNG_KEY, Result, Role, Tensor, Type,
    ValueId,
};
use backfit_train::Trainer;
use backfit_train::checkpoint::Checkpoint;
use std::collections::BTreeSet;
use std::panic::Location;

/// The ends of the names of the factors, which stand beside the weight: `fc1.weight` has `fc1.lora_a` and `fc1.lora_b`.
const FACTORS: [&str; 2] = ["lora_a", "lora_b"];

/// The name of the function of a model's own graph.
const MAIN: &str = "main";

/// Low-rank adaptation of linear layers (Hu et al. 2021): y = x·Wᵀ + s·(x·Aᵀ)·Bᵀ + bias with s = alpha / rank. W and all
/// other weights are frozen; A `[rank, in]` starts at U(−1/√in, 1/√in) and B `[out, rank]` at zero, so that nothing has
/// changed before the first step.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 16]);
/// let y = nn::linear(&g, "head", &nn::linear(&g, "fc1", &x, 32).relu(), 4);
/// let loss = y.mse(&g.input("y", F32, [8, 4]));
/// let adapters = Lora::new("fc*.weight", 2).alpha(4.0).attach(&g)?;
/// assert_eq!(adapters.weights(), ["fc1.weight"]);
///
/// let model = TrainStep::new(&loss).optimizer(Adam::new(1e-3)).build()?;
/// let trainer = Trainer::new(model.compile(&Cpu::default())?);
/// // trainer.load_weights("base.safetensors")?, then steps, then:
/// let merged = adapters.merged(&trainer)?;
/// assert_eq!(merged.tensors["fc1.weight"], trainer.get("fc1.weight")?);
/// # Ok::<(), backfit::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Lora {
    pattern: String,
    rank: usize,
    alpha: Option<f64>,
}

/// The weights that a [`Lora`] adapts.
#[derive(Clone, Debug, PartialEq)]
pub struct Adapters {
    weights: Vec<String>,
    scale: f64,
    /// The name of the function to whose graph they are attached: [`MAIN`], or that of a stack.
    function: String,
}

/// A linear layer of the graph whose weight is a parameter.
struct Layer {
    node: usize,
    weight: ValueId,
    name: String,
}

impl Lora {
    /// Adapts the linear layers whose weights' names fit the pattern (`*` for any characters, `?` for one), with factors
    /// of this rank. alpha is the rank unless set, so that s = 1.
    pub fn new(pattern: &str, rank: usize) -> Self {
        Lora { pattern: pattern.to_owned(), rank, alpha: None }
    }

    /// The correction is multiplied by alpha / rank.
    pub fn alpha(self, alpha: f64) -> Self {
        Lora { alpha: Some(alpha), ..self }
    }

    /// Adapts the layers that the graph has now, and freezes its weights, the factors of other adapters excepted.
    /// In a [`Stack`](crate::nn::Stack), attach to the graph of the layer.
    ///
    /// # Errors
    /// A rank of 0; an alpha that is not finite; no linear layer of such a name; a weight that something else reads, too.
    #[track_caller]
    pub fn attach(&self, g: &Graph) -> Result<Adapters> {
        let caller = Location::caller();
        let scale = self.alpha.map_or(1.0, |alpha| alpha / self.rank as f64);
        if self.rank == 0 || !scale.is_finite() {
            let problem = Problem::new(format!("factors of rank {} and the scale {scale}", self.rank));
            return Err(problem.help("give a rank of at least 1 and a finite alpha").into());
        }
        let layers = self.layers(g)?;
        g.rewrite(freeze);
        let mut weights: Vec<(String, [Tensor; 2])> = Vec::new();
        for Layer { node, weight, name } in layers {
            let known = weights.iter().find(|(known, _)| *known == name).map(|(_, factors)| factors.clone());
            let factors = known.unwrap_or_else(|| {
                let made = self.factors(g, &name, g.tensor(weight).ty());
                weights.push((name, made.clone()));
                made
            });
            let read = |f: &Function| f.nodes[node].operands.clone();
            let mut operands: Vec<ValueId> = g.inspect(read);
            operands.splice(2..2, factors.iter().filter_map(Tensor::value));
            let types: Vec<Type> = operands.iter().map(|v| g.tensor(*v).ty().clone()).collect();
            let attributes = Attributes::new().with("scale", scale);
            let Some(function) = g.instantiate(&lora_linear::DEF, &types, attributes, false, caller) else { continue };
            g.rewrite(|f| (f.nodes[node].op, f.nodes[node].operands) = (Op::Call(function), operands));
        }
        let function = g.inspect(|f| f.name.clone());
        Ok(Adapters { weights: weights.into_iter().map(|(name, _)| name).collect(), scale, function })
    }

    /// The layers to adapt.
    fn layers(&self, g: &Graph) -> Result<Vec<Layer>> {
        let is_linear =
            |id: FuncId| g.module(|m| m.function(id).composite.as_ref().is_some_and(|c| c.name == linear::DEF.name));
        let all: Vec<Layer> = g.inspect(|f| {
            let weights = f.params.iter().filter(|p| matches!(p.role, Role::Weight { .. }));
            let named: Vec<(ValueId, &str)> = weights.map(|p| (p.value, p.name.as_str())).collect();
            let calls = f.nodes.iter().enumerate().filter(|(_, n)| matches!(n.op, Op::Call(id) if is_linear(id)));
            let layer = |(node, call): (usize, &backfit_ir::Node)| {
                let (weight, name) = named.iter().find(|(value, _)| *value == call.operands[1])?;
                Some(Layer { node, weight: *weight, name: (*name).to_owned() })
            };
            calls.filter_map(layer).collect()
        });
        let (fitting, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|l| Group::fits(&self.pattern, &l.name));
        if fitting.is_empty() {
            let names: Vec<&str> = others.iter().map(|layer| layer.name.as_str()).collect();
            let problem = Problem::new(format!("no linear layer has a weight named '{}'", self.pattern));
            return Err(problem.help(format!("the weights of linear layers are: {}", names.join(", "))).into());
        }
        for layer in &fitting {
            let uses = fitting.iter().filter(|l| l.weight == layer.weight).count();
            if g.inspect(|f| f.use_counts()[layer.weight.index()]) != uses {
                let problem = Problem::new(format!("the weight '{}' is read by more than linear layers", layer.name));
                let loc = g.inspect(|f| f.nodes[layer.node].loc.clone());
                let problem =
                    problem.at(Place::Source(loc)).because("merged into it, the correction would change them");
                return Err(problem.help("give a pattern that leaves it out").into());
            }
        }
        Ok(fitting)
    }

    #[track_caller]
    fn factors(&self, g: &Graph, weight: &str, ty: &Type) -> [Tensor; 2] {
        let [outputs, inputs] = [ty.shape[0], ty.shape[1]];
        let shapes = [[self.rank, inputs], [outputs, self.rank]];
        let inits = [Init::fan_in_uniform(inputs), Init::ZEROS];
        let mut made = names(weight).into_iter().zip(shapes.into_iter().zip(inits)).map(|(name, (shape, init))| {
            g.parameter(&name, ty.with_shape(shape), Role::Weight { trainable: true }, Some(init))
        });
        [made.next(), made.next()].map(|factor| factor.expect("two factors"))
    }
}

/// The names of the factors of a weight.
fn names(weight: &str) -> [String; 2] {
    let base = match weight {
        "weight" => String::new(),
        _ => format!("{}.", weight.strip_suffix(".weight").unwrap_or(weight)),
    };
    FACTORS.map(|factor| format!("{base}{factor}"))
}

/// Whether a weight of this name is a factor.
pub(crate) fn is_factor(name: &str) -> bool {
    FACTORS.iter().any(|factor| name.rsplit('.').next() == Some(factor))
}

fn freeze(f: &mut Function) {
    for param in f.params.iter_mut().filter(|p| matches!(p.role, Role::Weight { .. }) && !is_factor(&p.name)) {
        param.role = Role::Weight { trainable: false };
    }
}

impl Adapters {
    /// The names of the adapted weights; where they are those of a [`Stack`](crate::nn::Stack), within its layer.
    pub fn weights(&self) -> &[String] {
        &self.weights
    }

    /// Weights and states as those of the model without these adapters, in which adapted weights are W + s·B·A, each
    /// element computed in f64 (the sum over the rank in order) and rounded once. Weights are as prediction uses them:
    /// averages where it uses averages. Factors of other adapters stay beside their weights. [`Checkpoint::save`] writes
    /// all for [`Trainer::load_weights`] and other programs.
    ///
    /// # Errors
    /// The trainer's model lacks an adapted weight or its factors.
    pub fn merged(&self, trainer: &Trainer) -> Result<Checkpoint> {
        let adapted = self.adapted(trainer)?;
        let own: Vec<String> = adapted.iter().flat_map(|name| names(name)).collect();
        let mut checkpoint = Checkpoint::default();
        for port in trainer.residents() {
            let of_training = port.name == RNG_KEY || port.name.starts_with("optimizer.");
            if of_training && !matches!(port.role, Role::Weight { .. }) || own.contains(&port.name) {
                continue;
            }
            let mut value = trainer.weight(&port.name)?;
            if adapted.contains(&port.name.as_str()) {
                let [a, b] = names(&port.name).map(|name| trainer.weight(&name));
                value = merge(&value, &a?, &b?, self.scale);
            }
            checkpoint.tensors.insert(port.name.clone(), value);
        }
        Ok(checkpoint)
    }

    /// The names of the adapted weights in the store: those that have factors beside them.
    fn adapted<'t>(&self, trainer: &'t Trainer) -> Result<Vec<&'t str>> {
        let all: BTreeSet<&str> = trainer.residents().iter().map(|port| port.name.as_str()).collect();
        let with_factors = |name: &&str| names(name).iter().all(|factor| all.contains(factor.as_str()));
        let with_factors: Vec<&str> = all.iter().copied().filter(with_factors).collect();
        let is_there = |weight: &&String| with_factors.iter().any(|name| self.is(name, weight));
        if let Some(weight) = self.weights.iter().find(|weight| !is_there(weight)) {
            let problem = Problem::new(format!("the trainer has no weight '{weight}' with factors beside it"));
            let problem = problem.because(format!("the adapters are those of the function '{}'", self.function));
            return Err(problem.help("give the trainer of the graph to which they were attached").into());
        }
        Ok(with_factors.into_iter().filter(|name| self.weights.iter().any(|weight| self.is(name, weight))).collect())
    }

    /// Whether an adapted weight `w` has this name in the store: of a stack `s` it is `s.w`, or `s.0.w` and so on where
    /// layers differ.
    fn is(&self, name: &str, weight: &str) -> bool {
        let Some(path) = name.strip_suffix(weight) else { return false };
        let Some(path) = path.strip_suffix('.') else { return path.is_empty() && self.function == MAIN };
        let is_stack = |path: &str| path.strip_suffix(&self.function).is_some_and(|p| p.is_empty() || p.ends_with('.'));
        let layer = path.rsplit_once('.').filter(|(_, layer)| layer.parse::<usize>().is_ok());
        is_stack(path) || layer.is_some_and(|(path, _)| is_stack(path))
    }
}

/// W + s·B·A, for each layer where there are several.
fn merge(weight: &Literal, a: &Literal, b: &Literal, scale: f64) -> Literal {
    let from_end = |factor: &Literal, axis: usize| factor.ty().shape[factor.ty().shape.rank() - axis];
    let (outputs, rank, inputs) = (from_end(b, 2), from_end(b, 1), from_end(a, 1));
    let (a, b) = (a.to_f64(), b.to_f64());
    let mut merged = weight.to_f64();
    let layers = merged.chunks_exact_mut((outputs * inputs).max(1));
    let factors = a.chunks_exact((rank * inputs).max(1)).zip(b.chunks_exact((outputs * rank).max(1)));
    for (layer, (a, b)) in layers.zip(factors) {
        for (row, factors) in layer.chunks_exact_mut(inputs.max(1)).zip(b.chunks_exact(rank)) {
            for (column, element) in row.iter_mut().enumerate() {
                let product: f64 = factors.iter().enumerate().map(|(k, b)| b * a[k * inputs + column]).sum();
                *element += scale * product;
            }
        }
    }
    Literal::from_f64(weight.ty().clone(), &merged)
}
