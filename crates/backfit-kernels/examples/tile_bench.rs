//! Time of fused groups against hand-written fused loops: Adam and GELU, on one thread.
//!
//! `cargo run --release -p backfit-kernels --example tile_bench`
#![allow(unsafe_code)] // wide instructions for the loops written by hand

use backfit_kernels::context::Addr;
use backfit_kernels::elem::{Elem, Lane};
use backfit_kernels::isa::Isa;
use backfit_kernels::machine::Machine;
use backfit_kernels::math;
use backfit_kernels::memory::Memory;
use backfit_kernels::pool::Pool;
use backfit_kernels::program::{Function, Program, Step};
use backfit_kernels::tile::{Binary, Group, Load, Op, Slot, SlotId, Store, Tile, Unary};
use std::time::Instant;

/// Builds a group over `n` contiguous floats; values are slots.
struct Chain {
    group: Group,
    n: usize,
}

impl Chain {
    fn new(n: usize) -> Chain {
        Chain { group: Group { cols: n, ..Group::default() }, n }
    }

    fn slot(&mut self) -> SlotId {
        self.group.slots.push(Slot { lane: Lane::F32, row: false });
        (self.group.slots.len() - 1) as SlotId
    }

    fn addr(&self, array: usize) -> Addr {
        Addr { base: 0, offset: array * self.n * 4 }
    }

    fn load(&mut self, array: usize) -> SlotId {
        let (addr, slot) = (self.addr(array), self.slot());
        self.group.loads.push(Load { addr, elem: Elem::F32, outer_strides: vec![], col_stride: 1, slot });
        slot
    }

    fn store(&mut self, array: usize, slot: SlotId) {
        let addr = self.addr(array);
        self.group.stores.push(Store { addr, elem: Elem::F32, outer_strides: vec![], col_stride: 1, slot });
    }

    fn constant(&mut self, value: f32) -> SlotId {
        let to = self.slot();
        self.group.ops.push(Op::Constant { bits: u64::from(value.to_bits()), to });
        to
    }

    fn binary(&mut self, op: Binary, a: SlotId, b: SlotId) -> SlotId {
        let to = self.slot();
        self.group.ops.push(Op::Binary { op, elem: Elem::F32, a, b, to });
        to
    }

    fn scale(&mut self, a: SlotId, value: f32) -> SlotId {
        let b = self.constant(value);
        self.binary(Binary::Mul, a, b)
    }

    fn unary(&mut self, op: Unary, from: SlotId) -> SlotId {
        let to = self.slot();
        self.group.ops.push(Op::Unary { op, elem: Elem::F32, from, to });
        to
    }
}

const K: [f32; 7] = [0.9, 0.1, 0.999, 0.001, 1.01, 1e-8, 1e-3];

fn adam(n: usize) -> Group {
    let mut c = Chain::new(n);
    let [b1, a1, b2, a2, c2, eps, lr] = K;
    let (p, g, m, v) = (c.load(0), c.load(1), c.load(2), c.load(3));
    let (x, y) = (c.scale(m, b1), c.scale(g, a1));
    let m = c.binary(Binary::Add, x, y);
    let gg = c.binary(Binary::Mul, g, g);
    let (x, y) = (c.scale(v, b2), c.scale(gg, a2));
    let v = c.binary(Binary::Add, x, y);
    let scaled = c.scale(v, c2);
    let root = c.unary(Unary::Sqrt, scaled);
    let eps = c.constant(eps);
    let denominator = c.binary(Binary::Add, root, eps);
    let step = c.scale(m, lr);
    let step = c.binary(Binary::Div, step, denominator);
    let p = c.binary(Binary::Sub, p, step);
    [(0, p), (2, m), (3, v)].into_iter().for_each(|(array, slot)| c.store(array, slot));
    c.group
}

