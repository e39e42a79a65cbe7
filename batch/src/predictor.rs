//! Calls of a model on columns: tensors of columns, batches of rows, columns of tensors.

use crate::{
    error::{Error, Result},
    fingerprint::fingerprint,
    from_tensor::OutputColumn,
    options::{ModelOrigin, PredictorOptions},
    to_tensor::{InputColumn, tensor},
};
use datafusion::arrow::{array::ArrayRef, compute::concat, datatypes::Fields};
use ferroflow_ir::{HostTensor, TensorSpec};
use ferroflow_runtime::{Context, ContextOptions, EagerTensor};
use ferroflow_saved_model::{LoadOptions, SavedModel, load};
use std::{collections::BTreeMap, num::NonZeroUsize, ops::Range, path::Path};

/// The most rows that one call of a model takes, if nothing else is said.
const MOST_ROWS: usize = 8192;
/// Bytes of inputs that one call takes at most, if nothing is said of its rows.
const MOST_BYTES: usize = 32 << 20;
/// The signature that is called where there are several.
const DEFAULT_SIGNATURE: &str = "serving_default";

/// A signature of a loaded model that is called on columns. Shared between threads; calls do not
/// wait for each other.
///
/// ```
/// use datafusion::arrow::array::{ArrayRef, FixedSizeListArray, Float32Array};
/// use datafusion::arrow::datatypes::{DataType, Field};
/// use ferroflow_batch::{BatchPredictor, PredictorOptions};
/// use std::sync::Arc;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/zoo/k3_mlp/model");
/// let predictor = BatchPredictor::load(folder, &PredictorOptions::default())?;
/// let item = Arc::new(Field::new("item", DataType::Float32, false));
/// let numbers = Arc::new(Float32Array::from(vec![0.5; 3 * 8]));
/// let rows: ArrayRef = Arc::new(FixedSizeListArray::try_new(item, 8, numbers, None)?);
/// let outputs = predictor.predict(&[("keras_tensor", "x", rows)], 0)?;
/// assert_eq!(outputs[0].len(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BatchPredictor {
    model: SavedModel,
    signature: String,
    inputs: Vec<(String, TensorSpec)>,
    outputs: Vec<OutputColumn>,
    /// Rows of a call: the most, or exactly so many.
    rows: CallRows,
    /// The folder that it was loaded from, if it was.
    origin: Option<ModelOrigin>,
}

#[derive(Debug, Clone)]
enum CallRows {
    AtMost(usize),
    /// The model was saved for so many rows, by the shape of this input.
    Exactly(usize, String),
}

impl BatchPredictor {
    /// Loads a SavedModel and chooses a signature.
    ///
    /// # Errors
    ///
    /// [`Error::Model`] when the model cannot be loaded, otherwise as [`new`](BatchPredictor::new).
    pub fn load(folder: impl AsRef<Path>, options: &PredictorOptions) -> Result<BatchPredictor> {
        let context = ContextOptions { threads: options.threads, ..ContextOptions::default() };
        let load_options = LoadOptions { tags: options.tags.clone(), only: None };
        let model = load(&Context::with_options(context), folder.as_ref(), &load_options);
        let of_folder =
            |source| Error::Model { folder: folder.as_ref().into(), source: Box::new(source) };
        let model = model.map_err(of_folder)?;
        let predictor = BatchPredictor::new(model, options);
        let mut predictor = predictor.map_err(|error| error.in_file(folder.as_ref()))?;
        predictor.origin = Some(ModelOrigin {
            folder: std::path::absolute(folder.as_ref()).map_err(Error::io(folder.as_ref()))?,
            options: options.clone(),
            fingerprint: fingerprint(folder.as_ref())?,
        });
        Ok(predictor)
    }

    /// The folder that it was loaded from, if it was.
    pub(crate) fn origin(&self) -> Option<&ModelOrigin> {
        self.origin.as_ref()
    }

