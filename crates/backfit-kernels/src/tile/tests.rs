use super::*;
use crate::context::Addr;
use crate::elem::{Elem, Lane};
use crate::harness::{Random, addr, bytes_of, run, values_of};

fn full(lane: Lane) -> Slot {
    Slot { lane, row: false }
}

fn load(at: usize, elem: Elem, outer_strides: &[isize], col_stride: isize, slot: SlotId) -> Load {
    Load { addr: addr(at), elem, outer_strides: outer_strides.to_vec(), col_stride, slot }
}

fn store(at: usize, elem: Elem, outer_strides: &[isize], col_stride: isize, slot: SlotId) -> Store {
    Store { addr: addr(at), elem, outer_strides: outer_strides.to_vec(), col_stride, slot }
}

fn f32s(memory: &[u8], at: usize, n: usize) -> Vec<f32> {
    values_of!(f32, memory[at..at + 4 * n])
}

/// One unary or binary operation over `n` contiguous elements, in types given by their stored bytes.
fn apply(op: impl Fn(Elem) -> Op, elem: Elem, out: Elem, operands: &[Vec<u8>]) -> Vec<u8> {
    let n = operands[0].len() / elem.size();
    let mut memory = Vec::new();
    let mut loads = Vec::new();
    for (i, operand) in operands.iter().enumerate() {
        memory.resize(memory.len().next_multiple_of(8), 0);
        loads.push(load(memory.len(), elem, &[], 1, i as SlotId));
        memory.extend(operand);
    }
    memory.resize(memory.len().next_multiple_of(8), 0);
    let at = memory.len();
    memory.resize(at + n * out.size(), 0);
    let mut slots = vec![full(elem.lane()); operands.len()];
    slots.push(full(out.lane()));
    let group = Group {
        outer: vec![],
        cols: n,
        slots,
        loads,
        ops: vec![op(elem)],
        stores: vec![store(at, out, &[], 1, operands.len() as SlotId)],
    };
    run(vec![Tile::new(group).unwrap().into()], &memory)[at..].to_vec()
}

#[test]
fn integer_arithmetic_is_that_of_stablehlo() {
    let a = [7i32, -7, i32::MIN, 5, -5, 1, 0, 3];
    let b = [2i32, 2, -1, 0, 0, 33, 40, -1];
    let got = |op| {
        let op = |elem| Op::Binary { op, elem, a: 0, b: 1, to: 2 };
        values_of!(i32, apply(op, Elem::I32, Elem::I32, &[bytes_of!(a), bytes_of!(b)]))
    };
    assert_eq!(got(Binary::Div), [3, -3, i32::MIN, -1, -1, 0, 0, -3]);
    assert_eq!(got(Binary::Rem), [1, -1, 0, 5, -5, 1, 0, 0]);
    assert_eq!(got(Binary::ShiftLeft), [28, -28, 0, 5, -5, 0, 0, 0]);
    assert_eq!(got(Binary::ShiftRight), [1, -2, -1, 5, -5, 0, 0, 0]);
    assert_eq!(got(Binary::Pow), [49, 49, 0, 1, 1, 1, 0, 0]);
    let unsigned = |op| {
        let op = |elem| Op::Binary { op, elem, a: 0, b: 1, to: 2 };
        values_of!(u32, apply(op, Elem::U32, Elem::U32, &[bytes_of!(a), bytes_of!(b)]))
    };
    assert_eq!(unsigned(Binary::Div)[..3], [3, (u32::MAX - 6) / 2, 0]);
    assert_eq!(unsigned(Binary::ShiftRight)[1], (u32::MAX - 6) >> 2);
    let narrow = |op| {
        let op = |elem| Op::Binary { op, elem, a: 0, b: 1, to: 2 };
        apply(op, Elem::I8, Elem::I8, &[vec![100, 128, 128], vec![100, 255, 1]])
    };
    assert_eq!(narrow(Binary::Add), [200, 127, 129]);
    assert_eq!(narrow(Binary::Div), [1, 128, 128]);
}

