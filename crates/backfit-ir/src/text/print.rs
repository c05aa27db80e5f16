//! Writing modules.

use super::{literal, words};
use crate::graph::{FuncId, Function, Loc, Module, Node, Param, Role, ValueId};
use crate::init::Init;
use crate::literal::Literal;
use crate::op::Op;
use crate::taps::Taps;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The bytes of large constants. Without them the text cannot be read back where there are any.
    pub blobs: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { blobs: true }
    }
}

/// The text form of a module. Broken modules are written too: what does not exist is marked with `?`.
///
/// ```
/// use backfit_ir::text::{Options, print};
/// use backfit_ir::{DType, Graph};
/// let g = Graph::new();
/// g.result("y", &g.input("x", DType::F32, [2]).exp());
/// let text = print(&g.finish().unwrap(), Options::default());
/// assert!(text.contains("  %1 = exp %0 : f32[2] at "));
/// ```
pub fn print(module: &Module, options: Options) -> String {
    let mut out = String::new();
    write(module, options, &mut out).expect("a string takes everything");
    out
}

/// The text form of one function of a module, without bytes of large constants.
pub fn print_function(module: &Module, function: FuncId) -> String {
    let mut out = String::new();
    let mut printer = Printer { module, out: &mut out, blobs: Blobs::default() };
    printer.function(module.function(function)).expect("a string takes everything");
    out
}

pub(super) fn write(module: &Module, options: Options, out: &mut dyn Write) -> fmt::Result {
    let mut printer = Printer { module, out, blobs: Blobs::default() };
    for (index, function) in module.functions.iter().enumerate() {
        if index > 0 {
            printer.out.write_char('\n')?;
        }
        printer.function(function)?;
    }
    if options.blobs { printer.blobs() } else { Ok(()) }
}

/// Large constants by name: their hash, or the next free number where two hashes are the same.
#[derive(Default)]
struct Blobs(BTreeMap<u64, Literal>);

impl Blobs {
    fn name(&mut self, literal: &Literal) -> u64 {
        let mut name = literal.content_hash();
        while self.0.get(&name).is_some_and(|known| known.bytes() != literal.bytes()) {
            name = name.wrapping_add(1);
        }
        self.0.entry(name).or_insert_with(|| literal.clone());
        name
    }
}

struct Printer<'a> {
    module: &'a Module,
    out: &'a mut dyn Write,
    blobs: Blobs,
}

/// The numbers that values get in the text: the order of their definitions.
struct Numbers<'f> {
    function: &'f Function,
    numbers: Vec<Option<usize>>,
}

impl<'f> Numbers<'f> {
    fn new(function: &'f Function) -> Self {
        let mut numbers = vec![None; function.values.len()];
        let params = function.params.iter().map(|p| p.value);
        let results = function.nodes.iter().flat_map(|n| n.results.iter().copied());
        for (number, value) in params.chain(results).enumerate() {
            if let Some(slot) = numbers.get_mut(value.index()) {
                slot.get_or_insert(number);
            }
        }
        Numbers { function, numbers }
    }

    fn value(&self, value: ValueId) -> String {
        match self.numbers.get(value.index()).copied().flatten() {
            Some(number) => format!("%{number}"),
            None => format!("%?{}", value.0),
        }
    }

    fn values(&self, values: &[ValueId]) -> String {
        values.iter().map(|&v| self.value(v)).collect::<Vec<_>>().join(", ")
    }

    fn ty(&self, value: ValueId) -> String {
        self.function.values.get(value.index()).map_or("?".to_owned(), |v| v.ty.to_string())
    }
}

