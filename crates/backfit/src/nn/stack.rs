//! Layers one after another.

use backfit_ir::ops::scan::Scan;
use backfit_ir::rewrite::Rewriter;
use backfit_ir::{
    DType, FuncId, Function, Graph, Init, Literal, Param, Place, Problem, RNG_KEY, Role, Taps, Tensor, Type,
};
use std::panic::Location;

/// Layers of the same kind, one after another, as one loop over stacked weights: the program does not grow with the
/// number of layers. Weight `w` of all layers is one tensor `NAME.w` with a leading axis of layers.
///
/// Where layers differ in more than their first weights, each kind is a function of its own, which is called for every
/// layer with the layer's weights, `NAME.0.w`, `NAME.1.w` and so on.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 16, 64]);
/// let y = nn::Stack::new("layers", 12).taps(Taps::Inputs).apply(&g, &x, |g, x, _| {
///     nn::TransformerBlock::new("block", 4, 192).causal(true).gated().apply(g, x)
/// });
/// assert_eq!(y.ty(), x.ty());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    name: String,
    layers: usize,
    taps: Taps,
}

/// A layer's function as it is built, and as it was built.
struct Layer {
    graph: Graph,
    function: Function,
}

impl Stack {
    /// So many layers.
    pub fn new(name: &str, layers: usize) -> Self {
        Stack { name: name.to_owned(), layers, taps: Taps::All }
    }

    /// What each layer keeps for the backward pass. A [`Taps::Budget`] is one for all layers together.
    pub fn taps(self, taps: Taps) -> Self {
        Stack { taps, ..self }
    }

    /// Builds the stack; `layer` is given the layer's own graph, its input and its number, and returns its output.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor, mut layer: impl FnMut(&Graph, &Tensor, usize) -> Tensor) -> Tensor {
        self.apply_with(g, x, &[], |g, x, _, index| layer(g, x, index))
    }

    /// [`Stack::apply`] with tensors that all layers read, such as a mask.
    #[track_caller]
    pub fn apply_with(
        &self,
        g: &Graph,
        x: &Tensor,
        shared: &[&Tensor],
        mut layer: impl FnMut(&Graph, &Tensor, &[Tensor], usize) -> Tensor,
    ) -> Tensor {
        if self.layers == 0 {
            return x.fail(format!("stack '{}' has no layers", self.name));
        }
        let _scope = g.enter(&self.name);
        let mut layers: Vec<Layer> = Vec::new();
        let mut ty = x.ty().clone();
        for index in 0..self.layers {
            let made = self.layer(g, &ty, shared, index, &mut layer);
            if !made.graph.problems().is_empty() {
                g.define(made.graph);
                return g.poison(ty);
            }
            let Some(result) = made.function.results.first() else { return g.poison(ty) };
            ty = made.function.ty(result.value).clone();
            layers.push(made);
        }
        let same = |layer: &Layer| alike(&layer.function, &layers[0].function);
        if ty == *x.ty() && layers.iter().all(same) {
            self.looped(g, x, shared, layers)
        } else {
            self.called(g, x, shared, layers)
        }
    }

    /// Builds one layer's function: parameters x, what is shared, the random key if it is used, then the layer's own.
    #[track_caller]
    fn layer(
        &self,
        g: &Graph,
        ty: &Type,
        shared: &[&Tensor],
        index: usize,
        build: &mut impl FnMut(&Graph, &Tensor, &[Tensor], usize) -> Tensor,
    ) -> Layer {
        let f = g.function(&self.name);
        f.taps(match &self.taps {
            Taps::Budget(bytes) => Taps::Budget(bytes / self.layers as u64),
            taps => taps.clone(),
        });
        let x = f.parameter("x", ty.clone(), Role::Input, None);
        let mut own = Vec::new();
        for (i, tensor) in shared.iter().enumerate() {
            own.push(f.parameter(&format!("shared {i}"), tensor.ty().clone(), Role::Input, None));
        }
        f.parameter(RNG_KEY, Type::new(DType::U32, [4]), Role::Input, None);
        let y = build(&f, &x, &own, index);
        f.result("y", &y);
        f.rewrite(|f| {
            // The output first, then what the layer updates.
            let y = f.results.pop();
            f.results.splice(0..0, y);
            let key = 1 + shared.len();
            if f.use_counts()[f.params[key].value.index()] == 0 {
                *f = without_param(f, key);
            }
        });
        let function = f.inspect(Function::clone);
        let caller = Location::caller();
        strays(&function, 1 + shared.len()).into_iter().for_each(|problem| f.problem(problem, caller));
        Layer { graph: f, function }
    }

    /// All layers as one scan.
    #[track_caller]
    fn looped(&self, g: &Graph, x: &Tensor, shared: &[&Tensor], layers: Vec<Layer>) -> Tensor {
        let functions: Vec<&Function> = layers.iter().map(|l| &l.function).collect();
        let first = functions[0].clone();
        let mut stacked = Vec::new();
        for (i, param) in first.params.iter().enumerate().skip(1 + shared.len()) {
            let mut dims = vec![self.layers];
            dims.extend_from_slice(&first.ty(param.value).shape);
            let ty = first.ty(param.value).with_shape(dims);
            stacked.push(match param.name == RNG_KEY {
                true => g.rng_bits(&g.random_key(), ty.shape),
                false => {
                    let init = stacked_init(&functions, i, &ty);
                    g.originate(param.loc.clone(), "".into(), || {
                        g.parameter(&g.qualified(&param.name), ty, param.role, init)
                    })
                }
            });
        }
        let updates: Vec<usize> = first.results.iter().skip(1).filter_map(|r| r.alias).collect();
        let Some(body) = define(g, layers.into_iter().next().map(|l| l.graph)) else { return g.poison(x.ty().clone()) };
        let scan = Scan { body, carries: 1, constants: shared.len(), trip_count: self.layers, reverse: false };
        let results = g.scan(scan, &[x], shared, &stacked.iter().collect::<Vec<_>>());
        for (param, new) in updates.iter().zip(results.iter().skip(1)) {
            g.update(&stacked[param - 1 - shared.len()], new);
        }
        results[0].clone()
    }

    /// Every layer as a call of its kind's function.
    #[track_caller]
    fn called(&self, g: &Graph, x: &Tensor, shared: &[&Tensor], layers: Vec<Layer>) -> Tensor {
        let mut kinds: Vec<(Function, FuncId)> = Vec::new();
        let mut x = x.clone();
        for (index, layer) in layers.into_iter().enumerate() {
            let function = layer.function;
            let mut operands = vec![x.clone()];
            operands.extend(shared.iter().map(|&t| t.clone()));
            for param in function.params.iter().skip(1 + shared.len()) {
                let ty = function.ty(param.value).clone();
                operands.push(match param.name == RNG_KEY {
                    true => g.random_key(),
                    false => {
                        let name = g.qualified(&format!("{index}.{}", param.name));
                        let make = || g.parameter(&name, ty, param.role, param.init.clone());
                        g.originate(param.loc.clone(), "".into(), make)
                    }
                });
            }
            let known = kinds.iter().find(|(kind, _)| alike(kind, &function)).map(|(_, id)| *id);
            let Some(id) = known.or_else(|| define(g, Some(layer.graph))) else { return g.poison(x.ty().clone()) };
            let results = g.call(id, &operands.iter().collect::<Vec<_>>());
            for (result, new) in function.results.iter().zip(&results).skip(1) {
                if let Some(param) = result.alias {
                    g.update(&operands[param], new);
                }
            }
            kinds.push((function, id));
            x = results[0].clone();
        }
        x
    }
}

