//! Chains of convolutions have the bits of their members, one after the other.

use super::{super::epilogue::ExprEpilogue, *};
use crate::{
    OperandSpec,
    cpu::CpuDevice,
    device::Device,
    kernel::{Operand, Target},
};
use ferroflow_ir::{
    AttrValue, Attrs, DType, Expr, HostTensor, NameAttrList, OpDef, Shape, registry,
};
use std::{num::NonZeroUsize, sync::Arc};

/// Small numbers of few bits, so that sums are exact in any order.
fn numbers(dims: &[usize], seed: usize) -> HostTensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    let n = shape.num_elements();
    let numbers: Vec<f32> =
        (0..n).map(|index| ((index * 7919 + seed) % 23) as f32 / 4.0 - 2.5).collect();
    HostTensor::from_slice(shape, &numbers).unwrap()
}

fn spec(tensor: &HostTensor) -> OperandSpec {
    OperandSpec::new(tensor.dtype(), tensor.shape().clone())
}

/// A convolution, and its operands but the input.
struct Member {
    convolution: NameAttrList,
    operands: Vec<HostTensor>,
}

fn image(stride: i64, dilation: i64, padding: &str) -> Attrs {
    let attrs = Attrs::new()
        .with("T", DType::F32)
        .with("strides", AttrValue::from(vec![1, stride, stride, 1]))
        .with("dilations", AttrValue::from(vec![1, dilation, dilation, 1]))
        .with("padding", padding);
    match padding {
        "EXPLICIT" => attrs.with("explicit_paddings", vec![0i64, 0, 0, 1, 1, 0, 0, 0]),
        _ => attrs,
    }
}

fn pointwise(from: usize, to: usize) -> Member {
    member("Conv2D", image(1, 1, "SAME"), numbers(&[1, 1, from, to], from + to))
}

fn depthwise(channels: usize, size: usize, attrs: Attrs) -> Member {
    member("DepthwiseConv2dNative", attrs, numbers(&[size, size, channels, 1], size))
}

fn member(op: &'static str, attrs: Attrs, filter: HostTensor) -> Member {
    let attrs = registry::find(op).unwrap().complete_attrs(attrs).unwrap();
    Member { convolution: NameAttrList::with_attrs(op, attrs), operands: vec![filter] }
}

impl Member {
    /// The region of this convolution with a bias, a bound and perhaps a residual of this shape.
    fn with_epilogue(mut self, channels: usize, residual: Option<&Shape>) -> Member {
        let dtypes = [DType::F32; 3];
        let expr = match residual {
            Some(_) => Expr::build(&Attrs::new(), &dtypes, DType::F32, |s| {
                (s.x(0) + s.x(1)).max(0.0).min(6.0) + s.x(2)
            }),
            None => Expr::build(&Attrs::new(), &dtypes[..2], DType::F32, |s| {
                (s.x(0) + s.x(1)).max(0.0).min(6.0)
            }),
        };
        self.operands.push(numbers(&[channels], 3));
        self.operands.extend(residual.map(|shape| numbers(shape, 11)));
        let types = vec![DType::F32; self.operands.len() + 1];
        let attrs =
            Attrs::new().with("Tin", types).with("T", DType::F32).with("anchor", self.convolution);
        let attrs = registry::find("_Region").unwrap().complete_attrs(attrs).unwrap();
        let expr = Some(Arc::new(expr.unwrap()));
        self.convolution = NameAttrList { name: "_Region".into(), attrs, expr };
        self
    }

    fn specs(&self, input: &OperandSpec) -> Vec<OperandSpec> {
        [input.clone()].into_iter().chain(self.operands.iter().map(spec)).collect()
    }

    /// The shape of its result.
    fn shape(&self, input: &OperandSpec) -> Shape {
        let NameAttrList { name, attrs, expr } = &self.convolution;
        let specs = self.specs(input);
        let op = registry::find(name).unwrap();
        OpCall::new(op, attrs, &specs, expr.as_deref()).unwrap().output_shape(0).unwrap()
    }
}

fn run(kernel: &dyn Kernel, inputs: &[&HostTensor], shape: &Shape, threads: usize) -> HostTensor {
    let mut out = HostTensor::recycled(DType::F32, shape.clone()).unwrap();
    out.bytes_mut().fill(0xff);
    let threads = Threads::new(NonZeroUsize::new(threads).unwrap());
    let inputs = inputs.iter().map(|&input| Operand::Tensor(input));
    let target = [Target::Plain(out.bytes_mut())];
    kernel.run(&mut Io::new(inputs, target, &threads, usize::MAX)).unwrap();
    out
}

/// The members, one after the other.
fn one_by_one(members: &[Member], input: &HostTensor) -> HostTensor {
    let mut value = input.clone();
    for member in members {
        let NameAttrList { name, attrs, expr } = &member.convolution;
        let specs = member.specs(&spec(&value));
        let op = registry::find(name).unwrap();
        let call = OpCall::new(op, attrs, &specs, expr.as_deref()).unwrap();
        let anchored = call.with_anchor(|anchor, then| {
            let space = anchor.output_shape(0)?;
            let epilogue = ExprEpilogue::new(then.expr, &space, 1, then.others).unwrap();
            match anchor.op.name {
                "Conv2D" => crate::cpu::conv::with_epilogue(anchor, epilogue),
                _ => crate::cpu::depthwise::with_epilogue(anchor, epilogue),
            }
        });
        let kernel = match anchored.unwrap() {
            Some(kernel) => kernel,
            None => CpuDevice::new(0).kernel(&call).unwrap().unwrap(),
        };
        let shape = call.output_shape(0).unwrap();
        let inputs: Vec<&HostTensor> = [&value].into_iter().chain(&member.operands).collect();
        value = run(&*kernel, &inputs, &shape, 1);
    }
    value
}

