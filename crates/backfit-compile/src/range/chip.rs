//! A chip's numbers.

use backfit_ir::DType;

/// What a chip's arithmetic can hold. The fields are data: give those of your chip.
#[derive(Clone, Debug, PartialEq)]
pub struct Chip {
    /// Its name in messages.
    pub name: String,
    /// The largest finite number that it stores.
    pub max_finite: f64,
    /// The smallest positive number that it stores.
    pub smallest: f64,
    /// Bits of a significand, the leading one included.
    pub significand: u32,
    /// The largest result of a product that does not become infinite.
    pub product_ceiling: f64,
    /// The largest n for which all integers up to n can be added outside contractions.
    pub exact_sum: f64,
    /// The largest n for which all integers up to n can be added within a contraction.
    pub exact_accumulator: f64,
}

impl Chip {
    /// Arithmetic in a float dtype, with f32 sums in contractions of half precision.
    pub fn of(dtype: DType) -> Self {
        let (max_finite, smallest, significand) = match dtype {
            DType::F16 => (65504.0, 2f64.powi(-24), 11),
            DType::BF16 => (f64::from(f32::from_bits(0x7F7F_0000)), 2f64.powi(-126), 8),
            DType::F64 => (f64::MAX, f64::MIN_POSITIVE, 53),
            _ => (f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE), 24),
        };
        let exact_sum = 2f64.powi(significand as i32);
        let exact_accumulator = exact_sum.max(2f64.powi(24));
        Chip {
            name: dtype.name().to_owned(),
            max_finite,
            smallest,
            significand,
            product_ceiling: max_finite,
            exact_sum,
            exact_accumulator,
        }
    }

    /// An engine that stores f16, as measured: products above 32752 become infinite, sums outside contractions are narrow.
    pub fn f16_engine() -> Self {
        Chip { name: "f16-engine".to_owned(), product_ceiling: 32752.0, ..Chip::of(DType::F16) }
    }
}
