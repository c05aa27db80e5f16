//! `+ - * / %` between tensors, references to tensors, and numbers.

use crate::builder::Tensor;
use crate::dtype::{Class, DType};

/// Overloads an infix operator for every mix of `Tensor`, `&Tensor` and `f64` with at least one tensor.
/// Tensors are broadcast against each other; a number becomes a scalar of the tensor's dtype.
macro_rules! infix {
    ($trait:ident, $method:ident, $op:ident) => {
        $crate::ops::elementwise::infix! { @ $trait $method
            (Tensor, Tensor) (Tensor, &Tensor) (&Tensor, Tensor) (&Tensor, &Tensor)
            |a, b| a.binary(Op::Binary(Binary::$op), &b)
        }
        $crate::ops::elementwise::infix! { @ $trait $method
            (Tensor, f64) (&Tensor, f64)
            |a, b| a.binary(Op::Binary(Binary::$op), &a.number(b))
        }
        $crate::ops::elementwise::infix! { @ $trait $method
            (f64, Tensor) (f64, &Tensor)
            |a, b| b.number(a).binary(Op::Binary(Binary::$op), &b)
        }
    };
    (@ $trait:ident $method:ident $(($left:ty, $right:ty))* |$a:ident, $b:ident| $result:expr) => { $(
        impl std::ops::$trait<$right> for $left {
            type Output = Tensor;

            #[track_caller]
            fn $method(self, $b: $right) -> Tensor {
                let $a = self;
                $result
            }
        }
    )* };
}
pub(crate) use infix;

impl Tensor {
    /// A scalar constant of this tensor's dtype, to be broadcast. An integer dtype refuses numbers that it does not hold.
    #[track_caller]
    pub fn number(&self, value: f64) -> Tensor {
        if self.value().is_none() {
            return self.graph().poison(self.ty().with_shape([]));
        }
        if !holds(self.dtype(), value) {
            return self.fail(format!("{value} is not a number of dtype {}; cast the tensor first", self.dtype()));
        }
        self.graph().scalar(self.dtype(), value)
    }
}

/// Whether a number is a value of a dtype; floats round.
fn holds(dtype: DType, value: f64) -> bool {
    let range = |low: f64, bits: usize| value == value.trunc() && value >= low && value < 2f64.powi(bits as i32);
    match dtype.class() {
        Class::Float => true,
        Class::Signed => range(-(2f64.powi(dtype.bits() as i32 - 1)), dtype.bits() - 1),
        Class::Unsigned => range(0.0, dtype.bits()),
        Class::Bool => range(0.0, 1),
    }
}
