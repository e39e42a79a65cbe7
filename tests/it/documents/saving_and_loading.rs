//! "SavedModel Save/Load in 2.x", a design document of TensorFlow (2018, updated 2019).

use super::Outcome;
use crate::support::{example_record, parsed_examples};
use ferroflow::{
    Checkpoint, Function, Functions, HasFunctions, LoadedModel, Tensor, Trackable, Variable,
    function,
    ir::{DType, HostTensor, PartialShape, Shape, TraceType},
    load,
    lookup::{StaticVocabularyTable, TableInitializer},
    ops,
    runtime::{Context, ContextOptions, FileAccess},
    save,
    saved_model::SaveOptions,
    spec,
    tracer::{NestedValue, Result, literal, with_context},
};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicI64, Ordering},
    },
};

mod text_embedding {
    use super::*;

    #[derive(Trackable, HasFunctions)]
    struct Model {
        table: StaticVocabularyTable,
        embeddings: Variable,
        functions: Functions,
    }

    impl Model {
        fn new(vocab_file: &Path, dim: i64) -> Result<Model> {
            let table = StaticVocabularyTable::new(TableInitializer::vocabulary(vocab_file), 1)?;
            let vocab_size = table.size()?;
            let shape = ops::pack(&[&vocab_size, &Tensor::from(dim)])?;
            let embeddings = Variable::new(ops::random_uniform(&shape, DType::F32)?)?;
            Ok(Model { table, embeddings, functions: Functions::default() })
        }

        fn tokenize(&self, sentences: &Tensor) -> Result<[Tensor; 2]> {
            let [indices, words, _] = ops::string_split_v2(sentences, &" ".into())?;
            Ok([indices, self.table.lookup(&words)?])
        }

        #[function(input_signature = [spec(string, [None])])]
        fn embed(&self, sentences: &Tensor) -> Result<Tensor> {
            let [indices, token_ids] = self.tokenize(sentences)?;
            let rows = self.embeddings.read()?.gather(&token_ids)?;
            let sentence = ops::slice(&indices, &[0i64, 0].into(), &[-1i64, 1].into())?;
            ops::segment_mean(&rows, &sentence.reshape(&[-1])?)
        }
    }

    #[test]
    fn another_user_embeds_without_the_code() -> Outcome {
        let folder = tempfile::tempdir()?;
        let vocab = folder.path().join("vocab");
        std::fs::write(&vocab, "hello\nworld\n")?;
        let files = ContextOptions { files: FileAccess::Any, ..ContextOptions::default() };
        with_context(&Context::with_options(files), || -> Outcome {
            let root = Model::new(&vocab, 64)?;
            save(&root, folder.path().join("model"), &SaveOptions::default())?;
            Ok(())
        })?;
        std::fs::remove_file(&vocab)?;

        let obj = load(folder.path().join("model"))?;
        let embedded: Tensor = obj.call("embed", (Tensor::from(["hello world"]),))?;
        assert_eq!(embedded.shape().to_string(), "[1,64]");
        assert_eq!(obj.variable("embeddings")?.shape().to_string(), "[3,64]");
        assert!(obj.get("table.lookup").is_err());
        Ok(())
    }
}

mod functions {
    use super::*;

    type Unary = Function<(Tensor,), Tensor>;

    #[derive(Trackable)]
    struct HasFns {
        v: Variable,
        a: Unary,
        b: Unary,
        c_dep: Unary,
        c: Unary,
        python_attribute: i32,
    }

    fn has_fns() -> Result<HasFns> {
        let v = Variable::new(1.0f32)?;
        let a = function({
            let v = v.clone();
            move |x: Tensor| (x + &v)? + 1.0
        });
        let b = function({
            let v = v.clone();
            move |x: Tensor| (x + &v)? + 2.0
        });
        let c_dep = function(|x: Tensor| x + 3.0);
        let c = function({
            let (v, c_dep) = (v.clone(), c_dep.clone());
            move |x: Tensor| v.read()? + c_dep(x)?
        });
        let c = c.with_input_signature([spec(DType::F32, [None])]);
        Ok(HasFns { v, a, b: b.with_name("b"), c_dep, c, python_attribute: 12 })
    }

