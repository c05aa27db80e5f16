//! Speed of 3×3 convolutions and their gradients relative to im2col and the `gemm` crate:
//! `cargo run --release --example convolution_bench`.
#![allow(unsafe_code)]

use backfit_kernels::context::Addr;
use backfit_kernels::convolution::{Convolution, Spatial, Tensor};
use backfit_kernels::elem::Elem;
use backfit_kernels::isa::Isa;

#[path = "support/bench.rs"]
mod bench;
use bench::{Pair, Team};

const IMAGES: usize = 64;

fn main() {
    let isa = Isa::detect().expect("an instruction set");
    println!("{isa:?}; GFLOP/s, median of alternating runs");
    for threads in [1, 2] {
        let team = Team::new(threads);
        for (inputs, outputs, side, stride) in [(3, 32, 32, 1), (32, 64, 16, 1), (64, 64, 8, 1), (32, 64, 32, 2)] {
            let shape = Shape { inputs, outputs, side, out: side / stride, stride };
            measure("forward", isa, &team, shape.forward(), shape);
            measure("gradient of input", isa, &team, shape.input_gradient(), shape);
            measure("gradient of kernel", isa, &team, shape.kernel_gradient(), shape);
        }
    }
}

/// A 3×3 convolution with padding 1 in NCHW: channels, sides of input and output, stride.
#[derive(Clone, Copy)]
struct Shape {
    inputs: usize,
    outputs: usize,
    side: usize,
    out: usize,
    stride: usize,
}

fn tensor(base: u16, elements: usize) -> Tensor {
    Tensor { addr: Addr { base, offset: elements * 4 }, elem: Elem::F32 }
}

impl Shape {
    fn forward(self) -> Convolution {
        let dim = |lhs: usize, rhs: isize, out: usize| Spatial {
            input: self.side,
            kernel: 3,
            output: self.out,
            stride: self.stride,
            padding_low: 1,
            base_dilation: 1,
            window_dilation: 1,
            lhs_stride: lhs as isize,
            rhs_stride: rhs,
            out_stride: out as isize,
        };
        let (plane, out_plane) = (self.side * self.side, self.out * self.out);
        Convolution {
            lhs: tensor(0, 0),
            rhs: tensor(1, 0),
            out: tensor(2, 0),
            acc: Elem::F32,
            groups: 1,
            batch: IMAGES,
            in_channels: self.inputs,
            out_channels: self.outputs,
            lhs_group_stride: 0,
            lhs_batch_stride: (self.inputs * plane) as isize,
            lhs_feature_stride: plane as isize,
            rhs_group_stride: 0,
            rhs_out_stride: 9 * self.inputs as isize,
            rhs_in_stride: 9,
            out_group_stride: 0,
            out_batch_stride: (self.outputs * out_plane) as isize,
            out_feature_stride: out_plane as isize,
            spatial: vec![dim(self.side, 3, self.out), dim(1, 1, 1)],
        }
    }

    /// Output gradient, dilated by the stride, convolved with the reversed kernel.
    fn input_gradient(self) -> Convolution {
        let forward = self.forward();
        let spatial = forward.spatial.iter().map(|s| Spatial {
            input: s.output,
            output: s.input,
            stride: 1,
            base_dilation: s.stride,
            lhs_stride: s.out_stride,
            rhs_stride: -s.rhs_stride,
            out_stride: s.lhs_stride,
            ..*s
        });
        Convolution {
            rhs: tensor(1, 8),
            in_channels: self.outputs,
            out_channels: self.inputs,
            lhs_batch_stride: forward.out_batch_stride,
            lhs_feature_stride: forward.out_feature_stride,
            rhs_out_stride: forward.rhs_in_stride,
            rhs_in_stride: forward.rhs_out_stride,
            out_batch_stride: forward.lhs_batch_stride,
            out_feature_stride: forward.lhs_feature_stride,
            spatial: spatial.collect(),
            ..forward
        }
    }

