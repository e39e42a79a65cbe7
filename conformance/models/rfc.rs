//! The examples of the RFC "SavedModel Save/Load in 2.x".

use super::recorder::Recorder;
use anyhow::{Context as _, Result};
use ferroflow::{
    Checkpoint, Function, Functions, HasFunctions, Tensor, Trackable, Variable, function,
    ir::{DType, PartialShape, TraceType},
    literal, loaded_function,
    lookup::{StaticVocabularyTable, TableInitializer},
    ops,
    runtime::{Context, ContextOptions, FileAccess},
    saved_model::{LoadOptions, SaveOptions, load},
    spec,
    tracer::{self, with_context},
};
use serde_json::json;
use std::{collections::BTreeMap, sync::OnceLock};

type Unary = Function<(Tensor,), Tensor>;

#[derive(Trackable)]
struct HasFns {
    v: Variable,
    a: Unary,
    b: Unary,
    c_dep: Unary,
    c: Unary,
}

pub(super) fn functions(recorder: &mut Recorder) -> Result<()> {
    let v = Variable::new(1.0f32)?;
    let plus = |by: f32| {
        let v = v.clone();
        function(move |x: Tensor| (&x + &v)? + by).with_parameters(["x"])
    };
    let c_dep = function(|x: Tensor| x + 3.0f32).with_name("c_dep").with_parameters(["x"]);
    let c = {
        let (v, c_dep) = (v.clone(), c_dep.clone());
        let c = function(move |x: Tensor| &v.read()? + &c_dep(x)?).with_parameters(["x"]);
        c.with_name("c").with_input_signature([spec(DType::F32, [None])])
    };
    let (a, b) = (plus(1.0).with_name("a"), plus(2.0).with_name("b"));
    let model = HasFns { v, a, b, c_dep, c };
    (model.a)(2.0f32.into())?;
    (model.b)(3.0f32.into())?;
    recorder.save(&model, &SaveOptions::default())?;
    let (one, vector) = (Tensor::from(1.0f32), Tensor::from([1.0f32, 2.0]));
    recorder.variable("v", &model.v)?;
    recorder.function("a", &[&one], &(model.a)(one.clone())?)?;
    recorder.function("b", &[&one], &(model.b)(one.clone())?)?;
    recorder.function("c", &[&vector], &(model.c)(vector.clone())?)?;
    recorder.function("c_dep", &[&vector], &(model.c_dep)(vector.clone())?)?;
    recorder.fails("c_dep", &[&one])?;
    recorder.also(&["resaved"]);
    Ok(())
}

#[derive(Default, Trackable, HasFunctions)]
struct Net {
    y: OnceLock<Variable>,
    functions: Functions,
}

impl Net {
    #[function]
    fn add(&self, x: &Tensor) -> tracer::Result<Tensor> {
        let y = match self.y.get() {
            Some(y) => y,
            None => {
                let y = Variable::new(2.0f32)?;
                self.y.get_or_init(|| y)
            }
        };
        x + y
    }
}

pub(super) fn methods(recorder: &mut Recorder) -> Result<()> {
    let net = Net::default();
    let (scalar, vector) = (Tensor::from(3.0f32), Tensor::from([3.0f32]));
    net.add(&scalar)?;
    net.add(&vector)?;
    recorder.save(&net, &SaveOptions::default())?;
    recorder.function("add", &[&scalar], &net.add(&scalar)?)?;
    recorder.function("add", &[&vector], &net.add(&vector)?)?;
    recorder.assign("y", &scalar)?;
    recorder.function("add", &[&scalar], &Tensor::from(6.0f32))?;
    recorder.function("add", &[&vector], &Tensor::from([6.0f32]))?;
    Ok(())
}

pub(super) fn literals(recorder: &mut Recorder) -> Result<()> {
    let f = function(|x: Tensor, training: bool| -> tracer::Result<Tensor> {
        if training { Ok(x) } else { Ok(Tensor::from(2.0f32)) }
    });
    let f = f.with_name("f").with_parameters(["x", "training"]);
    f.call((-1.0f32, true))?;
    f.call((-1.0f32, false))?;
    recorder.save(&Checkpoint::new().with("f", &f), &SaveOptions::default())?;
    for (training, expected) in [(true, 10.0f32), (false, 2.0)] {
        let (x, expect) = (recorder.tensor(&10.0f32.into())?, recorder.tensor(&expected.into())?);
        recorder.function_of("f", vec![x], json!({ "training": { "py": training } }), expect)?;
    }
    Ok(())
}

