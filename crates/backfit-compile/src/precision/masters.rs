//! Trainable weights that lie in the resident store as bf16.
//!
//! The step computes with the stored weight widened to f32, and stores what the update gives in one of two ways:
//!
//! * *stochastic*: up or down at random, so that the expected value is the exact one. Bits are drawn from a key of its own in the
//!   store, (seed low, seed high, step, 2³¹ + number of the weight). What bf16 holds exactly is stored as it is.
//! * *compensated*: the nearest bf16, and beside it, as bf16, what that leaves; the weight is their sum, 16 bits of significand.
//!
//! A step that the guard skips changes neither weights nor compensation nor key.

use super::policy::Masters;
use backfit_ir::graph::FunctionResult;
use backfit_ir::op::Binary;
use backfit_ir::rewrite::Rewriter;
use backfit_ir::{DType, FuncId, Function, Init, Literal, Loc, Module, Op, Param, Role, Type, ValueId, scope};

/// The result of a step that says whether it is applied.
const FINITE: &str = "finite";
/// The parameter of `init` from which everything random stems.
const KEY: &str = "key";
/// The state that stochastic rounding draws from.
const ROUNDING_KEY: &str = "optimizer.rounding_key";

/// The name of the state that holds what the compensated storage of a weight leaves.
///
/// ```
/// assert_eq!(backfit_compile::precision::compensation_of("fc.weight"), "optimizer.compensation.fc.weight");
/// ```
pub fn compensation_of(weight: &str) -> String {
    format!("optimizer.compensation.{weight}")
}

/// Rewrites the entry points.
pub(super) fn run(module: &mut Module, roots: &[FuncId], masters: Masters) {
    let rounds = match masters {
        Masters::F32 => return,
        Masters::Stochastic => true,
        Masters::Compensated => false,
    };
    for root in roots {
        let function = rewritten(module.function(*root), rounds);
        module.functions[root.index()] = function;
    }
}

fn is_master(f: &Function, param: &Param) -> bool {
    param.role == Role::Weight { trainable: true } && f.ty(param.value).dtype == DType::F32
}

fn rewritten(f: &Function, stochastic: bool) -> Function {
    if !f.params.iter().any(|param| is_master(f, param)) {
        return f.clone();
    }
    let mut store = Store { out: Rewriter::bare(f), loc: f.params[0].loc.clone(), extra: Vec::new() };
    store.params(f, stochastic);
    for node in &f.nodes {
        store.out.copy_node(node);
    }
    let results = store.results(f, stochastic);
    store.out.function.results = results;
    store.out.function
}

/// A function while its masters are replaced.
struct Store<'f> {
    out: Rewriter<'f>,
    loc: Loc,
    /// The new values of added parameters: the compensation of each master in turn, or the key.
    extra: Vec<ValueId>,
}

