//! Whole models: from a program to files.

use crate::builder::{Builder, Val, tensor};
use crate::lower::{Lowering, composite};
use crate::proto::{IR_VERSION, ModelProto, OPSET, OperatorSetIdProto, StringStringEntryProto};
use backfit_compile::pipeline::{Options, lower};
use backfit_compile::target::Program;
use backfit_ir::rewrite::inline_calls;
use backfit_ir::{Error, FuncId, Function, Literal, Module, Problem, Role};
use prost::Message;

/// A function of a program as an ONNX model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The function's name.
    pub name: String,
    /// The model.
    pub proto: ModelProto,
}

impl Model {
    /// Makes inputs constants: weights of a model that only predicts.
    pub fn bake<'a>(&mut self, values: impl IntoIterator<Item = (&'a str, &'a Literal)>) {
        let Some(graph) = &mut self.proto.graph else { return };
        for (name, value) in values {
            let Some(at) = graph.input.iter().position(|input| input.name == name) else { continue };
            graph.input.remove(at);
            graph.initializer.push(tensor(name, value));
            let role = format!("role:{name}");
            self.proto.metadata_props.retain(|entry| entry.key != role);
        }
    }

    /// Adds a text to the metadata.
    pub fn annotate(&mut self, key: &str, text: &str) {
        self.proto.metadata_props.push(entry(key, text));
    }

    /// The contents of the file.
    ///
    /// # Errors
    /// Models of more than 2 GiB, which the format cannot hold.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let bytes = self.proto.encoded_len();
        if bytes > i32::MAX as usize {
            let problem =
                Problem::new(format!("the model '{}' takes {bytes} bytes; a file of ONNX holds 2 GiB", self.name));
            return Err(problem.help("keep large constants and weights out of it, as inputs").into());
        }
        Ok(self.proto.encode_to_vec())
    }
}

/// Writes every function of a program as a model.
///
/// Inputs are those of the function, then the resident tensors that it reads, under their names. Outputs are the results,
/// then the new values of resident tensors, under their names with `.new` after them; a name that is taken gets a number.
/// The model's metadata says what is what: `role:NAME` is `input`, `hyper`, `weight`, `frozen` or `state` for every input,
/// and `updates:OUTPUT` names the resident tensor that an output is the next value of. Whoever trains feeds these back.
///
/// ```
/// use backfit_compile::target::Program;
/// use backfit_ir::{DType, Graph, Init};
/// let g = Graph::new();
/// let x = g.input("x", DType::F32, [2, 3]);
/// let sum = g.state("sum", backfit_ir::Type::new(DType::F32, [3]), Init::ZEROS);
/// g.update(&sum, &(&sum + &x.sum(&[0])));
/// g.result("y", &x.exp());
/// let module = g.finish().unwrap();
/// let main = module.find("main").unwrap();
/// let models = backfit_onnx::export(&Program::new(module, vec![("step".to_owned(), main)])).unwrap();
/// let graph = models[0].proto.graph.as_ref().unwrap();
/// let names: Vec<&str> = graph.output.iter().map(|o| o.name.as_str()).collect();
/// assert_eq!(names, ["y", "sum.new"]);
/// ```
///
/// # Errors
/// Operators that ONNX or onnxruntime do not have in some dtype: all of them, each with the user's line and what to do.
pub fn export(program: &Program) -> Result<Vec<Model>, Error> {
    let roots: Vec<FuncId> = program.functions.iter().map(|(_, id)| *id).collect();
    let options = Options { claims: composite::CLAIMS, precision: program.precision.clone(), ..Options::default() };
    let lowered = lower(&program.module, &roots, &options)?;
    let flat = |id: usize| inline_calls(&lowered.module, FuncId(id as u32), |callee| !composite::takes(callee));
    let module = Module { functions: (0..lowered.module.functions.len()).map(flat).collect() };
    let mut lowering = Lowering { module: &module, problems: vec![] };
    let named = program.functions.iter().zip(&lowered.roots);
    let models = named.map(|((name, _), id)| model(&mut lowering, name, module.function(*id))).collect();
    Error::from_problems(lowering.problems).map_or(Ok(models), Err)
}

fn model(lowering: &mut Lowering, name: &str, f: &Function) -> Model {
    let mut b = Builder::default();
    let uses = f.use_counts();
    let read = |index: usize| !f.params[index].role.is_resident() || uses[f.params[index].value.index()] > 0;
    let params: Vec<Val> = f.params.iter().map(|p| b.named(&p.name, f.ty(p.value).clone())).collect();
    let residents_last = |i: &usize| f.params[*i].role.is_resident();
    let mut order: Vec<usize> = (0..params.len()).filter(|i| read(*i)).collect();
    order.sort_by_key(residents_last);
    let inputs: Vec<Val> = order.iter().map(|&i| params[i].clone()).collect();
    let mut metadata = vec![entry("function", name)];
    metadata.extend(order.iter().map(|&i| entry(&format!("role:{}", params[i].name), role(f.params[i].role))));

    let mut results: Vec<_> = f.results.iter().enumerate().collect();
    results.sort_by_key(|(_, r)| r.alias.is_some());
    let mut outputs = Vec::new();
    for (_, result) in &results {
        let ty = f.ty(result.value).clone();
        outputs.push(match result.alias {
            None => b.named(&result.name, ty),
            Some(param) => {
                let output = b.named(&format!("{}.new", f.params[param].name), ty);
                metadata.push(entry(&format!("updates:{}", output.name), &params[param].name));
                output
            }
        });
    }
    let found = lowering.function(&mut b, f, &params);
    outputs.iter().zip(&results).for_each(|(output, (at, _))| b.define(output, &found[*at]));
    let (graph, _) = b.finish(name, &inputs, &outputs);
    let proto = ModelProto {
        ir_version: IR_VERSION,
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPSET }],
        producer_name: "backfit".to_owned(),
        producer_version: env!("CARGO_PKG_VERSION").to_owned(),
        doc_string: String::new(),
        graph: Some(graph),
        metadata_props: metadata,
    };
    Model { name: name.to_owned(), proto }
}

fn entry(key: &str, value: &str) -> StringStringEntryProto {
    StringStringEntryProto { key: key.to_owned(), value: value.to_owned() }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Input => "input",
        Role::Weight { trainable: true } => "weight",
        Role::Weight { trainable: false } => "frozen",
        Role::State => "state",
        Role::Hyper => "hyper",
    }
}
