use super::reduce::{ReduceWindow, WindowDim, WindowOp};
use super::select::{Select, SelectAndScatter, SelectDim};
use crate::elem::Elem;
use crate::testing::{Buffer, Random, at, outputs};

/// Every index below the extents, row-major.
fn indices(extents: Vec<usize>) -> impl Iterator<Item = Vec<usize>> {
    (0..extents.iter().product()).map(move |mut number: usize| {
        let mut index = vec![0; extents.len()];
        for d in (0..extents.len()).rev() {
            index[d] = number % extents[d];
            number /= extents[d];
        }
        index
    })
}

fn random_dim(random: &mut Random, most: usize, strides: [isize; 2]) -> WindowDim {
    let windowed = random.below(3) > 0;
    let pick = |random: &mut Random, most: usize| if windowed { 1 + random.below(most) } else { 1 };
    let dim = WindowDim {
        input: 1 + random.below(most),
        output: 0,
        size: pick(random, 4),
        stride: pick(random, 3),
        padding_low: if windowed { random.below(4) as isize - 1 } else { 0 },
        base_dilation: if random.below(3) == 0 { pick(random, 3) } else { 1 },
        window_dilation: pick(random, 2),
        input_stride: strides[0],
        output_stride: strides[1],
    };
    let padded = ((dim.input - 1) * dim.base_dilation + 1) as isize + dim.padding_low + i_if(windowed, 1);
    let window = ((dim.size - 1) * dim.window_dilation + 1) as isize;
    WindowDim { output: if padded < window { 0 } else { (padded - window) as usize / dim.stride + 1 }, ..dim }
}

fn i_if(condition: bool, value: isize) -> isize {
    if condition { value } else { 0 }
}

#[test]
fn windows_are_reduced() {
    let mut random = Random(41);
    for round in 0..200 {
        let elem = random.pick(&[Elem::F32, Elem::F32, Elem::F64, Elem::BF16, Elem::I32, Elem::U8, Elem::U64]);
        let op = [WindowOp::Sum, WindowOp::Max, WindowOp::Min, WindowOp::Product][round % 4];
        let (mut dims, mut lengths) = (Vec::<WindowDim>::new(), [1usize, 1]);
        let rank = random.below(5);
        for _ in 0..rank {
            let most = if rank == 1 { 600 } else { 9 };
            let dim = random_dim(&mut random, most, lengths.map(|l| l as isize));
            lengths = [lengths[0] * dim.input, lengths[1] * dim.output.max(1)];
            dims.insert(random.below(dims.len() + 1), dim);
        }
        let before = [Buffer::random(elem, lengths[0], &mut random), Buffer::random(elem, lengths[1], &mut random)];
        let reduce = ReduceWindow { op, elem, input: at(0, elem, 0), output: at(1, elem, 0), dims: dims.clone() };
        let after = outputs(&before, &reduce);
        for position in indices(dims.iter().map(|d| d.output).collect()) {
            let to: usize = dims.iter().zip(&position).map(|(d, &p)| p * d.output_stride as usize).sum();
            let values: Vec<f64> = indices(dims.iter().map(|d| d.size).collect())
                .filter_map(|w| element(&dims, &position, &w))
                .map(|from| before[0].get(from))
                .collect();
            let got = after[1].get(to);
            let Some(want) = values.into_iter().reduce(|a, b| combine(op, a, b)) else {
                continue;
            };
            // Products of integers wrap: only those that fit are compared.
            if elem.is_float() || want.abs() < 100.0 && (elem.is_signed() || want >= 0.0) {
                let want = Buffer::of(elem, &[want]).get(0);
                let tolerance = if elem == Elem::BF16 { 1e-2 } else { 1e-5 };
                assert!((got - want).abs() <= tolerance * want.abs().max(1e-3), "{got} {want} {reduce:?}");
            }
        }
    }
}

/// Where element `w` of the window at `position` lies in the input.
fn element(dims: &[WindowDim], position: &[usize], w: &[usize]) -> Option<usize> {
    let mut from = 0;
    for (i, d) in dims.iter().enumerate() {
        let q = (position[i] * d.stride + w[i] * d.window_dilation) as isize - d.padding_low;
        let dilation = d.base_dilation as isize;
        if q < 0 || q % dilation != 0 || q / dilation >= d.input as isize {
            return None;
        }
        from += (q / dilation * d.input_stride) as usize;
    }
    Some(from)
}

fn combine(op: WindowOp, a: f64, b: f64) -> f64 {
    match op {
        WindowOp::Sum => a + b,
        WindowOp::Product => a * b,
        WindowOp::Max => a.max(b),
        WindowOp::Min => a.min(b),
    }
}

fn row(input: usize, output: usize, size: usize, padding_low: isize) -> Vec<WindowDim> {
    vec![WindowDim {
        input,
        output,
        size,
        stride: 1,
        padding_low,
        base_dilation: 1,
        window_dilation: 1,
        input_stride: 1,
        output_stride: 1,
    }]
}

