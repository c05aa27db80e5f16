//! Movement: shapes, axes, slices, padding.

use crate::builder::{Builder, Val, dims};
use crate::proto::AttributeProto;
use backfit_ir::{DType, Literal, Shape, Type};

impl Builder {
    /// The same elements in another shape.
    pub fn reshape(&mut self, x: &Val, shape: &[usize]) -> Val {
        if x.shape().dims() == shape {
            return x.clone();
        }
        let to = self.list(&dims(shape));
        // Extents of 0 mean 0.
        self.node("Reshape", &[x, &to], vec![AttributeProto::int("allowzero", 1)], x.ty.with_shape(shape))
    }

    /// Result axis i is operand axis `permutation[i]`.
    pub fn transpose(&mut self, x: &Val, permutation: &[usize]) -> Val {
        if permutation.iter().enumerate().all(|(i, &p)| i == p) {
            return x.clone();
        }
        let shape: Vec<usize> = permutation.iter().map(|&p| x.shape()[p]).collect();
        let perm = AttributeProto::ints("perm", dims(permutation));
        self.node("Transpose", &[x], vec![perm], x.ty.with_shape(shape))
    }

    /// Repeats along leading axes and axes of extent 1, as NumPy's broadcasting does.
    pub fn expand(&mut self, x: &Val, shape: &Shape) -> Val {
        if x.shape() == shape {
            return x.clone();
        }
        let to = self.list(&dims(shape));
        // There is no kernel for bf16; f32 holds every bf16.
        let carried = if x.dtype() == DType::BF16 { self.cast(x, DType::F32) } else { x.clone() };
        let repeated = self.node("Expand", &[&carried, &to], vec![], carried.ty.with_shape(shape));
        self.expanded.insert(repeated.name.clone(), carried);
        self.cast(&repeated, x.dtype())
    }

    /// `broadcast`: operand axis i becomes result axis `axes[i]`.
    pub fn broadcast(&mut self, x: &Val, shape: &Shape, axes: &[usize]) -> Val {
        let mut ones = vec![1; shape.rank()];
        axes.iter().enumerate().for_each(|(i, &axis)| ones[axis] = x.shape()[i]);
        let x = self.reshape(x, &ones);
        self.expand(&x, shape)
    }

    /// Every `stride`-th element of `start..limit` along each axis.
    pub fn slice(&mut self, x: &Val, starts: &[usize], limits: &[usize], strides: &[usize]) -> Val {
        let axes: Vec<usize> =
            (0..starts.len()).filter(|&a| (starts[a], limits[a], strides[a]) != (0, x.shape()[a], 1)).collect();
        if axes.is_empty() {
            return x.clone();
        }
        let shape: Vec<usize> = (0..starts.len()).map(|a| (limits[a] - starts[a]).div_ceil(strides[a])).collect();
        let mut pick = |list: &[usize]| self.list(&axes.iter().map(|&a| list[a] as i64).collect::<Vec<_>>());
        let (starts, limits, strides) = (pick(starts), pick(limits), pick(strides));
        let axes = self.list(&dims(&axes));
        self.node("Slice", &[x, &starts, &limits, &axes, &strides], vec![], x.ty.with_shape(shape))
    }

    /// The elements `start..limit` along one axis.
    pub fn narrow(&mut self, x: &Val, axis: usize, start: usize, limit: usize) -> Val {
        let (mut starts, mut limits) = (vec![0; x.shape().rank()], x.shape().to_vec());
        (starts[axis], limits[axis]) = (start, limit);
        self.slice(x, &starts, &limits, &vec![1; x.shape().rank()])
    }

    /// Adds a scalar around the elements.
    pub fn surround(&mut self, x: &Val, low: &[usize], high: &[usize], value: &Val) -> Val {
        if low.iter().chain(high).all(|&v| v == 0) {
            return x.clone();
        }
        let shape: Vec<usize> = (0..low.len()).map(|a| low[a] + x.shape()[a] + high[a]).collect();
        if x.elements() == 0 {
            return self.expand(value, &shape.into());
        }
        let pads = self.list(&dims(&[low, high].concat()));
        let carrier = match x.dtype() {
            DType::I16 | DType::U16 => DType::I32,
            other => other,
        };
        let (carried, value) = (self.cast(x, carrier), self.cast(value, carrier));
        let padded = self.node("Pad", &[&carried, &pads, &value], vec![], carried.ty.with_shape(shape));
        self.cast(&padded, x.dtype())
    }

