//! Where numbers that are not finite come from.

use super::{Array, Data, Moment, Options, run_watched};
use crate::error::{Error, Place, Problem};
use crate::graph::{FuncId, Function, Loc, Module, Node, Param};
use crate::op::Op;
use crate::rewrite::callee;
use crate::shape::Type;
use std::sync::Arc;

/// No more operators than this are told; those after the first few follow from them.
const MOST: usize = 8;

/// How far numbers are from finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worst {
    /// All are finite.
    Finite,
    /// Some are infinite, none is NaN.
    Infinite,
    /// Some are NaN.
    Nan,
}

/// A tensor that was looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// What it is called: a parameter's name, or its operator and number.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// The worst of its elements.
    pub worst: Worst,
    /// The largest magnitude of its finite elements.
    pub largest: f64,
}

/// A place where numbers that are not finite arose from finite ones, or NaN from infinite ones; or came in.
#[derive(Clone, Debug, PartialEq)]
pub struct NonFinite {
    /// The operator, with the composite of which it is a part; `None` for a parameter, which `result` names.
    pub operator: Option<String>,
    /// The user's line.
    pub loc: Loc,
    /// The scope of the node; empty at the top.
    pub scope: Arc<str>,
    /// What it read.
    pub operands: Vec<Seen>,
    /// What it gave.
    pub result: Seen,
}

impl NonFinite {
    /// The same in words.
    pub fn problem(&self) -> Problem {
        let what = if self.result.worst == Worst::Nan { "NaN" } else { "an infinity" };
        let ty = &self.result.ty;
        let problem = match &self.operator {
            None => Problem::new(format!("'{}: {ty}' has {what} as it comes in", self.result.name)),
            Some(operator) => Problem::new(format!("'{operator}' gave {what} in a result {ty}")),
        };
        let problem = problem.at(Place::Source(self.loc.clone()));
        self.operands.iter().fold(problem, |problem, seen| problem.because(seen.words()))
    }
}

impl Seen {
    fn of(name: String, array: &Array) -> Self {
        let (mut worst, mut largest) = (Worst::Finite, 0.0_f64);
        if let Data::Float(values) = &array.data {
            for v in values {
                match v {
                    v if v.is_finite() => largest = largest.max(v.abs()),
                    v if v.is_nan() => worst = Worst::Nan,
                    _ => worst = worst.max(Worst::Infinite),
                }
            }
        }
        Seen { name, ty: array.ty.clone(), worst, largest }
    }

    fn words(&self) -> String {
        let Seen { name, ty, largest, .. } = self;
        let state = match self.worst {
            Worst::Finite => "is finite",
            Worst::Infinite => "has infinities",
            Worst::Nan => "has NaN",
        };
        format!("its operand {name}: {ty} {state}; its largest finite magnitude is {largest:.3e}")
    }
}

/// Runs a function as [`run`](super::run) does, and tells where numbers that are not finite came in or arose, in the
/// order in which that happened: in calls and loops, too. Infinite constants, as in masks, are no such place.
///
/// ```
/// use backfit_ir::interp::{Array, Options, trace};
/// use backfit_ir::{DType, FuncId, Graph, Literal};
/// let g = Graph::new();
/// let x = g.input("x", DType::F32, [2]);
/// g.result("y", &(x.exp() - 1.0));
/// let module = g.finish()?;
/// let x = Array::from_literal(&Literal::from_f32([2], &[1.0, 100.0]));
/// let found = trace(&module, FuncId(0), &[x], Options::default())?;
/// assert_eq!(found[0].operator.as_deref(), Some("exp"));
/// # Ok::<(), backfit_ir::Error>(())
/// ```
///
/// # Errors
/// Where the arguments are not of the parameters' types.
pub fn trace(
    module: &Module,
    function: FuncId,
    arguments: &[Array],
    options: Options,
) -> Result<Vec<NonFinite>, Error> {
    let mut tracer = Tracer::default();
    for (param, argument) in module.function(function).params.iter().zip(arguments) {
        tracer.parameter(param, argument);
    }
    run_watched(module, function, arguments, options, &mut |moment| tracer.see(module, moment))?;
    Ok(tracer.found)
}

/// Looks at every value of a run.
#[derive(Default)]
struct Tracer {
    found: Vec<NonFinite>,
    /// The operators found so far: in a loop each counts once.
    known: Vec<(FuncId, usize)>,
    /// For every call that is under way whether it is the outermost one of a composite. Nodes within stand for it.
    calls: Vec<bool>,
    /// That composite's name, line and scope.
    composite: Option<(String, Loc, Arc<str>)>,
}

impl Tracer {
    fn parameter(&mut self, param: &Param, value: &Array) {
        let result = Seen::of(param.name.clone(), value);
        if result.worst > Worst::Finite {
            let (loc, scope) = (param.loc.clone(), "".into());
            self.found.push(NonFinite { operator: None, loc, scope, operands: vec![], result });
        }
    }

    fn see(&mut self, module: &Module, moment: Moment) {
        match moment {
            Moment::Called { function, node } => self.enter(module, &module.function(function).nodes[node]),
            Moment::Ran { function, node, operands, results } => match module.function(function).nodes[node].op {
                // What a call or a loop returns was looked at where it was made.
                Op::Call(_) => self.leave(),
                Op::Constant(_) | Op::Scan(_) => {}
                _ if self.found.len() == MOST || self.known.contains(&(function, node)) => {}
                _ => {
                    let found = self.arisen(module.function(function), node, operands, results);
                    self.known.extend(found.iter().map(|_| (function, node)));
                    self.found.extend(found);
                }
            },
        }
    }

    fn enter(&mut self, module: &Module, node: &Node) {
        let callee = callee(&node.op).and_then(|id| module.function(id).composite.as_ref());
        let outermost = callee.filter(|_| self.composite.is_none());
        self.calls.push(outermost.is_some());
        if let Some(composite) = outermost {
            self.composite = Some((composite.name.clone(), node.loc.clone(), node.scope.clone()));
        }
    }

    fn leave(&mut self) {
        if self.calls.pop() == Some(true) {
            self.composite = None;
        }
    }

    /// What arose in a node: its results are worse than all that it read.
    fn arisen(&self, f: &Function, index: usize, operands: &[&Array], results: &[Array]) -> Option<NonFinite> {
        let node = &f.nodes[index];
        let name = node.op.name();
        let result = results.iter().map(|r| Seen::of(name.to_owned(), r)).max_by_key(|s| s.worst)?;
        if result.worst == Worst::Finite {
            return None;
        }
        let named = node.operands.iter().map(|&v| f.describe(v));
        let operands: Vec<Seen> = named.zip(operands).map(|(name, array)| Seen::of(name, array)).collect();
        if operands.iter().any(|operand| operand.worst >= result.worst) {
            return None;
        }
        let (operator, loc, scope) = match &self.composite {
            Some((composite, loc, scope)) => (format!("{name} in {composite}"), loc.clone(), scope.clone()),
            None => (name.to_owned(), node.loc.clone(), node.scope.clone()),
        };
        Some(NonFinite { operator: Some(operator), loc, scope, operands, result })
    }
}