#[test]
fn empty_windows_give_the_neutral_element_and_nan_wins() {
    let reduce = |op, elem, dims| ReduceWindow { op, elem, input: at(0, elem, 0), output: at(1, elem, 0), dims };
    let run = |reduce: &ReduceWindow, values: &[f64]| {
        let elem = reduce.elem;
        outputs(&[Buffer::of(elem, values), Buffer::of(elem, &[7.0; 4])], reduce)[1].values(4)
    };
    let values = run(&reduce(WindowOp::Max, Elem::F32, row(3, 4, 1, 1)), &[1.0, f64::NAN, 2.0]);
    assert!(values[0] == f64::NEG_INFINITY && values[1] == 1.0 && values[2].is_nan() && values[3] == 2.0);
    let values = run(&reduce(WindowOp::Min, Elem::I8, row(3, 4, 1, 1)), &[1.0, 5.0, 2.0]);
    assert_eq!(values, [127.0, 1.0, 5.0, 2.0]);
    let values = run(&reduce(WindowOp::Min, Elem::F32, row(3, 2, 2, 0)), &[1.0, f64::NAN, 2.0]);
    assert!(values[0].is_nan() && values[1].is_nan());
}

#[test]
fn gradients_go_to_the_first_selected_element() {
    let mut random = Random(42);
    for round in 0..150 {
        let elem = random.pick(&[Elem::F32, Elem::F64, Elem::I32, Elem::BF16]);
        let select = if round % 2 == 0 { Select::Max } else { Select::Min };
        let (mut dims, mut lengths) = (Vec::new(), [1usize, 1]);
        for d in 0..random.below(5) {
            let mut dim = random_dim(&mut random, 7, lengths.map(|l| l as isize));
            if d == 3 || dim.base_dilation * dim.window_dilation > 1 || dim.output == 0 {
                (dim.size, dim.stride, dim.padding_low, dim.output) = (1, 1, 0, dim.input);
            }
            lengths = [lengths[0] * dim.input, lengths[1] * dim.output];
            let dim = SelectDim {
                operand: dim.input,
                source: dim.output,
                size: dim.size,
                stride: dim.stride,
                padding_low: dim.padding_low,
                window_dilation: 1,
                operand_stride: dim.input_stride,
                source_stride: dim.output_stride,
                output_stride: dim.input_stride,
            };
            dims.insert(0, dim);
        }
        let before = [lengths[0], lengths[1], lengths[0]].map(|len| Buffer::random(elem, len, &mut random));
        let scatter = SelectAndScatter {
            select,
            elem,
            operand: at(0, elem, 0),
            source: at(1, elem, 0),
            output: at(2, elem, 0),
            dims,
        };
        let after = outputs(&before, &scatter);
        assert_eq!(after[2].values(lengths[0]), expected(&scatter, &before, lengths[0]), "{scatter:?}");
    }
}

/// The output by the definition.
fn expected(scatter: &SelectAndScatter, before: &[Buffer], len: usize) -> Vec<f64> {
    let dims = &scatter.dims;
    let mut want = Buffer::of(scatter.elem, &vec![0.0; len]);
    for position in indices(dims.iter().map(|d| d.source).collect()) {
        let mut best: Option<(f64, usize)> = None;
        for w in indices(dims.iter().map(|d| d.size).collect()) {
            let mut from = Some(0);
            for (i, d) in dims.iter().enumerate() {
                let q = (position[i] * d.stride + w[i]) as isize - d.padding_low;
                let inside = q >= 0 && q < d.operand as isize;
                from = from.filter(|_| inside).map(|f| f + (q * d.operand_stride) as usize);
            }
            let Some(from) = from else { continue };
            let value = before[0].get(from);
            let wins = best.is_none_or(|(old, _)| match scatter.select {
                Select::Max => value > old,
                Select::Min => value < old,
            });
            if wins {
                best = Some((value, from));
            }
        }
        let source: usize = dims.iter().zip(&position).map(|(d, &p)| p * d.source_stride as usize).sum();
        if let Some((_, to)) = best {
            want.set(to, want.get(to) + before[1].get(source));
        }
    }
    want.values(len)
}

#[test]
fn the_first_nan_is_selected() {
    let elem = Elem::F32;
    let scatter = SelectAndScatter {
        select: Select::Max,
        elem,
        operand: at(0, elem, 0),
        source: at(1, elem, 0),
        output: at(2, elem, 0),
        dims: vec![SelectDim {
            operand: 4,
            source: 1,
            size: 4,
            stride: 1,
            padding_low: 0,
            window_dilation: 1,
            operand_stride: 1,
            source_stride: 1,
            output_stride: 1,
        }],
    };
    let operand = Buffer::of(elem, &[1.0, f64::NAN, 9.0, f64::NAN]);
    let buffers = [operand, Buffer::of(elem, &[5.0]), Buffer::of(elem, &[3.0; 4])];
    assert_eq!(outputs(&buffers, &scatter)[2].values(4), [0.0, 5.0, 0.0, 0.0]);
}

#[test]
fn windows_without_stride_are_refused() {
    let mut reduce = ReduceWindow {
        op: WindowOp::Sum,
        elem: Elem::F32,
        input: at(0, Elem::F32, 0),
        output: at(1, Elem::F32, 0),
        dims: row(3, 3, 1, 0),
    };
    assert!(reduce.check().is_ok());
    reduce.dims[0].stride = 0;
    assert!(reduce.check().is_err());
}
