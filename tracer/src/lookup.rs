//! Lookup tables: from words to numbers and back.
//!
//! ```
//! use ferroflow_tracer::{Result, Tensor, lookup::{StaticVocabularyTable, TableInitializer}};
//! # fn main() -> Result<()> {
//! let words = TableInitializer::of_tensors(["hello", "world"], vec![0i64, 1])?;
//! let table = StaticVocabularyTable::new(words, 1)?;
//! let ids = table.lookup(&Tensor::from(["world", "unknown"]))?;
//! assert_eq!(ids.to_vec::<i64>()?, [1, 2]);
//! # Ok(())
//! # }
//! ```

use crate::{
    error::Result,
    func_graph::unique_id,
    function::{Function, function},
    ops,
    resource::TrackableResource,
    tensor::Tensor,
};
use ferroflow_ir::{DType, HostTensor, PartialShape, TensorSpec};
use ferroflow_runtime::{
    self as runtime,
    trackable::{Asset, Description, ExportedFunction, Identity, Saveable, Trackable},
};
use std::{collections::BTreeMap, sync::Arc};

/// The column of a text file that keys or values are in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextColumn {
    /// The number of the line, from 0.
    LineNumber,
    /// The whole line.
    WholeLine,
    /// A column, from 0, between delimiters.
    Column(u32),
}

impl TextColumn {
    /// The number that ops know it by.
    fn index(self) -> i64 {
        match self {
            TextColumn::LineNumber => -1,
            TextColumn::WholeLine => -2,
            TextColumn::Column(column) => column.into(),
        }
    }
}

/// Entries that a table that does not change is filled with.
#[derive(Clone, Debug)]
pub struct TableInitializer {
    key_dtype: DType,
    value_dtype: DType,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Tensors { keys: Tensor, values: Tensor },
    File { file: Asset, key: TextColumn, value: TextColumn, delimiter: String },
}

impl TableInitializer {
    /// These keys and values.
    ///
    /// # Errors
    ///
    /// When they are symbolic: a table is filled outside of traces.
    pub fn of_tensors(
        keys: impl Into<Tensor>,
        values: impl Into<Tensor>,
    ) -> Result<TableInitializer> {
        let (keys, values) = (keys.into(), values.into());
        let (key_dtype, value_dtype) = (keys.host()?.dtype(), values.host()?.dtype());
        Ok(TableInitializer { key_dtype, value_dtype, source: Source::Tensors { keys, values } })
    }

    /// The lines of a text file, which is saved with the model; columns are between tabs.
    pub fn of_file(
        file: impl Into<std::path::PathBuf>,
        (key_dtype, key): (DType, TextColumn),
        (value_dtype, value): (DType, TextColumn),
    ) -> TableInitializer {
        let (file, delimiter) = (Asset::new(file), "\t".into());
        let source = Source::File { file, key, value, delimiter };
        TableInitializer { key_dtype, value_dtype, source }
    }

    /// The words of a file, one in a line, and their numbers.
    pub fn vocabulary(file: impl Into<std::path::PathBuf>) -> TableInitializer {
        let (key, value) =
            ((DType::String, TextColumn::WholeLine), (DType::I64, TextColumn::LineNumber));
        TableInitializer::of_file(file, key, value)
    }

    fn fill(&self, table: &Tensor) -> Result<()> {
        match &self.source {
            Source::Tensors { keys, values } => ops::initialize_table_v2(table, keys, values),
            Source::File { file, key, value, delimiter } => {
                let attrs = ops::InitializeTableFromTextFileV2Attrs {
                    delimiter: delimiter.clone(),
                    ..Default::default()
                };
                ops::initialize_table_from_text_file_v2_with(
                    table,
                    &file.tensor().into(),
                    key.index(),
                    value.index(),
                    &attrs,
                )
            }
        }
    }
}

impl Trackable for TableInitializer {
    fn describe(&self, object: &mut Description<'_>) {
        if let Source::File { file, .. } = &self.source {
            object.child("_filename", file);
        }
    }
}

/// A table that is filled once.
#[derive(Clone, Debug)]
pub struct StaticHashTable {
    resource: TrackableResource,
    default: Tensor,
}

