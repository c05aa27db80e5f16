//! The function that fills the resident store.

use super::Resident;
use super::update::AVERAGE;
use backfit_ir::{DType, FuncId, Graph, Init, Param, RNG_KEY, Role, Tensor, Type};
use std::collections::HashMap;

/// `init(key)`: every resident tensor from its initializer; the i-th draws from the key folded with i. Averages start
/// as what they are averages of. What belongs to a tensor stands where the tensor was declared.
pub(super) fn define(step: &Graph, residents: &[(Resident, Param)]) -> Option<FuncId> {
    let g = step.function("init");
    let (_, first) = residents.first()?;
    let declare_key = || g.parameter("key", Type::new(DType::U32, [4]), Role::Input, None);
    let key = g.originate(first.loc.clone(), "".into(), declare_key);
    let mut values: HashMap<&str, Tensor> = HashMap::new();
    for (index, (resident, param)) in residents.iter().enumerate() {
        g.originate(param.loc.clone(), "".into(), || {
            let old = g.parameter(&resident.name, resident.ty.clone(), resident.role, None);
            let averaged = resident.name.strip_prefix(AVERAGE).and_then(|name| values.get(name).cloned());
            let value = averaged.unwrap_or_else(|| value(&g, &key, index, resident, param, &old));
            g.update(&old, &value);
            values.insert(&resident.name, value);
        });
    }
    step.define(g)
}

fn value(g: &Graph, key: &Tensor, index: usize, resident: &Resident, param: &Param, old: &Tensor) -> Tensor {
    let own = || key.fold_in(&g.scalar(DType::U32, index as f64 + 1.0));
    let (dtype, shape) = (resident.ty.dtype, resident.ty.shape.clone());
    match &param.init {
        _ if resident.name == RNG_KEY => key.clone(),
        None => old.like(0.0),
        Some(Init::Constant(c)) => old.like(*c),
        Some(Init::Uniform { low, high }) => own().random_uniform(shape, *low, *high, dtype),
        Some(Init::Normal { mean, std }) => own().random_normal(shape, *mean, *std, dtype),
        Some(Init::Literal(literal)) => g.constant(literal.clone()),
    }
}