    /// `pad`: a scalar around and between elements; negative edges cut.
    pub fn pad(&mut self, x: &Val, low: &[i64], high: &[i64], interior: &[usize], value: &Val) -> Val {
        let rank = low.len();
        let mut spread = x.clone();
        for axis in (0..rank).filter(|&a| interior[a] > 0 && x.shape()[a] > 1) {
            spread = self.spread(&spread, axis, interior[axis], value);
        }
        let positive = |list: &[i64]| list.iter().map(|&v| v.max(0) as usize).collect::<Vec<_>>();
        let whole = self.surround(&spread, &positive(low), &positive(high), value);
        let starts: Vec<usize> = low.iter().map(|&v| (-v).max(0) as usize).collect();
        let limits: Vec<usize> = (0..rank).map(|a| whole.shape()[a] - (-high[a]).max(0) as usize).collect();
        self.slice(&whole, &starts, &limits, &vec![1; rank])
    }

    /// Sets the elements along an axis apart: a new axis after it is padded and merged with it.
    fn spread(&mut self, x: &Val, axis: usize, between: usize, value: &Val) -> Val {
        let (n, step) = (x.shape()[axis], between + 1);
        let mut apart = x.shape().to_vec();
        apart.insert(axis + 1, 1);
        let column = self.reshape(x, &apart);
        let mut high = vec![0; apart.len()];
        high[axis + 1] = between;
        let padded = self.surround(&column, &vec![0; apart.len()], &high, value);
        let mut merged = x.shape().to_vec();
        merged[axis] = n * step;
        let line = self.reshape(&padded, &merged);
        self.narrow(&line, axis, 0, n * step - between)
    }

    /// Joins values along an axis.
    pub fn concatenate(&mut self, parts: &[&Val], axis: usize) -> Val {
        let filled: Vec<&Val> = parts.iter().copied().filter(|p| p.elements() > 0).collect();
        if let [only] = filled[..] {
            return only.clone();
        }
        let mut shape = parts[0].shape().to_vec();
        shape[axis] = parts.iter().map(|p| p.shape()[axis]).sum();
        self.node("Concat", &filled, vec![AttributeProto::int("axis", axis as i64)], parts[0].ty.with_shape(shape))
    }

    /// The elements in opposite order along axes.
    pub fn reverse(&mut self, x: &Val, axes: &[usize]) -> Val {
        if axes.is_empty() {
            return x.clone();
        }
        let same = |v: i64| vec![v; axes.len()];
        let (starts, ends, steps) = (self.list(&same(-1)), self.list(&same(i64::MIN + 1)), self.list(&same(-1)));
        let axes = self.list(&dims(axes));
        self.node("Slice", &[x, &starts, &ends, &axes, &steps], vec![], x.ty.clone())
    }

    /// 0, 1, 2 … as i64.
    pub fn count(&mut self, n: usize) -> Val {
        /// Longer lists are made at run time.
        const BAKED: usize = 1024;
        if n <= BAKED {
            return self.list(&(0..n as i64).collect::<Vec<_>>());
        }
        let [start, limit, step] = [0, n as i64, 1].map(|v| self.whole(DType::I64, v));
        self.node("Range", &[&start, &limit, &step], vec![], Type::new(DType::I64, [n]))
    }

    /// `iota`.
    pub fn iota(&mut self, ty: &Type, axis: usize) -> Val {
        let counts = self.count(ty.shape[axis]);
        let counts = super::cast::counts(self, &counts, ty.dtype);
        self.broadcast(&counts, &ty.shape, &[axis])
    }

    /// Slices along an axis, by i64 positions that lie within it.
    pub fn gather(&mut self, x: &Val, positions: &Val, axis: usize) -> Val {
        let (before, after) = (&x.shape()[..axis], &x.shape()[axis + 1..]);
        let ty = x.ty.with_shape([before, positions.shape().dims(), after].concat());
        self.node("Gather", &[x, positions], vec![AttributeProto::int("axis", axis as i64)], ty)
    }

    /// A table of i64 as a constant.
    pub fn table(&mut self, shape: &[usize], values: &[i64]) -> Val {
        self.constant(&Literal::from_i64(Type::new(DType::I64, shape), values))
    }
}
