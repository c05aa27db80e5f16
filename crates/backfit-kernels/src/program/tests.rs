use super::*;
use crate::context::Addr;
use crate::copy::{Copy, Fill};
use crate::elem::{Elem, Lane};
use crate::harness::{addr, bytes_of, values_of};
use crate::isa::Isa;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::pool::Pool;
use crate::strided::Axis;
use crate::tile::{Binary, Group, Load, Op, Slot, Store, Tile};

fn at(base: u16, offset: usize) -> Addr {
    Addr { base, offset }
}

fn step(instruction: impl Into<Instruction>) -> Step {
    Step { instruction: instruction.into(), parallel: true, barrier: true }
}

fn fill(output: Addr, elements: usize, value: f32) -> Fill {
    let bits = u64::from(value.to_bits());
    Fill { elem_bytes: 4, bits, output, axes: vec![(elements, 1)] }
}

fn copy(input: Addr, output: Addr, elements: usize) -> Copy {
    Copy { elem_bytes: 4, input, output, axes: vec![Axis { size: elements, input: 1, output: 1 }] }
}

/// c = a + b, of `n` floats.
fn add(a: Addr, b: Addr, c: Addr, n: usize) -> Tile {
    let load = |addr, slot| Load { addr, elem: Elem::F32, outer_strides: vec![], col_stride: 1, slot };
    let slots = vec![Slot { lane: Lane::F32, row: false }; 3];
    let ops = vec![Op::Binary { op: Binary::Add, elem: Elem::F32, a: 0, b: 1, to: 2 }];
    let stores = vec![Store { addr: c, elem: Elem::F32, outer_strides: vec![], col_stride: 1, slot: 2 }];
    Tile::new(Group { outer: vec![], cols: n, slots, loads: vec![load(a, 0), load(b, 1)], ops, stores }).unwrap()
}

fn function(bases: &[usize], steps: Vec<Step>) -> Function {
    Function { bases: bases.to_vec(), steps }
}

fn call(function: usize, trip_count: usize, bases: &[(Addr, isize)]) -> Call {
    let bases = bases.iter().map(|&(addr, stride)| CallBase { addr, stride }).collect();
    Call { function, bases, trip_count }
}

fn run(program: &Program, threads: usize, memory: &[u8]) -> Vec<u8> {
    let mut store = Memory::new(memory.len()).unwrap();
    store.write(0..memory.len()).unwrap().copy_from_slice(memory);
    let mut machine = Machine::new(store, Pool::new(threads, true).unwrap(), Isa::best()).unwrap();
    machine.run(program).unwrap();
    machine.memory().read(0..memory.len()).unwrap().to_vec()
}

/// A running sum over rows of eight floats, by a loop with a carry, called from a nested function.
fn scan() -> Program {
    let row = 8;
    let body = function(&[32, 32], vec![step(add(at(0, 0), at(1, 0), at(0, 0), row))]);
    let middle = function(&[32, 320], vec![step(call(0, 10, &[(at(0, 0), 0), (at(1, 0), 32)]))]);
    let main = function(&[352], vec![step(call(1, 1, &[(addr(0), 0), (addr(32), 0)]))]);
    Program::new(vec![body, middle, main], 2, 352).unwrap()
}

#[test]
fn a_loop_with_a_carry_runs_its_body_once_per_iteration() {
    let x: Vec<f32> = (0..88).map(|i| if i < 8 { 0.0 } else { (i / 8) as f32 + (i % 8) as f32 * 100.0 }).collect();
    let program = scan();
    program.check_races().unwrap();
    for threads in 1..4 {
        let got = values_of!(f32, run(&program, threads, &bytes_of!(x)));
        for (c, &sum) in got[..8].iter().enumerate() {
            assert_eq!(sum, 55.0 + 1000.0 * c as f32);
        }
        assert_eq!(got[8..], x[8..]);
    }
}

#[test]
fn one_program_is_run_by_several_machines_and_several_programs_share_one() {
    let mut machine = Machine::new(Memory::new(64).unwrap(), Pool::new(2, true).unwrap(), Isa::best()).unwrap();
    let init = Program::new(vec![function(&[64], vec![step(fill(addr(0), 8, 1.0))])], 0, 64).unwrap();
    let advance = add(addr(0), addr(0), addr(0), 8);
    let double = Program::new(vec![function(&[64], vec![step(advance)])], 0, 64).unwrap();
    machine.run(&init).unwrap();
    for _ in 0..5 {
        machine.run(&double).unwrap();
    }
    assert_eq!(values_of!(f32, machine.memory().read(0..32).unwrap()), [32.0; 8]);
    let large = Program::new(vec![function(&[65], vec![])], 0, 65).unwrap();
    assert!(machine.run(&large).is_err());
}

