//! Every operator's samples under the policies that change most.

use backfit_compile::precision::{Compute, Policy};
use backfit_cpu::Cpu;
use backfit_suites::compare::{distance, on_cpu, on_cpu_in};
use backfit_suites::fuzz::generate;
use backfit_suites::sample::cases;

#[test]
fn every_operator_compiles_and_runs_in_bf16_and_on_an_f16_engine() {
    let cpu = Cpu::default().threads(1);
    let (mut wrong, mut count) = (Vec::new(), 0);
    for case in cases().into_iter().filter(|case| case.name.ends_with("(f32)")) {
        let module = case.module().unwrap();
        let declared = on_cpu(&cpu, &module, &case.inputs).unwrap();
        for name in &["bf16", "f16-engine"] {
            let policy = Policy::named(name).unwrap();
            count += 1;
            let found = match on_cpu_in(&cpu, &policy, &module, &case.inputs) {
                Ok(found) => found,
                Err(error) => {
                    wrong.push(format!("{} under {name}: {error}", case.name));
                    continue;
                }
            };
            for (found, declared) in found.iter().zip(&declared) {
                assert_eq!(found.ty(), declared.ty(), "{} under {name}", case.name);
                let finite = declared.to_f64().iter().all(|v| v.is_finite());
                // What f16 cannot tell apart: inputs that are near each other and far from zero, a variance of zero and ε.
                let engine = *name == "f16-engine";
                let blurred = engine && ["far ", "no real rows"].iter().any(|words| case.name.contains(words));
                let tolerance = if engine { 0.05 } else { 0.02 };
                let error = distance(found, declared);
                let comparable = case.smooth && finite && !blurred && found.ty().dtype.is_float();
                if comparable && (error.is_nan() || error > tolerance) {
                    wrong.push(format!("{} under {name} is off by {error:.1e}", case.name));
                }
            }
        }
    }
    println!("{count} programs");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn random_programs_compile_in_every_precision_and_keep_their_bits_where_nothing_is_narrowed() {
    let cpu = Cpu::default().threads(1);
    let nothing = Policy::f32().within("nowhere", Compute::Bf16);
    for seed in 0..60 {
        let case = generate::case(seed);
        let run = |policy: &Policy| {
            let found = on_cpu_in(&cpu, policy, &case.module, &case.inputs);
            found.unwrap_or_else(|e| panic!("seed {seed} under {}: {e}\n{}", policy.name(), case.describe()))
        };
        let declared = run(&Policy::f32());
        assert!(run(&nothing) == declared, "seed {seed}\n{}", case.describe());
        for name in ["bf16", "f16-engine"] {
            let types: Vec<_> = run(&Policy::named(name).unwrap()).iter().map(|l| l.ty().clone()).collect();
            assert_eq!(types, declared.iter().map(|l| l.ty().clone()).collect::<Vec<_>>());
        }
    }
}
