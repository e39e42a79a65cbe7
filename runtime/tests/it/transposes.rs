//! Transpositions before matmuls.

use crate::support::*;
use ferroflow_ir::{Attrs, FunctionDef, HostTensor, Shape};
use ferroflow_runtime::{
    CompileOptions, Context, ContextOptions, EagerTensor, RunOptions, TraceLevel,
};

/// Matmuls with transposed operands of all kinds; the last one is no transposition of matrices.
fn products() -> FunctionDef {
    let args = [
        ("a", f32s(&[2, 3, 4])),
        ("b", f32s(&[2, 5, 4])),
        ("m", f32s(&[4, 3])),
        ("n", f32s(&[6, 4])),
    ];
    function("products", &args, |b, args| {
        let swap = b.constant("swap", HostTensor::vector(&[0i32, 2, 1])?)?;
        let turn = b.constant("turn", HostTensor::vector(&[1i32, 0])?)?;
        let roll = b.constant("roll", HostTensor::vector(&[1i32, 2, 0])?)?;
        let right = b.call("Transpose", "right", &[args[1], swap])?[0];
        let first = b.call("BatchMatMulV2", "first", &[args[0], right])?[0];
        // The operand is read transposed already: twice is not at all.
        let adjoint = || Attrs::new().with("adj_y", true);
        let left = b.call("Transpose", "left", &[args[0], swap])?[0];
        let again = b.call("Transpose", "again", &[left, swap])?[0];
        let second = b.call_with("BatchMatMulV2", "second", adjoint(), &[again, args[1]])?[0];
        let (m, n) = (
            b.call("Transpose", "m_turned", &[args[2], turn])?[0],
            b.call("Transpose", "n_turned", &[args[3], turn])?[0],
        );
        let third = b.call("MatMul", "third", &[m, n])?[0];
        let rolled = b.call("Transpose", "rolled", &[args[0], roll])?[0];
        let fourth = b.call_with("BatchMatMulV2", "fourth", adjoint(), &[rolled, rolled])?;
        Ok(vec![first, second, third, fourth[0]])
    })
}

/// The results, and the number of transpositions that ran.
fn run(fuse: bool) -> (Vec<Vec<f32>>, usize) {
    let compile = CompileOptions { fuse, attention: fuse, regions: fuse, ..Default::default() };
    let context = Context::with_options(ContextOptions { compile, ..Default::default() });
    let function = concrete(&context, products(), vec![], vec![]);
    let tensor = |dims: &[usize]| -> EagerTensor {
        let shape = Shape::new(dims.iter().copied()).unwrap();
        let values: Vec<f32> = (0..shape.num_elements()).map(|value| value as f32 - 7.0).collect();
        HostTensor::from_slice(shape, &values).unwrap().into()
    };
    let args = [&[2, 3, 4][..], &[2, 5, 4], &[4, 3], &[6, 4]].map(tensor);
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let (results, metadata) = function.call_with_options(&options, &args.each_ref()).unwrap();
    let found = (0..results.len()).map(|index| values(&results, index)).collect();
    (found, metadata.ops.iter().filter(|op| &*op.op == "Transpose").count())
}

#[test]
fn matmuls_read_their_operands_the_other_way_round() {
    let ((plain, all), (turned, left)) = (run(false), run(true));
    assert_eq!(turned, plain);
    assert_eq!((all, left), (6, 1));
}
