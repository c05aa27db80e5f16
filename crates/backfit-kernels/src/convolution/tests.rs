use super::*;
use crate::testing::{Buffer, Random, at, outputs};

/// Dense strides of these extents in this order of dimensions, the last of `order` innermost.
fn dense(extents: &[usize], order: &[usize]) -> Vec<isize> {
    let mut strides = vec![0; extents.len()];
    let mut next = 1;
    for &d in order.iter().rev() {
        strides[d] = next as isize;
        next *= extents[d];
    }
    strides
}

/// `0..rank` shuffled.
fn shuffled(rank: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).collect();
    for i in (1..rank).rev() {
        order.swap(i, random.below(i + 1));
    }
    order
}

/// An order of dimensions (group, image, channel, spatial…): channels first, channels last, or any.
fn order(rank: usize, random: &mut Random) -> Vec<usize> {
    match random.below(3) {
        0 => (0..rank).collect(),
        1 => (0..rank).filter(|&d| d != 2).chain([2]).collect(),
        _ => shuffled(rank, random),
    }
}

/// A random spatial dimension; strides are filled in later.
fn spatial(random: &mut Random, most: usize) -> Spatial {
    let s = Spatial {
        input: 1 + random.below(most),
        kernel: 1 + random.below(4),
        output: 0,
        stride: 1 + random.below(3),
        padding_low: random.below(5) as isize - 2,
        base_dilation: 1 + random.below(4) / 2,
        window_dilation: 1 + random.below(4) / 2,
        lhs_stride: 0,
        rhs_stride: 0,
        out_stride: 0,
    };
    let high = random.below(4) as isize - 1;
    let padded = ((s.input - 1) * s.base_dilation + 1) as isize + s.padding_low + high;
    let window = ((s.kernel - 1) * s.window_dilation + 1) as isize;
    let output = if padded < window { 0 } else { (padded - window) as usize / s.stride + 1 };
    Spatial { output, ..s }
}

/// The convolution with these sizes and random layouts, and the lengths of its buffers.
fn laid_out(
    [groups, batch, in_channels, out_channels]: [usize; 4],
    mut spatial: Vec<Spatial>,
    [lhs_elem, rhs_elem, out_elem, acc]: [Elem; 4],
    random: &mut Random,
) -> (Convolution, [usize; 3]) {
    let rank = spatial.len() + 3;
    let mut layout = |outer: [usize; 3], of: fn(&Spatial) -> usize| {
        let extents: Vec<usize> = outer.into_iter().chain(spatial.iter().map(of)).collect();
        let strides = dense(&extents, &order(rank, random));
        (strides, extents.iter().product::<usize>())
    };
    let (lhs, lhs_len) = layout([groups, batch, in_channels], |s| s.input);
    let (mut rhs, rhs_len) = layout([groups, in_channels, out_channels], |s| s.kernel);
    let (out, out_len) = layout([groups, batch, out_channels], |s| s.output);
    let mut rhs_start = 0;
    for (d, s) in spatial.iter_mut().enumerate() {
        if random.below(3) == 0 {
            rhs_start += (s.kernel as isize - 1) * rhs[d + 3];
            rhs[d + 3] = -rhs[d + 3];
        }
        (s.lhs_stride, s.rhs_stride, s.out_stride) = (lhs[d + 3], rhs[d + 3], out[d + 3]);
    }
    let tensor = |base, elem, start: usize| Tensor { addr: at(base, elem, start), elem };
    let convolution = Convolution {
        lhs: tensor(0, lhs_elem, 0),
        rhs: tensor(1, rhs_elem, rhs_start as usize),
        out: tensor(2, out_elem, 0),
        acc,
        groups,
        batch,
        in_channels,
        out_channels,
        lhs_group_stride: lhs[0],
        lhs_batch_stride: lhs[1],
        lhs_feature_stride: lhs[2],
        rhs_group_stride: rhs[0],
        rhs_in_stride: rhs[1],
        rhs_out_stride: rhs[2],
        out_group_stride: out[0],
        out_batch_stride: out[1],
        out_feature_stride: out[2],
        spatial,
    };
    (convolution, [lhs_len, rhs_len, out_len])
}

