use super::*;
use crate::testing::{Buffer, Random, at, outputs};

/// A random layout of a batched rows × cols matrix: strides of (batch, row, col), first element, elements in all.
fn layout(random: &mut Random, [batch, rows, cols]: [usize; 3], kind: usize) -> ([isize; 3], usize, usize) {
    let [b, r, c] = [batch.max(1), rows.max(1), cols.max(1)].map(|x| x as isize);
    let gap = random.below(3) as isize;
    let (strides, length) = match kind {
        0 => ([r * c, c, 1], b * r * c),
        1 => ([r * c, 1, r], b * r * c),
        2 => ([r * (c + gap), -(c + gap), 1], b * r * (c + gap)),
        3 => ([2 * c * r, 2 * c, -2], b * r * c * 2),
        4 => ([c, c * b, 1], b * r * c),
        _ => ([0, 1, r], r * c),
    };
    let start: isize = strides.iter().zip([b, r, c]).map(|(&s, n)| (-s).max(0) * (n - 1)).sum();
    (strides, start as usize, length as usize + 3)
}

struct Case {
    sizes: [usize; 4],
    elems: [Elem; 4],
    kinds: [usize; 3],
    accumulate: bool,
}

/// Runs the case and compares with sums in f64.
fn verify(case: &Case, random: &mut Random) {
    let ([batch, m, n, k], [a_elem, b_elem, c_elem, acc]) = (case.sizes, case.elems);
    let (a, a_at, a_len) = layout(random, [batch, m, k], case.kinds[0]);
    let (b, b_at, b_len) = layout(random, [batch, k, n], case.kinds[1]);
    let (c, c_at, c_len) = layout(random, [batch, m, n], case.kinds[2]);
    let matrix = |base, elem, start, [_, row_stride, col_stride]: [isize; 3]| Matrix {
        addr: at(base, elem, start),
        elem,
        row_stride,
        col_stride,
    };
    let gemm = Gemm {
        m,
        n,
        k,
        batch: vec![Batch { size: batch, a_stride: a[0], b_stride: b[0], c_stride: c[0] }],
        a: matrix(0, a_elem, a_at, a),
        b: matrix(1, b_elem, b_at, b),
        c: matrix(2, c_elem, c_at, c),
        acc,
        accumulate: case.accumulate,
    };
    let before = [
        Buffer::random(a_elem, a_len, random),
        Buffer::random(b_elem, b_len, random),
        Buffer::random(c_elem, c_len, random),
    ];
    let after = outputs(&before, &gemm);
    let index = |start: usize, s: [isize; 3], i: [usize; 3]| {
        (start as isize + s.iter().zip(i).map(|(&s, i)| s * i as isize).sum::<isize>()) as usize
    };
    for item in 0..batch {
        for i in 0..m {
            for j in 0..n {
                let old = before[2].get(index(c_at, c, [item, i, j]));
                let start = if case.accumulate { old } else { 0.0 };
                let want = (0..k).fold(start, |sum, p| {
                    let x = before[0].get(index(a_at, a, [item, i, p]));
                    sum + x * before[1].get(index(b_at, b, [item, p, j]))
                });
                let got = after[2].get(index(c_at, c, [item, i, j]));
                let want = Buffer::of(c_elem, &[want]).get(0);
                let close = (got - want).abs() <= tolerance(c_elem) * (k as f64 + want.abs());
                assert!(close, "{got} is not {want}: {:?} {:?}", case.sizes, case.elems);
            }
        }
    }
}

fn tolerance(elem: Elem) -> f64 {
    match elem {
        Elem::F64 => 1e-14,
        Elem::F32 => 1e-6,
        Elem::F16 => 1e-3,
        Elem::BF16 => 1e-2,
        _ => 0.0,
    }
}

const F32: [Elem; 4] = [Elem::F32; 4];

