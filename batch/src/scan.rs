//! Scans: tables of the files of an input, whole or by row groups.

use crate::input::{InputFiles, InputFormat, TableFile};
use async_trait::async_trait;
use datafusion::{
    arrow::datatypes::SchemaRef,
    catalog::{Session, TableProvider},
    common::{DataFusionError, Result as EngineResult, config::CsvOptions},
    datasource::{
        TableType,
        listing::PartitionedFile,
        object_store::ObjectStoreUrl,
        physical_plan::{CsvSource, FileGroup, FileScanConfigBuilder, FileSource, ParquetSource},
        source::DataSourceExec,
    },
    logical_expr::Expr,
    object_store::path::Path,
    physical_plan::ExecutionPlan,
};
use serde::{Deserialize, Serialize};
use std::{ops::Range, path::PathBuf, sync::Arc};

/// A table of files that are read in order, in one partition for each group of files.
#[derive(Debug, Clone)]
pub(crate) struct FilesTable {
    schema: SchemaRef,
    files: ScannedFiles,
}

/// The files of a table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ScannedFiles {
    format: InputFormat,
    groups: Vec<Vec<ScannedFile>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ScannedFile {
    path: PathBuf,
    bytes: u64,
    /// Bytes in which the first pages of row groups are; all if `None`.
    range: Option<Range<u64>>,
}

impl FilesTable {
    /// A file of an input, or those of its row groups that start in this range of bytes.
    pub(crate) fn file(
        input: &InputFiles,
        file: &TableFile,
        range: Option<Range<u64>>,
    ) -> FilesTable {
        FilesTable::of_groups(input, vec![vec![ScannedFile::new(file, range)]])
    }

    /// All files, in at most so many partitions.
    pub(crate) fn whole(input: &InputFiles, n_partitions: usize) -> FilesTable {
        let per_group = input.files.len().div_ceil(n_partitions.max(1)).max(1);
        let group =
            |files: &[TableFile]| files.iter().map(|file| ScannedFile::new(file, None)).collect();
        FilesTable::of_groups(input, input.files.chunks(per_group).map(group).collect())
    }

    fn of_groups(input: &InputFiles, groups: Vec<Vec<ScannedFile>>) -> FilesTable {
        let files = ScannedFiles { format: input.format, groups };
        FilesTable { schema: input.schema.clone(), files }
    }

    /// A table of files whose schema is known.
    #[cfg(feature = "ballista")]
    pub(crate) fn new(schema: SchemaRef, files: ScannedFiles) -> FilesTable {
        FilesTable { schema, files }
    }

    /// The files.
    #[cfg(feature = "ballista")]
    pub(crate) fn files(&self) -> &ScannedFiles {
        &self.files
    }

    fn source(&self) -> Arc<dyn FileSource> {
        match self.files.format {
            InputFormat::Parquet => Arc::new(ParquetSource::new(self.schema.clone())),
            InputFormat::Csv => {
                let options = CsvOptions::default().with_has_header(true);
                Arc::new(CsvSource::new(self.schema.clone()).with_csv_options(options))
            }
        }
    }

    fn groups(&self) -> EngineResult<Vec<FileGroup>> {
        let group = |files: &Vec<ScannedFile>| {
            let files = files.iter().map(ScannedFile::partitioned);
            Ok(files.collect::<EngineResult<Vec<_>>>()?.into())
        };
        self.files.groups.iter().map(group).collect()
    }
}

impl ScannedFile {
    fn new(file: &TableFile, range: Option<Range<u64>>) -> ScannedFile {
        ScannedFile { path: file.path.clone(), bytes: file.bytes, range }
    }

    /// The file as the engine names it.
    fn partitioned(&self) -> EngineResult<PartitionedFile> {
        let path = Path::from_absolute_path(&self.path)
            .map_err(|error| DataFusionError::ObjectStore(Box::new(error.into())))?;
        let mut partitioned = PartitionedFile::new("", self.bytes);
        partitioned.object_meta.location = path;
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        Ok(match &self.range {
            Some(range) => partitioned.with_range(signed(range.start), signed(range.end)),
            None => partitioned,
        })
    }
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
            .with_file_groups(self.groups()?)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}