    #[test]
    fn functions_are_saved_with_their_traces() -> Outcome {
        let folder = tempfile::tempdir()?;
        let has_fns = has_fns()?;
        (has_fns.a)(Tensor::from(2.0f32))?;
        // Here a report in place of an error, which `refuse_untraced` makes of it.
        let report = save(&has_fns, folder.path(), &SaveOptions::default())?;
        assert_eq!(report.untraced, ["b"]);
        (has_fns.b)(Tensor::from(3.0f32))?;
        save(&has_fns, folder.path(), &SaveOptions::default().refuse_untraced())?;
        assert_eq!(has_fns.python_attribute, 12);

        let imported_fns = load(folder.path())?;
        let call = |name: &str, x: Tensor| imported_fns.call::<Tensor>(name, (x,));
        assert_eq!(imported_fns.variable("v")?.read()?.to_string(), "1.0");
        assert_eq!(call("a", Tensor::from(1.0f32))?.to_string(), "3.0");
        assert_eq!(call("b", Tensor::from(1.0f32))?.to_string(), "4.0");
        assert_eq!(call("c", Tensor::from([1.0f32, 2.0]))?.to_string(), "[5. 6.]");
        assert_eq!(call("c_dep", Tensor::from([1.0f32]))?.to_string(), "[4.]");
        assert!(call("c_dep", Tensor::from(1.0f32)).is_err());
        assert!(imported_fns.get("python_attribute").is_err());

        let v = Variable::new(2.0f32)?;
        let training_checkpoint = Checkpoint::new().with("v", &v);
        training_checkpoint.restore(folder.path())?.assert_consumed()?;
        assert_eq!(v.read()?.to_string(), "1.0");
        Ok(())
    }
}

mod methods {
    use super::*;

    #[derive(Default, Trackable, HasFunctions)]
    struct Net {
        y: OnceLock<Variable>,
        functions: Functions,
    }

    impl Net {
        #[function]
        fn add(&self, x: &Tensor) -> Result<Tensor> {
            if self.y.get().is_none() {
                let _ = self.y.set(Variable::new(2.0f32)?);
            }
            x + self.y.get().unwrap()
        }
    }

    #[test]
    fn methods_are_saved_as_functions() -> Outcome {
        let folder = tempfile::tempdir()?;
        let net = Net::default();
        net.add(&Tensor::from(3.0f32))?;
        net.add(&Tensor::from([3.0f32]))?;
        save(&net, folder.path(), &SaveOptions::default())?;
        let imported_net = load(folder.path())?;
        let add = |x: Tensor| imported_net.call::<Tensor>("add", (x,));
        let y = imported_net.variable("y")?;
        assert_eq!(y.read()?.to_string(), "2.0");
        assert_eq!(add(Tensor::from(3.0f32))?.to_string(), "5.0");
        assert_eq!(add(Tensor::from([3.0f32]))?.to_string(), "[5.]");
        y.assign(3.0f32)?;
        assert_eq!(add(Tensor::from(3.0f32))?.to_string(), "6.0");
        assert_eq!(add(Tensor::from([3.0f32]))?.to_string(), "[6.]");
        Ok(())
    }
}

/// "Python objects and nests in function signatures".
#[test]
fn flags_choose_the_trace() -> Outcome {
    let folder = tempfile::tempdir()?;
    let f = function(|x: Tensor, training: bool| -> Result<Tensor> {
        if training { Ok(x) } else { Ok(Tensor::from(2.0f32)) }
    });
    let f = f.with_parameters(["x", "training"]);
    f(Tensor::from(-1.0f32), true)?;
    f(Tensor::from(-1.0f32), false)?;
    save(&Checkpoint::new().with("f", &f), folder.path(), &SaveOptions::default())?;
    let imported = load(folder.path())?;
    let call = |training: bool| -> Result<Tensor> {
        imported.call_named("f", &[10.0.into()], &[("training", training.into())])
    };
    assert_eq!(call(true)?.to_string(), "10.0");
    assert_eq!(call(false)?.to_string(), "2.0");
    let by_position: Tensor = imported.call("f", (10.0, true))?;
    assert_eq!(by_position.to_string(), "10.0");
    Ok(())
}

#[test]
fn arguments_and_results_are_nested() -> Outcome {
    type Nested = (Tensor, BTreeMap<String, Tensor>);
    let arg =
        |x: f32, a: f32| -> Nested { (x.into(), BTreeMap::from([("a".to_string(), a.into())])) };
    let folder = tempfile::tempdir()?;
    let g = function(|x: Nested| -> Result<Vec<Tensor>> {
        Ok(vec![(&x.0 + 0.1)?, (&x.1["a"] + 0.2)?])
    });
    let shown = |y: Vec<Tensor>| format!("[{}, {}]", y[0], y[1]);
    assert_eq!(shown(g(arg(1.0, 2.0))?), "[1.1, 2.2]");
    save(&Checkpoint::new().with("g", &g), folder.path(), &SaveOptions::default())?;
    let imported = load(folder.path())?;
    assert_eq!(shown(imported.call("g", (arg(-1.0, -2.0),))?), "[-0.9, -1.8]");
    Ok(())
}