/// The op of a chain of `n` inputs, and its attributes.
fn fused(members: &[Member], n: usize) -> (&'static OpDef, Attrs) {
    let op = registry::find("_FusedConvolutions").unwrap();
    let convolutions = members.iter().map(|member| member.convolution.clone()).collect();
    let attrs = Attrs::new()
        .with("Tin", vec![DType::F32; n])
        .with("T", DType::F32)
        .with("convolutions", AttrValue::Funcs(convolutions));
    (op, op.complete_attrs(attrs).unwrap())
}

fn check(members: &[Member], input: &HostTensor) {
    let operands: Vec<&HostTensor> =
        [input].into_iter().chain(members.iter().flat_map(|member| &member.operands)).collect();
    let specs: Vec<OperandSpec> = operands.iter().map(|tensor| spec(tensor)).collect();
    let (op, attrs) = fused(members, specs.len());
    let call = OpCall::new(op, &attrs, &specs, None).unwrap();
    let Some(mut chain) = Chain::new(&call).unwrap() else {
        let vectors = crate::cpu::gemm::vector::InstructionSet::detect();
        return assert!(vectors.is_none(), "a chain on every processor with vectors");
    };
    let expected = one_by_one(members, input);
    assert_eq!(&call.output_shape(0).unwrap(), expected.shape());
    for (strip, threads) in [(1, 1), (2, 1), (3, 3), (5, 2), (1000, 1), (1000, 3)] {
        chain.strip = strip;
        // Weights that were seen before are packed.
        for _ in 0..3 {
            let found = run(&chain, &operands, expected.shape(), threads);
            let label = format!("{attrs:?} of {:?}, strips of {strip}", input.shape());
            assert!(found.bytes() == expected.bytes(), "{label}, {threads} threads");
        }
    }
}

#[test]
fn strips_have_the_bits_of_whole_tensors() {
    for (batch, height, width) in [(1, 13, 9), (3, 8, 12), (2, 5, 5)] {
        for (size, stride, dilation, padding) in [
            (3, 1, 1, "SAME"),
            (3, 2, 1, "SAME"),
            (3, 2, 1, "EXPLICIT"),
            (5, 1, 1, "SAME"),
            (2, 3, 1, "VALID"),
            (3, 1, 2, "SAME"),
            (1, 2, 1, "VALID"),
        ] {
            let input = numbers(&[batch, height, width, 6], 1);
            let across = || depthwise(40, size, image(stride, dilation, padding));
            let plain = [pointwise(6, 40), across(), pointwise(40, 20)];
            check(&plain, &input);
            check(&plain[..2], &input);
            let hidden = numbers(&[batch, height, width, 40], 2);
            check(&plain[1..], &hidden);
            let small = plain[1].shape(&spec(&hidden));
            let result = plain[2].shape(&OperandSpec::new(DType::F32, small));
            let finished = [
                pointwise(6, 40).with_epilogue(40, None),
                across().with_epilogue(40, None),
                pointwise(40, 20).with_epilogue(20, Some(&result)),
            ];
            check(&finished, &input);
            check(&finished[1..], &hidden);
        }
    }
}

#[test]
fn long_sums_are_cut_as_without_strips() {
    // Sums that are not exact: they differ where they are cut elsewhere.
    let tensor = |dims: &[usize], seed: usize| {
        let mut tensor = numbers(dims, seed);
        let numbers: &mut [f32] = bytemuck::cast_slice_mut(tensor.bytes_mut());
        numbers.iter_mut().enumerate().for_each(|(at, x)| *x *= 1.0 + at as f32 / 1009.0);
        tensor
    };
    for batch in [1, 2] {
        let mut members = [pointwise(530, 64), depthwise(64, 3, image(1, 1, "SAME"))];
        for member in &mut members {
            let dims = member.operands[0].shape().to_vec();
            member.operands[0] = tensor(&dims, 5);
        }
        check(&members, &tensor(&[batch, 15, 12, 530], 9));
    }
}

#[test]
fn chains_are_for_tensors_that_leave_the_cache() {
    let pays = |size: usize, channels: usize| {
        let members = [pointwise(16, channels), depthwise(channels, 3, image(1, 1, "SAME"))];
        let input = OperandSpec::new(DType::F32, Shape::new([1, size, size, 16]).unwrap());
        let operands = members.iter().flat_map(|member| member.operands.iter().map(spec));
        let specs: Vec<OperandSpec> = [input].into_iter().chain(operands).collect();
        let (op, attrs) = fused(&members, specs.len());
        compile(&OpCall::new(op, &attrs, &specs, None).unwrap()).unwrap().unwrap().pays
    };
    if crate::cpu::gemm::vector::InstructionSet::detect().is_some() {
        assert_eq!([pays(112, 96), pays(14, 96), pays(3000, 96)], [true, false, false]);
    }
}