impl StaticHashTable {
    /// A table of these keys and values; `default` stands for keys that are not there.
    ///
    /// # Errors
    ///
    /// When the table cannot be filled.
    pub fn new(
        initializer: TableInitializer,
        default: impl Into<Tensor>,
    ) -> Result<StaticHashTable> {
        let (key_dtype, value_dtype) = (initializer.key_dtype, initializer.value_dtype);
        let attrs = ops::HashTableV2Attrs {
            shared_name: format!("hash_table_{}", unique_id()),
            ..Default::default()
        };
        let create = move || ops::hash_table_v2_with(key_dtype, value_dtype, &attrs);
        let filled = initializer.clone();
        let resource = TrackableResource::new(create, move |table| filled.fill(table))?;
        let resource = resource.with_child("_initializer", initializer);
        Ok(StaticHashTable { resource, default: default.into() })
    }

    /// The values of keys.
    ///
    /// # Errors
    ///
    /// When the keys are not of the table's dtype.
    #[track_caller]
    pub fn lookup(&self, keys: &Tensor) -> Result<Tensor> {
        ops::lookup_table_find_v2(&self.resource.handle(), keys, &self.default)
    }

    /// The number of keys.
    ///
    /// # Errors
    ///
    /// When the table is gone.
    #[track_caller]
    pub fn size(&self) -> Result<Tensor> {
        ops::lookup_table_size_v2(&self.resource.handle())
    }
}

impl Trackable for StaticHashTable {
    fn describe(&self, object: &mut Description<'_>) {
        self.resource.describe(object);
    }

    fn identity(&self) -> Option<Identity> {
        self.resource.identity()
    }
}

/// A table from words to numbers, in which every word has one: those that are not in the vocabulary
/// share a few buckets behind it.
#[derive(Clone, Debug)]
pub struct StaticVocabularyTable {
    table: StaticHashTable,
    n_oov_buckets: i64,
}

impl StaticVocabularyTable {
    /// A table of these words and numbers, with so many buckets for others.
    ///
    /// # Errors
    ///
    /// When the table cannot be filled.
    pub fn new(initializer: TableInitializer, n_oov_buckets: u32) -> Result<StaticVocabularyTable> {
        let table = StaticHashTable::new(initializer, -1i64)?;
        Ok(StaticVocabularyTable { table, n_oov_buckets: n_oov_buckets.into() })
    }

    /// The numbers of words.
    ///
    /// # Errors
    ///
    /// When `words` are no texts.
    #[track_caller]
    pub fn lookup(&self, words: &Tensor) -> Result<Tensor> {
        let known = self.table.lookup(words)?;
        if self.n_oov_buckets == 0 {
            return Ok(known);
        }
        let buckets = ops::string_to_hash_bucket_fast(words, self.n_oov_buckets)?;
        let buckets = (&buckets + &self.table.size()?)?;
        let is_known = ops::not_equal(&known, &Tensor::from(-1i64))?;
        ops::select_v2(&is_known, &known, &buckets)
    }

    /// The number of words and buckets.
    ///
    /// # Errors
    ///
    /// When the table is gone.
    #[track_caller]
    pub fn size(&self) -> Result<Tensor> {
        &self.table.size()? + self.n_oov_buckets
    }
}

impl Trackable for StaticVocabularyTable {
    fn describe(&self, object: &mut Description<'_>) {
        self.table.describe(object);
    }

    fn identity(&self) -> Option<Identity> {
        self.table.identity()
    }
}

/// A table whose keys come and go. Checkpoints hold them.
#[derive(Clone, Debug)]
pub struct MutableHashTable {
    resource: TrackableResource,
    key_dtype: DType,
    default: Tensor,
}

impl MutableHashTable {
    /// An empty table; `default` stands for keys that are not there.
    ///
    /// # Errors
    ///
    /// For dtypes that tables cannot have.
    pub fn new(key_dtype: DType, default: impl Into<Tensor>) -> Result<MutableHashTable> {
        let default = default.into();
        let value_dtype = default.dtype();
        let attrs = ops::MutableHashTableV2Attrs {
            shared_name: format!("mutable_hash_table_{}", unique_id()),
            ..Default::default()
        };
        let create = move || ops::mutable_hash_table_v2_with(key_dtype, value_dtype, &attrs);
        let resource = TrackableResource::new(create, |_| Ok(()))?;
        let entries = Entries::new(resource.handle(), key_dtype, value_dtype);
        let resource = resource.with_saveable(entries);
        Ok(MutableHashTable { resource, key_dtype, default })
    }

    /// The dtype of the keys.
    pub fn key_dtype(&self) -> DType {
        self.key_dtype
    }

    /// Sets the values of keys.
    ///
    /// # Errors
    ///
    /// When dtypes or shapes do not fit.
    #[track_caller]
    pub fn insert(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        ops::lookup_table_insert_v2(&self.resource.handle(), keys, values)
    }

