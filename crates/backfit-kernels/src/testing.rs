//! What the instructions' tests share: typed buffers, random numbers, and runs that watch what is touched.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::isa::Isa;
use half::{bf16, f16};

/// Small reproducible random numbers.
pub struct Random(pub u64);

impl Random {
    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % bound
    }

    /// One of the choices.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A small value that every element type holds (no less than 0 for unsigned ones).
    pub fn value(&mut self, elem: Elem) -> f64 {
        match elem {
            Elem::Bool => self.below(2) as f64,
            _ if elem.is_float() => (self.below(65) as f64 - 32.0) / 16.0,
            _ if elem.is_signed() => self.below(21) as f64 - 10.0,
            _ => self.below(20) as f64,
        }
    }
}

/// Memory behind one base register, holding elements of one type.
#[derive(Clone, PartialEq, Debug)]
pub struct Buffer {
    pub elem: Elem,
    words: Vec<u64>,
}

impl Buffer {
    /// `len` random elements.
    pub fn random(elem: Elem, len: usize, random: &mut Random) -> Buffer {
        let mut buffer = Buffer { elem, words: vec![0; (len * elem.size()).div_ceil(8)] };
        for i in 0..len {
            buffer.set(i, random.value(elem));
        }
        buffer
    }

    /// These values.
    pub fn of(elem: Elem, values: &[f64]) -> Buffer {
        let mut buffer = Buffer { elem, words: vec![0; (values.len() * elem.size()).div_ceil(8)] };
        for (i, &value) in values.iter().enumerate() {
            buffer.set(i, value);
        }
        buffer
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: words are valid bytes.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.words.len() * 8) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: words are valid bytes, and any bytes are valid words.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.words.len() * 8) }
    }

    /// Element `i` as f64.
    pub fn get(&self, i: usize) -> f64 {
        let at = &self.bytes()[i * self.elem.size()..];
        macro_rules! read {
            ($t:ty) => {
                <$t>::from_le_bytes(at[..size_of::<$t>()].try_into().unwrap())
            };
        }
        match self.elem {
            Elem::F64 => read!(f64),
            Elem::F32 => read!(f32) as f64,
            Elem::F16 => f16::from_bits(read!(u16)).to_f64(),
            Elem::BF16 => bf16::from_bits(read!(u16)).to_f64(),
            Elem::I64 => read!(i64) as f64,
            Elem::I32 => read!(i32) as f64,
            Elem::I16 => read!(i16) as f64,
            Elem::I8 => read!(i8) as f64,
            Elem::U64 => read!(u64) as f64,
            Elem::U32 => read!(u32) as f64,
            Elem::U16 => read!(u16) as f64,
            Elem::U8 | Elem::Bool => at[0] as f64,
        }
    }

    /// Sets element `i`.
    pub fn set(&mut self, i: usize, value: f64) {
        let size = self.elem.size();
        let bits: u64 = match self.elem {
            Elem::F64 => value.to_bits(),
            Elem::F32 => (value as f32).to_bits() as u64,
            Elem::F16 => f16::from_f64(value).to_bits() as u64,
            Elem::BF16 => bf16::from_f64(value).to_bits() as u64,
            Elem::U64 => value as u64,
            _ => value as i64 as u64,
        };
        self.bytes_mut()[i * size..(i + 1) * size].copy_from_slice(&bits.to_le_bytes()[..size]);
    }

    /// The first `len` elements.
    pub fn values(&self, len: usize) -> Vec<f64> {
        (0..len).map(|i| self.get(i)).collect()
    }
}

/// An instruction, as tests see it.
pub trait Instruction: Sync {
    fn accesses(&self, push: &mut dyn FnMut(Access));
    fn check(&self) -> Result<(), String>;
    fn scratch_bytes(&self) -> usize;
    /// # Safety
    /// The instruction passed `check`, and the context fulfils its invariant.
    unsafe fn run(&self, ctx: &Context);
}

