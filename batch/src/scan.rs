//! Scans: tables of the files of an input, whole or by row groups.

use crate::{
    error::Result,
    input::{InputFile, InputFiles, InputFormat},
};
use async_trait::async_trait;
use datafusion::{
    arrow::datatypes::SchemaRef,
    catalog::{Session, TableProvider},
    common::{DataFusionError, Result as EngineResult, config::CsvOptions},
    datasource::{
        TableType,
        listing::PartitionedFile,
        object_store::ObjectStoreUrl,
        physical_plan::{
            CsvSource, FileGroup, FileScanConfigBuilder, FileSource, ParquetSource,
            parquet::{ParquetAccessPlan, RowGroupAccess},
        },
        source::DataSourceExec,
    },
    logical_expr::Expr,
    object_store::path::Path,
    physical_plan::ExecutionPlan,
};
use std::{ops::Range, sync::Arc};

/// A table of files that are read in order, in one partition for each group of files.
#[derive(Debug)]
pub(crate) struct FilesTable {
    format: InputFormat,
    schema: SchemaRef,
    groups: Vec<FileGroup>,
}

impl FilesTable {
    /// These row groups of a file; all of a file of CSV.
    pub(crate) fn row_groups(
        input: &InputFiles,
        file: &InputFile,
        row_groups: Range<usize>,
    ) -> Result<FilesTable> {
        let mut partitioned = partitioned(file)?;
        if input.format == InputFormat::Parquet {
            let access = |group| match row_groups.contains(&group) {
                true => RowGroupAccess::Scan,
                false => RowGroupAccess::Skip,
            };
            let access = (0..file.row_groups.len()).map(access).collect();
            partitioned = partitioned.with_extension(ParquetAccessPlan::new(access));
        }
        FilesTable::new(input, vec![vec![partitioned].into()])
    }

    /// All files, in at most so many partitions.
    pub(crate) fn whole(input: &InputFiles, n_partitions: usize) -> Result<FilesTable> {
        let per_group = input.files.len().div_ceil(n_partitions.max(1)).max(1);
        let group = |files: &[InputFile]| {
            Ok(files.iter().map(partitioned).collect::<Result<Vec<_>>>()?.into())
        };
        let groups = input.files.chunks(per_group).map(group).collect::<Result<_>>()?;
        FilesTable::new(input, groups)
    }

    fn new(input: &InputFiles, groups: Vec<FileGroup>) -> Result<FilesTable> {
        Ok(FilesTable { format: input.format, schema: input.schema.clone(), groups })
    }

    fn source(&self) -> Arc<dyn FileSource> {
        match self.format {
            InputFormat::Parquet => Arc::new(ParquetSource::new(self.schema.clone())),
            InputFormat::Csv => {
                let options = CsvOptions::default().with_has_header(true);
                Arc::new(CsvSource::new(self.schema.clone()).with_csv_options(options))
            }
        }
    }
}

/// A file of the local disk, as the engine names it.
fn partitioned(file: &InputFile) -> Result<PartitionedFile> {
    let path = Path::from_absolute_path(&file.path)
        .map_err(|error| DataFusionError::ObjectStore(Box::new(error.into())))?;
    let mut partitioned = PartitionedFile::new("", file.bytes);
    partitioned.object_meta.location = path;
    Ok(partitioned)
}

#[async_trait]
impl TableProvider for FilesTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), self.source())
            .with_file_groups(self.groups.clone())
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}
