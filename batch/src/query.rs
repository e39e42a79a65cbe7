//! Queries: the rows of a part, with predictions.

use crate::{
    error::{Error, Result},
    input::InputFiles,
    job::BatchJob,
    predictor::BatchPredictor,
    scan::FilesTable,
    udf::counting_udf,
};
use datafusion::{
    arrow::{
        array::{AsArray, RecordBatch},
        datatypes::{Field, Schema, SchemaRef},
    },
    common::tree_node::TreeNodeRecursion,
    dataframe::DataFrame,
    execution::{context::SQLOptions, runtime_env::RuntimeEnv},
    logical_expr::{LogicalPlan, ident},
    prelude::{SessionConfig, SessionContext},
};
use std::sync::Arc;

/// Name of the function in queries.
pub(crate) const FUNCTION: &str = "predict";
/// Name of the table of the input in queries.
pub(crate) const TABLE: &str = "input";
/// The column of predictions before they are taken apart.
const PREDICTION: &str = "__prediction";

/// Columns to predict from, in the order of the inputs, and those to keep.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    /// Inputs and their columns.
    columns: Vec<(String, String)>,
    keep: Vec<String>,
}

impl Selection {
    /// The columns that a job says; an input that it does not say has a column of its name.
    pub(crate) fn new(
        predictor: &BatchPredictor,
        job: &BatchJob,
        input: &InputFiles,
    ) -> Result<Selection> {
        let named: Vec<String> = input.schema.fields().iter().map(|f| f.name().clone()).collect();
        if let Some(unknown) = job.columns.keys().find(|name| !takes(predictor, name)) {
            predictor.check_inputs(&[unknown])?;
        }
        let mut columns = Vec::new();
        for (input, _) in predictor.inputs() {
            let column = job.columns.get(input).unwrap_or(input);
            if !named.contains(column) {
                let (column, input) = (column.clone(), input.clone());
                return Err(Error::NoColumn { column, input, available: named });
            }
            columns.push((input.clone(), column.clone()));
        }
        let keep = job.keep.clone().unwrap_or_else(|| named.clone());
        if let Some(column) = keep.iter().find(|column| !named.contains(column)) {
            return Err(Error::NoKeptColumn { column: column.clone(), available: named });
        }
        let fields = predictor.output_fields();
        match fields.iter().find(|field| keep.contains(field.name())) {
            Some(field) => Err(Error::OutputName { output: field.name().clone() }),
            None => Ok(Selection { columns, keep }),
        }
    }
}

fn takes(predictor: &BatchPredictor, name: &str) -> bool {
    predictor.inputs().iter().any(|(input, _)| input == name)
}

/// Rows to come, with the schema of the output.
pub(crate) struct PlannedRows {
    pub(crate) frame: DataFrame,
    pub(crate) schema: SchemaRef,
    /// Whether the last column of the frame holds the outputs.
    predicted: bool,
    n_outputs: usize,
}

impl PlannedRows {
    /// The batch as the output has it.
    pub(crate) fn finish(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if !self.predicted {
            return Ok(batch);
        }
        let mut columns = batch.columns().to_vec();
        if let (2.., Some(prediction)) = (self.n_outputs, columns.pop()) {
            columns.extend(prediction.as_struct().columns().iter().cloned());
            return Ok(RecordBatch::try_new(self.schema.clone(), columns)?);
        }
        Ok(RecordBatch::try_new(self.schema.clone(), batch.columns().to_vec())?)
    }
}

/// Plans a part of a run. Rows of errors are counted from `first_row`.
pub(crate) async fn plan(
    predictor: &Arc<BatchPredictor>,
    job: &BatchJob,
    input: &InputFiles,
    table: FilesTable,
    session: &SessionSettings,
    first_row: u64,
) -> Result<PlannedRows> {
    let context = session.context(predictor.batch_size()).await?;
    match &job.query {
        Some(query) => {
            context.register_udf(counting_udf(FUNCTION, predictor.clone(), &[], first_row)?);
            context.register_table(TABLE, Arc::new(table))?;
            let options = SQLOptions::new()
                .with_allow_ddl(false)
                .with_allow_dml(false)
                .with_allow_statements(false);
            let frame = context.sql_with_options(query, options).await?;
            let schema = Arc::new(frame.schema().as_arrow().clone());
            Ok(PlannedRows { frame, schema, predicted: false, n_outputs: 0 })
        }
        None => {
            let selection = Selection::new(predictor, job, input)?;
            let frame = context.read_table(Arc::new(table))?;
            select(predictor, &selection, frame, first_row)
        }
    }
}

