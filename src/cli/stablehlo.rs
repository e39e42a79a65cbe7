//! `ferroflow convert MODEL out.mlir`: signatures as StableHLO.

use super::{Report, recognize::model_folder};
use anyhow::{Context as _, Result, bail, ensure};
use ferroflow::{
    ir::{PartialShape, Shape, ValueType},
    runtime::Context,
    saved_model::{LoadOptions, freeze_function, load_session, stablehlo::export::StableHlo},
};
use serde_json::json;
use std::{collections::BTreeMap, fs, path::Path};

/// Whether a file of this name is one of StableHLO.
pub(super) fn is_target(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "mlir" || extension == "mlirbc")
}

/// Writes a signature of a model, its variables being constants: `.mlir` as text, `.mlirbc` as a portable
/// artifact.
pub(super) fn write(from: &Path, to: &Path, signature: &str, shapes: &[String]) -> Result<Report> {
    let context = Context::new();
    let session = load_session(&context, &model_folder(from)?, &LoadOptions::default())?;
    let function = freeze_function(&session, signature)?;
    let mut given = shapes.iter().map(|text| shape(text)).collect::<Result<BTreeMap<_, _>>>()?;
    let mut args = Vec::with_capacity(function.inputs.len());
    for (index, name) in function.inputs.iter().enumerate() {
        let ValueType { dtype, shape, .. } = function.def.arg_type(index);
        args.push(ValueType::new(*dtype, of_input(name, shape, given.remove(name))?));
    }
    if let Some(name) = given.keys().next() {
        bail!("the signature has no input `{name}`, but {}", function.inputs.join(", "));
    }
    let limits = context.limits();
    let exported = StableHlo::of(&function.def, &function.library, &args, &context, limits)?;
    let bytes = match to.extension().is_some_and(|extension| extension == "mlirbc") {
        true => exported.artifact(),
        false => exported.text().into_bytes(),
    };
    fs::write(to, &bytes).with_context(|| to.display().to_string())?;
    let inputs: Vec<String> =
        function.inputs.iter().zip(&args).map(|(name, ty)| format!("{name}: {ty}")).collect();
    let outputs = function.outputs.join(", ");
    let path = to.display().to_string();
    let text =
        format!("{path}: {} bytes, from ({}) to ({outputs})", bytes.len(), inputs.join(", "));
    let json =
        json!({ "to": path, "bytes": bytes.len(), "inputs": inputs, "outputs": function.outputs });
    Ok(Report { text, json })
}

/// The shape of an input: that of the signature, with the sizes that are given.
fn of_input(name: &str, own: &PartialShape, given: Option<Shape>) -> Result<Shape> {
    let Some(given) = given else {
        return own.known().with_context(|| {
            format!("input `{name}` has the shape {own}: `--shape {name}=…` tells its sizes")
        });
    };
    let fits = own.is_compatible_with(&PartialShape::from(&given));
    ensure!(fits, "input `{name}` has the shape {own}, which {given} does not fit");
    Ok(given)
}

fn shape(text: &str) -> Result<(String, Shape)> {
    let (name, sizes) = text
        .split_once('=')
        .with_context(|| format!("`{text}` is no shape of an input, such as `x=1,28,28`"))?;
    let sizes = sizes.split(',').map(str::trim).filter(|size| !size.is_empty());
    let sizes: Vec<usize> = sizes
        .map(|size| size.parse().with_context(|| format!("`{size}` is no size")))
        .collect::<Result<_>>()?;
    Ok((name.to_string(), Shape::new(sizes)?))
}