mod signatures {
    use super::*;

    #[derive(Default, Trackable, HasFunctions)]
    struct Net {
        functions: Functions,
    }

    impl Net {
        #[function(input_signature = [spec(float32, [None, 5])])]
        fn infer(&self, x: &Tensor) -> Result<Tensor> {
            Ok(x.clone())
        }
    }

    #[test]
    fn functions_become_signatures() -> Outcome {
        let folder = tempfile::tempdir()?;
        let (serve1, serve2) = (folder.path().join("serve1"), folder.path().join("serve2"));
        let net = Net::default();
        let infer = net.infer_concrete([spec(DType::F32, [None, Some(5)])])?;
        save(&net, &serve1, &SaveOptions::default().signature(&infer)?)?;
        let several = SaveOptions::default().signature(&infer)?;
        let several = several.named_signature("other_signature_key", &infer)?;
        save(&net, &serve2, &several)?;
        assert_eq!(load(serve1)?.signatures(), ["serving_default"]);
        assert_eq!(load(serve2)?.signatures(), ["other_signature_key", "serving_default"]);
        Ok(())
    }

    #[derive(Default, Trackable, HasFunctions)]
    struct Net2 {
        functions: Functions,
    }

    impl Net2 {
        #[function]
        fn infer(
            &self,
            labels: &Tensor,
            training: bool,
            x1: &Tensor,
            x2: &Tensor,
        ) -> Result<(Tensor, Tensor, Tensor)> {
            if training {
                Ok((labels.clone(), x1.clone(), x2.clone()))
            } else {
                Ok((labels.clone(), (x1 + 1.0)?, (x2 + 1.0)?))
            }
        }
    }

    fn saved(folder: &Path) -> Outcome<LoadedModel> {
        let net = Net2::default();
        let infer = net.infer_concrete([
            TraceType::tensor(DType::I64, PartialShape::Unknown),
            literal(false),
            spec(DType::F32, [None, None, Some(3)]).into(),
            TraceType::tensor(DType::F64, PartialShape::Unknown),
        ])?;
        save(&net, folder, &SaveOptions::default().signature(&infer)?)?;
        Ok(load(folder)?)
    }

    /// TensorFlow numbers outputs from 0, where the document says 1.
    #[test]
    fn a_signature_may_be_given_when_saving() -> Outcome {
        let folder = tempfile::tempdir()?;
        let served = saved(folder.path())?.call_signature(
            "serving_default",
            [
                ("labels", Tensor::from([0i64, 1])),
                ("x1", Tensor::from([[[1.0f32, 2.0, 3.0]]])),
                ("x2", Tensor::from(0.0)),
            ],
        )?;
        assert_eq!(served["output_0"].to_string(), "[0 1]");
        assert_eq!(served["output_1"].to_string(), "[[[2. 3. 4.]]]");
        assert_eq!(served["output_2"].to_string(), "1.0");
        Ok(())
    }

    /// A head that parses examples, before what was loaded.
    #[test]
    fn a_loaded_model_gets_another_signature() -> Outcome {
        let folder = tempfile::tempdir()?;
        let net = saved(&folder.path().join("serve1"))?;
        let parse = function({
            let net = net.clone();
            move |serialized: Tensor| -> Result<(Tensor, Tensor, Tensor)> {
                let [labels, x1, x2] = &parsed_examples(&serialized)?[..] else { unreachable!() };
                let x2 = x2.cast(DType::F64)?;
                let parsed = [("labels", labels.into()), ("x1", x1.into()), ("x2", x2.into())];
                let kwargs = parsed.into_iter().chain([("training", NestedValue::from(false))]);
                net.call_named("infer", &[], &kwargs.collect::<Vec<_>>())
            }
        });
        let parse = parse.with_parameters(["serialized"]);
        let parse = parse.with_input_signature([spec(DType::String, [None])]);
        let with_head = Checkpoint::of(&net).with("infer_from_proto", &parse);
        let serve_proto = folder.path().join("serve_proto");
        save(&with_head, &serve_proto, &SaveOptions::default().signature(&parse)?)?;
        let record = HostTensor::from_strings(Shape::new([1])?, vec![example_record().into()])?;
        let served = load(serve_proto)?
            .call_signature("serving_default", [("serialized", record.into())])?;
        assert_eq!(served["output_0"].to_string(), "[[7]]");
        assert_eq!(served["output_1"].to_string(), "[[[2. 3. 4.]]]");
        assert_eq!(served["output_2"].to_string(), "[[1.5]]");
        Ok(())
    }

