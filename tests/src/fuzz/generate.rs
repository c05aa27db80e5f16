//! Random programs of 8 to 60 nodes.

use super::{Case, Random};
use backfit_ir::interp::Array;
use backfit_ir::ops::scan::Scan;
use backfit_ir::{DType, FuncId, Graph, Init, Literal, Op, Role, Shape, Tensor, Type};

/// Dtypes of values.
pub(super) const DTYPES: &[DType] = &[
    DType::I32,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U32,
    DType::Bool,
    DType::F32,
    DType::F32,
    DType::F32,
    DType::F64,
];

/// The program of a seed.
///
/// # Panics
/// Where the generator builds a wrong graph.
pub fn case(seed: u64) -> Case {
    let mut random = Random(seed.wrapping_mul(0xA076_1D64_78BD_642F));
    let rounded = random.chance(45);
    let most = if random.chance(4) { 20_000 } else { 400 };
    let nodes = 8 + random.below(53);
    let flush = random.chance(60);
    let mut generator = Generator { random, graph: Graph::new(), pool: Vec::new(), rounded, flush, most, depth: 0 };
    let inputs = generator.parameters();
    while generator.graph.inspect(|f| f.nodes.len()) < nodes {
        generator.step();
    }
    generator.finish_main();
    let module = generator.graph.finish().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    Case { module, inputs, flush }
}

/// A function under construction.
pub(super) struct Generator {
    pub random: Random,
    pub graph: Graph,
    /// Values to build on.
    pub pool: Vec<Tensor>,
    /// Whether operators may round differently on a target.
    pub rounded: bool,
    /// Whether there are to be no subnormal numbers.
    pub flush: bool,
    /// The most elements that a value may have.
    pub most: usize,
    /// How many functions this one lies within.
    pub depth: usize,
}

impl Generator {
    fn parameters(&mut self) -> Vec<Literal> {
        let mut inputs = Vec::new();
        for i in 0..2 + self.random.below(5) {
            let dtype = self.random.pick(DTYPES);
            let ty = Type::new(dtype, self.random.shape(self.most));
            let special = !self.rounded || self.random.chance(10);
            inputs.push(self.literal(&ty, special));
            let resident = self.random.chance(45);
            let (role, init) = if resident { (Role::State, Some(Init::ZEROS)) } else { (Role::Input, None) };
            let value = self.graph.parameter(&format!("x{i}"), ty.clone(), role, init.clone());
            self.pool.push(value);
            // States of one type can be swapped.
            if resident && self.random.chance(30) {
                inputs.push(self.literal(&ty, special));
                let twin = self.graph.parameter(&format!("twin{i}"), ty, role, init);
                self.pool.push(twin);
            }
        }
        inputs
    }

    fn literal(&mut self, ty: &Type, special: bool) -> Literal {
        let mut values = Array::from_literal(&self.random.literal(ty, special));
        values.round(self.flush);
        values.to_literal()
    }

    /// A value, mostly a recent one.
    pub fn any(&mut self) -> Tensor {
        let recent = if self.random.chance(60) { self.pool.len().saturating_sub(6) } else { 0 };
        let index = recent + self.random.below(self.pool.len() - recent);
        self.pool[index].clone()
    }

    /// A value for which something holds; `None` where none was found.
    pub fn such(&mut self, fits: impl Fn(&Tensor) -> bool) -> Option<Tensor> {
        let candidates: Vec<usize> = (0..self.pool.len()).filter(|&i| fits(&self.pool[i])).collect();
        if candidates.is_empty() {
            return None;
        }
        let recent = if self.random.chance(60) { candidates.len().saturating_sub(4) } else { 0 };
        let index = recent + self.random.below(candidates.len() - recent);
        Some(self.pool[candidates[index]].clone())
    }

    /// Adds a primitive if its rules allow it and its results are small.
    pub fn push(&mut self, op: Op, operands: &[&Tensor]) -> Option<Tensor> {
        let types: Vec<Type> = operands.iter().map(|t| t.ty().clone()).collect();
        let results = (op.primitive().infer)(&op, &types).ok()?;
        if results.iter().any(|ty| ty.shape.elements() > self.most.max(600) || ty.shape.rank() > 6) {
            return None;
        }
        let results = self.graph.push(op, operands);
        self.pool.extend(results.iter().cloned());
        results.into_iter().next()
    }

    /// A value of this very type, made of another by casting, cutting, repeating and reshaping.
    pub fn coerce(&mut self, value: &Tensor, ty: &Type) -> Tensor {
        let value = if value.dtype() == ty.dtype { value.clone() } else { value.cast(ty.dtype) };
        let (have, want) = (value.shape().elements(), ty.shape.elements());
        let flat = if value.rank() == 1 { value } else { value.reshape([have]) };
        let sized = match have {
            _ if have == want => flat,
            1 => flat.broadcast_in_dim([want], &[0]),
            _ if have > want => {
                let start = self.random.below(have - want + 1);
                flat.slice(&[start], &[start + want], &[1])
            }
            _ => flat.pad(&[0], &[(want - have) as i64], &[0], 1.0),
        };
        if *sized.shape() == ty.shape { sized } else { sized.reshape(&ty.shape) }
    }

    /// Another value of this type: one that is there, or one made.
    pub fn like(&mut self, ty: &Type) -> Tensor {
        let same = self.such(|t| t.ty() == ty);
        match same {
            Some(value) if self.random.chance(70) => value,
            _ => {
                let value = self.any();
                self.coerce(&value, ty)
            }
        }
    }

