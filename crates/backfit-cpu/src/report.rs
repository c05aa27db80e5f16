//! What a compiled function looks like, for people and tools.

use crate::frame::{Frame, Job};
use backfit_compile::target::{FunctionReport, InstructionReport};
use backfit_ir::cost;
use backfit_kernels::program::{Function, Instruction};

/// Below this many bytes touched, one thread is done sooner than two can agree.
const PARALLEL_BYTES: usize = 32 * 1024;

/// Whether several threads share an instruction. Depends on its sizes only.
pub(crate) fn is_parallel(instruction: &Instruction) -> bool {
    let mut bytes = 0;
    instruction.accesses(&mut |access| bytes += access.bytes);
    match instruction {
        Instruction::Call(_) => true,
        Instruction::Gemm(gemm) => {
            let batch: usize = gemm.batch.iter().map(|b| b.size).product();
            gemm.m * gemm.n * gemm.k * batch > 64 * 1024
        }
        Instruction::Convolution(_) => bytes > 4 * 1024,
        _ => bytes > PARALLEL_BYTES,
    }
}

/// One row per instruction of an entry point.
pub(crate) fn function(name: &str, frame: &Frame, code: &Function, jobs: &[Option<usize>]) -> FunctionReport {
    let rows = code.steps.iter().zip(jobs).map(|(step, job)| {
        let mut bytes = 0;
        step.instruction.accesses(&mut |access| bytes += access.bytes as u64);
        let nodes = job.map_or(vec![], |job| nodes(&frame.jobs[job]));
        let costs = nodes.iter().map(|&n| cost::node(frame.module, frame.f, &frame.f.nodes[n]));
        let mut locations: Vec<String> = nodes.iter().map(|&n| frame.f.nodes[n].loc.to_string()).collect();
        locations.sort();
        locations.dedup();
        InstructionReport {
            name: step.instruction.name().to_owned(),
            operators: nodes.iter().map(|&n| frame.f.nodes[n].op.name().to_owned()).collect(),
            locations,
            flops: costs.map(|c| c.flops).sum(),
            bytes,
            parallel: step.parallel,
        }
    });
    FunctionReport {
        name: name.to_owned(),
        instructions: rows.collect(),
        buffers: frame.tasks.buffers.iter().map(|b| (b.name.clone(), b.bytes)).collect(),
        plan: frame.plan.clone(),
    }
}

fn nodes(job: &Job) -> Vec<usize> {
    match job {
        Job::Group(group) => group.members.iter().map(|m| m.node).collect(),
        Job::Node { node, .. } => vec![*node],
        Job::Copy { .. } => vec![],
    }
}