/// Every index below the extents.
fn indices(extents: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let extents = extents.to_vec();
    (0..extents.iter().product()).map(move |mut number: usize| {
        let mut index = vec![0; extents.len()];
        for d in (0..extents.len()).rev() {
            index[d] = number % extents[d];
            number /= extents[d];
        }
        index
    })
}

/// One output element in f64, by the definition.
fn expected(c: &Convolution, lhs: &Buffer, rhs: &Buffer, [g, b, o]: [usize; 3], position: &[usize]) -> f64 {
    let mut sum = 0.0;
    let kernel: Vec<usize> = c.spatial.iter().map(|s| s.kernel).collect();
    for i in 0..c.in_channels {
        for tap in indices(&kernel) {
            let mut from =
                g as isize * c.lhs_group_stride + b as isize * c.lhs_batch_stride + i as isize * c.lhs_feature_stride;
            let mut with = (c.rhs.addr.offset / c.rhs.elem.size()) as isize
                + g as isize * c.rhs_group_stride
                + i as isize * c.rhs_in_stride
                + o as isize * c.rhs_out_stride;
            let mut inside = true;
            for (d, s) in c.spatial.iter().enumerate() {
                let q = (position[d] * s.stride + tap[d] * s.window_dilation) as isize - s.padding_low;
                let dilation = s.base_dilation as isize;
                inside &= q >= 0 && q % dilation == 0 && q / dilation < s.input as isize;
                from += q / dilation * s.lhs_stride;
                with += tap[d] as isize * s.rhs_stride;
            }
            if inside {
                sum += lhs.get(from as usize) * rhs.get(with as usize);
            }
        }
    }
    sum
}

fn verify(c: &Convolution, lengths: [usize; 3], random: &mut Random) {
    let before = [c.lhs.elem, c.rhs.elem, c.out.elem].into_iter().zip(lengths);
    let before: Vec<Buffer> = before.map(|(elem, len)| Buffer::random(elem, len, random)).collect();
    let after = outputs(&before, c);
    let mut extents = vec![c.groups, c.batch, c.out_channels];
    extents.extend(c.spatial.iter().map(|s| s.output));
    for index in indices(&extents) {
        let want = expected(c, &before[0], &before[1], [index[0], index[1], index[2]], &index[3..]);
        let want = Buffer::of(c.out.elem, &[want]).get(0);
        let mut to = index[0] as isize * c.out_group_stride
            + index[1] as isize * c.out_batch_stride
            + index[2] as isize * c.out_feature_stride;
        to += c.spatial.iter().zip(&index[3..]).map(|(s, &i)| i as isize * s.out_stride).sum::<isize>();
        let got = after[2].get(to as usize);
        let tolerance = match c.out.elem {
            Elem::F64 => 1e-12,
            Elem::F32 => 1e-4,
            Elem::F16 => 1e-2,
            Elem::BF16 => 1e-1,
            _ => 0.0,
        };
        assert!((got - want).abs() <= tolerance * (1.0 + want.abs()), "{got} is not {want} at {index:?} of {c:?}");
    }
}

const F32: [Elem; 4] = [Elem::F32; 4];

#[test]
fn convolutions_equal_sums_for_random_geometry_and_layouts() {
    let mut random = Random(11);
    for _ in 0..250 {
        let rank = random.below(4);
        let most = [1, 40, 12, 5][rank];
        let dims = (0..rank).map(|_| spatial(&mut random, most)).collect();
        let sizes = [1 + random.below(2), 1 + random.below(4), 1 + random.below(5), random.pick(&[1, 2, 5, 16, 19])];
        let (c, lengths) = laid_out(sizes, dims, F32, &mut random);
        verify(&c, lengths, &mut random);
    }
}

