//! StableHLO out: what is written as a portable artifact, read back and run gives the same.

use ferroflow::{
    Tensor, TensorArray, cond, function,
    ir::{DType, FunctionDef, FunctionLibrary, HostTensor, Shape, ValueType},
    ops,
    runtime::{CallableFunction, Context, EagerTensor},
    saved_model::{
        LoadOptions, freeze_function, load_session,
        stablehlo::{export::StableHlo, import_artifact},
    },
    tracer, while_loop,
};
use std::{collections::BTreeMap, error::Error, path::Path, sync::Arc};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn exported(
    context: &Context,
    def: &FunctionDef,
    library: &FunctionLibrary,
    inputs: &[HostTensor],
) -> Outcome<StableHlo> {
    let types: Vec<ValueType> =
        inputs.iter().map(|x| ValueType::new(x.dtype(), x.shape())).collect();
    Ok(StableHlo::of(def, library, &types, context, context.limits())?)
}

/// The results of a function after it went through an artifact.
fn through(hlo: &StableHlo, context: &Context, inputs: &[HostTensor]) -> Outcome<Vec<HostTensor>> {
    let library = FunctionLibrary::new();
    let def = import_artifact(&hlo.artifact(), &["CPU"], &library)?;
    let resources = context.resources().clone();
    let function =
        CallableFunction::with_captures(context, def, Arc::new(library), resources, Vec::new());
    let inputs: Vec<EagerTensor> = inputs.iter().cloned().map(EagerTensor::from).collect();
    let results = function.call(&inputs)?;
    results.iter().map(|result| Ok(result.host()?.clone())).collect()
}

fn close(found: &HostTensor, expected: &HostTensor) {
    assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()));
    if expected.dtype() != DType::F32 {
        return assert_eq!(found, expected);
    }
    let pairs = found.as_slice::<f32>().unwrap().iter().zip(expected.as_slice::<f32>().unwrap());
    for (a, b) in pairs {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0) || a == b, "{found}, not {expected}");
    }
}

fn check(
    f: impl Fn(&[Tensor]) -> tracer::Result<Vec<Tensor>> + Send + Sync + 'static,
    inputs: Vec<HostTensor>,
) -> Outcome<String> {
    let context = Context::new();
    let args: Vec<Tensor> = inputs.iter().cloned().map(Tensor::from).collect();
    let expected = f(&args)?;
    let traced = function(move |args: Vec<Tensor>| f(&args));
    let concrete = traced.concrete((args,))?;
    let hlo = exported(&context, concrete.def(), concrete.library(), &inputs)?;
    let found = through(&hlo, &context, &inputs)?;
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        close(found, expected.host()?);
    }
    Ok(hlo.text())
}

fn floats(dims: &[usize]) -> HostTensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    let values: Vec<f32> =
        (0..shape.num_elements()).map(|n| (n * 5 % 11) as f32 / 4.0 - 1.3).collect();
    HostTensor::from_slice(shape, &values).unwrap()
}

fn integers(values: &[i32]) -> HostTensor {
    HostTensor::vector(values).unwrap()
}

#[test]
fn expressions_are_operations() -> Outcome {
    let text = check(
        |x| {
            let (a, b) = (&x[0], &x[1]);
            Ok(vec![
                ((a * 2.0)? + b)?.tanh()?,
                ops::floor_mod(a, &(b + 3.0)?)?,
                ops::floor_div(&x[2], &Tensor::from(3))?,
                ops::floor_mod(&x[2], &Tensor::from(-3))?,
                ops::erf(a)?,
                ops::select_v2(&a.greater(b)?, a, b)?,
                a.cast(DType::I32)?,
                a.cast(DType::Bool)?,
                ops::sign(a)?,
                ops::rint(a)?,
                ops::bitwise_and(&x[2], &Tensor::from(6))?,
                ops::is_finite(&(a / 0.0)?)?,
            ])
        },
        vec![floats(&[2, 3]), floats(&[3]), integers(&[-7, 7, 5, -1])],
    )?;
    assert!(text.contains("\"stablehlo.tanh\""), "{text}");
    Ok(())
}

