//! Which vector instructions the kernels use.
//!
//! A kernel is written once, as portable `#[inline(always)]` code that the compiler vectorises, and instantiated
//! for each set by `per_isa!`. `mul_add` gives the same bits on every set (a portable build
//! computes it in software), and reductions keep sixteen logical lanes on all of them, so results do not depend
//! on the set except in products, whose tiling differs.

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// Whatever the compiler's baseline offers.
    Portable,
    /// AVX2 with FMA.
    Avx2,
    /// AVX-512 F, BW, VL and DQ.
    Avx512,
    /// ARM Advanced SIMD.
    Neon,
}

impl Isa {
    /// The set to use: `BACKFIT_ISA` (`portable`, `avx2`, `avx512`, `neon`) where it is set, else the best of this machine.
    pub fn detect() -> Result<Isa, String> {
        match std::env::var("BACKFIT_ISA") {
            Ok(name) => Isa::named(&name),
            Err(std::env::VarError::NotPresent) => Ok(Isa::best()),
            Err(error) => Err(format!("BACKFIT_ISA: {error}")),
        }
    }

    /// The set with this name; an error where the name is unknown or this machine lacks the set.
    pub fn named(name: &str) -> Result<Isa, String> {
        let isa = match name {
            "portable" => Isa::Portable,
            "avx2" => Isa::Avx2,
            "avx512" => Isa::Avx512,
            "neon" => Isa::Neon,
            _ => {
                return Err(format!("BACKFIT_ISA={name}: unknown; one of portable, avx2, avx512, neon"));
            }
        };
        if isa.is_supported() { Ok(isa) } else { Err(format!("BACKFIT_ISA={name}: this machine does not have it")) }
    }

    /// The widest set that this machine has.
    pub fn best() -> Isa {
        [Isa::Avx512, Isa::Avx2, Isa::Neon].into_iter().find(|isa| isa.is_supported()).unwrap_or(Isa::Portable)
    }

    /// Whether this machine has the set.
    pub fn is_supported(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.is_supported()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => false,
            Isa::Neon => cfg!(target_arch = "aarch64"),
        }
    }
}

/// Declares `unsafe fn name(isa: Isa, arguments…)`, which runs `body(arguments…)` compiled for that set.
///
/// `body` must be `#[inline(always)]`. The caller promises that the machine has the set, besides what `body` asks.
macro_rules! per_isa {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$($g:ident: $bound:path),*>)? ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:path) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis unsafe fn $name $(<$($g: $bound),*>)? (isa: $crate::isa::Isa, $($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(clippy::too_many_arguments, unused_unsafe)]
            unsafe fn avx2 $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller's promises are `body`'s.
                unsafe { $body($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")]
            #[allow(clippy::too_many_arguments, unused_unsafe)]
            unsafe fn avx512 $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller's promises are `body`'s.
                unsafe { $body($($arg),*) }
            }
            // SAFETY: the caller promises that the machine has `isa`, and all that `body` asks.
            #[allow(unused_unsafe)]
            unsafe {
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    $crate::isa::Isa::Avx2 => avx2 $(::<$($g),*>)? ($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    $crate::isa::Isa::Avx512 => avx512 $(::<$($g),*>)? ($($arg),*),
                    _ => $body($($arg),*),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_refused() {
        assert!(Isa::named("sse9").is_err());
        assert_eq!(Isa::named("portable"), Ok(Isa::Portable));
    }

    #[test]
    fn the_best_set_is_supported() {
        assert!(Isa::best().is_supported());
    }
}
