//! Models without state that changes: layers, containers, constants, dtypes.

use super::recorder::Recorder;
use anyhow::Result;
use ferroflow::{
    Checkpoint, Functions, HasFunctions, Tensor, Trackable, Variable, function, ir::DType, ops,
    saved_model::SaveOptions, spec, tracer,
};
use std::{collections::BTreeMap, sync::Arc};

/// Numbers that are neither large nor equal.
pub(super) fn numbers(n: usize, shape: &[i64]) -> tracer::Result<Tensor> {
    let values: Vec<f32> = (0..n).map(|n| ((n * 7 % 23) as f32 - 11.0) / 10.0).collect();
    ops::reshape(&values.into(), &shape.to_vec().into())
}

#[derive(Trackable, HasFunctions)]
struct Dense {
    kernel: Variable,
    bias: Option<Variable>,
    functions: Functions,
}

impl Dense {
    fn new(inputs: i64, outputs: i64, has_bias: bool) -> tracer::Result<Dense> {
        let kernel = numbers((inputs * outputs) as usize, &[inputs, outputs])?;
        let bias =
            has_bias.then(|| Variable::named("bias", numbers(outputs as usize, &[outputs])?));
        let kernel = Variable::named("kernel", kernel)?;
        Ok(Dense { kernel, bias: bias.transpose()?, functions: Functions::default() })
    }

    #[function]
    fn apply(&self, x: &Tensor) -> tracer::Result<Tensor> {
        let y = x.matmul(&self.kernel)?;
        match &self.bias {
            Some(bias) => (&y + bias)?.relu(),
            None => Ok(y),
        }
    }
}

#[derive(Trackable, HasFunctions)]
struct Network {
    layers: Vec<Dense>,
    functions: Functions,
}

impl Network {
    #[function(input_signature = [spec(f32, [None, 4])])]
    fn serve(&self, x: &Tensor) -> tracer::Result<Tensor> {
        self.layers.iter().try_fold(x.clone(), |x, layer| layer.apply(&x))?.softmax()
    }
}

pub(super) fn dense(recorder: &mut Recorder) -> Result<()> {
    let layers = vec![Dense::new(4, 8, true)?, Dense::new(8, 8, true)?, Dense::new(8, 3, false)?];
    let network = Network { layers, functions: Functions::default() };
    let serve = network.serve_concrete([spec(DType::F32, [None, Some(4)])])?;
    recorder.save(&network, &SaveOptions::default().signature(&serve)?)?;
    recorder.frozen("serving_default")?;
    let x = numbers(8, &[2, 4])?;
    let y = network.serve(&x)?;
    recorder.signature("serving_default", &[("x", &x)], &[("output_0", &y)])?;
    recorder.function("serve", &[&x], &y)?;
    recorder.variable("layers.0.kernel", &network.layers[0].kernel)?;
    recorder.also(&["keras_layer", "lite", "resaved", "frozen"]);
    Ok(())
}

pub(super) fn convolution(recorder: &mut Recorder) -> Result<()> {
    let filter = Variable::named("filter", numbers(3 * 3 * 2 * 4, &[3, 3, 2, 4])?)?;
    let f = function({
        let filter = filter.clone();
        move |image: Tensor| {
            let y = ops::conv2d(&image, &filter.read()?, &[1, 1, 1, 1], "SAME")?;
            ops::max_pool(&y.relu()?, &[1, 2, 2, 1], &[1, 2, 2, 1], "VALID")
        }
    });
    let f = f.with_name("serve").with_parameters(["image"]);
    let f = f.with_input_signature([spec(DType::F32, [Some(1), Some(8), Some(8), Some(2)])]);
    let root = Checkpoint::new().with("filter", &filter).with("serve", &f);
    recorder.save(&root, &SaveOptions::default())?;
    let x = numbers(8 * 8 * 2, &[1, 8, 8, 2])?;
    let y = f(x.clone())?;
    recorder.signature("serving_default", &[("image", &x)], &[("output_0", &y)])?;
    recorder.also(&["keras_layer", "lite"]);
    Ok(())
}

#[derive(Trackable)]
struct Containers {
    list: Vec<Variable>,
    dict: BTreeMap<String, Variable>,
    tuple: (Variable, Variable),
    nested: Vec<BTreeMap<String, Vec<Variable>>>,
    empty: Option<Variable>,
}

