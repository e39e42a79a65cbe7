//! Loaded models in eager code, under tapes and in functions: `ferroflow::load`.

use ferroflow::{
    Checkpoint, GradientTape, LoadedModel, Module, Tensor, Variable, function,
    ir::DType,
    load,
    nn::{Dense, Dropout, Layer, Mode, Sequential, Weights},
    save,
    saved_model::SaveOptions,
    spec,
    tracer::{self, NestedValue, Result},
};
use std::{error::Error, path::Path, sync::Arc};

type Outcome<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// `scale(x, by=2.0)` is `x * w * by`, and `shift` adds `by` or nothing; of numbers of Rust.
fn saved(folder: &Path) -> Outcome<LoadedModel> {
    let w = Variable::named("w", [3.0f32, 4.0])?;
    let scale = function({
        let w = w.clone();
        move |x: Tensor, by: f64| (x * &w)? * by
    });
    let scale = scale.with_parameters(["x", "by"]);
    scale.concrete_for([spec(DType::F32, [None, Some(2)]).into(), tracer::literal(2.0)])?;
    scale.concrete_for([spec(DType::F32, [Some(2)]).into(), tracer::literal(1.0)])?;
    let model = Checkpoint::new().with("w", &w).with("scale", &scale);
    let served = function({
        let scale = scale.clone();
        move |x: Tensor| scale(x, 2.0)
    });
    let served = served.with_parameters(["x"]);
    let served = served.with_input_signature([spec(DType::F32, [None, Some(2)])]);
    let model = model.with("served", &served);
    save(&model, folder, &SaveOptions::default().signature(&served)?)?;
    Ok(load(folder)?)
}

#[test]
fn calls_choose_the_trace() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = saved(folder.path())?;
    let (row, rows) = (Tensor::from([1.0f32, 1.0]), Tensor::from([[1.0f32, 1.0], [0.0, 2.0]]));
    let y: Tensor = model.call("scale", (rows.clone(), 2.0))?;
    assert_eq!(y.to_string(), "[[ 6.  8.]\n [ 0. 16.]]");
    let named = [("by", NestedValue::from(1.0)), ("x", NestedValue::from(&row))];
    let y: Tensor = model.call_named("scale", &[], &named)?;
    assert_eq!(y.to_string(), "[3. 4.]");
    // Lists of numbers become tensors where no trace has such lists.
    let y: Tensor = model.call("scale", (vec![1.0, 2.0], 1.0))?;
    assert_eq!(y.to_string(), "[3. 8.]");
    let none = model.call::<Tensor>("scale", (rows.clone(), 1.0)).unwrap_err().to_string();
    assert!(none.contains("not traced for the arguments ((float32[2,2], 1.0)"), "{none}");
    let nowhere = model.call::<Tensor>("scales", (rows, 2.0)).unwrap_err().to_string();
    assert!(nowhere.contains("scales"), "{nowhere}");
    assert!(model.variable("scale").is_err());
    assert!(model.call::<Tensor>("w", (row,)).is_err());
    Ok(())
}

#[test]
fn tapes_record_calls() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = saved(folder.path())?;
    let w = model.variable("w")?;
    let x = Tensor::from([[1.0f32, 5.0]]);
    for signature in [false, true] {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = if signature {
            model.call_signature("serving_default", [("x", x.clone())])?["output_0"].clone()
        } else {
            model.call("scale", (x.clone(), 2.0))?
        };
        let (of_w, of_x) = tape.gradient(&y, &(&w, &x))?;
        assert_eq!(of_w.unwrap().to_string(), "[ 2. 10.]");
        assert_eq!(of_x.unwrap().to_string(), "[[6. 8.]]");
    }
    Ok(())
}

