//! The derivative of a scan: a forward scan that stacks residuals, and a backward scan over them.

use crate::pairs::{Pair, Pairs, Residual, extend, unused};
use crate::reverse::active_values;
use backfit_ir::ops::scan::Scan;
use backfit_ir::scope;
use backfit_ir::{Error, FuncId, Graph, Node, Op, Role, Tensor, Type};

/// How the operands of the backward body are laid out.
struct Plan {
    pair: Pair,
    /// Which carries have a cotangent.
    carries: Vec<bool>,
    /// Which constants' cotangents are wanted.
    constants: Vec<bool>,
    /// Which stacked outputs' cotangents are given.
    given: Vec<bool>,
}

impl Pairs<'_> {
    /// The cotangents of a scan's operands, in the function of the scan, which becomes one over the forward body.
    pub(crate) fn scan(
        &self,
        graph: &Graph,
        index: usize,
        node: &Node,
        scan: &Scan,
        wanted: &[bool],
        cotangents: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>, Error> {
        let plan = self.plan(scan, wanted, cotangents)?;
        let stacked: Vec<Type> = plan
            .extras(scan)
            .iter()
            .map(|ty| {
                let mut dims = vec![scan.trip_count];
                dims.extend_from_slice(&ty.shape);
                ty.with_shape(dims)
            })
            .collect();
        let forward = self.forward_body(&plan, scan);
        let extras = extend(graph, index, Op::Scan(Scan { body: forward, ..scan.clone() }), &stacked);
        let Some(backward) = self.backward_body(&plan, scan, node) else { return Ok(vec![None; wanted.len()]) };

        let tensor = |i: usize| graph.tensor(node.operands[i]);
        let zero = |i: usize| tensor(i).like(0.0);
        let mut carries: Vec<Tensor> = Vec::new();
        for i in (0..scan.carries).filter(|&i| plan.carries[i]) {
            carries.push(cotangents[i].clone().unwrap_or_else(|| zero(i)));
        }
        for i in (0..scan.constants).filter(|&i| plan.constants[i]) {
            carries.push(zero(scan.carries + i));
        }
        let (mut constants, mut slices) = (Vec::new(), Vec::new());
        for (_, place) in plan.places(scan) {
            match place {
                Place::Constant(i) => constants.push(tensor(i)),
                Place::Stacked(i) => slices.push(tensor(i)),
                Place::Output(i) => slices.push(graph.tensor(node.results[i])),
                Place::Extra(i) => slices.push(extras[i].clone()),
            }
        }
        slices.extend(cotangents[scan.carries..].iter().flatten().cloned());
        let loop_ = Scan {
            body: backward,
            carries: carries.len(),
            constants: constants.len(),
            trip_count: scan.trip_count,
            reverse: !scan.reverse,
        };
        let results = graph.scan(loop_, &refs(&carries), &refs(&constants), &refs(&slices));
        Ok(plan.collect(scan, wanted, results))
    }

    /// Which carries are active (a fixed point over the loop), and the pair for the body.
    fn plan(&self, scan: &Scan, wanted: &[bool], cotangents: &[Option<Tensor>]) -> Result<Plan, Error> {
        let body = self.graph.module(|m| m.function(scan.body).clone());
        let mut active: Vec<bool> = wanted.to_vec();
        loop {
            let sources: Vec<_> = body.params.iter().zip(&active).filter(|(_, a)| **a).map(|(p, _)| p.value).collect();
            let reached = active_values(self.graph, &body, &sources, &[]);
            let before = active.clone();
            for i in 0..scan.carries {
                active[i] |= reached[body.results[i].value.index()];
            }
            if active == before {
                break;
            }
        }
        let given: Vec<bool> = cotangents[scan.carries..].iter().map(Option::is_some).collect();
        let result_given: Vec<bool> = active[..scan.carries].iter().chain(&given).copied().collect();
        let pair = self.pair(scan.body, &active, &result_given)?;
        let constants = active[scan.carries..scan.carries + scan.constants].to_vec();
        Ok(Plan { pair, carries: active[..scan.carries].to_vec(), constants, given })
    }

    /// The pair's forward body, with residual carries returned as well.
    fn forward_body(&self, plan: &Plan, scan: &Scan) -> FuncId {
        let own = self.graph.module(|m| m.function(plan.pair.forward).clone());
        let mut function = own.clone();
        let results = self.graph.module(|m| m.function(scan.body).results.len());
        function.results.truncate(results);
        let mut added = 0;
        for residual in &plan.pair.residuals {
            let value = match *residual {
                Residual::Param(i) if i < scan.carries => own.params[i].value,
                Residual::Result(i) if i < scan.carries => own.results[i].value,
                Residual::Extra(i) => own.results[results + i].value,
                _ => continue,
            };
            function.add_result(unused(&function, format!("stacked residual {added}")), value, None);
            added += 1;
        }
        if added == 0 { plan.pair.forward } else { self.graph.add_function(function) }
    }

    /// One backward step: from the cotangents of carries, sums for constants, residuals and cotangents of stacked outputs.
    fn backward_body(&self, plan: &Plan, scan: &Scan, node: &Node) -> Option<FuncId> {
        let body = self.graph.module(|m| m.function(scan.body).clone());
        let backward = self.graph.module(|m| m.function(plan.pair.backward).clone());
        let name = format!("{}.step", backward.name);
        let g = self.graph.function(&name);
        g.originate(node.loc.clone(), node.scope.clone(), || {
            let param = |name: String, ty: &Type| g.parameter(&name, ty.clone(), Role::Input, None);
            let of = |i: usize| body.ty(body.params[i].value);
            let carries: Vec<Tensor> = (0..scan.carries)
                .filter(|&i| plan.carries[i])
                .map(|i| param(format!("cotangent of carry {i}"), of(i)))
                .collect();
            let sums: Vec<Tensor> = (0..scan.constants)
                .filter(|&i| plan.constants[i])
                .map(|i| param(format!("sum for constant {i}"), of(scan.carries + i)))
                .collect();
            let places = plan.places(scan);
            let mut residuals: Vec<Option<Tensor>> = vec![None; places.len()];
            for constant in [true, false] {
                for (residual, place) in &places {
                    if matches!(place, Place::Constant(_)) == constant {
                        let ty = backward.ty(backward.params[*residual].value);
                        residuals[*residual] = Some(param(format!("residual {residual}"), ty));
                    }
                }
            }
            let outputs: Vec<Tensor> = (0..plan.given.len())
                .filter(|&i| plan.given[i])
                .map(|i| param(format!("cotangent of output {i}"), body.ty(body.results[scan.carries + i].value)))
                .collect();
            let operands: Vec<&Tensor> = residuals.iter().flatten().chain(&carries).chain(&outputs).collect();
            let found = g.call(plan.pair.backward, &operands);
            let cotangent = |i: usize| plan.pair.outputs[i].map(|o| found[o].clone());
            // Over many steps sums are long: they have a scope of their own, by which a precision policy knows them.
            let scope = scope::within_composite(&node.scope, "sum.backward");
            let constants = (0..scan.constants).filter(|&i| plan.constants[i]);
            let add = |(sum, i): (Tensor, usize)| match cotangent(scan.carries + i) {
                Some(c) => g.originate(node.loc.clone(), scope.clone(), || &sum + &c),
                None => sum,
            };
            let sums: Vec<Tensor> = sums.into_iter().zip(constants).map(add).collect();
            self.step_results(&g, plan, scan, &carries, &sums, cotangent);
        });
        self.graph.define(g)
    }

    fn step_results(
        &self,
        g: &Graph,
        plan: &Plan,
        scan: &Scan,
        carries: &[Tensor],
        sums: &[Tensor],
        cotangent: impl Fn(usize) -> Option<Tensor>,
    ) {
        for (n, i) in (0..scan.carries).filter(|&i| plan.carries[i]).enumerate() {
            g.result(&format!("carry {i}"), &cotangent(i).unwrap_or_else(|| carries[n].like(0.0)));
        }
        for (n, i) in (0..scan.constants).filter(|&i| plan.constants[i]).enumerate() {
            g.result(&format!("constant {i}"), &sums[n]);
        }
        for i in scan.carries + scan.constants..plan.pair.outputs.len() {
            if let Some(cotangent) = cotangent(i) {
                g.result(&format!("stacked {i}"), &cotangent);
            }
        }
    }
}

