//! Shuttle mode: the same bits, and no resident store.

use crate::models::{Scratch, batches_of, filled, noisy_step, residents, small_digits, trainer};
use backfit::prelude::*;

#[test]
fn state_that_is_passed_in_and_out_has_the_bits_of_resident_state() {
    let file = Scratch::new("shuttle");
    let rich = || noisy_step(16, false).ema(0.9).loss_scale(LossScale::dynamic()).unroll(3);
    let model = rich().build().unwrap();
    let data = small_digits(64);
    let mut batches = batches_of(&small_digits(176), 16);
    batches[4] = filled(16, f32::INFINITY);
    let cpu = Cpu::default().threads(2);
    let mut resident = trainer(&model, 2).seed(3).unwrap();
    let mut shuttle = Trainer::new(model.compile(&Shuttle::new(&cpu)).unwrap()).seed(3).unwrap();
    assert_eq!(residents(&shuttle), residents(&resident));
    let bits = |trainer: &mut Trainer| {
        let outputs = trainer.step_all(&batches).unwrap();
        outputs.iter().map(|out| (out["loss"].to_bits(), out.skipped())).collect::<Vec<_>>()
    };
    assert_eq!(bits(&mut shuttle), bits(&mut resident));
    assert_eq!(residents(&shuttle), residents(&resident));
    assert_eq!(shuttle.evaluate(&data).unwrap(), resident.evaluate(&data).unwrap());
    assert_eq!(shuttle.predict(&data).unwrap(), resident.predict(&data).unwrap());
    assert_eq!(shuttle.executable().memory().resident_bytes, 0);
    assert!(resident.executable().memory().resident_bytes > 0);

    // A checkpoint of one goes on in the other.
    shuttle.save(&file.0).unwrap();
    let mut other = trainer(&model, 1);
    other.resume(&file.0).unwrap();
    assert_eq!(bits(&mut other), bits(&mut shuttle));
    assert_eq!(residents(&other), residents(&shuttle));
    assert!(shuttle.set("fc1.bias", &Literal::from_f32([3], &[0.0; 3])).is_err());
    assert!(shuttle.trace(&filled(16, f32::NAN)).unwrap().to_string().contains("'image"));
}