#[test]
fn views_and_reductions_are_operations() -> Outcome {
    check(
        |x| {
            let a = &x[0];
            let axes = |axes: &[i32]| Tensor::from(HostTensor::vector(axes).unwrap());
            Ok(vec![
                a.transpose(&[2, 0, 1])?,
                ops::reverse_v2(a, &axes(&[1]))?,
                ops::slice(a, &axes(&[0, 1, 1]), &axes(&[2, 2, -1]))?,
                ops::tile(a, &axes(&[1, 2, 1]))?,
                ops::broadcast_to(
                    &ops::slice(a, &axes(&[0, 0, 0]), &axes(&[1, 3, 1]))?,
                    &axes(&[2, 3, 4]),
                )?,
                a.reshape(&[4, 6])?,
                ops::sum(a, &axes(&[0, 2]))?,
                ops::mean(a, &axes(&[1]))?,
                ops::max(a, &axes(&[-1]))?,
                ops::all(&a.greater(0.0)?, &axes(&[0]))?,
            ])
        },
        vec![floats(&[2, 3, 4])],
    )?;
    Ok(())
}

#[test]
fn kernels_are_operations() -> Outcome {
    check(
        |x| {
            let (a, b, i) = (&x[0], &x[1], &x[2]);
            Ok(vec![
                a.matmul(b)?,
                ops::softmax(a)?,
                ops::log_softmax(a)?,
                ops::gather_v2(a, i, &Tensor::from(1))?,
                ops::one_hot(i, &Tensor::from(4), &Tensor::from(2.0f32), &Tensor::from(-1.0f32))?,
                ops::arg_max(a, &Tensor::from(1))?,
                ops::cumsum_with(
                    a,
                    &Tensor::from(1),
                    &ops::CumsumAttrs { exclusive: true, reverse: true },
                )?,
                ops::concat_v2(&[a, a], &Tensor::from(0))?,
            ])
        },
        vec![floats(&[3, 4]), floats(&[4, 2]), integers(&[0, 3, 1])],
    )?;
    Ok(())
}

#[test]
fn loops_and_branches_are_operations() -> Outcome {
    let text = check(
        |x| {
            let total = while_loop(
                |(i, _): &(Tensor, Tensor)| i.less(4),
                |(i, sum): (Tensor, Tensor)| Ok(((&i + 1)?, (&sum + &x[0])?)),
                (Tensor::from(0), x[0].zeros_like()?),
            )?;
            let chosen = cond(&x[1].greater(0.0)?, || &x[0] * 2.0, || -&x[0])?;
            Ok(vec![total.1, chosen])
        },
        vec![floats(&[3]), HostTensor::scalar(-1.0f32)],
    )?;
    assert!(text.contains("stablehlo.while") && text.contains("stablehlo.if"), "{text}");
    Ok(())
}

#[test]
fn lists_are_tensors() -> Outcome {
    check(
        |x| {
            let rows = TensorArray::unstack(&x[0])?;
            let (_, out) = while_loop(
                |(i, _): &(Tensor, TensorArray)| i.less(3),
                |(i, out): (Tensor, TensorArray)| {
                    let row = (rows.read(&i)? * 2.0)?;
                    Ok(((&i + 1)?, out.write(&i, &row)?))
                },
                (Tensor::from(0), TensorArray::new(DType::F32, 3)?),
            )?;
            Ok(vec![out.stack()?])
        },
        vec![floats(&[3, 2])],
    )?;
    Ok(())
}

#[test]
fn models_give_the_same() -> Outcome {
    for (name, input, dims) in
        [("k3_mlp", "keras_tensor", &[2, 8][..]), ("k3_cnn_batchnorm", "image", &[1, 20, 20, 3])]
    {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo").join(name).join("model");
        let context = Context::new();
        let session = load_session(&context, folder, &LoadOptions::default())?;
        let x = floats(dims);
        let named = BTreeMap::from([(input.to_string(), x.clone().into())]);
        let expected = session.call_signature("serving_default", &named)?;
        let frozen = freeze_function(&session, "serving_default")?;
        let hlo = exported(&context, &frozen.def, &frozen.library, std::slice::from_ref(&x))?;
        for (found, output) in through(&hlo, &context, &[x])?.iter().zip(&frozen.outputs) {
            close(found, expected[output].host()?);
        }
    }
    Ok(())
}

#[test]
fn state_has_no_form() -> Outcome {
    let traced = function(|x: Tensor| ops::random_uniform(&ops::shape(&x)?, DType::F32));
    let x = Tensor::from(floats(&[2]));
    let concrete = traced.concrete((x,))?;
    let context = Context::new();
    let error = exported(&context, concrete.def(), concrete.library(), &[floats(&[2])]);
    let message = error.unwrap_err().to_string();
    assert!(message.contains("RandomUniform"), "{message}");
    Ok(())
}