#[test]
fn products_equal_sums_for_random_shapes_and_layouts() {
    let mut random = Random(1);
    for _ in 0..150 {
        let size = |random: &mut Random| random.pick(&[1, 1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 40]);
        let sizes = [random.pick(&[1, 1, 2, 5]), size(&mut random), size(&mut random), size(&mut random)];
        let kinds = [random.below(6), random.below(6), random.below(5)];
        let accumulate = random.below(2) == 1;
        let elems = random.pick(&[F32, F32, [Elem::F64; 4]]);
        verify(&Case { sizes, elems, kinds, accumulate }, &mut random);
    }
}

#[test]
fn long_inner_dimensions_and_large_results_are_cut_into_blocks() {
    let mut random = Random(2);
    for (sizes, elems) in [
        ([1, 3, 4, 1000], F32),
        ([1, 150, 20, 390], F32),
        ([1, 2, 530, 20], F32),
        ([1, 150, 20, 400], [Elem::BF16, Elem::BF16, Elem::BF16, Elem::F32]),
        ([1, 20, 17, 900], [Elem::F64; 4]),
    ] {
        for kinds in [[0, 0, 0], [1, 1, 1], [2, 3, 3]] {
            for accumulate in [false, true] {
                verify(&Case { sizes, elems, kinds, accumulate }, &mut random);
            }
        }
    }
}

#[test]
fn every_element_type_multiplies() {
    let mut random = Random(3);
    let half = [Elem::F16, Elem::BF16];
    let mut all = vec![
        [Elem::BF16, Elem::F32, Elem::F16, Elem::F32],
        [Elem::F32, Elem::F16, Elem::F32, Elem::F64],
        [Elem::I8, Elem::I8, Elem::I32, Elem::I32],
        [Elem::U8, Elem::I8, Elem::I32, Elem::I32],
        [Elem::Bool, Elem::U32, Elem::U64, Elem::U64],
    ];
    all.extend(half.map(|h| [h, h, h, Elem::F32]));
    all.extend([Elem::I64, Elem::I32, Elem::U64, Elem::U32].map(|e| [e; 4]));
    for elems in all {
        for sizes in [[1, 5, 7, 11], [3, 1, 20, 4]] {
            verify(&Case { sizes, elems, kinds: [0, 1, 0], accumulate: true }, &mut random);
        }
    }
}

#[test]
fn integers_wrap() {
    let matrix = |base| Matrix { addr: at(base, Elem::I8, 0), elem: Elem::I8, row_stride: 2, col_stride: 1 };
    let gemm = Gemm {
        m: 1,
        n: 1,
        k: 2,
        batch: vec![],
        a: matrix(0),
        b: Matrix { row_stride: 1, ..matrix(1) },
        c: matrix(2),
        acc: Elem::I8,
        accumulate: false,
    };
    let ones = Buffer::of(Elem::I8, &[100.0, 100.0]);
    let after = outputs(&[ones.clone(), Buffer::of(Elem::I8, &[1.0, 1.0]), ones], &gemm);
    assert_eq!(after[2].get(0), -56.0);
}

#[test]
fn an_empty_inner_dimension_gives_zeros_or_keeps_the_result() {
    let mut random = Random(4);
    for accumulate in [false, true] {
        for sizes in [[1, 5, 18, 0], [2, 0, 3, 4], [0, 3, 3, 3]] {
            verify(&Case { sizes, elems: F32, kinds: [0, 0, 0], accumulate }, &mut random);
        }
    }
}

#[test]
fn overlapping_results_and_unknown_types_are_refused() {
    let matrix = |base| Matrix { addr: at(base, Elem::F32, 0), elem: Elem::F32, row_stride: 3, col_stride: 1 };
    let good = Gemm {
        m: 2,
        n: 3,
        k: 3,
        batch: vec![],
        a: matrix(0),
        b: matrix(1),
        c: matrix(2),
        acc: Elem::F32,
        accumulate: false,
    };
    assert!(good.check().is_ok());
    let overlapping = Gemm { c: Matrix { row_stride: 2, ..good.c }, ..good.clone() };
    assert!(overlapping.check().is_err());
    let mixed = Gemm { b: Matrix { elem: Elem::I32, ..good.b }, ..good.clone() };
    assert!(mixed.check().is_err());
    let before = Gemm { b: Matrix { row_stride: -3, ..good.b }, ..good };
    assert!(before.check().is_err());
}