fn gelu(n: usize) -> Group {
    let mut c = Chain::new(n);
    let x = c.load(0);
    let xx = c.binary(Binary::Mul, x, x);
    let xxx = c.binary(Binary::Mul, xx, x);
    let t = c.scale(xxx, 0.044715);
    let t = c.binary(Binary::Add, t, x);
    let t = c.scale(t, 0.797_884_6);
    let t = c.unary(Unary::Tanh, t);
    let one = c.constant(1.0);
    let t = c.binary(Binary::Add, t, one);
    let half = c.scale(x, 0.5);
    let y = c.binary(Binary::Mul, half, t);
    c.store(1, y);
    c.group
}

/// The same by hand, compiled for AVX2 where the machine has it.
macro_rules! by_hand {
    ($name:ident, $body:expr) => {
        fn $name(arrays: &mut [Vec<f32>]) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn wide(arrays: &mut [Vec<f32>]) {
                ($body)(arrays)
            }
            #[cfg(target_arch = "x86_64")]
            if Isa::Avx2.is_supported() {
                // SAFETY: just asked.
                return unsafe { wide(arrays) };
            }
            ($body)(arrays)
        }
    };
}

by_hand!(adam_by_hand, |arrays: &mut [Vec<f32>]| {
    let [b1, a1, b2, a2, c2, eps, lr] = K;
    let [p, g, m, v, ..] = arrays else { return };
    for (((p, g), m), v) in p.iter_mut().zip(g.iter()).zip(m.iter_mut()).zip(v.iter_mut()) {
        *m = *m * b1 + g * a1;
        *v = *v * b2 + g * g * a2;
        *p -= *m * lr / ((*v * c2).sqrt() + eps);
    }
});

by_hand!(gelu_by_hand, |arrays: &mut [Vec<f32>]| {
    let [x, y, ..] = arrays else { return };
    for (x, y) in x.iter().zip(y.iter_mut()) {
        *y = x * 0.5 * (math::tanh((x * x * x * 0.044715 + x) * 0.797_884_6) + 1.0);
    }
});

/// The quietest of many runs, since others share the machine.
fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn measure(name: &str, n: usize, group: Group, by_hand: fn(&mut [Vec<f32>])) {
    let bytes = 4 * n * 4;
    let tile = Tile::new(group).unwrap();
    let steps = vec![Step { instruction: tile.into(), parallel: true, barrier: false }];
    let program = Program::new(vec![Function { bases: vec![bytes], steps }], 0, bytes).unwrap();
    let pool = Pool::new(1, true).unwrap();
    let mut machine = Machine::new(Memory::new(bytes).unwrap(), pool, Isa::detect().unwrap()).unwrap();
    let value = |i: usize| ((i * 7919) % 1000) as f32 * 1e-3 + 1e-3;
    let mut arrays = vec![(0..n).map(value).collect::<Vec<f32>>(); 4];
    let all: Vec<u8> = arrays.iter().flatten().flat_map(|x| x.to_ne_bytes()).collect();
    machine.memory_mut().write(0..bytes).unwrap().copy_from_slice(&all);
    let repeat = ((1 << 17) / n).max(1);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        let start = Instant::now();
        (0..repeat).for_each(|_| machine.run(&program).unwrap());
        ours.push(start.elapsed().as_secs_f64() / repeat as f64 * 1e6);
        let start = Instant::now();
        (0..repeat).for_each(|_| by_hand(std::hint::black_box(&mut arrays)));
        theirs.push(start.elapsed().as_secs_f64() / repeat as f64 * 1e6);
    }
    let (ours, theirs) = (best(&ours), best(&theirs));
    println!("{name} n={n}: tile {ours:.1} us, by hand {theirs:.1} us, ratio {:.2}", ours / theirs);
}

fn main() {
    for n in [1 << 14, 1 << 20] {
        measure("adam", n, adam(n), adam_by_hand);
        measure("gelu", n, gelu(n), gelu_by_hand);
    }
}
