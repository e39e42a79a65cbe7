//! The ops of TensorFlow Decision Forests: models in the assets of a SavedModel are loaded into
//! resources, and asked for predictions.
//!
//! [`model`] makes a forest of the kernels from the files; the bodies of the ops are here.
//!
//! Source: `kernel.cc` of TensorFlow Decision Forests.

mod model;

use crate::readers;
use bytes::Bytes;
use ferroflow_format::forest_files::{ForestFiles, ForestFolder};
use ferroflow_ir::{Code, DType, Error as IrError, HostTensor, Shape};
use ferroflow_runtime::kernels::{
    check_size,
    forest::{Columns, ForestExamples, Sets},
};
use ferroflow_runtime::{
    Context, Error, Resource, Result, Results, Scope,
    ops::{RuntimeCall, none, one},
};
use model::ForestModel;
use parking_lot::RwLock;
use std::{any::Any, path::Path, sync::Arc};

/// The container of forests with names.
const CONTAINER: &str = "simple_ml_model_serving";

/// Makes the ops known to a context.
pub(crate) fn add_ops(context: &Context) {
    context.add_host_op("SimpleMLCreateModelResource", create);
    context.add_host_op("SimpleMLInferenceLeafIndexOpWithHandle", leaves_of_handle);
    context.add_host_op("SimpleMLInferenceOp", predict_by_name);
    context.add_host_op("SimpleMLInferenceOpWithHandle", predict_of_handle);
    context.add_host_op("SimpleMLLoadModelFromPath", load_by_name);
    context.add_host_op("SimpleMLLoadModelFromPathWithHandle", load_into_handle);
}

/// A forest behind a handle, once it is loaded.
#[derive(Debug, Default)]
struct ForestResource(RwLock<Option<Arc<ForestModel>>>);

impl Resource for ForestResource {
    fn kind(&self) -> &'static str {
        "a decision forest"
    }
}

impl ForestResource {
    fn model(&self, call: &RuntimeCall<'_>) -> Result<Arc<ForestModel>> {
        let detail = || "its model was not loaded".into();
        self.0.read().clone().ok_or_else(|| failed(call, Code::FailedPrecondition, detail()))
    }
}

fn failed(call: &RuntimeCall<'_>, code: Code, detail: String) -> Error {
    IrError::Status { code, op: call.op.name.into(), detail }.into()
}

/// The files that a call may read.
struct CallFolder<'a> {
    scope: Scope<'a>,
    op: &'static str,
}

impl ForestFolder for CallFolder<'_> {
    type Error = crate::Error;

    fn read(&mut self, path: &Path) -> Result<Bytes, crate::Error> {
        Ok(readers::contents(self.scope, self.op, path)?)
    }

    fn unzip(&mut self, packed: Bytes) -> Result<Bytes, crate::Error> {
        Ok(readers::unpacked(self.scope, packed, "GZIP")?)
    }
}

fn load(call: &RuntimeCall<'_>, path: &Path, prefix: &str) -> Result<ForestModel> {
    let mut folder = CallFolder { scope: call.scope, op: call.op.name };
    let model =
        ForestFiles::read(&mut folder, path, prefix).and_then(|files| ForestModel::new(&files));
    model.map_err(crate::Error::into_runtime)
}

fn create(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let make = || Ok(Arc::new(ForestResource::default()) as Arc<dyn Resource>);
    one(call.named_resource(make)?.to_tensor())
}

fn load_into_handle(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let resource: Arc<ForestResource> = call.resource(0, "a decision forest")?;
    let kinds = call.attrs.strings("output_types")?;
    if let Some(other) = kinds.iter().find(|kind| kind[..] != b"LEAVES"[..]) {
        let found = String::from_utf8_lossy(other);
        return Err(IrError::argument(call.op.name, "output_types", "LEAVES", found).into());
    }
    let model = load(call, &call.path(1)?, call.attrs.string("file_prefix")?)?;
    *resource.0.write() = Some(Arc::new(model));
    none()
}

fn load_by_name(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let name = call.attrs.string("model_identifier")?;
    let resources = call.scope.resources;
    if resources.find(CONTAINER, name).is_none() {
        // Others find resources while this one is loaded.
        let model = Arc::new(load(call, &call.path(0)?, "")?);
        let made = ForestResource(RwLock::new(Some(model)));
        resources.find_or_create(CONTAINER, name, || Ok(Arc::new(made)))?;
    }
    none()
}

fn predict_of_handle(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let resource: Arc<ForestResource> = call.resource(6, "a decision forest")?;
    predict(call, &*resource.model(call)?)
}

