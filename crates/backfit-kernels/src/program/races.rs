//! Finds steps that may run at the same time on several threads although one writes what the other touches.

use super::{Instruction, Program};
use crate::context::Addr;

/// A touched range of the memory since the last barrier.
struct Touch<'a> {
    start: usize,
    end: usize,
    write: bool,
    /// Whether only thread 0 did it.
    alone: bool,
    /// Number of the executed step; a step does not conflict with itself.
    serial: usize,
    path: &'a Path<'a>,
}

/// Where a step is, for the message.
struct Path<'a> {
    function: usize,
    step: usize,
    name: &'a str,
}

struct Walk<'a> {
    program: &'a Program,
    paths: &'a [Vec<Path<'a>>],
    touches: Vec<Touch<'a>>,
    serial: usize,
}

pub(super) fn check(program: &Program) -> Result<(), String> {
    let paths: Vec<Vec<Path>> = (program.functions.iter().enumerate())
        .map(|(function, f)| {
            (f.steps.iter().enumerate()).map(|(step, s)| Path { function, step, name: s.instruction.name() }).collect()
        })
        .collect();
    let mut walk = Walk { program, paths: &paths, touches: Vec::new(), serial: 0 };
    walk.function(program.entry, &[0], false)
}

impl<'a> Walk<'a> {
    /// Walks one frame with bases at absolute positions; `alone` where only thread 0 is in it.
    fn function(&mut self, number: usize, bases: &[usize], alone: bool) -> Result<(), String> {
        for (i, step) in self.program.functions[number].steps.iter().enumerate() {
            let alone_here = alone || !step.parallel;
            match &step.instruction {
                Instruction::Call(call) => {
                    for iteration in 0..call.trip_count {
                        let callee: Vec<usize> = (call.bases.iter())
                            .map(|b| at(bases, b.addr).wrapping_add_signed(b.stride * iteration as isize))
                            .collect();
                        self.function(call.function, &callee, alone_here)?;
                    }
                }
                instruction => {
                    self.serial += 1;
                    let path = &self.paths[number][i];
                    let mut result = Ok(());
                    instruction.accesses(&mut |access| {
                        let start = at(bases, access.addr);
                        if result.is_ok() && access.bytes > 0 {
                            result = self.touch(Touch {
                                start,
                                end: start + access.bytes,
                                write: access.write,
                                alone: alone_here,
                                serial: self.serial,
                                path,
                            });
                        }
                    });
                    result?;
                }
            }
            if step.barrier && !alone {
                self.touches.clear();
            }
        }
        Ok(())
    }

    fn touch(&mut self, new: Touch<'a>) -> Result<(), String> {
        let conflict = self.touches.iter().find(|old| {
            old.serial != new.serial
                && !(old.alone && new.alone)
                && (old.write || new.write)
                && old.start < new.end
                && new.start < old.end
        });
        if let Some(old) = conflict {
            let (o, n) = (old.path, new.path);
            return Err(format!(
                "no barrier between function {} step {} ({}) and function {} step {} ({}), which share bytes {}..{}",
                o.function,
                o.step,
                o.name,
                n.function,
                n.step,
                n.name,
                old.start.max(new.start),
                old.end.min(new.end)
            ));
        }
        self.touches.push(new);
        Ok(())
    }
}

fn at(bases: &[usize], addr: Addr) -> usize {
    bases[addr.base as usize] + addr.offset
}