    /// Adds something.
    pub fn step(&mut self) {
        match self.random.below(100) {
            0..28 => self.movement(),
            28..62 => self.elementwise(),
            62..90 => self.structured(),
            90..94 if self.depth < 2 => self.call(),
            94..97 if self.depth < 2 => self.scan(),
            _ => self.source(),
        }
    }

    fn source(&mut self) {
        let ty = Type::new(self.random.pick(DTYPES), self.random.shape(self.most.min(400)));
        if self.random.chance(50) && ty.shape.rank() > 0 {
            let axis = self.random.below(ty.shape.rank());
            self.push(Op::Iota { ty, axis }, &[]);
        } else {
            let literal = match self.random.chance(50) {
                true => self.literal(&ty, !self.rounded),
                false => Literal::scalar(ty.dtype, f64::from(self.random.pick(&[0u8, 1, 2, 3]))),
            };
            self.push(Op::Constant(literal), &[]);
        }
    }

    /// A function of some of these types; its results are chosen by `finish`.
    fn body(&mut self, params: &[Type], finish: impl FnOnce(&mut Generator) -> Vec<Tensor>) -> Option<FuncId> {
        let graph = self.graph.function("body");
        let pool =
            params.iter().enumerate().map(|(i, ty)| graph.parameter(&format!("p{i}"), ty.clone(), Role::Input, None));
        let pool = pool.collect();
        let random = Random(self.random.bits());
        let mut inner = Generator {
            random,
            graph,
            pool,
            rounded: self.rounded,
            flush: self.flush,
            most: 300,
            depth: self.depth + 1,
        };
        for _ in 0..1 + inner.random.below(6) {
            inner.step();
        }
        for (i, result) in finish(&mut inner).iter().enumerate() {
            inner.graph.result(&format!("r{i}"), result);
        }
        self.graph.define(inner.graph)
    }

    fn call(&mut self) {
        let operands: Vec<Tensor> = (0..1 + self.random.below(3)).map(|_| self.any()).collect();
        let types: Vec<Type> = operands.iter().map(|t| t.ty().clone()).collect();
        let results = 1 + self.random.below(2);
        let Some(body) = self.body(&types, |inner| (0..results).map(|_| inner.any()).collect()) else { return };
        for _ in 0..1 + self.random.below(2) {
            let results = self.graph.call(body, &operands.iter().collect::<Vec<_>>());
            self.pool.extend(results);
        }
    }

    fn scan(&mut self) {
        let trip_count = self.random.pick(&[1, 2, 3, 5]);
        let small = |generator: &mut Generator| generator.such(|t| t.shape().elements() <= 300);
        let carries: Vec<Tensor> = (0..1 + self.random.below(2)).filter_map(|_| small(self)).collect();
        let constants: Vec<Tensor> = (0..self.random.below(2)).filter_map(|_| small(self)).collect();
        let mut stacked = Vec::new();
        for _ in 0..self.random.below(3) {
            let Some(value) = small(self) else { continue };
            let slice = self.random.shape(40);
            let shape: Shape = [&[trip_count], slice.dims()].concat().into();
            stacked.push(self.coerce(&value, &Type::new(value.dtype(), shape)));
        }
        let sliced = |t: &Tensor| t.ty().with_shape(&t.shape()[1..]);
        let whole = carries.iter().chain(&constants).map(|t| t.ty().clone());
        let params: Vec<Type> = whole.chain(stacked.iter().map(sliced)).collect();
        if params.is_empty() {
            return;
        }
        let outputs = self.random.below(3);
        let body = self.body(&params, |inner| {
            let mut results: Vec<Tensor> = carries.iter().map(|t| inner.like(t.ty())).collect();
            results.extend((0..outputs).map(|_| inner.any()));
            results
        });
        let Some(body) = body else { return };
        let reverse = self.random.chance(40);
        let scan = Scan { body, carries: carries.len(), constants: constants.len(), trip_count, reverse };
        let all: Vec<Vec<&Tensor>> = [&carries, &constants, &stacked].map(|list| list.iter().collect()).into();
        let results = self.graph.scan(scan, &all[0], &all[1], &all[2]);
        self.pool.extend(results);
    }

    /// Results, and updates of most states: computed ones, and states that take each other's place.
    fn finish_main(&mut self) {
        let params: Vec<_> =
            self.graph.inspect(|f| f.params.iter().map(|p| (p.name.clone(), p.value, p.role)).collect());
        let states = params.into_iter().filter(|(_, _, role)| *role == Role::State);
        let states: Vec<Tensor> = states.map(|(_, value, _)| self.graph.tensor(value)).collect();
        for (i, state) in states.iter().enumerate() {
            let twin = states.iter().enumerate().find(|(j, t)| *j != i && t.ty() == state.ty());
            match self.random.below(10) {
                0..2 if twin.is_some() => self.graph.update(state, twin.expect("checked").1),
                0..7 => {
                    let new = self.like(state.ty());
                    self.graph.update(state, &new);
                }
                _ => {}
            }
        }
        // What nothing else reads, so that little of the program is dead, and something that is read.
        let used = self.graph.inspect(|f| f.use_counts());
        let unread = |t: &&Tensor| t.value().is_some_and(|v| used[v.index()] == 0);
        let mut results: Vec<Tensor> = self.pool.iter().filter(unread).cloned().collect();
        let keep = 1 + self.random.below(8);
        while results.len() > keep {
            results.swap_remove(self.random.below(results.len()));
        }
        results.push(self.any());
        for (i, value) in results.iter().enumerate() {
            self.graph.result(&format!("y{i}"), value);
        }
    }
}
