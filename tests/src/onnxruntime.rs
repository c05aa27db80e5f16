//! Running models in onnxruntime, an executor that nobody here wrote.
//!
//! The variable `BACKFIT_PYTHON` names a Python with numpy, onnx and onnxruntime; `cargo xtask test` sets it up. One process
//! checks and runs all models of a test: `tests/onnx/run.py`.

use backfit_ir::{Literal, Type};
use backfit_onnx::Model;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that names the Python.
pub const PYTHON: &str = "BACKFIT_PYTHON";

/// A model and what it is run on.
pub struct Job<'a> {
    /// What messages call it.
    pub name: String,
    /// The model.
    pub model: &'a Model,
    /// For every run the inputs by name. What is missing is the new value that the run before returned.
    pub runs: Vec<Vec<(String, Literal)>>,
    /// The types of the outputs.
    pub outputs: Vec<Type>,
    /// Whether only the last run's outputs are asked for.
    pub only_last: bool,
}

/// What became of a job: the outputs of every run, or what was wrong.
pub type Answer = Result<Vec<Vec<Literal>>, String>;

/// Checks and runs models. `None`, and a notice, where there is no Python.
///
/// # Panics
/// Where files cannot be written, or Python ends with an error.
pub fn run(jobs: &[Job]) -> Option<Vec<Answer>> {
    let Some(python) = std::env::var_os(PYTHON) else {
        println!("skipped: {PYTHON} names no Python with onnxruntime; `cargo xtask test` sets one up");
        return None;
    };
    let folder = Folder::new();
    write(&folder.0, jobs);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("onnx/run.py");
    let output = Command::new(&python).arg(script).arg(&folder.0).output();
    let output =
        output.unwrap_or_else(|e| panic!("{PYTHON} names {}, which does not run: {e}", python.to_string_lossy()));
    let at = std::fs::read_to_string(folder.0.join("at.txt")).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "Python ended with {} at '{at}': {errors}", output.status);
    Some(read(&folder.0, jobs))
}

/// A folder that vanishes.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("backfit-onnx-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for questions and answers");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn write(folder: &Path, jobs: &[Job]) {
    let mut data: Vec<u8> = Vec::new();
    let mut put = |bytes: &[u8]| {
        data.extend_from_slice(bytes);
        json!([data.len() - bytes.len(), bytes.len()])
    };
    let mut all = Vec::new();
    for job in jobs {
        let model = put(&job.model.to_bytes().expect("a small model"));
        let mut input = |(name, value): &(String, Literal)| {
            let (dtype, shape) = (value.ty().dtype.name(), value.ty().shape.dims());
            json!({"name": name, "dtype": dtype, "shape": shape, "data": put(value.bytes())})
        };
        let runs: Vec<Vec<Value>> = job.runs.iter().map(|inputs| inputs.iter().map(&mut input).collect()).collect();
        let outputs: Vec<&str> = job.outputs.iter().map(|ty| ty.dtype.name()).collect();
        all.push(json!({
            "name": job.name, "model": model, "runs": runs, "outputs": outputs,
            "only_last": job.only_last,
        }));
    }
    std::fs::write(folder.join("data.bin"), data).expect("a file that can be written");
    std::fs::write(folder.join("jobs.json"), Value::from(all).to_string()).expect("a file that can be written");
}

fn read(folder: &Path, jobs: &[Job]) -> Vec<Answer> {
    let data = std::fs::read(folder.join("answers.bin")).expect("answers");
    let text = std::fs::read_to_string(folder.join("answers.json")).expect("answers");
    let answers: Vec<Value> = serde_json::from_str(&text).expect("answers in JSON");
    assert_eq!(answers.len(), jobs.len());
    let size = |v: &Value| v.as_u64().expect("a number") as usize;
    let output = |description: &Value, ty: &Type| {
        let shape: Vec<usize> = description["shape"].as_array().expect("a list").iter().map(size).collect();
        let (start, length) = (size(&description["data"][0]), size(&description["data"][1]));
        Literal::from_bytes(Type::new(ty.dtype, shape), &data[start..start + length])
            .expect("as many bytes as elements")
    };
    let answer = |(answer, job): (&Value, &Job)| match answer["error"].as_str() {
        Some(error) => Err(error.to_owned()),
        None => {
            let runs = answer["results"].as_array().expect("a list of runs").iter();
            let outputs = |run: &Value| {
                let found = run.as_array().expect("a list of outputs").iter();
                found.zip(&job.outputs).map(|(d, ty)| output(d, ty)).collect()
            };
            Ok(runs.map(outputs).collect())
        }
    };
    answers.iter().zip(jobs).map(answer).collect()
}
