//! `run`: files in, Parquet out.

use super::progress::ProgressLine;
use clap::{Args, ValueEnum};
use ferroflow_batch::{
    BatchJob, BatchSummary, Error, ParquetCompression, PredictorOptions, StringColumns, run,
};
use std::{collections::BTreeMap, num::NonZeroUsize, path::PathBuf, sync::Arc};
use tokio::runtime;

/// Predicts for all rows of files.
///
/// A run that was ended goes on where it stopped when it is started again.
#[derive(Debug, Args)]
pub(super) struct RunVerb {
    /// Folder of the SavedModel.
    model: PathBuf,
    /// File, folder or glob of Parquet, or of CSV with names in its first line; may be repeated.
    #[arg(long, required = true)]
    input: Vec<String>,
    /// File that ends in .parquet, or folder of parts.
    #[arg(long)]
    output: PathBuf,
    /// Signature; by default serving_default, or the only one.
    #[arg(long)]
    signature: Option<String>,
    /// Tags of the MetaGraph, with commas between them.
    #[arg(long, value_delimiter = ',')]
    tags: Option<Vec<String>>,
    /// Column of an input of the signature; by default that of its name.
    #[arg(long = "column", value_name = "INPUT=COLUMN", value_parser = parse_column, value_delimiter = ',')]
    columns: Vec<(String, String)>,
    /// Columns to keep beside the outputs; by default all.
    #[arg(long, value_delimiter = ',')]
    keep: Option<Vec<String>>,
    /// Query over the table `input`; it calls predict(…) with the inputs in the order of their names.
    #[arg(long, conflicts_with_all = ["columns", "keep"])]
    query: Option<String>,
    /// Rows of one call of the model at most; by default 8192, or as many as have 32 MiB.
    #[arg(long)]
    batch_size: Option<NonZeroUsize>,
    /// Parts that are worked on at the same time; by default one per processor.
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Rows of a part; what is lost when a run is ended.
    #[arg(long, default_value_t = 1 << 20)]
    rows_per_part: u64,
    /// Memory in MiB that sorts, joins and groups of a query may take; more goes to temporary files.
    #[arg(long, default_value_t = 1024)]
    memory: usize,
    /// Compression of the output.
    #[arg(long, value_enum, default_value_t = CompressionArgument::Snappy)]
    compression: CompressionArgument,
    /// Strings of outputs become columns of bytes, which need not be UTF-8.
    #[arg(long)]
    binary_strings: bool,
    /// Scheduler whose executors work on the parts, such as df://localhost:50050.
    #[cfg(feature = "ballista")]
    #[arg(long)]
    scheduler: Option<String>,
    /// Discards what another run left, and replaces an existing file.
    #[arg(long)]
    overwrite: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CompressionArgument {
    None,
    Snappy,
    Zstd,
}

fn parse_column(text: &str) -> Result<(String, String), String> {
    let (input, column) = text.split_once('=').ok_or("expected INPUT=COLUMN")?;
    Ok((input.into(), column.into()))
}

impl RunVerb {
    pub(super) fn run(self) -> Result<(), Error> {
        let mut builder = runtime::Builder::new_multi_thread();
        builder.enable_all();
        if let Some(threads) = self.threads {
            builder.worker_threads(threads.get());
        }
        let io = |source| Error::Io { path: "threads".into(), source };
        let runtime = builder.build().map_err(io)?;
        let line = Arc::new(ProgressLine::new());
        let listener = line.clone();
        let (options, model) = (self.options(), self.model.clone());
        let running = run(model, &options, self.job(), Arc::new(move |step| listener.step(step)));
        let summary = runtime.block_on(running);
        line.finish();
        report(summary?);
        Ok(())
    }

    fn options(&self) -> PredictorOptions {
        PredictorOptions {
            signature: self.signature.clone(),
            tags: self.tags.clone(),
            batch_size: self.batch_size,
            strings: match self.binary_strings {
                true => StringColumns::Binary,
                false => StringColumns::Text,
            },
            threads: self.threads,
        }
    }

    fn job(self) -> BatchJob {
        BatchJob {
            columns: self.columns.into_iter().collect::<BTreeMap<_, _>>(),
            keep: self.keep,
            query: self.query,
            threads: self.threads,
            rows_per_part: self.rows_per_part,
            memory: self.memory.saturating_mul(1 << 20),
            compression: match self.compression {
                CompressionArgument::None => ParquetCompression::None,
                CompressionArgument::Snappy => ParquetCompression::Snappy,
                CompressionArgument::Zstd => ParquetCompression::Zstd,
            },
            #[cfg(feature = "ballista")]
            scheduler: self.scheduler,
            overwrite: self.overwrite,
            ..BatchJob::new(self.input, self.output)
        }
    }
}

fn report(summary: BatchSummary) {
    let BatchSummary { rows, parts, resumed } = summary;
    match resumed {
        0 => println!("{rows} rows in {parts} parts"),
        _ => println!("{rows} rows in {parts} parts, {resumed} of which were there already"),
    }
}
