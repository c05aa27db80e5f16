//! Everything that safety depends on, checked when a program is made.

use super::{Call, Function, Instruction};
use crate::context::Access;
use crate::memory::ALIGNMENT;

/// What each thread must be given.
pub(super) struct Needs {
    pub scratch_bytes: usize,
    pub registers: usize,
}

/// What callers of a checked function must respect.
struct Checked {
    /// Alignment needed of each base register.
    align: Vec<usize>,
    /// Base registers of it and of the deepest chain of calls below it.
    registers: usize,
}

pub(super) fn validate(functions: &[Function], entry: usize, memory_bytes: usize) -> Result<Needs, String> {
    let mut checked = Vec::with_capacity(functions.len());
    let mut scratch_bytes = 0;
    for (number, function) in functions.iter().enumerate() {
        checked.push(check_function(functions, &checked, number, &mut scratch_bytes).map_err(|(step, error)| {
            let name = function.steps[step].instruction.name();
            format!("function {number}, step {step} ({name}): {error}")
        })?);
    }
    let start = functions.get(entry).ok_or("the entry function does not exist")?;
    let &[extent] = &start.bases[..] else {
        return Err("the entry function must have one base register".into());
    };
    if extent > memory_bytes || memory_bytes > isize::MAX as usize {
        return Err(format!("the entry function needs {extent} bytes of {memory_bytes}"));
    }
    if checked[entry].align[0] > ALIGNMENT {
        return Err(format!("an access needs an alignment above {ALIGNMENT}"));
    }
    Ok(Needs { scratch_bytes, registers: checked[entry].registers })
}

fn check_function(
    functions: &[Function],
    checked: &[Checked],
    number: usize,
    scratch_bytes: &mut usize,
) -> Result<Checked, (usize, String)> {
    let function = &functions[number];
    let mut align = vec![1; function.bases.len()];
    let mut below = 0;
    for (i, step) in function.steps.iter().enumerate() {
        let at = |error| (i, error);
        match &step.instruction {
            Instruction::Call(call) => {
                let callee =
                    checked.get(call.function).ok_or_else(|| at("calls a function that is not before it".into()))?;
                let extents = &functions[call.function].bases;
                check_call(call, extents, callee, function, &mut align).map_err(at)?;
                below = below.max(callee.registers);
            }
            instruction => {
                instruction.check().map_err(at)?;
                let mut error = Ok(());
                instruction.accesses(&mut |access| {
                    if error.is_ok() {
                        error = check_access(&access, function, &mut align);
                    }
                });
                error.map_err(at)?;
                *scratch_bytes = (*scratch_bytes).max(instruction.scratch_bytes());
            }
        }
    }
    Ok(Checked { align, registers: function.bases.len() + below })
}

/// Checks one access against its base's extent, and raises the alignment asked of the base.
fn check_access(access: &Access, function: &Function, align: &mut [usize]) -> Result<(), String> {
    let Access { addr, bytes, .. } = *access;
    if bytes == 0 {
        return Ok(());
    }
    let base = addr.base as usize;
    let extent = *function.bases.get(base).ok_or_else(|| format!("there is no base register {base}"))?;
    if addr.offset.checked_add(bytes).is_none_or(|end| end > extent) {
        return Err(format!("touches {bytes} bytes at base {base} + {}, past its extent of {extent}", addr.offset));
    }
    raise_alignment(addr.offset, access.align, &mut align[base])
}

fn raise_alignment(offset: usize, wanted: usize, align: &mut usize) -> Result<(), String> {
    if !wanted.is_power_of_two() || !offset.is_multiple_of(wanted) {
        return Err(format!("offset {offset} is not aligned to {wanted}"));
    }
    *align = (*align).max(wanted);
    Ok(())
}

/// Checks that every base of every iteration has the callee's extent and alignment.
fn check_call(
    call: &Call,
    extents: &[usize],
    callee: &Checked,
    caller: &Function,
    align: &mut [usize],
) -> Result<(), String> {
    if call.bases.len() != extents.len() {
        return Err(format!("passes {} bases for {}", call.bases.len(), extents.len()));
    }
    for (j, (base, (&extent, &wanted))) in call.bases.iter().zip(extents.iter().zip(&callee.align)).enumerate() {
        let register = base.addr.base as usize;
        let limit = *caller.bases.get(register).ok_or_else(|| format!("there is no base register {register}"))?;
        let first = base.addr.offset as i128;
        let travel = base.stride as i128 * (call.trip_count.max(1) as i128 - 1);
        let last = first.saturating_add(travel);
        if first.min(last) < 0 || first.max(last).saturating_add(extent as i128) > limit as i128 {
            return Err(format!(
                "base {j} of the callee reaches {extent} bytes from {first} (last iteration {last}), past an extent of {limit}"
            ));
        }
        if call.trip_count > 1 && !base.stride.unsigned_abs().is_multiple_of(wanted) {
            return Err(format!("base {j}: a stride of {} is not aligned to {wanted}", base.stride));
        }
        raise_alignment(base.addr.offset, wanted, &mut align[register])
            .map_err(|error| format!("base {j} of the callee: {error}"))?;
    }
    Ok(())
}
