//! Codecs of plans: those of Ballista, and the function and the table of this crate.

use super::models::LoadedModels;
use crate::{
    scan::{FilesTable, ScannedFiles},
    udf::{PredictUdf, UdfDescription},
};
use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use datafusion::{
    arrow::datatypes::SchemaRef,
    catalog::TableProvider,
    common::{DataFusionError, Result, TableReference},
    datasource::file_format::FileFormatFactory,
    execution::TaskContext,
    logical_expr::{Extension, LogicalPlan, ScalarUDF},
    physical_plan::ExecutionPlan,
};
use datafusion_proto::{
    logical_plan::LogicalExtensionCodec,
    physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{any::Any, sync::Arc};

/// The beginning of what this crate writes into plans.
const MARK: &[u8] = b"ferroflow-batch:";

/// Codec of logical plans.
#[derive(Debug, Default)]
pub(super) struct PredictLogicalCodec {
    inner: BallistaLogicalExtensionCodec,
    functions: FunctionCodec,
}

/// Codec of physical plans.
#[derive(Debug, Default)]
pub(super) struct PredictPhysicalCodec {
    inner: BallistaPhysicalExtensionCodec,
    functions: FunctionCodec,
}

/// Functions, whose models are shared by all plans of a process.
#[derive(Debug, Clone, Default)]
struct FunctionCodec(Arc<LoadedModels>);

/// Both codecs of a process, with the same models.
pub(super) fn codecs() -> (Arc<PredictLogicalCodec>, Arc<PredictPhysicalCodec>) {
    let functions = FunctionCodec::default();
    let logical = PredictLogicalCodec { functions: functions.clone(), ..Default::default() };
    let physical = PredictPhysicalCodec { functions, ..Default::default() };
    (Arc::new(logical), Arc::new(physical))
}

impl FunctionCodec {
    fn encode(&self, function: &ScalarUDF, buffer: &mut Vec<u8>) -> Result<()> {
        let function: &dyn Any = function.inner().as_ref();
        match function.downcast_ref::<PredictUdf>() {
            Some(predict) => write(&predict.describe()?, buffer),
            None => Ok(()),
        }
    }

    /// The function, if it is one of this crate; else that of `other`.
    fn decode(
        &self,
        bytes: &[u8],
        other: impl FnOnce() -> Result<Arc<ScalarUDF>>,
    ) -> Result<Arc<ScalarUDF>> {
        let Some(description) = read::<UdfDescription>(bytes)? else { return other() };
        let predictor = self.0.get(&description.origin)?;
        let function = PredictUdf::described(description, predictor)?;
        Ok(Arc::new(ScalarUDF::new_from_impl(function)))
    }
}

fn write(value: &impl Serialize, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.extend_from_slice(MARK);
    serde_json::to_writer(buffer, value).map_err(|error| DataFusionError::External(error.into()))
}

/// The value that [`write`] has written; `None` for bytes of others.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<Option<T>> {
    let Some(json) = bytes.strip_prefix(MARK) else { return Ok(None) };
    let value = serde_json::from_slice(json);
    value.map(Some).map_err(|error| DataFusionError::External(error.into()))
}

impl LogicalExtensionCodec for PredictLogicalCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[LogicalPlan],
        context: &TaskContext,
    ) -> Result<Extension> {
        self.inner.try_decode(bytes, inputs, context)
    }

    fn try_encode(&self, node: &Extension, buffer: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode(node, buffer)
    }

    fn try_decode_table_provider(
        &self,
        bytes: &[u8],
        name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        match read::<ScannedFiles>(bytes)? {
            Some(files) => Ok(Arc::new(FilesTable::new(schema, files))),
            None => self.inner.try_decode_table_provider(bytes, name, schema, context),
        }
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        match table.downcast_ref::<FilesTable>() {
            Some(files) => write(files.files(), buffer),
            None => self.inner.try_encode_table_provider(name, table, buffer),
        }
    }

    fn try_decode_file_format(
        &self,
        bytes: &[u8],
        context: &TaskContext,
    ) -> Result<Arc<dyn FileFormatFactory>> {
        self.inner.try_decode_file_format(bytes, context)
    }

    fn try_encode_file_format(
        &self,
        buffer: &mut Vec<u8>,
        format: Arc<dyn FileFormatFactory>,
    ) -> Result<()> {
        self.inner.try_encode_file_format(buffer, format)
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        self.functions.decode(bytes, || self.inner.try_decode_udf(name, bytes))
    }

    fn try_encode_udf(&self, function: &ScalarUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.functions.encode(function, buffer)
    }
}

impl PhysicalExtensionCodec for PredictPhysicalCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.inner.try_decode(bytes, inputs, context, converter)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buffer: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        self.inner.try_encode(node, buffer, converter)
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        self.functions.decode(bytes, || self.inner.try_decode_udf(name, bytes))
    }

    fn try_encode_udf(&self, function: &ScalarUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.functions.encode(function, buffer)
    }
}
