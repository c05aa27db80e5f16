//! Every sample of every composite builds in every dtype and evaluates to the types it promises.

use super::support::{parameters, try_all};
use backfit_ir::interp::Options;
use backfit_ir::ops::{Kind, REGISTRY, Sample};
use backfit_ir::{DType, Graph, Literal};

/// The inputs in a dtype: those that are f64 or i64 follow it.
fn converted(sample: &Sample, dtype: DType) -> Vec<Literal> {
    let convert = |x: &Literal| match x.ty().dtype {
        DType::F64 => Literal::from_f64(x.ty().with_dtype(dtype), &x.to_f64()),
        DType::I64 => Literal::from_i64(x.ty().with_dtype(dtype), &x.to_i64()),
        _ => x.clone(),
    };
    sample.inputs.iter().map(convert).collect()
}

#[test]
fn every_sample_evaluates_in_every_dtype() {
    for def in REGISTRY {
        let Kind::Composite(rules) = &def.kind else { continue };
        let samples = (def.samples)();
        assert!(!samples.is_empty(), "{} has no samples", def.name);
        for sample in &samples {
            for &dtype in sample.dtypes {
                let label = format!("{}, {}, {dtype}", def.name, sample.label);
                let inputs = converted(sample, dtype);
                let (module, values) = try_all(&inputs, |g, x| (sample.build)(g, x), Options::default())
                    .unwrap_or_else(|e| panic!("{label}: {e}"));
                let main = module.functions.last().unwrap();
                for (result, value) in main.results.iter().zip(&values) {
                    assert_eq!(main.ty(result.value), &value.ty, "{label}");
                }
                let called = module.functions.iter().filter_map(|f| Some((f, f.composite.as_ref()?)));
                for (function, _) in called.filter(|(_, c)| c.name == def.name) {
                    let fits = function.results.len() <= rules.results || def.name == "clip_by_global_norm";
                    assert!(fits, "{label}: {} results", function.results.len());
                }
            }
        }
    }
}

#[test]
fn ordinary_samples_give_finite_values() {
    for def in REGISTRY.iter().filter(|d| matches!(d.kind, Kind::Composite(_))) {
        for sample in (def.samples)().iter().filter(|s| s.smooth) {
            let (_, values) = try_all(&sample.inputs, |g, x| (sample.build)(g, x), Options::default()).unwrap();
            for value in values.iter().filter(|v| v.ty.dtype.is_float()) {
                assert!(value.as_floats().iter().all(|v| v.is_finite()), "{}, {}: {value:?}", def.name, sample.label);
            }
        }
    }
}

#[test]
fn poison_goes_through_every_composite() {
    for def in REGISTRY.iter().filter(|d| matches!(d.kind, Kind::Composite(_))) {
        for sample in (def.samples)() {
            let g = Graph::new();
            let inputs = parameters(&g, &sample.inputs);
            let poison: Vec<_> = inputs.iter().map(|x| g.poison(x.ty().clone())).collect();
            (sample.build)(&g, &poison);
            assert!(g.problems().is_empty(), "{}, {}: {:?}", def.name, sample.label, g.problems());
        }
    }
}
