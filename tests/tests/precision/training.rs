//! Training under policies.

use backfit::precision::{Class, Compute, Masters};
use backfit::prelude::*;
use backfit::{Result, TrainModule};

fn perceptron() -> Result<TrainModule> {
    let g = Graph::new();
    let x = g.input("image", F32, [50, 784]);
    let label = g.input("label", I32, [50]);
    let h = nn::linear(&g, "fc1", &x, 32).gelu();
    let logits = nn::linear(&g, "fc2", &h, 10);
    let step = TrainStep::new(&logits.cross_entropy(&label)).optimizer(Adam::new(4e-3));
    step.report("accuracy", &logits.accuracy(&label)).predict(&logits).build()
}

#[test]
fn digits_are_learned_as_well_as_in_f32() {
    let parts = datasets::digits_split().unwrap();
    let prepare = |set: Dataset| set.to_unit("image").unwrap().reshape("image", &[784]).unwrap();
    let (train, test) = (prepare(parts.train).take(1500), prepare(parts.test).take(800));
    let model = perceptron().unwrap();
    let accuracy = |policy: &Policy| {
        let mut trainer = Trainer::new(model.compile_with(&Cpu::default().threads(2), policy).unwrap());
        let options = FitOptions { epochs: 3, validation: Some(test.clone()), ..FitOptions::default() };
        let report = trainer.fit(train.batches(50), options).unwrap();
        report.validation.unwrap()["accuracy"]
    };
    let declared = accuracy(&Policy::f32());
    assert!(declared > 0.8, "{declared}");
    let named = Policy::NAMES.into_iter().skip(1).filter_map(Policy::named);
    let stored = [Masters::Stochastic, Masters::Compensated].map(|masters| Policy::bf16().masters(masters));
    let on_engine = Policy::f16_engine().with(Class::Update, Compute::F16);
    for policy in named.chain(stored).chain([on_engine]) {
        let found = accuracy(&policy);
        println!("{found} with {policy}");
        assert!((found - declared).abs() <= 0.02, "{found} instead of {declared} with {policy}");
    }
}
