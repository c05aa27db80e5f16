//! Loops that feed nothing: the data is in the program.

use crate::models::{batches_of, residents, small_digits, trainer, vector};
use backfit::prelude::*;

/// The same model on data that is fed, baked, or in the resident store.
fn model(data: &Dataset, how: &str, at_once: usize) -> backfit::TrainModule {
    let g = Graph::new();
    let rows = data.len();
    let part = |name: &str, dtype: backfit::DType, dims: &[usize]| {
        let ty = Type::new(dtype, dims);
        match how {
            "fed" => g.parameter(name, ty, backfit::ir::Role::Input, None),
            "constant" => g.constant(data.column(name).unwrap().clone()),
            _ => g.state(name, ty, Init::Literal(data.column(name).unwrap().clone())),
        }
    };
    let (x, label) = (part("image", F32, &[rows, 81]), part("label", I32, &[rows]));
    let logits = nn::linear(&g, "fc", &x.dropout(0.1), 10);
    let step = TrainStep::new(&logits.cross_entropy(&label)).optimizer(Adam::new(1e-2));
    step.report("accuracy", &logits.accuracy(&label)).unroll(at_once).build().unwrap()
}

#[test]
fn steps_on_data_in_the_program_have_the_bits_of_steps_on_data_that_is_fed() {
    let data = small_digits(40);
    let mut fed = trainer(&model(&data, "fed", 1), 2);
    // Data in the resident store moves the numbers from which weights draw.
    let start = ["fc.weight", "fc.bias"].map(|name| (name, fed.get(name).unwrap()));
    let batch = batches_of(&data, 40).remove(0);
    let last = (0..7).map(|_| fed.step(&batch).unwrap()).last().unwrap();
    let report = fed.evaluate(&data).unwrap();
    for (how, at_once) in [("constant", 1), ("constant", 3), ("state", 3)] {
        let mut own = trainer(&model(&data, how, at_once), 1);
        start.iter().for_each(|(name, value)| own.set(name, value).unwrap());
        let out = own.step_on_own_data(7).unwrap();
        assert_eq!((out["loss"].to_bits(), out["accuracy"], out.step()), (last["loss"].to_bits(), last["accuracy"], 7));
        let of_model = |(name, _): &(String, Literal)| name != "image" && name != "label";
        let found: Vec<_> = residents(&own).into_iter().filter(of_model).collect();
        assert_eq!(found, residents(&fed), "{how}, {at_once} at once");
        assert_eq!(own.evaluate_own_data().unwrap()["loss"], report["loss"]);
    }
}

#[test]
fn models_that_must_be_fed_say_so() {
    let data = small_digits(8);
    let mut fed = trainer(&model(&data, "fed", 1), 1);
    let e = fed.step_on_own_data(1).map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("'image: f32[8,81]'") && e.contains("trainer.step("), "{e}");
    let e = fed.evaluate_own_data().unwrap_err().to_string();
    assert!(e.contains("trainer.evaluate("), "{e}");
    let mut own = trainer(&model(&data, "constant", 1), 1);
    assert!(own.step_on_own_data(0).map(|_| ()).unwrap_err().to_string().contains("0 steps"));
    // A batch is not looked at.
    assert!(own.step(&vector(&[1.0])).is_ok());
}