impl Printer<'_> {
    fn function(&mut self, function: &Function) -> fmt::Result {
        write!(self.out, "func @{}", words::name(&function.name))?;
        if let Some(composite) = &function.composite {
            write!(self.out, " composite {}", words::name(&composite.name))?;
            if !composite.attributes.is_empty() {
                write!(self.out, " {}", words::attributes(&composite.attributes))?;
            }
        }
        match &function.taps {
            Taps::All => {}
            Taps::Inputs => self.out.write_str(" taps inputs")?,
            Taps::Named(names) => {
                let names: Vec<_> = names.iter().map(|n| words::name(n)).collect();
                write!(self.out, " taps named({})", names.join(", "))?;
            }
            Taps::Budget(bytes) => write!(self.out, " taps budget({bytes})")?,
        }
        self.out.write_str(" {\n")?;
        let numbers = Numbers::new(function);
        for param in &function.params {
            self.param(param, &numbers)?;
        }
        for node in &function.nodes {
            self.node(node, &numbers)?;
        }
        for result in &function.results {
            write!(self.out, "  return {} = {}", words::name(&result.name), numbers.value(result.value))?;
            if let Some(alias) = result.alias {
                let name = function.params.get(alias).map_or("?".into(), |p| words::name(&p.name));
                write!(self.out, " aliases {name}")?;
            }
            self.out.write_char('\n')?;
        }
        self.out.write_str("}\n")
    }

    fn param(&mut self, param: &Param, numbers: &Numbers) -> fmt::Result {
        let (value, name, ty) = (numbers.value(param.value), words::name(&param.name), numbers.ty(param.value));
        write!(self.out, "  {} {value} {name} : {ty}", role_word(param.role))?;
        match &param.init {
            None => {}
            Some(Init::Constant(v)) => write!(self.out, " init constant({})", words::float(*v))?,
            Some(Init::Uniform { low, high }) => {
                write!(self.out, " init uniform({}, {})", words::float(*low), words::float(*high))?;
            }
            Some(Init::Normal { mean, std }) => {
                write!(self.out, " init normal({}, {})", words::float(*mean), words::float(*std))?;
            }
            Some(Init::Literal(literal)) => {
                let words = self.literal(literal);
                write!(self.out, " init literal {words}")?;
            }
        }
        self.location(&param.loc)
    }

    fn node(&mut self, node: &Node, numbers: &Numbers) -> fmt::Result {
        let results = if node.results.is_empty() { "()".to_owned() } else { numbers.values(&node.results) };
        write!(self.out, "  {results} = {}", node.op.name())?;
        let attributes = match &node.op {
            Op::Constant(literal) => {
                let words = self.literal(literal);
                write!(self.out, " {words}")?;
                String::new()
            }
            Op::Call(callee) => {
                write!(self.out, " @{}", self.callee(*callee))?;
                String::new()
            }
            Op::Scan(scan) => {
                write!(self.out, " @{}", self.callee(scan.body))?;
                words::attributes(&words::scan_attributes(scan))
            }
            op => {
                let attributes = (op.primitive().attributes)(op);
                if attributes.is_empty() { String::new() } else { words::attributes(&attributes) }
            }
        };
        if !node.operands.is_empty() {
            write!(self.out, " {}", numbers.values(&node.operands))?;
        }
        if !attributes.is_empty() {
            write!(self.out, " {attributes}")?;
        }
        let types: Vec<String> = node.results.iter().map(|&v| numbers.ty(v)).collect();
        write!(self.out, " : {}", if types.is_empty() { "()".to_owned() } else { types.join(", ") })?;
        if !node.scope.is_empty() {
            write!(self.out, " scope {}", words::quoted(&node.scope))?;
        }
        self.location(&node.loc)
    }

    fn location(&mut self, loc: &Loc) -> fmt::Result {
        if loc.line != 0 || !loc.file.is_empty() {
            write!(self.out, " at {}:{}", words::quoted(&loc.file), loc.line)?;
        }
        self.out.write_char('\n')
    }

    fn callee(&self, id: FuncId) -> String {
        let function = self.module.functions.get(id.index());
        function.map_or(format!("?{}", id.0), |f| words::name(&f.name).into_owned())
    }

    fn literal(&mut self, literal: &Literal) -> String {
        literal::words(literal).unwrap_or_else(|| format!("blob {:#018x}", self.blobs.name(literal)))
    }

    fn blobs(&mut self) -> fmt::Result {
        if self.blobs.0.is_empty() {
            return Ok(());
        }
        self.out.write_str("\nblobs {\n")?;
        for (name, literal) in &self.blobs.0 {
            writeln!(self.out, "  {name:#018x} =")?;
            for line in literal.bytes().chunks(64) {
                self.out.write_str("    \"")?;
                line.iter().try_for_each(|byte| write!(self.out, "{byte:02x}"))?;
                self.out.write_str("\"\n")?;
            }
        }
        self.out.write_str("}\n")
    }
}

fn role_word(role: Role) -> &'static str {
    words::ROLES.iter().find(|(r, _)| *r == role).map_or("?", |(_, word)| word)
}
