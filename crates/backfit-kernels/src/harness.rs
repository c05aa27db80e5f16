//! What tests of kernels share.

use crate::context::Addr;
use crate::isa::Isa;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::pool::Pool;
use crate::program::{Function, Instruction, Program, Step};

/// An address in the entry function.
pub(crate) fn addr(offset: usize) -> Addr {
    Addr { base: 0, offset }
}

/// Runs instructions one after the other over a copy of `memory`, with one, two and three threads and with the portable and
/// the best instructions; asserts that all leave the same bytes, and returns them.
pub(crate) fn run(instructions: Vec<Instruction>, memory: &[u8]) -> Vec<u8> {
    let steps =
        instructions.into_iter().map(|instruction| Step { instruction, parallel: true, barrier: true }).collect();
    let function = Function { bases: vec![memory.len()], steps };
    let program = Program::new(vec![function], 0, memory.len()).unwrap();
    program.check_races().unwrap();
    let mut results = [(1, Isa::best()), (2, Isa::best()), (3, Isa::Portable)].map(|(threads, isa)| {
        let mut store = Memory::new(memory.len()).unwrap();
        store.write(0..memory.len()).unwrap().copy_from_slice(memory);
        let mut machine = Machine::new(store, Pool::new(threads, false).unwrap(), isa).unwrap();
        machine.run(&program).unwrap();
        machine.memory().read(0..memory.len()).unwrap().to_vec()
    });
    assert!(results[0] == results[1], "two threads give other bytes than one");
    assert!(results[0] == results[2], "portable instructions give other bytes");
    std::mem::take(&mut results[0])
}

/// A small deterministic generator.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    /// Uniform in [-1, 1).
    pub(crate) fn unit(&mut self) -> f32 {
        (self.next() >> 8) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// The bytes of a slice of numbers.
macro_rules! bytes_of {
    ($values:expr) => {
        $values.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<u8>>()
    };
}
/// The numbers of a slice of bytes.
macro_rules! values_of {
    ($type:ty, $bytes:expr) => {
        $bytes
            .chunks_exact(size_of::<$type>())
            .map(|c| <$type>::from_ne_bytes(c.try_into().unwrap()))
            .collect::<Vec<$type>>()
    };
}
pub(crate) use {bytes_of, values_of};
