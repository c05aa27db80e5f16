//! Reading and writing at computed places, and sorting.

use crate::builder::{Builder, Val, dims};
use crate::proto::AttributeProto;
use backfit_ir::op::ScatterMode;
use backfit_ir::{DType, Type};

/// Indices as i64, clamped to `0..=last`.
fn clamped(b: &mut Builder, indices: &Val, last: usize) -> Val {
    let last = last as i64;
    if indices.dtype() == DType::U64 {
        let bound = b.whole(DType::U64, last);
        let low = b.binary("Min", indices, &bound);
        return b.cast(&low, DType::I64);
    }
    let wide = b.cast(indices, DType::I64);
    let (zero, bound) = (b.whole(DType::I64, 0), b.whole(DType::I64, last));
    let low = b.binary("Max", &wide, &zero);
    b.binary("Min", &low, &bound)
}

/// `gather`: indices are clamped to the axis.
pub fn gather(b: &mut Builder, x: &Val, indices: &Val, axis: usize) -> Val {
    let places = clamped(b, indices, x.shape()[axis] - 1);
    b.gather(x, &places, axis)
}

/// ONNX's `ScatterElements`, which onnxruntime carries out in order of the indices: of several that set one element the
/// last wins, and sums are added in one order.
pub fn scatter_elements(b: &mut Builder, mode: ScatterMode, axis: usize, operands: [&Val; 3]) -> Val {
    let reduction = match mode {
        ScatterMode::Set => "none",
        ScatterMode::Add => "add",
    };
    let attributes = vec![AttributeProto::int("axis", axis as i64), AttributeProto::text("reduction", reduction)];
    b.node("ScatterElements", &operands, attributes, operands[0].ty.clone())
}

/// `scatter`: indices outside the axis are dropped, into a place of their own that is cut off at the end.
pub fn scatter(b: &mut Builder, mode: ScatterMode, axis: usize, x: &Val, indices: &Val, updates: &Val) -> Val {
    if updates.elements() == 0 {
        return x.clone();
    }
    let (dtype, n) = (x.dtype(), x.shape()[axis]);
    let places = within(b, indices, n);
    let carrier = if mode == ScatterMode::Add { dtype.accumulator() } else { dtype };
    let (wide, zero) = (b.cast(x, carrier), b.zero(carrier));
    let rank = x.shape().rank();
    let mut one = vec![0; rank];
    one[axis] = 1;
    let room = b.surround(&wide, &vec![0; rank], &one, &zero);
    // One axis of updates, however many the indices have, and an index for every element.
    let mut shape = x.shape().to_vec();
    shape[axis] = indices.elements();
    let lines = b.reshape(updates, &shape);
    let lines = b.cast(&lines, carrier);
    let places = b.reshape(&places, &[indices.elements()]);
    let places = b.broadcast(&places, lines.shape(), &[axis]);
    let y = scatter_elements(b, mode, axis, [&room, &places, &lines]);
    let y = b.narrow(&y, axis, 0, n);
    b.cast(&y, dtype)
}

/// Indices as i64, n for all that are not within `0..n`.
fn within(b: &mut Builder, indices: &Val, n: usize) -> Val {
    if indices.dtype() == DType::U64 {
        return clamped(b, indices, n);
    }
    let wide = b.cast(indices, DType::I64);
    let (zero, end) = (b.whole(DType::I64, 0), b.whole(DType::I64, n as i64));
    let below = b.test("Less", &wide, &zero);
    let low = b.binary("Min", &wide, &end);
    b.choose(&below, &end, &low)
}

/// The first indices of a window of these sizes as a list, clamped so that the window stays inside.
fn starts(b: &mut Builder, x: &Val, sizes: &[usize], starts: &[Val], axes: &[usize]) -> Val {
    let each: Vec<Val> = axes
        .iter()
        .map(|&a| {
            let start = clamped(b, &starts[a], x.shape()[a] - sizes[a]);
            b.reshape(&start, &[1])
        })
        .collect();
    b.concatenate(&each.iter().collect::<Vec<_>>(), 0)
}

/// `dynamic_slice`.
pub fn dynamic_slice(b: &mut Builder, sizes: &[usize], x: &Val, indices: &[Val]) -> Val {
    let axes: Vec<usize> = (0..sizes.len()).filter(|&a| sizes[a] < x.shape()[a]).collect();
    if axes.is_empty() {
        return x.clone();
    }
    let from = starts(b, x, sizes, indices, &axes);
    let extents = b.list(&axes.iter().map(|&a| sizes[a] as i64).collect::<Vec<_>>());
    let to = b.binary("Add", &from, &extents);
    let along = b.list(&dims(&axes));
    let y = b.node("Slice", &[x, &from, &to, &along], vec![], x.ty.with_shape(sizes));
    // Its shape is known here, but not to whoever infers shapes.
    let shape = b.list(&dims(sizes));
    b.node("Reshape", &[&y, &shape], vec![AttributeProto::int("allowzero", 1)], y.ty.clone())
}

