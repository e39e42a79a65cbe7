//! Prediction as a scalar function of SQL and of data frames.

use crate::{error::Result, predictor::BatchPredictor, to_tensor::check_type};
use datafusion::{
    arrow::{
        array::{ArrayRef, StructArray},
        datatypes::{DataType, Field, FieldRef},
    },
    common::{DataFusionError, Result as EngineResult},
    logical_expr::{
        ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
        Volatility,
    },
};
use std::{
    hash::{Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// A scalar function that predicts: its arguments are the inputs of the signature in this order, or
/// sorted by name where none are said. A signature of one output returns the column of the output,
/// one of several a struct of them.
///
/// Arguments must have the dtypes of the inputs, which is checked when a query is planned. DataFusion
/// evaluates equal calls in a projection once. Where fields are taken of them, as in `predict(x)['a'],
/// predict(x)['b']`, it does so only with `datafusion.optimizer.enable_leaf_expression_pushdown` switched
/// off. A model that draws random numbers draws them for each batch.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use ferroflow_batch::{BatchPredictor, PredictorOptions, predict_udf};
/// use std::sync::Arc;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/zoo/k3_mlp/model");
/// let predictor = BatchPredictor::load(folder, &PredictorOptions::default())?;
/// let session = SessionContext::new();
/// session.register_udf(predict_udf("predict", Arc::new(predictor), &["keras_tensor"])?);
/// let query = "SELECT predict(arrow_cast(make_array(1, 2, 3, 4, 5, 6, 7, 8), 'List(Float32)')) AS y";
/// let rows = session.sql(query).await?.collect().await?;
/// assert_eq!(rows[0].num_rows(), 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::NoSuchInput`](crate::Error::NoSuchInput) and
/// [`Error::MissingInput`](crate::Error::MissingInput) when the names are not those of the inputs.
/// Queries end in errors of DataFusion that `Error::from` makes those of this crate where they are.
pub fn predict_udf(
    name: &str,
    predictor: Arc<BatchPredictor>,
    inputs: &[&str],
) -> Result<ScalarUDF> {
    let counter = Counter::Batch;
    Ok(ScalarUDF::new_from_impl(PredictUdf::new(name, predictor, inputs, counter)?))
}

/// As [`predict_udf`], where errors tell rows by how many were predicted before them. For plans of
/// one partition, whose batches come in order.
pub(crate) fn counting_udf(
    name: &str,
    predictor: Arc<BatchPredictor>,
    inputs: &[&str],
    first_row: u64,
) -> Result<ScalarUDF> {
    let counter = Counter::Rows(Arc::new(AtomicU64::new(first_row)));
    Ok(ScalarUDF::new_from_impl(PredictUdf::new(name, predictor, inputs, counter)?))
}

/// The function without its model, as other processes are told of it.
#[cfg(feature = "ballista")]
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct UdfDescription {
    name: String,
    inputs: Vec<String>,
    /// The number of the first row that is predicted, where rows are counted.
    first_row: Option<u64>,
    pub(crate) origin: crate::options::ModelOrigin,
}

/// Numbers of rows in errors.
#[derive(Debug, Clone)]
enum Counter {
    /// They begin anew in each batch.
    Batch,
    /// They go on.
    Rows(Arc<AtomicU64>),
}

#[derive(Debug)]
pub(crate) struct PredictUdf {
    name: String,
    predictor: Arc<BatchPredictor>,
    inputs: Vec<String>,
    counter: Counter,
    signature: Signature,
    /// Whether errors are told as text: they go to another process, where their types would be lost.
    tells_text: bool,
}

impl PredictUdf {
    fn new(
        name: &str,
        predictor: Arc<BatchPredictor>,
        inputs: &[&str],
        counter: Counter,
    ) -> Result<PredictUdf> {
        let inputs: Vec<String> = match inputs {
            [] => predictor.inputs().iter().map(|(name, _)| name.clone()).collect(),
            inputs => inputs.iter().map(ToString::to_string).collect(),
        };
        let names: Vec<&str> = inputs.iter().map(String::as_str).collect();
        predictor.check_inputs(&names)?;
        let signature = Signature::any(inputs.len(), Volatility::Immutable);
        Ok(PredictUdf {
            name: name.into(),
            predictor,
            inputs,
            counter,
            signature,
            tells_text: false,
        })
    }

    /// The function for another process.
    #[cfg(feature = "ballista")]
    pub(crate) fn describe(&self) -> Result<UdfDescription> {
        let origin = self.predictor.origin().ok_or(crate::Error::ModelInMemory)?.clone();
        let first_row = match &self.counter {
            Counter::Batch => None,
            Counter::Rows(counter) => Some(counter.load(Ordering::Relaxed)),
        };
        Ok(UdfDescription {
            name: self.name.clone(),
            inputs: self.inputs.clone(),
            first_row,
            origin,
        })
    }

    /// The function of another process.
    #[cfg(feature = "ballista")]
    pub(crate) fn described(
        description: UdfDescription,
        predictor: Arc<BatchPredictor>,
    ) -> Result<PredictUdf> {
        let UdfDescription { name, inputs, first_row, .. } = description;
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let counter =
            first_row.map_or(Counter::Batch, |row| Counter::Rows(Arc::new(AtomicU64::new(row))));
        let function = PredictUdf::new(&name, predictor, &inputs, counter)?;
        Ok(PredictUdf { tells_text: true, ..function })
    }

    fn check(&self, fields: &[FieldRef]) -> Result<()> {
        for (input, field) in self.inputs.iter().zip(fields) {
            let spec = self.predictor.inputs().iter().find(|(name, _)| name == input);
            if let Some((_, spec)) = spec {
                check_type(input, field.name(), spec, field.data_type())?;
            }
        }
        Ok(())
    }

    /// The number of the first of these rows.
    fn count(&self, n_rows: usize) -> u64 {
        match &self.counter {
            Counter::Batch => 0,
            Counter::Rows(counter) => counter.fetch_add(n_rows as u64, Ordering::Relaxed),
        }
    }

    fn predict(&self, args: ScalarFunctionArgs) -> Result<ArrayRef> {
        let n_rows = args.number_rows;
        let arrays = args.args.into_iter().map(|arg| arg.into_array(n_rows));
        let arrays: Vec<ArrayRef> = arrays.collect::<EngineResult<_>>()?;
        let names = self.inputs.iter().zip(&args.arg_fields);
        let columns: Vec<(&str, &str, ArrayRef)> = names
            .zip(arrays)
            .map(|((input, field), array)| (input.as_str(), field.name().as_str(), array))
            .collect();
        let mut outputs = self.predictor.predict(&columns, self.count(n_rows))?;
        if outputs.len() == 1 {
            return Ok(outputs.remove(0));
        }
        Ok(Arc::new(StructArray::try_new(self.predictor.output_fields(), outputs, None)?))
    }
}

impl ScalarUDFImpl for PredictUdf {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> EngineResult<DataType> {
        let fields = self.predictor.output_fields();
        Ok(match &fields[..] {
            [output] => output.data_type().clone(),
            _ => DataType::Struct(fields),
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> EngineResult<FieldRef> {
        self.check(args.arg_fields)?;
        Ok(Arc::new(Field::new(&self.name, self.return_type(&[])?, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        self.predict(args).map(ColumnarValue::Array).map_err(|error| match self.tells_text {
            true => DataFusionError::Execution(error.to_string()),
            false => error.into(),
        })
    }
}

impl PartialEq for PredictUdf {
    fn eq(&self, other: &PredictUdf) -> bool {
        self.name == other.name
            && Arc::ptr_eq(&self.predictor, &other.predictor)
            && self.inputs == other.inputs
    }
}

impl Eq for PredictUdf {}

impl Hash for PredictUdf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.inputs.hash(state);
        Arc::as_ptr(&self.predictor).hash(state);
    }
}
