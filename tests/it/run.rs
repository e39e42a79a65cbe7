//! Options of running functions, and records of runs.

use ferroflow::{
    Tensor, Variable, function,
    runtime::{RunOptions, TraceLevel},
    tracer::Result,
};

// spec: 223
#[test]
fn a_run_tells_which_ops_it_ran_where_and_how_long() -> Result<()> {
    let v = Variable::new(1.0f32)?;
    let f = {
        let v = v.clone();
        function(move |x: Tensor| {
            v.assign_add(x.sum_all()?)?;
            x.matmul(&x)? + &v
        })
    };
    let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let (y, metadata) = f.call_with_options(&options, (&x,))?;
    assert_eq!(y.to_vec::<f32>()?, [18.0, 21.0, 26.0, 33.0]);
    let ran = |op: &str| metadata.ops.iter().find(|stats| stats.op == op);
    let matmul = ran("MatMul").expect("the product is among the ops");
    assert_eq!(matmul.device, "/device:CPU:0");
    assert_eq!(matmul.output_bytes, 16);
    assert_eq!((matmul.cost.flops, matmul.cost.bytes), (16, 48));
    assert!(matmul.function.starts_with("__inference_function_"));
    assert!(ran("AssignAddVariableOp").is_some());
    let total: std::time::Duration = metadata.ops.iter().map(|stats| stats.elapsed).sum();
    assert!(total <= metadata.elapsed);
    assert!(metadata.ops.windows(2).all(|pair| pair[0].start <= pair[1].start));
    Ok(())
}

// spec: 223
#[test]
fn a_run_notes_nothing_that_was_not_asked_for() -> Result<()> {
    let f = function(|x: Tensor| x.square());
    let (y, metadata) = f.call_with_options(&RunOptions::default(), (3.0f32,))?;
    assert_eq!(y.to_scalar::<f32>()?, 9.0);
    assert!(metadata.ops.is_empty());
    Ok(())
}