pub(super) fn nests(recorder: &mut Recorder) -> Result<()> {
    type Nested = (Tensor, BTreeMap<String, Tensor>);
    let g = function(|x: Nested| -> tracer::Result<Vec<Tensor>> {
        Ok(vec![(&x.0 + 0.1f32)?, (&x.1["a"] + 0.2f32)?])
    });
    let g = g.with_name("g").with_parameters(["x"]);
    let nested = |x: f32, a: f32| -> Nested {
        (x.into(), BTreeMap::from([("a".to_string(), Tensor::from(a))]))
    };
    let expected = g(nested(-1.0, -2.0))?;
    recorder.save(&Checkpoint::new().with("g", &g), &SaveOptions::default())?;
    let (x, a) = (recorder.tensor(&(-1.0f32).into())?, recorder.tensor(&(-2.0f32).into())?);
    let expect: Result<Vec<_>> = expected.iter().map(|tensor| recorder.tensor(tensor)).collect();
    let arg = json!({ "tuple": [x, { "dict": { "a": a } }] });
    recorder.function_of("g", vec![arg], json!({}), json!({ "list": expect? }))
}

#[derive(Default, Trackable, HasFunctions)]
struct Identity {
    functions: Functions,
}

impl Identity {
    #[function(input_signature = [spec(f32, [None, 5])])]
    fn infer(&self, x: &Tensor) -> tracer::Result<Tensor> {
        x.identity()
    }
}

pub(super) fn signature_single(recorder: &mut Recorder) -> Result<()> {
    let net = Identity::default();
    let infer = net.infer_concrete([spec(DType::F32, [None, Some(5)])])?;
    let options = SaveOptions::default().signature(&infer)?;
    recorder.save(&net, &options.named_signature("other_signature_key", &infer)?)?;
    let x = Tensor::from([[1.0f32, 2.0, 3.0, 4.0, 5.0], [0.0, 0.0, 0.0, 0.0, 1.0]]);
    for key in ["serving_default", "other_signature_key"] {
        recorder.signature(key, &[("x", &x)], &[("output_0", &x)])?;
    }
    recorder.also(&["keras_layer", "lite", "resaved"]);
    Ok(())
}

type Infer = Function<(Tensor, bool, Tensor, Tensor), Vec<Tensor>>;

fn net2() -> Infer {
    let infer = function(
        |labels: Tensor, training: bool, x1: Tensor, x2: Tensor| -> tracer::Result<Vec<Tensor>> {
            match training {
                true => Ok(vec![labels, x1, x2]),
                false => Ok(vec![labels, (x1 + 1.0f32)?, (x2 + 1.0f64)?]),
            }
        },
    );
    infer.with_name("infer").with_parameters(["labels", "training", "x1", "x2"])
}

fn net2_types() -> [TraceType; 4] {
    [
        TraceType::tensor(DType::I64, PartialShape::Unknown),
        literal(false),
        spec(DType::F32, [None, None, Some(3)]).into(),
        TraceType::tensor(DType::F64, PartialShape::Unknown),
    ]
}

pub(super) fn signature_passed(recorder: &mut Recorder) -> Result<()> {
    let infer = net2();
    let concrete = infer.concrete_for(net2_types())?;
    let root = Checkpoint::new().with("infer", &infer);
    recorder.save(&root, &SaveOptions::default().signature(&concrete)?)?;
    let labels = Tensor::from(vec![0i64, 1]);
    let inputs =
        [("labels", &labels), ("x1", &[[[1.0f32, 2.0, 3.0]]].into()), ("x2", &0.0f64.into())];
    let outputs = [
        ("output_0", &labels),
        ("output_1", &[[[2.0f32, 3.0, 4.0]]].into()),
        ("output_2", &1.0f64.into()),
    ];
    recorder.signature("serving_default", &inputs, &outputs)
}

pub(super) fn signature_implicit(recorder: &mut Recorder) -> Result<()> {
    let f = function(|x: Tensor| -> tracer::Result<BTreeMap<String, Tensor>> {
        let (a, b) = (x.square()?, (&x + &x)?);
        Ok(BTreeMap::from([("squared".to_string(), a), ("doubled".to_string(), b)]))
    });
    let f = f.with_name("f").with_parameters(["x"]);
    let f = f.with_input_signature([spec(DType::F32, [None])]);
    recorder.save(&Checkpoint::new().with("f", &f), &SaveOptions::default())?;
    let x = Tensor::from([1.0f32, 2.0, 3.0]);
    let outputs = [("doubled", &(&x + &x)?), ("squared", &x.square()?)];
    recorder.signature("serving_default", &[("x", &x)], &outputs)?;
    recorder.also(&["lite"]);
    Ok(())
}

