//! Speed of matrix products relative to the `gemm` crate: `cargo run --release --example gemm_bench`.
//!
//! Both are run in alternation; medians are printed.

#![allow(unsafe_code)]

use backfit_kernels::context::Addr;
use backfit_kernels::elem::Elem;
use backfit_kernels::gemm::{Batch, Gemm, Matrix};
use backfit_kernels::isa::Isa;

#[path = "support/bench.rs"]
mod bench;
use bench::{Pair, Team};

/// m, k, n, batch, whether a and b are stored transposed.
type Case = (usize, usize, usize, usize, bool, bool);

const CASES: &[Case] = &[
    (128, 784, 256, 1, false, false),
    (128, 784, 256, 1, false, true),
    (128, 256, 10, 1, false, false),
    (256, 128, 784, 1, true, false),
    (256, 128, 10, 1, true, false),
    (64, 784, 256, 1, false, true),
    (1, 784, 256, 1, false, false),
    (512, 768, 768, 1, false, false),
    (512, 768, 768, 1, false, true),
    (768, 512, 768, 1, true, false),
    (1024, 1024, 1024, 1, false, false),
    (32, 32, 64, 64, false, false),
    (64, 64, 64, 64, false, true),
];

fn main() {
    let isa = Isa::detect().expect("an instruction set");
    println!("{isa:?}; GFLOP/s, median of alternating runs");
    for threads in [1, 2] {
        let team = Team::new(threads);
        let filter = std::env::args().nth(1).unwrap_or_default();
        for &case in CASES.iter().filter(|case| format!("{case:?}").contains(&filter)) {
            measure(isa, &team, case);
        }
    }
}

/// Strides (row, column) of a dense rows × cols matrix.
fn strides(rows: usize, cols: usize, transposed: bool) -> (isize, isize) {
    if transposed { (1, rows as isize) } else { (cols as isize, 1) }
}

fn measure(isa: Isa, team: &Team, (m, k, n, batch, ta, tb): Case) {
    let a = vec![0.5f32; batch * m * k];
    let b = vec![0.25f32; batch * k * n];
    let mut c = vec![0f32; batch * m * n];
    let mut d = c.clone();
    let (a_strides, b_strides) = (strides(m, k, ta), strides(k, n, tb));
    let matrix = |base, (row_stride, col_stride)| Matrix {
        addr: Addr { base, offset: 0 },
        elem: Elem::F32,
        row_stride,
        col_stride,
    };
    let ours = Gemm {
        m,
        n,
        k,
        batch: vec![Batch {
            size: batch,
            a_stride: (m * k) as isize,
            b_stride: (k * n) as isize,
            c_stride: (m * n) as isize,
        }],
        a: matrix(0, a_strides),
        b: matrix(1, b_strides),
        c: matrix(2, (n as isize, 1)),
        acc: Elem::F32,
        accumulate: false,
    };
    ours.check().expect("a valid product");
    let bases = [a.as_ptr() as *mut u8, b.as_ptr() as *mut u8, c.as_mut_ptr().cast()];
    let scratch = ours.scratch_bytes();
    let parallelism =
        if team.threads() == 1 { gemm::Parallelism::None } else { gemm::Parallelism::Rayon(team.threads()) };
    let pair = Pair::alternate(
        // SAFETY: the bases are valid for the accesses of the checked instruction.
        || team.run(isa, &bases, scratch, |ctx| unsafe { ours.run(ctx) }),
        || {
            for i in 0..batch {
                // SAFETY: the pointers are valid for the matrices.
                unsafe {
                    gemm::gemm(
                        m,
                        n,
                        k,
                        d.as_mut_ptr().add(i * m * n),
                        1,
                        n as isize,
                        false,
                        a.as_ptr().add(i * m * k),
                        a_strides.1,
                        a_strides.0,
                        b.as_ptr().add(i * k * n),
                        b_strides.1,
                        b_strides.0,
                        0.0,
                        1.0,
                        false,
                        false,
                        false,
                        parallelism,
                    );
                }
            }
        },
    );
    assert!(c.iter().zip(&d).all(|(x, y)| (x - y).abs() <= 1e-3 * y.abs()));
    let name = format!("{batch} x {m}x{k}x{n}{}{}", if ta { " aT" } else { "" }, if tb { " bT" } else { "" });
    pair.print(&name, team.threads(), 2.0 * (batch * m * n * k) as f64);
}
