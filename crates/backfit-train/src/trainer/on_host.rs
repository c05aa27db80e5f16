//! The optimizer on the host: weights are read, updated in plain f32, and written back.

use super::Trainer;
use backfit_compile::target::Executable;
use backfit_grad::HostUpdate;
use backfit_ir::{Literal, Problem, Result, Type};

impl Trainer {
    /// Updates the weights whose gradients the last step has returned.
    pub(super) fn update_on_host(&mut self) -> Result<()> {
        let Trainer { compiled, hyper_values, .. } = self;
        let executable = &mut *compiled.executable;
        let step = &compiled.entries.step;
        for weight in &compiled.program.on_host {
            let names: Vec<String> = [weight.name.clone()].into_iter().chain(weight.slots()).collect();
            let gradient = step.output(&weight.gradient()).map(|i| floats(executable.output(step.number, i)));
            let mut held = names.iter().map(|name| read(executable, name)).collect::<Result<Vec<_>>>()?;
            let mut hypers: Vec<f32> = hyper_values.iter().map(|&v| v as f32).collect();
            if weight.rate != 1.0 {
                hypers[0] *= weight.rate as f32;
            }
            let (new, slots) = held.split_first_mut().expect("the weight itself");
            let flush = executable.flushes_subnormals();
            let gradient = gradient.unwrap_or_default();
            weight.optimizer.update_on_host(&mut HostUpdate {
                weight: new,
                slots,
                gradient: &gradient,
                hypers: &hypers,
                flush,
            });
            for (name, values) in names.iter().zip(&held) {
                write(executable, name, values)?;
            }
        }
        Ok(())
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn read(executable: &dyn Executable, name: &str) -> Result<Vec<f32>> {
    let unknown = || Problem::new(format!("there is no resident tensor '{name}'"));
    executable.read(name).map(|literal| floats(literal.bytes())).ok_or_else(|| unknown().into())
}

fn write(executable: &mut dyn Executable, name: &str, values: &[f32]) -> Result<()> {
    let port = executable.residents().iter().find(|p| p.name == name);
    let ty = port.map_or_else(|| Type::new(backfit_ir::DType::F32, [values.len()]), |port| port.ty.clone());
    executable.write(name, &Literal::from_f32(ty.shape, values))
}
