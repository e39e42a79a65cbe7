//! Models of TensorFlow 1 that are saved as objects.

use ferroflow::{
    runtime::{Context, EagerTensor},
    save,
    saved_model::{LoadOptions, SaveOptions, SavedModel, load, load_session},
};
use std::{collections::BTreeMap, error::Error, path::PathBuf};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn zoo(case: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/zoo", case, "model"].iter().collect()
}

/// The answers of a signature to zeros of the shapes that it takes, open sizes being 2.
fn answers(model: &SavedModel, key: &str) -> Outcome<BTreeMap<String, String>> {
    let input = |(name, spec): (String, ferroflow::ir::TensorSpec)| {
        let dims = spec.shape.dims().unwrap_or_default().iter().map(|dim| dim.unwrap_or(2));
        let shape = ferroflow::ir::Shape::new(dims)?;
        let zeros = ferroflow::ir::HostTensor::zeros(spec.dtype, shape)?;
        Ok((name, EagerTensor::from(zeros)))
    };
    let inputs = model.signature_inputs(key)?.into_iter().map(input);
    let inputs: BTreeMap<String, EagerTensor> = inputs.collect::<Outcome<_>>()?;
    let outputs = model.call_signature(key, &inputs)?;
    Ok(outputs.into_iter().map(|(name, value)| (name, format!("{value:?}"))).collect())
}

#[test]
fn graphs_with_variables_become_functions_that_capture_them() -> Outcome {
    for (case, n_variables) in [
        ("v1_linear_ref", 2),
        ("v1_linear_resource", 2),
        ("v1_partitioned", 3),
        ("v1_while_functional", 0),
        ("v1_control_deps", 1),
        ("v1_flow_rnn_gradients", 1),
    ] {
        let session = load_session(&Context::new(), zoo(case), &LoadOptions::default())?;
        let folder = tempfile::tempdir()?;
        save(&session.objects()?, folder.path(), &SaveOptions::default())?;
        let model = load(&Context::new(), folder.path(), &LoadOptions::default())?;
        let root = model.root().ok_or("objects")?;
        let variables = root.get("variables")?.children().len();
        assert!(variables >= n_variables, "{case}: {variables}");
        let before = load(&Context::new(), zoo(case), &LoadOptions::default())?;
        assert_eq!(model.signatures(), before.signatures(), "{case}");
        for key in model.signatures() {
            assert_eq!(answers(&model, &key)?, answers(&before, &key)?, "{case}: {key}");
            let session = SavedModel::Session(model.session()?);
            assert_eq!(answers(&session, &key)?, answers(&before, &key)?, "{case}: {key}");
        }
    }
    Ok(())
}

#[test]
fn objects_of_a_session_are_saved_with_the_values_of_now() -> Outcome {
    let session = load_session(&Context::new(), zoo("v1_linear_ref"), &LoadOptions::default())?;
    for variable in session.variables()?.values() {
        let zeros =
            ferroflow::ir::HostTensor::zeros(variable.dtype(), variable.read()?.shape().clone())?;
        variable.assign(zeros)?;
    }
    let folder = tempfile::tempdir()?;
    save(&session.objects()?, folder.path(), &SaveOptions::default())?;
    let model = load(&Context::new(), folder.path(), &LoadOptions::default())?;
    let now = answers(&SavedModel::Session(session.into()), "serving_default")?;
    assert_eq!(answers(&model, "serving_default")?, now);
    Ok(())
}

#[test]
fn state_of_a_graph_that_is_no_variable_is_refused() -> Outcome {
    let session = load_session(&Context::new(), zoo("v1_noinit_tables"), &LoadOptions::default())?;
    let error = session.objects().unwrap_err().to_string();
    assert!(error.contains("is state that belongs to no object"), "{error}");
    Ok(())
}