#[test]
fn casts_saturate_truncate_and_wrap() {
    let cast =
        |source, target, x: Vec<u8>| apply(|_| Op::Cast { source, target, from: 0, to: 1 }, source, target, &[x]);
    let x = bytes_of!([1.9f32, -1.9, 300.0, -300.0, f32::NAN, 1e20, f32::NEG_INFINITY]);
    assert_eq!(cast(Elem::F32, Elem::I8, x.clone()), [1i8, -1, 127, -128, 0, 127, -128].map(|v| v as u8));
    assert_eq!(cast(Elem::F32, Elem::U8, x.clone()), [1, 0, 255, 0, 0, 255, 0]);
    assert_eq!(cast(Elem::F32, Elem::Bool, x.clone()), [1; 7]);
    let max = i64::MAX;
    assert_eq!(values_of!(i64, cast(Elem::F32, Elem::I64, x)), [1, -1, 300, -300, 0, max, i64::MIN]);
    assert_eq!(cast(Elem::I32, Elem::U8, bytes_of!([257i32, -1])), [1, 255]);
    assert_eq!(values_of!(f32, cast(Elem::U32, Elem::F32, bytes_of!([u32::MAX]))), [4_294_967_296.0]);
    assert_eq!(values_of!(i64, cast(Elem::U32, Elem::I64, bytes_of!([u32::MAX]))), [4_294_967_295]);
    assert_eq!(values_of!(f64, cast(Elem::U64, Elem::F64, bytes_of!([u64::MAX]))), [18_446_744_073_709_551_616.0]);
    let f16 = values_of!(u16, cast(Elem::F64, Elem::F16, bytes_of!([1.0f64 + 2f64.powi(-11) + 2f64.powi(-40)])));
    assert_eq!(f16, [half::f16::from_f32(1.0 + 2f32.powi(-10)).to_bits()]);
}

#[test]
fn half_precision_rounds_after_each_operation() {
    let mut random = Random::new(11);
    let a: Vec<half::f16> = (0..600).map(|_| half::f16::from_f32(random.unit() * 100.0)).collect();
    let b: Vec<half::f16> = (0..600).map(|_| half::f16::from_f32(random.unit())).collect();
    let bits = |v: &[half::f16]| v.iter().flat_map(|x| x.to_bits().to_ne_bytes()).collect::<Vec<u8>>();
    let op = |elem| Op::Binary { op: Binary::Mul, elem, a: 0, b: 1, to: 2 };
    let got = values_of!(u16, apply(op, Elem::F16, Elem::F16, &[bits(&a), bits(&b)]));
    for i in 0..600 {
        assert_eq!(got[i], half::f16::from_f32(a[i].to_f32() * b[i].to_f32()).to_bits());
    }
}

#[test]
fn reduced_precision_equals_conversion_to_the_narrow_type() {
    let mut random = Random::new(13);
    let x: Vec<f32> = (0..3000).map(|_| f32::from_bits(random.next())).collect();
    let reduce = |exponent, mantissa| {
        let op = |elem| Op::ReducePrecision { exponent, mantissa, elem, from: 0, to: 1 };
        values_of!(f32, apply(op, Elem::F32, Elem::F32, &[bytes_of!(x)]))
    };
    let (bf16, f16, all) = (reduce(8, 7), reduce(5, 10), reduce(8, 23));
    for (i, &x) in x.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
        assert_eq!(all[i].to_bits(), x.to_bits());
        assert_eq!(bf16[i].to_bits(), half::bf16::from_f32(x).to_f32().to_bits());
        let want = half::f16::from_f32(x);
        if want.is_normal() || want.is_infinite() {
            assert_eq!(f16[i].to_bits(), want.to_f32().to_bits());
        }
    }
}

#[test]
fn bits_survive_bitcasts() {
    let x: Vec<f32> = vec![1.5, -0.0, f32::INFINITY];
    let op = |_| Op::Bitcast { source: Elem::F32, target: Elem::U32, from: 0, to: 1 };
    assert_eq!(
        values_of!(u32, apply(op, Elem::F32, Elem::U32, &[bytes_of!(x)])),
        [0x3fc0_0000, 0x8000_0000, 0x7f80_0000]
    );
    let op = |_| Op::Bitcast { source: Elem::BF16, target: Elem::I16, from: 0, to: 1 };
    assert_eq!(values_of!(u16, apply(op, Elem::BF16, Elem::I16, &[bytes_of!([0x3f81u16, 0xff80])])), [0x3f81, 0xff80]);
}

/// Softmax of rows in one pass.
fn softmax(rows: usize, cols: usize) -> Group {
    let f = Lane::F32;
    let row = Slot { lane: f, row: true };
    let e = Elem::F32;
    let stride = [cols as isize];
    Group {
        outer: vec![rows],
        cols,
        slots: vec![full(f), row, full(f), full(f), full(f), row, full(f), full(f)],
        loads: vec![load(0, e, &stride, 1, 0)],
        ops: vec![
            Op::RowReduce { op: Reduction::Max, elem: e, from: 0, to: 1 },
            Op::Expand { from: 1, to: 2 },
            Op::Binary { op: Binary::Sub, elem: e, a: 0, b: 2, to: 3 },
            Op::Unary { op: Unary::Exp, elem: e, from: 3, to: 4 },
            Op::RowReduce { op: Reduction::Sum, elem: e, from: 4, to: 5 },
            Op::Expand { from: 5, to: 6 },
            Op::Binary { op: Binary::Div, elem: e, a: 4, b: 6, to: 7 },
        ],
        stores: vec![store(0, e, &stride, 1, 7)],
    }
}