#[test]
fn functions_hold_what_they_call() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = saved(&folder.path().join("first"))?;
    let outer = function({
        let model = model.clone();
        move |x: Tensor| -> Result<Tensor> {
            let y: Tensor = model.call("scale", (x, 2.0))?;
            y + 1.0
        }
    });
    let outer =
        outer.with_parameters(["x"]).with_input_signature([spec(DType::F32, [None, Some(2)])]);
    let x = || Tensor::from([[1.0f32, 1.0]]);
    assert_eq!(outer(x())?.to_string(), "[[7. 9.]]");
    model.variable("w")?.assign([0.0f32, 1.0])?;
    assert_eq!(outer(x())?.to_string(), "[[1. 3.]]");
    assert_eq!(outer.tracing_count(), 1);

    let whole = Checkpoint::of(&model).with("outer", &outer);
    let second = folder.path().join("second");
    save(&whole, &second, &SaveOptions::default().signature(&outer)?)?;
    let again = load(second)?;
    let y: Tensor = again.call("outer", (x(),))?;
    assert_eq!(y.to_string(), "[[1. 3.]]");
    let y: Tensor = again.call("scale", (x(), 2.0))?;
    assert_eq!(y.to_string(), "[[0. 2.]]");
    assert_eq!(again.variables()?.len(), 1);
    Ok(())
}

#[test]
fn a_part_is_a_function_of_its_own() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = saved(folder.path())?;
    let scale = model.function::<(Tensor, f64), Tensor>("scale")?;
    assert_eq!(scale(Tensor::from([1.0f32, 1.0]), 1.0)?.to_string(), "[3. 4.]");
    assert_eq!(scale.name(), "scale");
    let by_name = [("by", NestedValue::from(1.0))];
    let y = scale.call_named(&[Tensor::from([2.0f32, 1.0]).into()], &by_name)?;
    assert_eq!(y.to_string(), "[6. 4.]");
    Ok(())
}

#[test]
fn signatures_name_what_is_wrong() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = saved(folder.path())?;
    let message = |inputs: &[(&str, Tensor)]| {
        let called = model.call_signature("serving_default", inputs.iter().cloned());
        called.unwrap_err().to_string()
    };
    assert!(message(&[("y", 1.0f32.into())]).contains("`y`"));
    assert!(message(&[]).contains("x"));
    let dtype = message(&[("x", Tensor::from([[1, 2]]))]);
    assert!(dtype.contains("float32") && dtype.contains("int32"), "{dtype}");
    let absent = model.call_signature("serve", [("x", Tensor::from([[1, 2]]))]).unwrap_err();
    assert!(absent.to_string().contains("serving_default"), "{absent}");
    Ok(())
}

/// Graphs of TensorFlow 1 have signatures, and no objects.
#[test]
fn models_of_tensorflow_1_have_signatures() -> Outcome {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo/v1_linear_ref/model");
    let model = load(model)?;
    let name = &model.signatures()[0];
    let inputs = model.signature_inputs(name)?;
    assert!(!inputs.is_empty());
    let message = model.root().unwrap_err().to_string();
    assert!(message.contains("signatures only"), "{message}");
    Ok(())
}

/// The state of random numbers is saved with functions that train, and in no checkpoint.
#[test]
fn functions_that_drop_out_are_saved() -> Outcome {
    let folder = tempfile::tempdir()?;
    let network = Sequential::new()
        .then(Dense::new(&mut Weights::seeded(1), 4, 64)?)
        .then(Dropout::seeded(0.5, 7)?);
    let network = Arc::new(network);
    let train = function({
        let network = network.clone();
        move |x: Tensor| network.call(&x, Mode::Training)
    });
    let train = train.with_parameters(["x"]);
    let train = train.with_input_signature([spec(DType::F32, [None, Some(4)])]);
    let whole = Checkpoint::of(&*network).with("train", &train);
    save(&whole, folder.path(), &SaveOptions::default().signature(&train)?)?;
    let model = load(folder.path())?;
    let dropped = || -> Result<Vec<bool>> {
        let y: Tensor = model.call("train", (Tensor::from([[1.0f32; 4]]),))?;
        Ok(y.to_vec::<f32>()?.iter().map(|&y| y == 0.0).collect())
    };
    let (first, second) = (dropped()?, dropped()?);
    assert!(first != second && first.contains(&true) && first.contains(&false));
    assert_eq!(network.variables()?.len(), 2);
    Ok(())
}