    /// Removes keys.
    ///
    /// # Errors
    ///
    /// When the keys are not of the table's dtype.
    #[track_caller]
    pub fn remove(&self, keys: &Tensor) -> Result<()> {
        ops::lookup_table_remove_v2(&self.resource.handle(), keys)
    }

    /// The values of keys.
    ///
    /// # Errors
    ///
    /// When the keys are not of the table's dtype.
    #[track_caller]
    pub fn lookup(&self, keys: &Tensor) -> Result<Tensor> {
        ops::lookup_table_find_v2(&self.resource.handle(), keys, &self.default)
    }

    /// The number of keys.
    ///
    /// # Errors
    ///
    /// When the table is gone.
    #[track_caller]
    pub fn size(&self) -> Result<Tensor> {
        ops::lookup_table_size_v2(&self.resource.handle())
    }
}

impl Trackable for MutableHashTable {
    fn describe(&self, object: &mut Description<'_>) {
        self.resource.describe(object);
    }

    fn identity(&self) -> Option<Identity> {
        self.resource.identity()
    }
}

type Saved = Vec<BTreeMap<String, Tensor>>;

/// The keys and values of a table as checkpoints hold them.
struct Entries {
    handle: Tensor,
    dtypes: [DType; 2],
    save: Function<(Tensor,), Saved>,
    restore: Function<(Tensor, Tensor), Tensor>,
}

/// Suffixes of the table's key, for its two tensors.
const SUFFIXES: [&str; 2] = ["-keys", "-values"];

impl Entries {
    fn new(handle: Tensor, key_dtype: DType, value_dtype: DType) -> Entries {
        let dtypes = [key_dtype, value_dtype];
        let any = |dtype| TensorSpec::new(dtype, PartialShape::Unknown);
        let (table, text) =
            (handle.clone(), TensorSpec::new(DType::String, PartialShape::scalar()));
        let save = function(move |checkpoint_key: Tensor| -> Result<Saved> {
            let [keys, values] = ops::lookup_table_export_v2(&table, dtypes[0], dtypes[1])?;
            let mut saved = Vec::new();
            for (suffix, tensor) in SUFFIXES.iter().zip([keys, values]) {
                let name = ops::add(&checkpoint_key, &Tensor::from(*suffix))?;
                let entries = [("name", name), ("slice_spec", "".into()), ("tensor", tensor)];
                saved.push(entries.map(|(name, tensor)| (name.to_string(), tensor)).into());
            }
            Ok(saved)
        });
        let save = save.with_name("save_fn").with_parameters(["checkpoint_key"]);
        let table = handle.clone();
        // As with what fills a resource, TensorFlow needs a result.
        let restore = function(move |keys: Tensor, values: Tensor| -> Result<Tensor> {
            ops::lookup_table_import_v2(&table, &keys, &values)?;
            Ok(Tensor::from(1))
        });
        let restore = restore.with_name("restore_fn");
        let restore = restore.with_parameters(["restored_tensors_0", "restored_tensors_1"]);
        let restore = restore.with_input_signature([any(key_dtype), any(value_dtype)]);
        Entries { handle, dtypes, save: save.with_input_signature([text]), restore }
    }
}

impl Saveable for Entries {
    fn name(&self) -> &str {
        "table"
    }

    fn tensors(&self) -> runtime::Result<Vec<(String, HostTensor)>> {
        let [key_dtype, value_dtype] = self.dtypes;
        let exported = ops::lookup_table_export_v2(&self.handle, key_dtype, value_dtype);
        let hosts =
            exported.and_then(|[keys, values]| Ok([keys.host()?.clone(), values.host()?.clone()]));
        let hosts = hosts.map_err(crate::Error::into_runtime)?;
        Ok(SUFFIXES.iter().map(|suffix| suffix.to_string()).zip(hosts).collect())
    }

    fn restore(&self, values: Vec<HostTensor>) -> runtime::Result<()> {
        let values: Vec<Tensor> = values.into_iter().map(Tensor::from).collect();
        let [keys, values] = &values[..] else {
            let message = format!("a table is restored of keys and values, found {}", values.len());
            let code = ferroflow_ir::Code::InvalidArgument;
            return Err(runtime::Error::Status { code, message });
        };
        let imported = ops::lookup_table_import_v2(&self.handle, keys, values);
        imported.map_err(crate::Error::into_runtime)
    }

    fn suffixes(&self) -> Vec<String> {
        SUFFIXES.map(str::to_string).into()
    }

    fn functions(&self) -> Option<[Arc<dyn ExportedFunction>; 2]> {
        Some([self.save.exported(), self.restore.exported()])
    }
}