fn predict_by_name(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let name = call.attrs.string("model_identifier")?;
    let Some(resource) = call.scope.resources.find(CONTAINER, name) else {
        let detail = format!("no decision forest was loaded under the name `{name}`");
        return Err(failed(call, Code::NotFound, detail));
    };
    let resource: Arc<dyn Any + Send + Sync> = resource;
    let Ok(resource) = resource.downcast::<ForestResource>() else {
        let detail = format!("`{name}` is another kind of resource");
        return Err(failed(call, Code::InvalidArgument, detail));
    };
    predict(call, &*resource.model(call)?)
}

fn predict(call: &RuntimeCall<'_>, model: &ForestModel) -> Result<Results> {
    let width = call.attrs.int("dense_output_dim")?;
    if usize::try_from(width) != Ok(model.forest.width()) {
        let expected = model.forest.width().to_string();
        return Err(IrError::argument(call.op.name, "dense_output_dim", expected, width).into());
    }
    let examples = examples(call, model.forest.columns())?;
    let mut values = floats(call, [examples.len, model.forest.width()])?;
    model.forest.predict(&examples, call.context().threads(), values.as_mut_slice::<f32>()?)?;
    Ok(Results::from_iter([values.into(), model.class_names(call.context().limits())?.into()]))
}

fn leaves_of_handle(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let resource: Arc<ForestResource> = call.resource(6, "a decision forest")?;
    let model = resource.model(call)?;
    let examples = examples(call, model.forest.columns())?;
    let shape = Shape::new([examples.len, model.forest.n_trees()])?;
    check_size(DType::I32, &shape, call.context().limits().tensor_bytes)?;
    let mut leaves = HostTensor::zeros(DType::I32, shape)?;
    model.forest.leaves(&examples, leaves.as_mut_slice::<i32>()?)?;
    one(leaves)
}

fn floats(call: &RuntimeCall<'_>, dims: [usize; 2]) -> Result<HostTensor> {
    let shape = Shape::new(dims)?;
    check_size(DType::F32, &shape, call.context().limits().tensor_bytes)?;
    Ok(HostTensor::zeros(DType::F32, shape)?)
}

/// The examples in the inputs. Inputs of columns that the forest does not have may have any number of
/// rows.
fn examples<'a>(call: &'a RuntimeCall<'_>, columns: &Columns) -> Result<ForestExamples<'a>> {
    let rows = |input: usize| call.host(input).map(|tensor| tensor.shape().dims()[0]);
    let len = [rows(0)?, rows(1)?, rows(2)?, rows(5)?.saturating_sub(1)].into_iter().max();
    let len = len.unwrap_or(0);
    let widths = [columns.numbers, columns.booleans, columns.categories.len()];
    for (input, width) in widths.into_iter().enumerate() {
        let shape = call.host(input)?.shape();
        let fits = match width {
            0 => true,
            _ => shape.dims() == [len, width],
        };
        if !fits {
            let expected = format!("shape [{len}, {width}]");
            let name = call.op.inputs[input].name;
            return Err(IrError::argument(call.op.name, name, expected, shape).into());
        }
    }
    let of_columns = |input: usize, width: usize| -> Result<&[f32]> {
        if width == 0 { Ok(&[]) } else { Ok(call.host(input)?.as_slice()?) }
    };
    if !columns.sets.is_empty() {
        check_outer_splits(call, len, columns.sets.len())?;
    }
    Ok(ForestExamples {
        len,
        numbers: of_columns(0, columns.numbers)?,
        booleans: of_columns(1, columns.booleans)?,
        categories: match columns.categories.is_empty() {
            true => &[],
            false => call.host(2)?.as_slice()?,
        },
        sets: Sets { values: call.host(3)?.as_slice()?, splits: call.host(4)?.as_slice()? },
    })
}

/// Checks that each example has as many sets as the forest has columns of them.
fn check_outer_splits(call: &RuntimeCall<'_>, len: usize, n_sets: usize) -> Result<()> {
    let splits: &[i64] = call.host(5)?.as_slice()?;
    let fits = splits.len() == len + 1
        && splits.iter().enumerate().all(|(row, &split)| split == (row * n_sets) as i64);
    if fits {
        return Ok(());
    }
    let (name, expected) = (call.op.inputs[5].name, format!("{len} rows of {n_sets} sets"));
    Err(IrError::argument(call.op.name, name, expected, format!("{} splits", splits.len())).into())
}

#[cfg(test)]
mod tests;