/// `dynamic_update_slice`: slices are set at a table of places, moved by the start indices.
pub fn dynamic_update_slice(b: &mut Builder, x: &Val, update: &Val, indices: &[Val]) -> Val {
    let sizes = update.shape().to_vec();
    if update.elements() == 0 {
        return x.clone();
    }
    // Axes up to the last one that the update does not fill.
    let Some(last) = (0..sizes.len()).rev().find(|&a| sizes[a] < x.shape()[a]) else { return update.clone() };
    let axes: Vec<usize> = (0..=last).collect();
    let from = starts(b, x, &sizes, indices, &axes);
    let rank = axes.len();
    let table: Vec<i64> = backfit_ir::interp::Odometer::new(&sizes[..rank]).flatten().map(|i| i as i64).collect();
    let table = b.table(&[&sizes[..rank], &[rank]].concat(), &table);
    let places = b.binary("Add", &table, &from);
    b.node("ScatterND", &[x, &places, update], vec![], x.ty.clone())
}

/// `sort`: ONNX's `TopK` breaks ties by position, so it is stable; NaN is brought to the end by a second one.
pub fn sort(b: &mut Builder, axis: usize, descending: bool, operands: &[Val]) -> Vec<Val> {
    let keys = b.ordered(&operands[0]);
    let order = if operands[0].dtype().is_float() {
        let nan = b.is_nan(&keys);
        let last = b.number(keys.dtype(), if descending { f64::NEG_INFINITY } else { f64::INFINITY });
        let numbers = b.choose(&nan, &last, &keys);
        let order = top(b, axis, descending, &numbers);
        let nan = b.cast(&nan, DType::I32);
        let moved = take(b, axis, &nan, &order);
        let end = top(b, axis, false, &moved);
        take(b, axis, &order, &end)
    } else {
        top(b, axis, descending, &keys)
    };
    operands.iter().map(|x| take(b, axis, x, &order)).collect()
}

/// The order of all elements along an axis.
fn top(b: &mut Builder, axis: usize, descending: bool, keys: &Val) -> Val {
    let count = b.list(&[keys.shape()[axis] as i64]);
    let attributes =
        vec![AttributeProto::int("axis", axis as i64), AttributeProto::int("largest", i64::from(descending))];
    let types = vec![keys.ty.clone(), keys.ty.with_dtype(DType::I64)];
    b.nodes("TopK", &[keys, &count], attributes, types).remove(1)
}

fn take(b: &mut Builder, axis: usize, x: &Val, order: &Val) -> Val {
    b.node("GatherElements", &[x, order], vec![AttributeProto::int("axis", axis as i64)], x.ty.clone())
}

/// `rng_bits`: Philox 4×32-10, its words in u64. Source: Salmon et al. 2011, as in `backfit_ir::ops::rng_bits`.
pub fn rng_bits(b: &mut Builder, key: &Val, result: &Type) -> Val {
    let n = result.shape.elements();
    let blocks = n.div_ceil(4);
    let wide = b.cast(key, DType::U64);
    let word = |b: &mut Builder, at: usize| {
        let one = b.narrow(&wide, 0, at, at + 1);
        b.reshape(&one, &[])
    };
    let [mut key0, mut key1, c2, c3] = [0, 1, 2, 3].map(|at| word(b, at));
    let count = b.count(blocks);
    let count = b.cast(&count, DType::U64);
    let [low, high] = halves(b, &count);
    let mut counter = [low, high, c2, c3];
    for round in 0..10 {
        if round > 0 {
            key0 = bumped(b, &key0, 0x9E37_79B9);
            key1 = bumped(b, &key1, 0xBB67_AE85);
        }
        let [low0, high0] = multiplied(b, &counter[0], 0xD251_1F53);
        let [low1, high1] = multiplied(b, &counter[2], 0xCD9E_8D57);
        let mixed = |b: &mut Builder, high: &Val, word: &Val, key: &Val| {
            let once = b.binary("BitwiseXor", high, word);
            b.binary("BitwiseXor", &once, key)
        };
        counter = [mixed(b, &high1, &counter[1], &key0), low1, mixed(b, &high0, &counter[3], &key1), low0];
    }
    let columns: Vec<Val> = counter
        .iter()
        .map(|word| {
            let all = b.broadcast(word, &[blocks].into(), if word.shape().rank() == 0 { &[] } else { &[0] });
            b.reshape(&all, &[blocks, 1])
        })
        .collect();
    let rows = b.concatenate(&columns.iter().collect::<Vec<_>>(), 1);
    let bits = b.reshape(&rows, &[4 * blocks]);
    let bits = b.narrow(&bits, 0, 0, n);
    let bits = b.cast(&bits, DType::U32);
    b.reshape(&bits, &result.shape)
}

/// The lower and the upper 32 bits.
fn halves(b: &mut Builder, x: &Val) -> [Val; 2] {
    let (mask, places) = (b.whole(DType::U64, 0xffff_ffff), b.whole(DType::U64, 32));
    let low = b.binary("BitwiseAnd", x, &mask);
    let right = AttributeProto::text("direction", "RIGHT");
    let high = b.node("BitShift", &[x, &places], vec![right], x.ty.clone());
    [low, high]
}

fn multiplied(b: &mut Builder, x: &Val, by: i64) -> [Val; 2] {
    let by = b.whole(DType::U64, by);
    let product = b.binary("Mul", x, &by);
    halves(b, &product)
}

fn bumped(b: &mut Builder, key: &Val, by: i64) -> Val {
    let by = b.whole(DType::U64, by);
    let sum = b.binary("Add", key, &by);
    halves(b, &sum)[0].clone()
}