/// Kept columns and predictions.
fn select(
    predictor: &Arc<BatchPredictor>,
    selection: &Selection,
    frame: DataFrame,
    first_row: u64,
) -> Result<PlannedRows> {
    let inputs: Vec<&str> = selection.columns.iter().map(|(input, _)| input.as_str()).collect();
    let udf = counting_udf(FUNCTION, predictor.clone(), &inputs, first_row)?;
    let args = selection.columns.iter().map(|(_, column)| ident(column)).collect();
    let mut exprs: Vec<_> = selection.keep.iter().map(ident).collect();
    exprs.push(udf.call(args).alias(PREDICTION));
    let kept = selection.keep.iter().map(|name| {
        let schema = frame.schema().as_arrow();
        schema.field_with_name(name).map(|field| Arc::new(field.clone()))
    });
    let mut fields: Vec<Arc<Field>> = kept.collect::<Result<_, _>>()?;
    let outputs = predictor.output_fields();
    fields.extend(outputs.iter().cloned());
    let frame = frame.select(exprs)?;
    let schema = Arc::new(Schema::new(fields));
    Ok(PlannedRows { frame, schema, predicted: true, n_outputs: outputs.len() })
}

/// Whether each row of a plan comes of one row of one scan: then parts of the input can be queried
/// on their own.
pub(crate) fn is_row_wise(plan: &LogicalPlan) -> Result<bool> {
    let (mut row_wise, mut n_scans) = (true, 0);
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(_) => n_scans += 1,
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Unnest(_) => {}
            _ => row_wise = false,
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(row_wise && n_scans == 1)
}

/// Processes that queries run in.
#[derive(Debug, Clone)]
pub(crate) enum QueryTarget {
    /// This one.
    Here,
    /// Executors of a scheduler.
    #[cfg(feature = "ballista")]
    Scheduler(String),
}

impl QueryTarget {
    /// Whether a query that ended in this error may succeed when it is run again.
    #[cfg_attr(
        not(feature = "ballista"),
        expect(unused_variables, reason = "queries that run here fail for good")
    )]
    pub(crate) fn is_transient(&self, error: &Error) -> bool {
        match self {
            QueryTarget::Here => false,
            #[cfg(feature = "ballista")]
            QueryTarget::Scheduler(_) => crate::distributed::is_transient(error),
        }
    }

    async fn session(
        &self,
        config: SessionConfig,
        runtime: Arc<RuntimeEnv>,
    ) -> Result<SessionContext> {
        match self {
            QueryTarget::Here => Ok(SessionContext::new_with_config_rt(config, runtime)),
            #[cfg(feature = "ballista")]
            QueryTarget::Scheduler(url) => {
                Ok(crate::distributed::remote(url, config, runtime).await?)
            }
        }
    }
}

/// Settings of the engine that parts share.
#[derive(Debug, Clone)]
pub(crate) struct SessionSettings {
    pub(crate) runtime: Arc<RuntimeEnv>,
    /// Partitions of a plan: 1 where rows are to stay in order.
    pub(crate) partitions: usize,
    pub(crate) target: QueryTarget,
}

impl SessionSettings {
    async fn context(&self, batch_size: usize) -> Result<SessionContext> {
        let mut config = SessionConfig::new()
            .with_batch_size(batch_size)
            .with_target_partitions(self.partitions);
        config.options_mut().execution.parquet.schema_force_view_types = false;
        // It would evaluate a call once for each output that is taken of it.
        config.options_mut().optimizer.enable_leaf_expression_pushdown = false;
        self.target.session(config, self.runtime.clone()).await
    }
}