#[test]
fn every_element_type_convolves() {
    let mut random = Random(12);
    let half = [Elem::F16, Elem::BF16].map(|h| [h, h, h, Elem::F32]);
    let mixed = [[Elem::BF16, Elem::F32, Elem::F32, Elem::F32], [Elem::I8, Elem::U8, Elem::I32, Elem::I32]];
    let same = [Elem::F64, Elem::I32, Elem::U64].map(|e| [e; 4]);
    for elems in half.into_iter().chain(mixed).chain(same) {
        for channels in [3, 17] {
            let dims = vec![spatial(&mut random, 9), spatial(&mut random, 20)];
            let (c, lengths) = laid_out([2, 2, 3, channels], dims, elems, &mut random);
            verify(&c, lengths, &mut random);
        }
    }
}

#[test]
fn many_channels_large_kernels_and_many_rows_are_cut_into_blocks() {
    let mut random = Random(13);
    let dim = |input, kernel, output| Spatial {
        input,
        kernel,
        output,
        stride: 1,
        padding_low: 1,
        base_dilation: 1,
        window_dilation: 1,
        lhs_stride: 0,
        rhs_stride: 0,
        out_stride: 0,
    };
    for (sizes, dims) in [
        ([1, 2, 100, 5], vec![dim(5, 3, 5), dim(17, 3, 17)]),
        ([1, 3, 3, 20], vec![dim(22, 20, 3), dim(30, 28, 3)]),
        ([1, 1, 1, 2], vec![dim(70, 2, 70), dim(60, 2, 60)]),
        ([1, 1, 2, 3], vec![dim(5000, 2, 5001)]),
        ([1, 1, 1, 530], vec![dim(3, 3, 3), dim(3, 3, 3)]),
        ([1, 0, 2, 3], vec![dim(3, 3, 3)]),
        ([1, 2, 0, 3], vec![dim(3, 3, 3)]),
        ([1, 2, 2, 17], vec![dim(3, 0, 3)]),
        ([1, 2, 2, 17], vec![dim(0, 3, 0)]),
    ] {
        for elems in [F32, [Elem::BF16, Elem::BF16, Elem::BF16, Elem::F32]] {
            let (c, lengths) = laid_out(sizes, dims.clone(), elems, &mut random);
            verify(&c, lengths, &mut random);
        }
    }
}

#[test]
fn groups_of_the_batch_are_strides() {
    let mut random = Random(14);
    let (mut c, _) = laid_out([1, 2, 3, 4], vec![spatial(&mut random, 9)], F32, &mut random);
    let s = &mut c.spatial[0];
    (s.lhs_stride, s.rhs_stride, s.out_stride) = (1, 1, 1);
    let [input, kernel, output] = [s.input, s.kernel, s.output].map(|x| x as isize);
    // Input [2 groups × 2 images, 3, input], kernel [2 groups × 4, 3, kernel], output [2, 2 groups × 4, output].
    (c.lhs.addr, c.rhs.addr, c.out.addr) = (at(0, Elem::F32, 0), at(1, Elem::F32, 0), at(2, Elem::F32, 0));
    c.groups = 2;
    (c.lhs_group_stride, c.lhs_batch_stride, c.lhs_feature_stride) = (6 * input, 3 * input, input);
    (c.rhs_group_stride, c.rhs_out_stride, c.rhs_in_stride) = (12 * kernel, 3 * kernel, kernel);
    (c.out_group_stride, c.out_batch_stride, c.out_feature_stride) = (4 * output, 8 * output, output);
    let lengths = [12 * input, 24 * kernel, 16 * output].map(|x| x as usize);
    verify(&c, lengths, &mut random);
}

#[test]
fn impossible_geometry_is_refused() {
    let mut random = Random(15);
    let (good, _) = laid_out([1, 1, 1, 1], vec![spatial(&mut random, 9)], F32, &mut random);
    assert!(good.check().is_ok());
    let broken = |change: &dyn Fn(&mut Convolution)| {
        let mut c = good.clone();
        change(&mut c);
        c.check().is_err()
    };
    assert!(broken(&|c| c.spatial[0].stride = 0));
    assert!(broken(&|c| c.spatial[0].input = usize::MAX));
    assert!(broken(&|c| c.spatial = vec![c.spatial[0]; 4]));
    assert!(broken(&|c| (c.out_channels, c.out_feature_stride, c.spatial[0].output) = (2, 1, 2)));
    assert!(broken(&|c| c.acc = Elem::I32));
}
