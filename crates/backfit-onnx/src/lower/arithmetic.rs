//! Arithmetic in dtypes for which onnxruntime has kernels, and the ways into and out of these dtypes.
//!
//! Half precision is computed in f32 and rounded after every operator, as the language says. Integers without kernels
//! are computed in wider ones and wrapped by the cast back.

use crate::builder::{Builder, Val};
use crate::proto::AttributeProto;
use crate::proto::data_type;
use backfit_ir::{Class, DType, Shape};

impl Builder {
    /// ONNX's `Cast`; nothing where the dtype is the same.
    pub fn cast(&mut self, x: &Val, dtype: DType) -> Val {
        if x.dtype() == dtype {
            return x.clone();
        }
        let to = AttributeProto::int("to", i64::from(data_type(dtype)));
        self.node("Cast", &[x], vec![to], x.ty.with_dtype(dtype))
    }

    /// Half precision as f32.
    pub fn widen(&mut self, x: &Val) -> Val {
        self.cast(x, x.dtype().accumulator())
    }

    /// An operator of one operand whose result has the operand's type.
    pub fn unary(&mut self, op: &str, x: &Val) -> Val {
        self.node(op, &[x], vec![], x.ty.clone())
    }

    /// An operator of two operands of one dtype, which are broadcast.
    pub fn binary(&mut self, op: &str, a: &Val, b: &Val) -> Val {
        let shape = broadcast(a.shape(), b.shape());
        let [a, b] = self.compact([a, b], &shape);
        self.node(op, &[&a, &b], vec![], a.ty.with_shape(shape))
    }

    /// Operands of an operator that broadcasts, before they were repeated, as far as the result keeps its shape.
    fn compact<const N: usize>(&self, operands: [&Val; N], shape: &Shape) -> [Val; N] {
        let mut found = operands.map(Val::clone);
        for i in 0..N {
            let Some(source) = self.expanded.get(&found[i].name) else { continue };
            let mut trial = found.clone();
            trial[i] = source.clone();
            if trial.iter().fold(Shape::scalar(), |all, v| broadcast(&all, v.shape())) == *shape {
                found = trial;
            }
        }
        found
    }

    /// An operator of a value and a number of its dtype.
    pub fn with_number(&mut self, op: &str, a: &Val, number: f64) -> Val {
        let number = self.number(a.dtype(), number);
        self.binary(op, a, &number)
    }

    /// `Equal`, `Less` … of two operands of one dtype, which are broadcast.
    pub fn test(&mut self, op: &str, a: &Val, b: &Val) -> Val {
        // Truth values have no order there.
        let ordered = |v: &Val| v.dtype() == DType::Bool;
        let (a, b) =
            if ordered(a) { (self.cast(a, DType::U8), self.cast(b, DType::U8)) } else { (a.clone(), b.clone()) };
        let shape = broadcast(a.shape(), b.shape());
        let [a, b] = self.compact([&a, &b], &shape);
        self.node(op, &[&a, &b], vec![], a.ty.with_dtype(DType::Bool).with_shape(shape))
    }

    /// As [`Builder::test`], with a number.
    pub fn test_number(&mut self, op: &str, a: &Val, number: f64) -> Val {
        let number = self.number(a.dtype(), number);
        self.test(op, a, &number)
    }

    /// The opposite truth value.
    pub fn not(&mut self, x: &Val) -> Val {
        self.unary("Not", x)
    }

    /// Whether a float is NaN.
    pub fn is_nan(&mut self, x: &Val) -> Val {
        self.node("IsNaN", &[x], vec![], x.ty.with_dtype(DType::Bool))
    }

    /// Picks one of two values of one dtype; all three are broadcast.
    pub fn choose(&mut self, condition: &Val, on_true: &Val, on_false: &Val) -> Val {
        let dtype = on_true.dtype();
        let carrier = match dtype {
            DType::BF16 => DType::F32,
            DType::I16 | DType::U16 => DType::I32,
            DType::U32 | DType::U64 => DType::I64,
            DType::Bool => DType::U8,
            other => other,
        };
        let (a, b) = (self.cast(on_true, carrier), self.cast(on_false, carrier));
        let shape = broadcast(&broadcast(a.shape(), b.shape()), condition.shape());
        let [condition, a, b] = self.compact([condition, &a, &b], &shape);
        let chosen = self.node("Where", &[&condition, &a, &b], vec![], a.ty.with_shape(shape));
        self.cast(&chosen, dtype)
    }

    /// A value of any dtype but packed ones in one that can be compared, reduced and sorted: f64, f32, i64 or i32, in the
    /// same order.
    pub fn ordered(&mut self, x: &Val) -> Val {
        match x.dtype() {
            DType::F64 | DType::F32 | DType::I64 | DType::I32 => x.clone(),
            DType::F16 | DType::BF16 => self.cast(x, DType::F32),
            DType::U32 => self.cast(x, DType::I64),
            DType::U64 => {
                let bits = self.cast(x, DType::I64);
                self.flip_sign(&bits)
            }
            _ => self.cast(x, DType::I32),
        }
    }

    /// Back from [`Builder::ordered`].
    pub fn unordered(&mut self, x: &Val, dtype: DType) -> Val {
        if dtype == DType::U64 {
            let bits = self.flip_sign(x);
            return self.cast(&bits, dtype);
        }
        self.cast(x, dtype)
    }

    fn flip_sign(&mut self, x: &Val) -> Val {
        let sign = self.whole(DType::I64, i64::MIN);
        self.binary("BitwiseXor", x, &sign)
    }

    /// `maximum` (`Max`) or `minimum` (`Min`) over any numbers; NaN where either is NaN.
    pub fn extreme(&mut self, op: &str, a: &Val, b: &Val) -> Val {
        let carrier = match a.dtype() {
            DType::F16 | DType::BF16 => DType::F32,
            DType::I16 | DType::U16 => DType::I32,
            other => other,
        };
        self.binary_in(carrier, op, a, b)
    }

    /// Both operands in a dtype, the result in that of the first.
    pub fn binary_in(&mut self, dtype: DType, op: &str, a: &Val, b: &Val) -> Val {
        let (x, y) = (self.cast(a, dtype), self.cast(b, dtype));
        let found = self.binary(op, &x, &y);
        self.cast(&found, a.dtype())
    }
}

/// The integer dtype of 64 bits of the same class.
pub fn wide(dtype: DType) -> DType {
    if dtype.class() == Class::Unsigned { DType::U64 } else { DType::I64 }
}

/// NumPy's broadcasting of shapes that fit.
pub fn broadcast(a: &Shape, b: &Shape) -> Shape {
    let rank = a.rank().max(b.rank());
    let extent = |s: &Shape, axis: usize| (axis + s.rank()).checked_sub(rank).map_or(1, |i| s[i]);
    let dims: Vec<usize> = (0..rank)
        .map(|axis| match (extent(a, axis), extent(b, axis)) {
            (1, n) | (n, _) => n,
        })
        .collect();
    dims.into()
}