/// What a layer declares for itself that only the model can: it is built once for all layers.
fn strays(layer: &Function, given: usize) -> Vec<Problem> {
    let fed = |p: &&Param| matches!(p.role, Role::Input | Role::Hyper) && p.name != RNG_KEY;
    let inputs = layer.params.iter().skip(given).filter(fed).map(|param| {
        let problem = Problem::new(format!("a layer of a stack declares the input '{}'", param.name));
        let problem = problem.at(Place::Source(param.loc.clone()));
        problem.help("declare it outside, and share it with `apply_with`")
    });
    let results = layer.results.iter().skip(1).filter(|r| r.alias.is_none()).map(|result| {
        let problem = Problem::new(format!("a layer of a stack declares the result '{}'", result.name));
        problem.help("a layer has one output; keep what else it computes with `state` and `update`")
    });
    inputs.chain(results).collect()
}

/// Ends a layer's function. What it updates, it returns: the stack updates its own parameters.
fn define(g: &Graph, layer: Option<Graph>) -> Option<FuncId> {
    let layer = layer?;
    layer.rewrite(|f| f.results.iter_mut().for_each(|r| r.alias = None));
    g.define(layer)
}

/// A function without a parameter that nothing reads.
fn without_param(f: &Function, unused: usize) -> Function {
    let mut out = Rewriter::bare(f);
    f.params.iter().enumerate().filter(|(i, _)| *i != unused).for_each(|(_, param)| out.copy_param(param));
    f.nodes.iter().for_each(|node| _ = out.copy_node(node));
    let mut out = out.finish();
    out.results.iter_mut().filter_map(|r| r.alias.as_mut()).filter(|i| **i > unused).for_each(|i| *i -= 1);
    out
}

/// Whether two layers differ in the values of their initial weights at most.
fn alike(a: &Function, b: &Function) -> bool {
    let literal = |p: &Param| matches!(p.init, Some(Init::Literal(_)));
    let params = |f: &Function| {
        let of = |p: &Param| (p.name.clone(), f.ty(p.value).clone(), p.role, p.init.clone().filter(|_| !literal(p)));
        f.params.iter().map(of).collect::<Vec<_>>()
    };
    let nodes = |f: &Function| f.nodes.iter().map(|n| (n.op.clone(), n.operands.clone())).collect::<Vec<_>>();
    a.results == b.results && params(a) == params(b) && nodes(a) == nodes(b)
}

/// The start of all layers' weights: numbers one after another, or the one distribution that all have.
fn stacked_init(layers: &[&Function], param: usize, ty: &Type) -> Option<Init> {
    let init = layers[0].params[param].init.clone()?;
    let Init::Literal(_) = init else { return Some(init) };
    let bytes: Vec<u8> = layers
        .iter()
        .filter_map(|f| match &f.params[param].init {
            Some(Init::Literal(literal)) => Some(literal.bytes()),
            _ => None,
        })
        .flatten()
        .copied()
        .collect();
    Literal::from_bytes(ty.clone(), bytes).map(Init::Literal)
}