    /// A signature of a model that is loaded already, with the tags and the number of threads of that
    /// call.
    ///
    /// # Errors
    ///
    /// [`Error::Call`] when there is no such signature, [`Error::InputWithoutRows`] and
    /// [`Error::OutputType`] when it does not work on rows.
    pub fn new(model: SavedModel, options: &PredictorOptions) -> Result<BatchPredictor> {
        let signature = options.signature.clone().unwrap_or_else(|| default_signature(&model));
        let failed = |source| Error::Call {
            signature: signature.clone(),
            rows: 0..0,
            source: Box::new(source),
        };
        let inputs = model.signature_inputs(&signature).map_err(failed)?;
        let outputs = model.signature_outputs(&signature).map_err(failed)?;
        let column = |(name, ty)| OutputColumn::new(&signature, name, ty, options.strings);
        let outputs = outputs.into_iter().map(column).collect::<Result<_>>()?;
        let rows = call_rows(&signature, &inputs, options.batch_size)?;
        Ok(BatchPredictor { model, signature, inputs, outputs, rows, origin: None })
    }

    /// Name of the signature.
    pub fn signature(&self) -> &str {
        &self.signature
    }

    /// The inputs: names and specs, sorted by name. The first dimension is that of rows.
    pub fn inputs(&self) -> &[(String, TensorSpec)] {
        &self.inputs
    }

    /// The columns of the outputs, sorted by name, as the chapter about batch inference tells them.
    pub fn output_fields(&self) -> Fields {
        self.outputs.iter().map(|output| output.field().clone()).collect()
    }

    /// The most rows that one call of the model takes.
    pub fn batch_size(&self) -> usize {
        match self.rows {
            CallRows::AtMost(rows) | CallRows::Exactly(rows, _) => rows,
        }
    }

    /// Predicts: columns of equal length, each with the name of its input and its own name for
    /// errors, to the columns of [`output_fields`](BatchPredictor::output_fields). Errors count
    /// rows from `first_row`.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchInput`] and [`Error::MissingInput`] when the columns are not for the inputs;
    /// [`Error::Null`], [`Error::ColumnType`], [`Error::ColumnShape`] and [`Error::ListLength`] for
    /// columns that are no tensors of an input; [`Error::Call`] when the model fails;
    /// [`Error::OutputRows`] and [`Error::NotText`] for outputs that are no columns.
    pub fn predict(
        &self,
        columns: &[(&str, &str, ArrayRef)],
        first_row: u64,
    ) -> Result<Vec<ArrayRef>> {
        let inputs = self.matched(columns)?;
        let n_rows = columns.first().map_or(0, |(_, _, column)| column.len());
        if n_rows == 0 {
            return Ok(self.outputs.iter().map(OutputColumn::empty).collect());
        }
        let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::new(); self.outputs.len()];
        for rows in self.batches(n_rows)? {
            let outputs = self.call(&inputs, rows, first_row)?;
            parts.iter_mut().zip(outputs).for_each(|(parts, output)| parts.push(output));
        }
        parts.into_iter().map(joined).collect()
    }

    /// The columns in the order of the inputs.
    fn matched<'a>(
        &'a self,
        columns: &'a [(&str, &str, ArrayRef)],
    ) -> Result<Vec<InputColumn<'a>>> {
        let names: Vec<&str> = columns.iter().map(|(input, ..)| *input).collect();
        self.check_inputs(&names)?;
        // Every input is there, as was checked.
        let find = |(input, spec): &'a (String, TensorSpec)| {
            let (_, column, values) = columns.iter().find(|(name, ..)| name == input)?;
            Some(InputColumn { input, column, spec, values: values.clone() })
        };
        Ok(self.inputs.iter().filter_map(find).collect())
    }

    /// Checks that names are those of the inputs, each once.
    pub(crate) fn check_inputs(&self, names: &[&str]) -> Result<()> {
        let signature = || self.signature.clone();
        for (index, name) in names.iter().enumerate() {
            let known = self.inputs.iter().any(|(input, _)| input == name);
            if !known || names[..index].contains(name) {
                let available = self.inputs.iter().map(|(input, _)| input.clone()).collect();
                let input = name.to_string();
                return Err(Error::NoSuchInput { signature: signature(), input, available });
            }
        }
        match self.inputs.iter().find(|(input, _)| !names.contains(&input.as_str())) {
            Some((input, _)) => {
                Err(Error::MissingInput { signature: signature(), input: input.clone() })
            }
            None => Ok(()),
        }
    }

    fn batches(&self, n_rows: usize) -> Result<impl Iterator<Item = Range<usize>>> {
        let size = self.batch_size();
        if let CallRows::Exactly(takes, input) = &self.rows
            && !n_rows.is_multiple_of(*takes)
        {
            let rows = n_rows % takes;
            return Err(Error::FixedBatch { input: input.clone(), takes: *takes, rows });
        }
        Ok((0..n_rows).step_by(size).map(move |first| first..n_rows.min(first + size)))
    }

    fn call(
        &self,
        inputs: &[InputColumn<'_>],
        rows: Range<usize>,
        first_row: u64,
    ) -> Result<Vec<ArrayRef>> {
        let mut args = BTreeMap::new();
        for input in inputs {
            let batch = input.slice(rows.clone());
            let tensor = tensor(&batch, first_row + rows.start as u64)?;
            args.insert(input.input.to_string(), EagerTensor::from(tensor));
        }
        let mut results = self.call_tensors(&args, rows.clone())?;
        let convert = |output: &OutputColumn| {
            let result = results.remove(output.field().name());
            output.array(result, rows.len())
        };
        self.outputs.iter().map(convert).collect()
    }

    fn call_tensors(
        &self,
        args: &BTreeMap<String, EagerTensor>,
        rows: Range<usize>,
    ) -> Result<BTreeMap<String, HostTensor>> {
        let failed = |source| Error::Call {
            signature: self.signature.clone(),
            rows: rows.clone(),
            source: Box::new(source),
        };
        let results = self.model.call_signature(&self.signature, args).map_err(failed)?;
        let to_host = |(name, result): (String, EagerTensor)| {
            let result = result.into_host().map_err(|error| failed(error.into()))?;
            Ok((name, result))
        };
        results.into_iter().map(to_host).collect()
    }
}