pub(super) fn containers(recorder: &mut Recorder) -> Result<()> {
    let variable = |value: f32| Variable::new(value);
    let named = |name: &str, value: f32| -> Result<(String, Variable)> {
        Ok((name.to_string(), variable(value)?))
    };
    let model = Containers {
        list: vec![variable(1.0)?, variable(2.0)?],
        dict: [named("a", 3.0)?, named("b/c.d", 4.0)?].into(),
        tuple: (variable(5.0)?, variable(6.0)?),
        nested: vec![[("x".to_string(), vec![variable(7.0)?])].into()],
        empty: None,
    };
    let sum = function({
        let all: Vec<Variable> = [&model.list[0], &model.dict["a"], &model.tuple.1]
            .into_iter()
            .chain(&model.nested[0]["x"])
            .cloned()
            .collect();
        move |x: Tensor| all.iter().try_fold(x, |sum, v| &sum + v)
    });
    let x = Tensor::from(100.0f32);
    let y = sum(x.clone())?;
    recorder.save(&Checkpoint::of(&model).with("sum", &sum), &SaveOptions::default())?;
    recorder.variable("list.1", &model.list[1])?;
    recorder.variable("dict.a", &model.dict["a"])?;
    recorder.variable("tuple.0", &model.tuple.0)?;
    recorder.variable("nested.0.x.0", &model.nested[0]["x"][0])?;
    recorder.function("sum", &[&x], &y)?;
    recorder.also(&["resaved"]);
    Ok(())
}

pub(super) fn constants(recorder: &mut Recorder) -> Result<()> {
    // One is small enough to be part of the graph; the other is captured.
    let (small, large) = (Tensor::from([1.0f32, 2.0]), numbers(600, &[300, 2])?);
    let words = Tensor::from(["a", "b", "c"]);
    let f = function(move |x: Tensor| -> tracer::Result<Vec<Tensor>> {
        Ok(vec![(&(&x + &small)? + &large)?, ops::add(&words, &"!".into())?])
    });
    let f = f.with_name("f").with_parameters(["x"]);
    let f = f.with_input_signature([spec(DType::F32, [])]);
    recorder.save(&Checkpoint::new().with("f", &f), &SaveOptions::default())?;
    let x = Tensor::from(10.0f32);
    let y = f(x.clone())?;
    let outputs = [("output_0", &y[0]), ("output_1", &y[1])];
    recorder.signature("serving_default", &[("x", &x)], &outputs)?;
    recorder.also(&["resaved"]);
    Ok(())
}

pub(super) fn dtypes(recorder: &mut Recorder) -> Result<()> {
    let f = function(
        |i: Tensor, d: Tensor, b: Tensor, s: Tensor| -> tracer::Result<BTreeMap<String, Tensor>> {
            let outputs = [
                ("int", (&i + &i)?),
                ("double", ops::sqrt(&d)?),
                ("bool", ops::logical_not(&b)?),
                ("text", ops::string_upper(&s)?),
                ("half", ops::cast(&d, DType::F16)?),
                ("complex", ops::cast(&d, DType::C64)?),
            ];
            Ok(outputs.map(|(name, tensor)| (name.to_string(), tensor)).into())
        },
    );
    let f = f.with_name("f").with_parameters(["i", "d", "b", "s"]);
    let f = f.with_input_signature([
        spec(DType::I64, [None]),
        spec(DType::F64, [None, None]),
        spec(DType::Bool, []),
        spec(DType::String, [None]),
    ]);
    recorder.save(&Checkpoint::new().with("f", &f), &SaveOptions::default())?;
    let (i, d) = (Tensor::from(vec![1i64, -2]), Tensor::from([[4.0f64, 9.0]]));
    let (b, s) = (Tensor::from(true), Tensor::from(["abc", ""]));
    let y = f(i.clone(), d.clone(), b.clone(), s.clone())?;
    let outputs: Vec<(&str, &Tensor)> =
        y.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let inputs = [("i", &i), ("d", &d), ("b", &b), ("s", &s)];
    recorder.signature("serving_default", &inputs, &outputs)
}

pub(super) fn nested_calls(recorder: &mut Recorder) -> Result<()> {
    let step = Arc::new(Variable::named("step", 2.0f32)?);
    let inner = function({
        let step = step.clone();
        move |x: Tensor| &x * &*step
    });
    let inner = inner.with_name("inner");
    let middle = function({
        let inner = inner.clone();
        move |x: Tensor| inner(inner(x)?)
    });
    let middle = middle.with_name("middle").with_parameters(["x"]);
    let outer = function({
        let (inner, middle) = (inner.clone(), middle.clone());
        move |x: Tensor| &middle(x.clone())? + &inner(x)?
    });
    let outer = outer.with_name("outer").with_parameters(["x"]);
    let outer = outer.with_input_signature([spec(DType::F32, [None])]);
    let root = Checkpoint::new().with("outer", &outer).with("middle", &middle).with("step", step);
    recorder.save(&root, &SaveOptions::default().signature(&outer)?)?;
    let x = Tensor::from([1.0f32, -3.0]);
    let y = outer(x.clone())?;
    recorder.signature("serving_default", &[("x", &x)], &[("output_0", &y)])?;
    recorder.function("middle", &[&x], &middle(x.clone())?)?;
    recorder.also(&["keras_layer", "lite", "resaved"]);
    Ok(())
}