/// Where a residual lies outside the loop.
enum Place {
    /// A constant operand.
    Constant(usize),
    /// A stacked operand.
    Stacked(usize),
    /// A stacked output.
    Output(usize),
    /// A residual that the forward scan stacks.
    Extra(usize),
}

impl Plan {
    /// For every residual, in the order in which the backward scan takes them: constants first.
    fn places(&self, scan: &Scan) -> Vec<(usize, Place)> {
        let mut extra = 0;
        let mut stack = || {
            extra += 1;
            Place::Extra(extra - 1)
        };
        let place = |residual: &Residual| match *residual {
            Residual::Param(i) if i < scan.carries => stack(),
            Residual::Param(i) if i < scan.carries + scan.constants => Place::Constant(i),
            Residual::Param(i) => Place::Stacked(i),
            Residual::Result(i) if i < scan.carries => stack(),
            Residual::Result(i) => Place::Output(i),
            Residual::Extra(_) => stack(),
        };
        self.pair.residuals.iter().map(place).enumerate().collect()
    }

    /// Types of one slice of every residual that the forward scan stacks.
    fn extras(&self, scan: &Scan) -> Vec<Type> {
        let mut types = Vec::new();
        for (residual, ty) in self.pair.residuals.iter().zip(&self.pair.residual_types) {
            let stacked = match *residual {
                Residual::Param(i) | Residual::Result(i) => i < scan.carries,
                Residual::Extra(_) => true,
            };
            if stacked {
                types.push(ty.clone());
            }
        }
        types
    }

    fn collect(&self, scan: &Scan, wanted: &[bool], results: Vec<Tensor>) -> Vec<Option<Tensor>> {
        let mut results = results.into_iter();
        let mut out: Vec<Option<Tensor>> = Vec::new();
        for &active in self.carries.iter().chain(&self.constants) {
            out.push(if active { results.next() } else { None });
        }
        for i in scan.carries + scan.constants..wanted.len() {
            out.push(if self.pair.outputs[i].is_some() { results.next() } else { None });
        }
        out
    }
}

pub(crate) fn refs(tensors: &[Tensor]) -> Vec<&Tensor> {
    tensors.iter().collect()
}