#[derive(Trackable, HasFunctions)]
struct TextModel {
    table: StaticVocabularyTable,
    embeddings: Variable,
    functions: Functions,
}

impl TextModel {
    #[function(input_signature = [spec(string, [None])])]
    fn embed(&self, sentences: &Tensor) -> tracer::Result<Tensor> {
        let [indices, words, _] = ops::string_split_v2(sentences, &" ".into())?;
        let ids = self.table.lookup(&words)?;
        let rows = ops::gather_v2(&self.embeddings.read()?, &ids, &Tensor::from(0i32))?;
        let first = ops::slice(&indices, &vec![0i64, 0].into(), &vec![-1i64, 1].into())?;
        ops::segment_mean(&rows, &ops::reshape(&first, &vec![-1i64].into())?)
    }
}

pub(super) fn text_embedding(recorder: &mut Recorder) -> Result<()> {
    let vocabulary = recorder.files().join("words.txt");
    std::fs::write(&vocabulary, "hello\nworld\n")?;
    let options = ContextOptions { files: FileAccess::Any, ..ContextOptions::default() };
    let texts = Tensor::from(["hello world", "unknown words", "world"]);
    let embedded = with_context(&Context::with_options(options), || -> Result<Tensor> {
        let table = StaticVocabularyTable::new(TableInitializer::vocabulary(&vocabulary), 1)?;
        let values: Vec<f32> = (0..3 * 64).map(|n| n as f32).collect();
        let embeddings = ops::reshape(&values.into(), &vec![3i64, 64].into())?;
        let embeddings = Variable::named("embeddings", embeddings)?;
        let model = TextModel { table, embeddings, functions: Functions::default() };
        let concrete = model.embed_concrete([spec(DType::String, [None])])?;
        recorder.save(&model, &SaveOptions::default().signature(&concrete)?)?;
        Ok(model.embed(&texts)?)
    })?;
    std::fs::remove_file(&vocabulary)?;
    recorder.function("embed", &[&texts], &embedded)?;
    recorder.signature("serving_default", &[("sentences", &texts)], &[("output_0", &embedded)])?;
    recorder.also(&["keras_layer", "resaved"]);
    Ok(())
}

pub(super) fn reexport(recorder: &mut Recorder) -> Result<()> {
    let first = recorder.files().join("first");
    let w = Variable::named("w", [1.0f32, 2.0, 3.0])?;
    let infer = function({
        let w = w.clone();
        move |x: Tensor| &x * &w
    });
    let infer = infer.with_name("infer").with_parameters(["x"]);
    let infer = infer.with_input_signature([spec(DType::F32, [None, Some(3)])]);
    let root = Checkpoint::new().with("w", &w).with("infer", &infer);
    ferroflow::save(&root, &first, &SaveOptions::default())?;
    let model = load(&Context::new(), &first, &LoadOptions::default())?;
    let model = model.root().context("a model with objects")?;
    let loaded = loaded_function(&model.get("infer")?.function()?.traces()[0])?;
    let parse = function(move |texts: Tensor| -> tracer::Result<Tensor> {
        let numbers = ops::string_to_number(&texts)?;
        Ok(loaded.call_flat(&[numbers])?.remove(0))
    });
    let parse = parse.with_name("parse").with_parameters(["texts"]);
    let parse = parse.with_input_signature([spec(DType::String, [None, Some(3)])]);
    let head = Checkpoint::of(&model).with("infer_from_texts", &parse);
    recorder.save(&head, &SaveOptions::default().signature(&parse)?)?;
    let texts = ops::reshape(&Tensor::from(["1", "2", "0.5"]), &vec![1i64, 3].into())?;
    let y = Tensor::from([[1.0f32, 4.0, 1.5]]);
    recorder.signature("serving_default", &[("texts", &texts)], &[("output_0", &y)])?;
    let x = Tensor::from([[1.0f32, 2.0, 0.5]]);
    recorder.function("infer", &[&x], &y)?;
    recorder.variable("w", &w)?;
    recorder.also(&["resaved"]);
    std::fs::remove_dir_all(&first)?;
    Ok(())
}
