//! Parameters, nodes and results.

use super::super::literal::Written;
use super::super::words;
use super::{Parser, Token};
use crate::attributes::Attributes;
use crate::error::Result;
use crate::graph::{Function, Role, ValueId};
use crate::init::Init;
use crate::op::Op;
use crate::ops::Kind;
use crate::shape::Type;
use crate::verify::infer;
use std::collections::HashMap;

/// A function while it is read.
struct Body {
    function: Function,
    /// Values by the numbers that the text gives them.
    labels: HashMap<u64, ValueId>,
    params: HashMap<String, usize>,
}

/// What stands on the right of a node's `=`, before its operator can be made.
enum Right {
    Constant(Written),
    Op(Box<Op>),
}

impl Parser<'_> {
    /// The rest of a function, from behind the opening brace.
    pub(super) fn body(&mut self, function: Function) -> Result<Function> {
        let mut body = Body { function, labels: HashMap::new(), params: HashMap::new() };
        while !self.took('}') {
            match *self.peek() {
                Token::Value(_) | Token::Mark('(') => self.node(&mut body)?,
                Token::Word("return") => self.result(&mut body)?,
                Token::Word(word) => match words::ROLES.iter().find(|(_, role)| *role == word) {
                    Some((role, _)) => self.param(&mut body, *role)?,
                    None => return Err(self.unexpected("a parameter, a node, a return or '}'")),
                },
                _ => return Err(self.unexpected("a parameter, a node, a return or '}'")),
            }
        }
        Ok(body.function)
    }

    fn param(&mut self, body: &mut Body, role: Role) -> Result<()> {
        self.at += 1;
        let label_at = self.at;
        let label = self.value_label()?;
        let name = self.name("the parameter's name")?;
        self.mark(':')?;
        let ty = self.ty()?;
        let init = if self.took_word("init") { Some(self.init(&ty)?) } else { None };
        let loc = self.location()?;
        body.params.insert(name.clone(), body.function.params.len());
        let value = body.function.add_param(name, ty, role, init, loc);
        self.define(body, label_at, &[label], &[value])
    }

    /// Makes labels stand for values.
    fn define(&self, body: &mut Body, at: usize, labels: &[u64], values: &[ValueId]) -> Result<()> {
        for (&label, &value) in labels.iter().zip(values) {
            if body.labels.insert(label, value).is_some() {
                return Err(self.problem(at, format!("%{label} is defined twice")));
            }
        }
        Ok(())
    }

    fn init(&mut self, ty: &Type) -> Result<Init> {
        let at = self.at;
        if self.took_word("literal") {
            let written = self.constant()?;
            let literal = written.literal(ty, &mut self.budget);
            return literal.map(Init::Literal).map_err(|flaw| self.problem(at, flaw));
        }
        let word = self.name("a kind of start")?;
        self.mark('(')?;
        let numbers = self.list(')', Self::float)?;
        match (word.as_str(), numbers.as_slice()) {
            ("constant", &[v]) => Ok(Init::Constant(v)),
            ("uniform", &[low, high]) => Ok(Init::Uniform { low, high }),
            ("normal", &[mean, std]) => Ok(Init::Normal { mean, std }),
            _ => Err(self.problem(at, "expected constant(c), uniform(low, high), normal(mean, std) or literal")),
        }
    }

    fn result(&mut self, body: &mut Body) -> Result<()> {
        self.at += 1;
        let name = self.name("the result's name")?;
        self.mark('=')?;
        let value = self.value(body)?;
        let mut alias = None;
        if self.took_word("aliases") {
            let at = self.at;
            let param = self.name("a parameter's name")?;
            let found = body.params.get(&param).copied();
            alias = Some(found.ok_or_else(|| self.problem(at, format!("there is no parameter '{param}'")))?);
        }
        body.function.add_result(name, value, alias);
        Ok(())
    }

    /// A value that is defined above.
    fn value(&mut self, body: &Body) -> Result<ValueId> {
        let at = self.at;
        let label = self.value_label()?;
        body.labels.get(&label).copied().ok_or_else(|| self.problem(at, format!("%{label} is not defined above")))
    }

    fn node(&mut self, body: &mut Body) -> Result<()> {
        let start = self.at;
        let labels = self.none_or(Self::value_label)?;
        self.mark('=')?;
        let op_at = self.at;
        let (right, operands) = self.operation(body)?;
        self.mark(':')?;
        let types_at = self.at;
        let types = self.none_or(Self::ty)?;
        let op = match right {
            Right::Op(op) => *op,
            Right::Constant(written) => {
                let [ty] = types.as_slice() else {
                    return Err(self.problem(types_at, "a constant has one type"));
                };
                let literal = written.literal(ty, &mut self.budget);
                Op::Constant(literal.map_err(|flaw| self.problem(op_at, flaw))?)
            }
        };
        let inferred = infer(&self.module, &op, &body.function.types(&operands))
            .map_err(|flaw| self.problem(op_at, format!("{}: {flaw}", op.name())))?;
        if inferred != types {
            let inferred: Vec<String> = inferred.iter().map(Type::to_string).collect();
            let what = format!("{} gives {} here", op.name(), inferred.join(", "));
            return Err(self.problem(types_at, what));
        }
        if labels.len() != types.len() {
            let what = format!("{} gives {} results, {} are named", op.name(), types.len(), labels.len());
            return Err(self.problem(start, what));
        }
        let scope = self.scope()?;
        let loc = self.location()?;
        let values = body.function.add_node(op, operands, types, scope, loc);
        self.define(body, start, &labels, &values)
    }

    /// `()`, or items separated by commas.
    fn none_or<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        if self.took('(') {
            self.mark(')')?;
            return Ok(Vec::new());
        }
        let mut items = vec![item(self)?];
        while self.took(',') {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Operator, function or constant, operands and attributes.
    fn operation(&mut self, body: &Body) -> Result<(Right, Vec<ValueId>)> {
        let at = self.at;
        let name = self.name("an operator")?;
        if name == "constant" {
            return Ok((Right::Constant(self.constant()?), Vec::new()));
        }
        let callee = if matches!(name.as_str(), "call" | "scan") { Some(self.function_name()?) } else { None };
        let mut operands = Vec::new();
        while matches!(self.peek(), Token::Value(_)) {
            operands.push(self.value(body)?);
            if !self.took(',') {
                break;
            }
        }
        let attributes = if *self.peek() == Token::Mark('{') { self.attributes()? } else { Attributes::new() };
        let op = match callee {
            Some(callee) if name == "call" => Ok(Op::Call(callee)),
            Some(body) => words::scan(&attributes, body).map(Op::Scan),
            None => primitive(&name, &attributes),
        };
        let op = op.and_then(|op| known_attributes(&op, &attributes).map(|()| op));
        let op = op.map_err(|flaw| self.problem(at, format!("{name}: {flaw}")))?;
        Ok((Right::Op(Box::new(op)), operands))
    }
}

fn primitive(name: &str, attributes: &Attributes) -> Result<Op, String> {
    match crate::ops::find(name).map(|definition| &definition.kind) {
        Some(Kind::Primitive(rules)) => (rules.parse)(attributes),
        Some(Kind::Composite(_)) => Err("it is a composite, which is written as a call of its function".to_owned()),
        None => Err("there is no such operator".to_owned()),
    }
}

/// Whether the operator has every attribute that was given, once.
fn known_attributes(op: &Op, given: &Attributes) -> Result<(), String> {
    let own = match op {
        Op::Call(_) => Attributes::new(),
        Op::Scan(scan) => words::scan_attributes(scan),
        op => (op.primitive().attributes)(op),
    };
    let unknown = given.iter().find(|(name, _)| own.get(name).is_none());
    if let Some((name, _)) = unknown {
        return Err(format!("it has no attribute '{name}'"));
    }
    if given.iter().count() > own.iter().count() { Err("an attribute is given twice".to_owned()) } else { Ok(()) }
}