#[test]
fn a_softmax_in_one_pass_and_in_place_is_right() {
    let mut random = Random::new(17);
    for (rows, cols) in [(1, 1), (7, 10), (100, 17), (3, 2000), (2, 512)] {
        let x: Vec<f32> = (0..rows * cols).map(|_| random.unit() * 20.0).collect();
        let got = run(vec![Tile::new(softmax(rows, cols)).unwrap().into()], &bytes_of!(x));
        let got = values_of!(f32, got);
        for r in 0..rows {
            let row = &x[r * cols..][..cols];
            let max = row.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
            let exps: Vec<f64> = row.iter().map(|&v| f64::from(v - max).exp()).collect();
            let sum: f64 = exps.iter().sum();
            for c in 0..cols {
                assert!((f64::from(got[r * cols + c]) - exps[c] / sum).abs() < 1e-6 * exps[c] / sum + 1e-30);
            }
        }
    }
}

/// Random chains over operands of every layout.
fn random_group(random: &mut Random) -> (Group, usize) {
    let rank = random.below(3);
    let outer: Vec<usize> = (0..rank).map(|_| 1 + random.below(9)).collect();
    let cols = [1, 3, 16, 100, 700, 1500][random.below(6)];
    let mut at = 0;
    let mut group = Group { outer: outer.clone(), cols, ..Group::default() };
    for slot in 0..3 {
        // Contiguous, transposed or broadcast along each axis, by a random order of the axes.
        let mut order: Vec<usize> = (0..=rank).collect();
        if random.below(2) == 0 {
            (0..=rank).for_each(|i| order.swap(i, random.below(i + 1)));
        }
        let mut strides = vec![0isize; rank + 1];
        let mut step = 1;
        for &axis in order.iter().rev() {
            if random.below(4) > 0 {
                strides[axis] = step;
                step *= outer.iter().chain([&cols]).nth(axis).copied().unwrap() as isize;
            }
        }
        group.loads.push(load(at, Elem::F32, &strides[..rank], strides[rank], slot));
        group.slots.push(full(Lane::F32));
        at += step as usize * 4;
    }
    for to in 3..10u16 {
        let (a, b) = (random.below(to as usize) as SlotId, random.below(to as usize) as SlotId);
        let elem = Elem::F32;
        group.ops.push(match random.below(6) {
            0 => Op::Unary { op: Unary::Tanh, elem, from: a, to },
            1 => Op::Constant { bits: u64::from(0.75f32.to_bits()), to },
            2 => Op::Iota { axis: random.below(rank + 1), elem, to },
            3 => Op::Binary { op: Binary::Add, elem, a, b, to },
            4 => Op::Binary { op: Binary::Mul, elem, a, b, to },
            _ => Op::Binary { op: Binary::Maximum, elem, a, b, to },
        });
        group.slots.push(full(Lane::F32));
    }
    (group, at)
}

fn contiguous(outer: &[usize], cols: usize) -> Vec<isize> {
    let mut step = cols as isize;
    let mut strides: Vec<isize> = outer
        .iter()
        .rev()
        .map(|&n| {
            let s = step;
            step *= n as isize;
            s
        })
        .collect();
    strides.reverse();
    strides
}

#[test]
fn a_fused_group_gives_the_bits_of_its_operations_one_by_one() {
    let mut random = Random::new(23);
    for _ in 0..60 {
        let (mut group, inputs) = random_group(&mut random);
        let count = group.outer.iter().product::<usize>() * group.cols;
        let strides = contiguous(&group.outer, group.cols);
        let mut memory: Vec<u8> = bytes_of!((0..inputs / 4).map(|_| random.unit()).collect::<Vec<_>>());
        let temporary = |slot: SlotId| inputs + slot as usize * count * 4;
        memory.resize(temporary(11), 0);
        // Unfused: every load and every operation is a group of its own, with whole temporaries.
        let mut chain = Vec::new();
        for l in &group.loads {
            let alone = Group {
                ops: vec![],
                loads: vec![l.clone()],
                stores: vec![store(temporary(l.slot), Elem::F32, &strides, 1, l.slot)],
                ..group.clone()
            };
            chain.push(Tile::new(alone).unwrap().into());
        }
        for op in &group.ops {
            let mut loads = Vec::new();
            op.each_read(&mut |id| loads.push(load(temporary(id), Elem::F32, &strides, 1, id)));
            let stores = vec![store(temporary(op.to()), Elem::F32, &strides, 1, op.to())];
            let alone = Group { ops: vec![op.clone()], loads, stores, ..group.clone() };
            chain.push(Tile::new(alone).unwrap().into());
        }
        group.stores = vec![store(temporary(10), Elem::F32, &strides, 1, 9)];
        let unfused = run(chain, &memory);
        let fused = run(vec![Tile::new(group.clone()).unwrap().into()], &memory);
        let (a, b) = (f32s(&unfused, temporary(9), count), f32s(&fused, temporary(10), count));
        for i in 0..count {
            assert_eq!(a[i].to_bits(), b[i].to_bits(), "element {i} of {group:?}");
        }
    }
}