macro_rules! instructions {
    ($($t:ty),*) => {$(
        impl Instruction for $t {
            fn accesses(&self, push: &mut dyn FnMut(Access)) {
                self.accesses(push)
            }
            fn check(&self) -> Result<(), String> {
                self.check()
            }
            fn scratch_bytes(&self) -> usize {
                self.scratch_bytes()
            }
            unsafe fn run(&self, ctx: &Context) {
                // SAFETY: the caller's promise.
                unsafe { self.run(ctx) }
            }
        }
    )*};
}
instructions!(
    crate::gemm::Gemm,
    crate::convolution::Convolution,
    crate::gather::Gather,
    crate::scatter::Scatter,
    crate::dynamic_copy::DynamicSlice,
    crate::dynamic_copy::DynamicUpdateSlice,
    crate::window::reduce::ReduceWindow,
    crate::window::select::SelectAndScatter,
    crate::sort::Sort
);

/// Runs on 1, 2 and 3 threads and on every supported instruction set, and returns the buffers afterwards. Asserts that
/// all runs leave the same bits, that only declared bytes are written, and that no other bytes matter.
pub fn outputs(buffers: &[Buffer], instruction: &dyn Instruction) -> Vec<Buffer> {
    instruction.check().unwrap();
    let mut accesses = Vec::new();
    instruction.accesses(&mut |access| accesses.push(access));
    for access in &accesses {
        assert!(access.addr.offset + access.bytes <= buffers[access.addr.base as usize].bytes().len());
        assert_eq!(access.addr.offset % access.align, 0);
    }
    let first = execute(buffers, instruction, 1, Isa::best());
    let inside = |base: usize, i: usize, write: bool| {
        accesses.iter().any(|a| {
            a.addr.base as usize == base && (a.write || !write) && (a.addr.offset..a.addr.offset + a.bytes).contains(&i)
        })
    };
    for (base, (before, after)) in buffers.iter().zip(&first).enumerate() {
        for (i, (x, y)) in before.bytes().iter().zip(after.bytes()).enumerate() {
            assert!(x == y || inside(base, i, true), "byte {i} of base {base} was written, undeclared");
        }
    }
    for threads in [2, 3] {
        assert!(execute(buffers, instruction, threads, Isa::best()) == first, "bits differ on {threads} threads");
    }
    for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512, Isa::Neon] {
        if isa.is_supported() && isa != Isa::best() {
            assert!(execute(buffers, instruction, 1, isa) == first, "bits differ on {isa:?}");
        }
    }
    let mut poisoned = buffers.to_vec();
    for (base, buffer) in poisoned.iter_mut().enumerate() {
        for (i, byte) in buffer.bytes_mut().iter_mut().enumerate() {
            if !inside(base, i, false) {
                *byte = !*byte;
            }
        }
    }
    let after = execute(&poisoned, instruction, 1, Isa::best());
    for (base, (x, y)) in first.iter().zip(&after).enumerate() {
        for (i, (x, y)) in x.bytes().iter().zip(y.bytes()).enumerate() {
            assert!(x == y || !inside(base, i, true), "undeclared bytes were read");
        }
    }
    first
}

/// Runs once on this many threads.
fn execute(buffers: &[Buffer], instruction: &dyn Instruction, threads: usize, isa: Isa) -> Vec<Buffer> {
    let mut buffers = buffers.to_vec();
    let bases: Vec<usize> = buffers.iter_mut().map(|b| b.bytes_mut().as_mut_ptr() as usize).collect();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let bases = &bases;
            scope.spawn(move || {
                let bases: Vec<*mut u8> = bases.iter().map(|&b| b as *mut u8).collect();
                // A guard follows the scratch.
                let lines = instruction.scratch_bytes().div_ceil(64);
                let mut scratch = vec![[GUARD; 8]; lines + 2];
                let start = (scratch.as_mut_ptr() as usize).next_multiple_of(64) as *mut u8;
                let ctx = Context { thread, threads, bases: &bases, isa, scratch: start };
                // SAFETY: the instruction passed its check, and its accesses lie in the buffers.
                unsafe { instruction.run(&ctx) };
                // SAFETY: the line behind the scratch lies in the vector.
                let guard = unsafe { *start.add(lines * 64).cast::<u64>() };
                assert_eq!(guard, GUARD, "scratch was overrun");
            });
        }
    });
    buffers
}

const GUARD: u64 = 0x7ff8_dead_beef_7ff8;

/// Address `elements` into a base.
pub fn at(base: u16, elem: Elem, elements: usize) -> Addr {
    Addr { base, offset: elements * elem.size() }
}