    /// Input convolved with the output gradient, batch and channels swapped.
    fn kernel_gradient(self) -> Convolution {
        let forward = self.forward();
        let spatial = forward.spatial.iter().map(|s| Spatial {
            kernel: s.output,
            output: s.kernel,
            stride: 1,
            window_dilation: s.stride,
            rhs_stride: s.out_stride,
            out_stride: s.rhs_stride,
            ..*s
        });
        Convolution {
            batch: self.inputs,
            in_channels: IMAGES,
            lhs_batch_stride: forward.lhs_feature_stride,
            lhs_feature_stride: forward.lhs_batch_stride,
            rhs_out_stride: forward.out_feature_stride,
            rhs_in_stride: forward.out_batch_stride,
            out_batch_stride: forward.rhs_in_stride,
            out_feature_stride: forward.rhs_out_stride,
            spatial: spatial.collect(),
            ..forward
        }
    }
}

/// im2col of all images, then one product for all of them: out = kernel · columns.
fn im2col(c: &Convolution, lhs: &[f32], columns: &mut [f32]) {
    let [y, x] = [c.spatial[0], c.spatial[1]];
    let width = c.batch * y.output * x.output;
    let valid = |s: &Spatial, o: usize, k: usize| {
        let q = (o * s.stride + k * s.window_dilation) as isize - s.padding_low;
        let inside = q >= 0 && q % s.base_dilation as isize == 0 && q / (s.base_dilation as isize) < s.input as isize;
        inside.then_some(q / s.base_dilation as isize)
    };
    let mut row = 0;
    for i in 0..c.in_channels {
        for ky in 0..y.kernel {
            for kx in 0..x.kernel {
                let line = &mut columns[row * width..][..width];
                row += 1;
                let mut at = 0;
                for b in 0..c.batch {
                    let plane = b as isize * c.lhs_batch_stride + i as isize * c.lhs_feature_stride;
                    for oy in 0..y.output {
                        let vy = valid(&y, oy, ky);
                        for ox in 0..x.output {
                            line[at] = match (vy, valid(&x, ox, kx)) {
                                (Some(qy), Some(qx)) => lhs[(plane + qy * y.lhs_stride + qx * x.lhs_stride) as usize],
                                _ => 0.0,
                            };
                            at += 1;
                        }
                    }
                }
            }
        }
    }
}

fn measure(name: &str, isa: Isa, team: &Team, c: Convolution, shape: Shape) {
    c.check().expect("a valid convolution");
    let taps: usize = c.spatial.iter().map(|s| s.kernel).product();
    let positions: usize = c.spatial.iter().map(|s| s.output).product();
    let (m, n, k) = (c.out_channels, c.batch * positions, c.in_channels * taps);
    let images = IMAGES * shape.inputs.max(shape.outputs) * shape.side * shape.side;
    let (lhs, rhs) = (vec![0.5f32; images], vec![0.25f32; images]);
    let mut out = vec![0f32; images];
    let mut columns = vec![0f32; k * n];
    let mut product = vec![0f32; m * n];
    let bases = [lhs.as_ptr() as *mut u8, rhs.as_ptr() as *mut u8, out.as_mut_ptr().cast()];
    let parallelism =
        if team.threads() == 1 { gemm::Parallelism::None } else { gemm::Parallelism::Rayon(team.threads()) };
    let pair = Pair::alternate(
        // SAFETY: the bases are valid for the accesses of the checked instruction.
        || team.run(isa, &bases, c.scratch_bytes(), |ctx| unsafe { c.run(ctx) }),
        || {
            im2col(&c, &lhs, &mut columns);
            // SAFETY: the pointers are valid for the matrices.
            unsafe {
                gemm::gemm(
                    m,
                    n,
                    k,
                    product.as_mut_ptr(),
                    1,
                    n as isize,
                    false,
                    rhs.as_ptr(),
                    1,
                    k as isize,
                    columns.as_ptr(),
                    1,
                    n as isize,
                    0.0,
                    1.0,
                    false,
                    false,
                    false,
                    parallelism,
                );
            }
        },
    );
    let title = format!("{}->{} {}x{} /{} {name}", shape.inputs, shape.outputs, shape.side, shape.side, shape.stride);
    pair.print(&title, team.threads(), 2.0 * (m * n * k) as f64);
}