impl Store<'_> {
    fn emit(&mut self, op: Op, operands: Vec<ValueId>) -> ValueId {
        let types = self.out.function.types(&operands);
        let results = (op.primitive().infer)(&op, &types).unwrap_or_else(|why| panic!("{}: {why}", op.name()));
        self.out.function.add_node(op, operands, results, scope::STEP.into(), self.loc.clone())[0]
    }

    fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.emit(Op::Binary(Binary::Add), vec![a, b])
    }

    fn cast(&mut self, value: ValueId, dtype: DType) -> ValueId {
        self.emit(Op::Cast(dtype), vec![value])
    }

    fn params(&mut self, f: &Function, stochastic: bool) {
        let mut masters = Vec::new();
        for param in &f.params {
            let (master, ty) = (is_master(f, param), f.ty(param.value));
            let ty = if master { ty.with_dtype(DType::BF16) } else { ty.clone() };
            let init = match &param.init {
                Some(Init::Literal(literal)) if master => {
                    Some(Init::Literal(Literal::from_f64(ty.clone(), &literal.to_f64())))
                }
                init => init.clone(),
            };
            let new = self.out.function.add_param(param.name.clone(), ty, param.role, init, param.loc.clone());
            self.out.map_value(param.value, new);
            if master {
                masters.push((param, new));
            }
        }
        let state = |store: &mut Self, name: String, ty: Type, loc: Loc| {
            let value = store.out.function.add_param(name, ty, Role::State, Some(Init::ZEROS), loc);
            store.extra.push(value);
        };
        if stochastic {
            // Only what stores weights rounds them.
            if f.results.iter().any(|r| r.alias.is_some()) {
                state(self, ROUNDING_KEY.to_owned(), Type::new(DType::U32, [4]), self.loc.clone());
            }
        } else {
            for (param, _) in &masters {
                let ty = f.ty(param.value).with_dtype(DType::BF16);
                state(self, compensation_of(&param.name), ty, param.loc.clone());
            }
        }
        for (i, (param, new)) in masters.into_iter().enumerate() {
            self.loc = param.loc.clone();
            let mut wide = self.cast(new, DType::F32);
            if !stochastic {
                let rest = self.cast(self.extra[i], DType::F32);
                wide = self.add(wide, rest);
            }
            self.out.map_value(param.value, wide);
        }
    }

    /// The old results, masters as they are stored, and after them what was added.
    fn results(&mut self, f: &Function, stochastic: bool) -> Vec<FunctionResult> {
        let finite = f.results.iter().find(|r| r.name == FINITE).map(|r| self.out.value(r.value));
        let masters: Vec<&Param> = f.params.iter().filter(|p| is_master(f, p)).collect();
        let (mut results, mut added) = (Vec::new(), Vec::new());
        for result in &f.results {
            let new = self.out.value(result.value);
            let master = result.alias.and_then(|a| masters.iter().position(|m| m.value == f.params[a].value));
            let value = match master {
                None => new,
                Some(number) => {
                    self.loc = masters[number].loc.clone();
                    let stored = match stochastic {
                        true => self.stochastic(f, new, number),
                        false => {
                            let (stored, rest) = self.split(new);
                            added.push((self.extra[number], rest));
                            stored
                        }
                    };
                    let before = self.out.function.params[result.alias.unwrap_or_default()].value;
                    self.guarded(finite, stored, before)
                }
            };
            results.push(FunctionResult { value, ..result.clone() });
        }
        if stochastic && let Some(&key) = self.extra.first() {
            let next = self.next_key(f, key);
            added.push((key, next));
        }
        for (param, new) in added {
            let value = self.guarded(finite, new, param);
            let index = self.out.function.params.iter().position(|p| p.value == param);
            let name = index.map(|i| self.out.function.params[i].name.clone()).unwrap_or_default();
            results.push(FunctionResult { name, value, alias: index });
        }
        results
    }

    fn guarded(&mut self, finite: Option<ValueId>, new: ValueId, old: ValueId) -> ValueId {
        let Some(finite) = finite else { return new };
        let shape = self.out.function.ty(new).shape.clone();
        let finite =
            if shape.rank() == 0 { finite } else { self.emit(Op::Broadcast { shape, axes: vec![] }, vec![finite]) };
        self.emit(Op::Select, vec![finite, new, old])
    }

    /// The nearest bf16, and what it leaves, as bf16.
    fn split(&mut self, value: ValueId) -> (ValueId, ValueId) {
        let stored = self.cast(value, DType::BF16);
        let wide = self.cast(stored, DType::F32);
        let rest = self.emit(Op::Binary(Binary::Sub), vec![value, wide]);
        (stored, self.cast(rest, DType::BF16))
    }

    /// One of the two neighbours in bf16: sixteen random bits are added below its last one, and what is below is cut off.
    fn stochastic(&mut self, f: &Function, value: ValueId, number: usize) -> ValueId {
        let shape = self.out.function.ty(value).shape.clone();
        let words = Type::new(DType::U32, shape.clone());
        let site = Literal::from_i64(Type::new(DType::U32, [4]), &[0, 0, 0, (1 << 31) + number as i64]);
        let site = self.emit(Op::Constant(site), vec![]);
        let key = self.given_key(f).unwrap_or(self.extra[0]);
        let key = self.add(key, site);
        let drawn = self.emit(Op::RngBits(shape), vec![key]);
        let low = self.word(&words, 0xFFFF);
        let noise = self.emit(Op::Binary(Binary::And), vec![drawn, low]);
        let bits = self.emit(Op::Bitcast(DType::U32), vec![value]);
        let sum = self.add(bits, noise);
        let high = self.word(&words, 0xFFFF_0000);
        let cut = self.emit(Op::Binary(Binary::And), vec![sum, high]);
        let rounded = self.emit(Op::Bitcast(DType::F32), vec![cut]);
        self.cast(rounded, DType::BF16)
    }

    fn word(&mut self, ty: &Type, value: i64) -> ValueId {
        let scalar = self.emit(Op::Constant(Literal::from_i64(ty.with_shape([]), &[value])), vec![]);
        let shape = ty.shape.clone();
        if shape.rank() == 0 { scalar } else { self.emit(Op::Broadcast { shape, axes: vec![] }, vec![scalar]) }
    }

    /// The key by which `init` fills the store.
    fn given_key(&self, f: &Function) -> Option<ValueId> {
        let given = f.params.iter().find(|p| p.name == KEY && p.role == Role::Input);
        given.filter(|_| super::only_fills_the_store(f)).map(|given| self.out.value(given.value))
    }

    /// In `init` the key that it is given, elsewhere one step further.
    fn next_key(&mut self, f: &Function, key: ValueId) -> ValueId {
        if let Some(given) = self.given_key(f) {
            return given;
        }
        let one = Literal::from_i64(Type::new(DType::U32, [4]), &[0, 0, 1, 0]);
        let one = self.emit(Op::Constant(one), vec![]);
        self.add(key, one)
    }
}