    #[derive(Default, Trackable, HasFunctions)]
    struct Identity {
        functions: Functions,
    }

    impl Identity {
        #[function]
        fn infer(&self, x: &Tensor) -> Result<Tensor> {
            Ok(x.clone())
        }
    }

    #[test]
    fn signatures_stay_with_a_loaded_model() -> Outcome {
        let folder = tempfile::tempdir()?;
        let (serve, serve1) = (folder.path().join("serve"), folder.path().join("serve1"));
        let net = Identity::default();
        net.infer(&Tensor::from(1.0f32))?;
        let infer = net.infer_concrete([TraceType::tensor(DType::F32, PartialShape::Unknown)])?;
        save(&net, &serve, &SaveOptions::default().signature(&infer)?)?;
        let loaded = load(serve)?;
        let outputs =
            loaded.call_signature("serving_default", [("x", Tensor::from([[1.0f32]]))])?;
        assert_eq!(outputs["output_0"].to_string(), "[[1.]]");
        save(&loaded, &serve1, &SaveOptions::default())?;
        assert_eq!(load(serve1)?.signatures(), ["serving_default"]);
        Ok(())
    }
}

mod revived_types {
    use super::*;

    static LEARNING_PHASE: AtomicI64 = AtomicI64::new(0);

    #[derive(Default, Trackable, HasFunctions)]
    struct HasPython {
        functions: Functions,
    }

    impl HasPython {
        #[function(name = "do")]
        fn apply(&self, x: &Tensor, learning_phase: i64) -> Result<Tensor> {
            if learning_phase == 0 { Ok(x.clone()) } else { x + 1.0 }
        }
    }

    /// The Rust type that wraps what is loaded.
    struct Revived(LoadedModel);

    impl Revived {
        fn call(&self, x: f32) -> Result<Tensor> {
            let phase = LEARNING_PHASE.load(Ordering::Relaxed);
            self.0.call("apply", (Tensor::from(x), phase))
        }
    }

    #[test]
    fn host_code_is_the_users_own() -> Outcome {
        let folder = tempfile::tempdir()?;
        let has_python = HasPython::default();
        has_python.apply(&Tensor::from(1.0f32), 0)?;
        has_python.apply(&Tensor::from(1.0f32), 1)?;
        save(&has_python, folder.path(), &SaveOptions::default())?;
        let imported = Revived(load(folder.path())?);
        LEARNING_PHASE.store(1, Ordering::Relaxed);
        assert_eq!(imported.call(1.0)?.to_string(), "2.0");
        Ok(())
    }
}

mod initialization_graphs {
    use super::*;

    #[derive(Trackable, HasFunctions)]
    struct Net {
        #[trackable(skip)]
        units: usize,
        var: OnceLock<Variable>,
        functions: Functions,
    }

    impl Net {
        fn new(units: usize) -> Net {
            Net { units, var: OnceLock::new(), functions: Functions::default() }
        }

        fn build(&self, x: &Tensor) -> Result<()> {
            let ones = Tensor::from(vec![1.0f32; self.units]);
            let _ = self.var.set(Variable::new((x * ones)?)?);
            Ok(())
        }

        #[function]
        fn apply(&self, x: &Tensor) -> Result<Tensor> {
            if self.var.get().is_none() {
                self.build(x)?;
            }
            x + self.var.get().unwrap()
        }
    }

    #[test]
    fn loaded_objects_are_constructed_anew() -> Outcome {
        let folder = tempfile::tempdir()?;
        let net = Net::new(5);
        net.apply(&Tensor::from(1.0f32))?;
        let var = net.var.get().unwrap();
        assert_eq!(var.read()?.to_vec::<f32>()?, [1.0; 5]);
        var.assign([1.0f32, 2.0, 3.0, 4.0, 5.0])?;
        save(&net, folder.path(), &SaveOptions::default())?;
        let imported_net = load(folder.path())?;
        let var = imported_net.variable("var")?;
        assert_eq!(var.read()?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0]);

        let net_from_class = imported_net.construct()?;
        net_from_class.call::<Tensor>("apply", (Tensor::from(2.0f32),))?;
        let var = net_from_class.variable("var")?;
        assert_eq!(var.read()?.to_vec::<f32>()?, [2.0; 5]);
        Ok(())
    }
}
