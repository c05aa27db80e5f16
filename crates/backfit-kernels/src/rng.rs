//! Counter-based random bits.

use crate::context::{Access, Addr, Context};

/// Philox4x32-10: element `i` is word `i % 4` of the block with counter `(i/4 low, i/4 high, c2, c3)` and key `(k0, k1)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RngBits {
    /// Address of four u32: k0, k1, c2, c3.
    pub key: Addr,
    /// Address of the output, u32.
    pub output: Addr,
    /// Number of elements.
    pub count: usize,
}

/// One block of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
#[inline(always)]
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let [c0, c1, c2, c3] = counter;
        let p0 = u64::from(c0) * 0xd251_1f53;
        let p1 = u64::from(c2) * 0xcd9e_8d57;
        counter = [(p1 >> 32) as u32 ^ c1 ^ key[0], p1 as u32, (p0 >> 32) as u32 ^ c3 ^ key[1], p0 as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

impl RngBits {
    /// Declares what it touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        push(Access { addr: self.key, bytes: 16, align: 4, write: false });
        push(Access { addr: self.output, bytes: self.count * 4, align: 4, write: true });
    }

    /// Checks that it is consistent in itself.
    pub fn check(&self) -> Result<(), String> {
        match self.count.checked_mul(4) {
            Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
            _ => Err("too many random elements".into()),
        }
    }

    /// Private scratch that each thread needs, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        0
    }

    /// Does this thread's part.
    ///
    /// # Safety
    /// As for [`Instruction::run`](crate::program::Instruction::run).
    pub unsafe fn run(&self, ctx: &Context) {
        // SAFETY: both accesses are declared; the output does not overlap the key, and shares are disjoint.
        let (key, output) = unsafe {
            let share = ctx.share(self.count, 64);
            let output = ctx.pointer::<u32>(self.output).add(share.start);
            let words = std::slice::from_raw_parts_mut(output, share.len());
            (*ctx.pointer::<[u32; 4]>(self.key), (share.start / 4, words))
        };
        let (first, words) = output;
        // SAFETY: the machine checked that it has `isa`.
        unsafe { blocks(ctx.isa, key, first as u64, words) };
    }
}

per_isa! { fn blocks(key: [u32; 4], first: u64, words: &mut [u32]) = blocks_body }

#[inline(always)]
fn blocks_body(key: [u32; 4], first: u64, words: &mut [u32]) {
    let [k0, k1, c2, c3] = key;
    for (block, four) in (first..).zip(words.chunks_mut(4)) {
        let bits = philox([block as u32, (block >> 32) as u32, c2, c3], [k0, k1]);
        four.copy_from_slice(&bits[..four.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{addr, bytes_of, run, values_of};

    #[test]
    fn blocks_equal_the_vectors_of_random123() {
        let all = u32::MAX;
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([all; 4], [all; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn elements_are_the_words_of_consecutive_blocks() {
        let key = [5u32, 6, 7, 8];
        let mut memory = bytes_of!(key);
        memory.resize(16 + 4 * 203, 0);
        let rng = RngBits { key: addr(0), output: addr(16), count: 203 };
        let got = values_of!(u32, run(vec![rng.into()], &memory));
        for (i, &word) in got[4..].iter().enumerate() {
            assert_eq!(word, philox([i as u32 / 4, 0, 7, 8], [5, 6])[i % 4]);
        }
    }
}
