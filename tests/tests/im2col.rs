//! The convolution from slices and products is the convolution, and so are its gradients; no convolution is left in it.

use backfit_cpu::Cpu;
use backfit_grad::{Request, vjp};
use backfit_ir::interp::Options;
use backfit_ir::op::Op;
use backfit_ir::ops::conv2d::Conv2d;
use backfit_ir::ops::definition::values;
use backfit_ir::{DType, Graph, Literal, Module, Role, Tensor, Type};
use backfit_suites::compare::{interpret, on_cpu};
use backfit_suites::oracle::file::{Case, cases};

type Convolve = fn(&Tensor, &Tensor, Option<&Tensor>, Conv2d) -> Tensor;

/// The result, and its products with a cotangent: `[y, dx, dweight, dbias]`.
fn module(convolve: Convolve, types: &[Type], options: Conv2d, cotangent: Option<&Literal>) -> Module {
    let g = Graph::new();
    let input = |(i, ty): (usize, &Type)| g.parameter(&format!("in{i}"), ty.clone(), Role::Input, None);
    let x: Vec<Tensor> = types.iter().enumerate().map(input).collect();
    let y = convolve(&x[0], &x[1], x.get(2), options);
    let drawn = || values::tensor(y.shape(), -2.0, 2.0, 9);
    let cotangent = g.constant(cotangent.cloned().unwrap_or_else(drawn)).cast(y.dtype());
    let request = Request { outputs: &[(y.clone(), cotangent)], targets: &x.iter().collect::<Vec<_>>(), stop: &[] };
    let products = vjp(&request).unwrap();
    g.result("y", &y);
    products.iter().enumerate().for_each(|(i, d)| g.result(&format!("d{i}"), d.as_ref().unwrap()));
    g.finish().unwrap_or_else(|error| panic!("{error}"))
}

fn run_both(module: &Module, inputs: &[Literal]) -> [Vec<Literal>; 2] {
    let double = Options { double: true, ..Options::default() };
    let cpu = on_cpu(&Cpu::default().threads(1), module, inputs);
    [interpret(module, inputs, double).unwrap(), cpu.unwrap_or_else(|error| panic!("{error}"))]
}

/// Relative to the largest magnitude where that is above 1.
fn assert_near(found: &Literal, expected: &Literal, what: &str) {
    assert_eq!(found.ty(), expected.ty(), "{what}");
    let (found, expected) = (found.to_f64(), expected.to_f64());
    let scale = expected.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
    for (f, e) in found.iter().zip(&expected) {
        assert!((f - e).abs() <= 1e-12 * scale, "{what}: {f}, not {e}");
    }
}

/// Kernel, stride, padding, dilation, groups.
fn shapes() -> Vec<(Vec<Type>, Conv2d)> {
    let mut all = Vec::new();
    for kernel in [[1, 1], [3, 3], [2, 3]] {
        for stride in [[1, 1], [2, 1], [3, 2]] {
            for padding in [[0, 0], [1, 2]] {
                for dilation in [[1, 1], [2, 3]] {
                    for groups in [1, 2, 4] {
                        let ty = |dims: &[usize]| Type::new(DType::F64, dims);
                        let weight = ty(&[8, 4 / groups, kernel[0], kernel[1]]);
                        let types = vec![ty(&[2, 4, 7, 8]), weight, ty(&[8])];
                        all.push((types, Conv2d { stride, padding, dilation, groups }));
                    }
                }
            }
        }
    }
    all
}

#[test]
fn results_and_gradients_are_those_of_the_primitive_for_every_option() {
    for (types, options) in shapes() {
        let draw = |(i, ty): (usize, &Type)| {
            let values: Vec<f64> = values::tensor(&ty.shape, -2.0, 2.0, i as u64).to_f64();
            Literal::from_f64(ty.clone(), &values)
        };
        let inputs: Vec<Literal> = types.iter().enumerate().map(draw).collect();
        let [expected, _] = run_both(&module(Tensor::conv2d, &types, options, None), &inputs);
        for found in run_both(&module(Tensor::conv2d_im2col, &types, options, None), &inputs) {
            let all = found.iter().zip(&expected).enumerate();
            all.for_each(|(i, (found, expected))| assert_near(found, expected, &format!("{types:?} {options:?}, {i}")));
        }
    }
}

/// The values are JAX's, and compared with PyTorch's.
#[test]
fn results_and_gradients_are_those_of_the_oracle() {
    let all = cases();
    let all: Vec<&Case> = all.iter().filter(|case| case.op == "conv2d").collect();
    assert!(all.len() >= 2);
    for case in all {
        let options = Conv2d {
            stride: case.pair("stride"),
            padding: case.pair("padding"),
            dilation: case.pair("dilation"),
            groups: case.int("groups") as usize,
        };
        let types: Vec<Type> = case.inputs.iter().map(|l| l.ty().clone()).collect();
        let module = module(Tensor::conv2d_im2col, &types, options, case.cotangents[0].as_ref());
        for found in run_both(&module, &case.inputs) {
            assert_near(&found[0], &case.outputs[0], &case.name);
            let products = found[1..].iter().zip(&case.products);
            products.for_each(|(found, expected)| assert_near(found, expected.as_ref().unwrap(), &case.name));
        }
    }
}

#[test]
fn no_convolution_is_left_and_no_patch_axis_is_last() {
    for (types, options) in shapes() {
        let module = module(Tensor::conv2d_im2col, &types, options, None);
        for function in &module.functions {
            let convolves = |op: &Op| matches!(op, Op::Convolution(_));
            assert!(!function.nodes.iter().any(|node| convolves(&node.op)), "{options:?}");
            let joined = |op: &Op| matches!(op, Op::Concatenate { .. });
            for node in function.nodes.iter().filter(|node| joined(&node.op)) {
                let ty = function.ty(node.results[0]);
                let Op::Concatenate { axis } = node.op else { unreachable!() };
                assert!(axis + 1 < ty.shape.rank(), "{ty} joined along {axis}");
            }
        }
    }
}