#[test]
fn a_serial_step_is_done_once_and_a_serial_call_runs_alone() {
    let bump = || add(at(0, 0), at(0, 4), at(0, 0), 1);
    let body = function(&[8], vec![step(bump()), step(bump())]);
    let serial = |instruction| Step { instruction, parallel: false, barrier: true };
    let main = function(&[8], vec![serial(bump().into()), serial(call(0, 3, &[(addr(0), 0)]).into())]);
    let program = Program::new(vec![body, main], 1, 8).unwrap();
    program.check_races().unwrap();
    for threads in 1..4 {
        assert_eq!(values_of!(f32, run(&program, threads, &bytes_of!([0.0f32, 1.0]))), [7.0, 1.0]);
    }
}

#[test]
fn accesses_outside_an_extent_or_unaligned_are_refused() {
    let new = |bases: &[usize], i: Instruction| {
        let extent = bases.first().copied().unwrap_or(0);
        Program::new(vec![function(bases, vec![step(i)])], 0, extent)
    };
    assert!(new(&[16], fill(addr(0), 4, 1.0).into()).is_ok());
    assert!(new(&[15], fill(addr(0), 4, 1.0).into()).is_err());
    assert!(new(&[16], fill(addr(4), 4, 1.0).into()).is_err());
    assert!(new(&[18], fill(addr(2), 4, 1.0).into()).is_err());
    assert!(new(&[16], fill(at(1, 0), 4, 1.0).into()).is_err());
    assert!(new(&[16], fill(addr(usize::MAX - 3), 4, 1.0).into()).is_err());
    assert!(new(&[64, 64], fill(addr(0), 4, 1.0).into()).is_err());
    let mut backwards = fill(addr(8), 4, 1.0);
    backwards.axes[0].1 = -1;
    assert!(new(&[64], backwards.into()).is_err());
    assert!(Program::new(vec![function(&[64], vec![])], 0, 63).is_err());
    assert!(Program::new(vec![], 0, 64).is_err());
}

#[test]
fn calls_that_leave_an_extent_lose_alignment_or_recur_are_refused() {
    let body = || function(&[16], vec![step(fill(addr(0), 4, 1.0))]);
    let new = |c: Call| Program::new(vec![body(), function(&[64], vec![step(c)])], 1, 64).map(|_| ());
    assert_eq!(new(call(0, 4, &[(addr(0), 16)])), Ok(()));
    assert_eq!(new(call(0, 4, &[(addr(48), -16)])), Ok(()));
    assert!(new(call(0, 5, &[(addr(0), 16)])).is_err());
    assert!(new(call(0, 4, &[(addr(32), -16)])).is_err());
    assert!(new(call(0, 2, &[(addr(0), isize::MAX)])).is_err());
    assert!(new(call(0, 2, &[(addr(0), 6)])).is_err());
    assert!(new(call(0, 1, &[(addr(2), 0)])).is_err());
    assert!(new(call(0, 1, &[])).is_err());
    assert!(new(call(0, 1, &[(at(3, 0), 0)])).is_err());
    assert!(new(call(1, 1, &[(addr(0), 0)])).is_err());
    assert!(new(call(2, 1, &[(addr(0), 0)])).is_err());
}

#[test]
fn alignment_is_asked_through_nested_calls() {
    let body = function(&[16], vec![step(fill(addr(0), 4, 1.0))]);
    let middle = function(&[16], vec![step(call(0, 1, &[(addr(0), 0)]))]);
    let main = |offset| function(&[64], vec![step(call(1, 1, &[(addr(offset), 0)]))]);
    assert!(Program::new(vec![body.clone(), middle.clone(), main(8)], 2, 64).is_ok());
    assert!(Program::new(vec![body, middle, main(9)], 2, 64).is_err());
}

#[test]
fn races_are_found_and_named() {
    let unguarded = |instruction: Instruction| Step { instruction, parallel: true, barrier: false };
    let races = |steps| Program::new(vec![function(&[64], steps)], 0, 64).unwrap().check_races();
    let (write, read) = (fill(addr(0), 4, 1.0), copy(addr(8), addr(32), 4));
    assert!(races(vec![step(write.clone()), step(read.clone())]).is_ok());
    let message = races(vec![unguarded(write.clone().into()), step(read.clone())]).unwrap_err();
    assert!(message.contains("Fill") && message.contains("Copy") && message.contains("8..16"), "{message}");
    assert!(races(vec![unguarded(read.into()), step(write)]).is_err());
    assert!(races(vec![unguarded(fill(addr(0), 4, 1.0).into()), step(fill(addr(16), 4, 1.0))]).is_ok());
}

#[test]
fn iterations_that_depend_on_each_other_without_a_barrier_are_races() {
    let body = |barrier| {
        let instruction = add(at(0, 0), at(1, 0), at(0, 0), 8).into();
        function(&[32, 32], vec![Step { instruction, parallel: true, barrier }])
    };
    let program = |barrier, stride| {
        let main = function(&[352], vec![step(call(0, 10, &[(addr(0), 0), (addr(32), stride)]))]);
        Program::new(vec![body(barrier), main], 1, 352).unwrap().check_races()
    };
    assert!(program(true, 32).is_ok());
    assert!(program(false, 32).is_err());
}