#[test]
fn swapping_two_arrays_in_one_group_works() {
    let n = 1000;
    let x: Vec<f32> = (0..2 * n).map(|i| i as f32).collect();
    let group = Group {
        outer: vec![],
        cols: n,
        slots: vec![full(Lane::F32); 2],
        loads: vec![load(0, Elem::F32, &[], 1, 0), load(4 * n, Elem::F32, &[], 1, 1)],
        ops: vec![],
        stores: vec![store(0, Elem::F32, &[], 1, 1), store(4 * n, Elem::F32, &[], 1, 0)],
    };
    let got = values_of!(f32, run(vec![Tile::new(group).unwrap().into()], &bytes_of!(x)));
    assert!((0..n).all(|i| got[i] == (n + i) as f32 && got[n + i] == i as f32));
}

#[test]
fn row_slots_load_store_and_count() {
    let (a, b, cols) = (4usize, 5usize, 600usize);
    let row = Slot { lane: Lane::F32, row: true };
    let rows = a * b;
    // out[i, j, c] = row[j, i] + i + j·c, and copy of the row.
    let group = Group {
        outer: vec![a, b],
        cols,
        slots: vec![row, row, row, full(Lane::F32), full(Lane::F32), full(Lane::F32), full(Lane::F32), full(Lane::F32)],
        loads: vec![load(0, Elem::F32, &[1, a as isize], 0, 0)],
        ops: vec![
            Op::Iota { axis: 0, elem: Elem::F32, to: 1 },
            Op::Binary { op: Binary::Add, elem: Elem::F32, a: 0, b: 1, to: 2 },
            Op::Expand { from: 2, to: 3 },
            Op::Iota { axis: 1, elem: Elem::F32, to: 4 },
            Op::Iota { axis: 2, elem: Elem::F32, to: 5 },
            Op::Binary { op: Binary::Mul, elem: Elem::F32, a: 4, b: 5, to: 6 },
            Op::Binary { op: Binary::Add, elem: Elem::F32, a: 3, b: 6, to: 7 },
        ],
        stores: vec![
            store(rows * 4, Elem::F32, &[b as isize, 1], 0, 2),
            store(rows * 8, Elem::F32, &[(b * cols) as isize, cols as isize], 1, 7),
        ],
    };
    let x: Vec<f32> = (0..rows).map(|i| 100.0 * i as f32).collect();
    let mut memory = bytes_of!(x);
    memory.resize(rows * 8 + rows * cols * 4, 0);
    let got = values_of!(f32, run(vec![Tile::new(group).unwrap().into()], &memory));
    for i in 0..a {
        for j in 0..b {
            let value = x[j * a + i] + i as f32;
            assert_eq!(got[rows + i * b + j], value);
            for c in 0..cols {
                assert_eq!(got[2 * rows + (i * b + j) * cols + c], value + (j * c) as f32);
            }
        }
    }
}

#[test]
fn inconsistent_groups_are_refused() {
    let good = softmax(2, 4);
    let refused = |change: &dyn Fn(&mut Group)| {
        let mut group = good.clone();
        change(&mut group);
        Tile::new(group).unwrap_err()
    };
    assert!(Tile::new(good.clone()).is_ok());
    refused(&|g| g.cols = MAX_REDUCED_COLS + 1);
    refused(&|g| g.loads[0].slot = 99);
    refused(&|g| g.loads[0].outer_strides.push(1));
    refused(&|g| g.slots[0].lane = Lane::F64);
    refused(&|g| g.ops[2] = Op::Binary { op: Binary::Sub, elem: Elem::F32, a: 0, b: 1, to: 3 });
    refused(&|g| g.ops[3] = Op::Unary { op: Unary::Exp, elem: Elem::F32, from: 4, to: 4 });
    refused(&|g| g.ops.swap(0, 1));
    refused(&|g| g.stores[0].slot = 6 + 100);
    refused(&|g| g.outer = vec![usize::MAX, 3]);
    refused(&|g| g.loads[0].addr = Addr { base: 0, offset: usize::MAX - 3 });
}