fn default_signature(model: &SavedModel) -> String {
    let mut names = model.signatures();
    match names.len() {
        1 => names.remove(0),
        _ => DEFAULT_SIGNATURE.into(),
    }
}

fn joined(mut parts: Vec<ArrayRef>) -> Result<ArrayRef> {
    if parts.len() == 1 {
        return Ok(parts.remove(0));
    }
    let parts: Vec<&dyn datafusion::arrow::array::Array> =
        parts.iter().map(AsRef::as_ref).collect();
    Ok(concat(&parts)?)
}

/// Rows of a call, by what the inputs are.
fn call_rows(
    signature: &str,
    inputs: &[(String, TensorSpec)],
    asked: Option<NonZeroUsize>,
) -> Result<CallRows> {
    for (input, spec) in inputs {
        if spec.shape.rank() == Some(0) {
            let (signature, input) = (signature.into(), input.clone());
            return Err(Error::InputWithoutRows { signature, input, spec: spec.to_string() });
        }
    }
    let fixed = inputs.iter().find_map(|(input, spec)| {
        spec.shape
            .dim(0)
            .filter(|&rows| rows > 0)
            .map(|rows| CallRows::Exactly(rows, input.clone()))
    });
    let most = || match row_bytes(inputs) {
        0 => MOST_ROWS,
        bytes => MOST_ROWS.min(MOST_BYTES / bytes).max(1),
    };
    Ok(fixed.unwrap_or_else(|| CallRows::AtMost(asked.map_or_else(most, NonZeroUsize::get))))
}

/// Bytes of the inputs of a row, as far as they are known.
fn row_bytes(inputs: &[(String, TensorSpec)]) -> usize {
    let bytes = |(_, spec): &(String, TensorSpec)| {
        let inner = spec.shape.dims().and_then(|dims| dims.get(1..)).unwrap_or(&[]);
        let size = spec.dtype.size().unwrap_or(0);
        inner.iter().flatten().fold(size, |bytes, &dim| bytes.saturating_mul(dim))
    };
    inputs.iter().map(bytes).fold(0, usize::saturating_add)
}
