//! Readers: the records of files whose names come from a queue.
//!
//! RecordSource: `reader_base.cc` of TensorFlow.

mod csv;
mod dataset;
mod source;
mod to_records;

use crate::proto::ReaderBaseState;
use bytes::Bytes;
use ferroflow_ir::{Attrs, Code, DType, Error as IrError, HostTensor};
use ferroflow_runtime::{
    Context, Error, Resource, Result, Results, Scope, execute, files,
    ops::{RuntimeCall, none, one},
};
use parking_lot::Mutex;
use prost::Message;
use source::{Record, RecordFormat, RecordSource};
use std::{path::Path, sync::Arc};

/// Makes the ops known to a context.
pub(crate) fn add_ops(context: &Context) {
    csv::add_ops(context);
    dataset::add_ops(context);
    to_records::add_ops(context);
    context.add_host_op("FixedLengthRecordReaderV2", of_length);
    context.add_host_op("IdentityReaderV2", of_names);
    context.add_host_op("ReaderNumRecordsProducedV2", n_produced);
    context.add_host_op("ReaderNumWorkUnitsCompletedV2", n_finished);
    context.add_host_op("ReaderReadUpToV2", read_up_to);
    context.add_host_op("ReaderReadV2", read);
    context.add_host_op("ReaderResetV2", reset);
    context.add_host_op("ReaderRestoreStateV2", restore);
    context.add_host_op("ReaderSerializeStateV2", serialize);
    context.add_host_op("TFRecordReaderV2", of_records);
    context.add_host_op("TextLineReaderV2", of_lines);
    context.add_host_op("WholeFileReaderV2", of_files);
}

/// A reader.
#[derive(Debug)]
struct FileReader {
    format: RecordFormat,
    state: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// The file that is being read or was read last.
    name: Bytes,
    source: Option<RecordSource>,
    started: i64,
    finished: i64,
    produced: i64,
}

impl FileReader {
    /// The next records, from one file, but at most `n`.
    fn read(&self, call: &RuntimeCall<'_>, n: usize) -> Result<Vec<Record>> {
        let mut progress = self.state.lock();
        let mut found = Vec::new();
        while found.len() < n {
            if progress.source.is_none() {
                let name = next_name(call)?;
                progress.source = Some(self.open(call, name.clone())?);
                progress.name = name;
                progress.started += 1;
            }
            let Some(source) = &mut progress.source else { continue };
            let record = source.next(&self.format)?;
            let ended = record.is_none() || RecordSource::is_single(&self.format);
            progress.produced += i64::from(record.is_some());
            found.extend(record);
            if ended {
                progress.source = None;
                progress.finished += 1;
                if !found.is_empty() {
                    break;
                }
            }
        }
        Ok(found)
    }

    fn open(&self, call: &RuntimeCall<'_>, name: Bytes) -> Result<RecordSource> {
        if self.format == RecordFormat::Name {
            return Ok(RecordSource::new(name, Bytes::new()));
        }
        let path = RuntimeCall::path_of(&name)?;
        let contents = open(call.scope, call.op.name, &path, self.format.compression())?;
        Ok(RecordSource::new(name, contents))
    }
}

/// The bytes of a file, unpacked: no more than a tensor may have.
fn open(scope: Scope<'_>, op: &'static str, path: &Path, compression: &str) -> Result<Bytes> {
    let packed = contents(scope, op, path)?;
    if compression.is_empty() { Ok(packed) } else { unpacked(scope, packed, compression) }
}

/// The bytes that were packed: no more than a tensor may have.
pub(crate) fn unpacked(scope: Scope<'_>, packed: Bytes, compression: &str) -> Result<Bytes> {
    let attrs = Attrs::new().with("compression_type", compression);
    let packed = HostTensor::scalar_string(packed);
    let whole = execute(scope.context, "DecodeCompressed", attrs, &[packed.into()])?;
    Ok(whole[0].host()?.strings()?.first().cloned().unwrap_or_default())
}

/// The bytes of a file, no more than a tensor may have.
pub(crate) fn contents(scope: Scope<'_>, op: &'static str, path: &Path) -> Result<Bytes> {
    scope.check_file(path)?;
    let failed = |error: std::io::Error| -> Error {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => Code::NotFound,
            std::io::ErrorKind::PermissionDenied => Code::PermissionDenied,
            _ => Code::Unavailable,
        };
        let detail = format!("{}: {error}", path.display());
        IrError::Status { code, op: op.into(), detail }.into()
    };
    let size = files::size(path).map_err(failed)?;
    let limit = scope.context.limits().tensor_bytes as u64;
    if size > limit {
        let (what, needed) = ("a file".into(), format!("{size} bytes"));
        return Err(IrError::Limit { what, needed, limit }.into());
    }
    files::read(path).map_err(failed)
}

/// The next name in the queue of input 1.
fn next_name(call: &RuntimeCall<'_>) -> Result<Bytes> {
    let attrs = Attrs::new().with("component_types", vec![DType::String]);
    let taken = execute(call.context(), "QueueDequeueV2", attrs, &[call.inputs[1].clone()])?;
    let name = taken[0].host()?;
    match (name.shape().rank(), name.strings()?) {
        (0, [name]) => Ok(name.clone()),
        _ => {
            let expected = "of single strings";
            Err(IrError::argument(call.op.name, "queue_handle", expected, name.shape()).into())
        }
    }
}

impl Resource for FileReader {
    fn kind(&self) -> &'static str {
        "a reader"
    }
}

fn reader(call: &RuntimeCall<'_>) -> Result<Arc<FileReader>> {
    call.resource(0, "a reader")
}

fn new(call: &RuntimeCall<'_>, format: RecordFormat) -> Result<Results> {
    let make = || Ok(Arc::new(FileReader { format, state: Mutex::default() }) as Arc<dyn Resource>);
    one(call.named_resource(make)?.to_tensor())
}

fn of_lines(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let skipped = call.attrs.int("skip_header_lines")?;
    new(
        call,
        RecordFormat::Lines {
            skipped: u64::try_from(skipped).unwrap_or(0),
            compression: String::new(),
        },
    )
}

fn of_files(call: &mut RuntimeCall<'_>) -> Result<Results> {
    new(call, RecordFormat::Whole)
}

fn of_names(call: &mut RuntimeCall<'_>) -> Result<Results> {
    new(call, RecordFormat::Name)
}

fn of_records(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let compression = call.attrs.string("compression_type")?.to_string();
    new(call, RecordFormat::Records { compression })
}

fn of_length(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let size = |name: &'static str, least: usize| -> Result<usize> {
        let value = call.attrs.int(name)?;
        let size = usize::try_from(value).ok().filter(|&size| size >= least);
        let expected = if least > 0 { "positive" } else { "not negative" };
        Ok(size.ok_or_else(|| IrError::argument(call.op.name, name, expected, value))?)
    };
    let format = RecordFormat::Fixed {
        header: size("header_bytes", 0)?,
        record: size("record_bytes", 1)?,
        footer: size("footer_bytes", 0)?,
        hop: size("hop_bytes", 0)?,
        compression: call.attrs.string("encoding")?.to_string(),
    };
    new(call, format)
}

fn read(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let found = reader(call)?.read(call, 1)?;
    let (keys, values): (Vec<Bytes>, Vec<Bytes>) = found.into_iter().unzip();
    let scalar = |mut strings: Vec<Bytes>| {
        HostTensor::scalar_string(strings.pop().unwrap_or_default()).into()
    };
    Ok(Results::from_iter([scalar(keys), scalar(values)]))
}

fn read_up_to(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let wanted = call.host(2)?.as_scalar::<i64>()?;
    let wrong = |_| IrError::argument(call.op.name, "num_records", "positive", wanted);
    let n = usize::try_from(wanted).map_err(wrong)?;
    let found = reader(call)?.read(call, n)?;
    let (keys, values): (Vec<Bytes>, Vec<Bytes>) = found.into_iter().unzip();
    let vector = |strings: Vec<Bytes>| -> Result<_> {
        let shape = ferroflow_ir::Shape::new([strings.len()])?;
        Ok(HostTensor::from_strings(shape, strings)?.into())
    };
    Ok(Results::from_iter([vector(keys)?, vector(values)?]))
}

fn n_produced(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(reader(call)?.state.lock().produced))
}

fn n_finished(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(reader(call)?.state.lock().finished))
}

fn reset(call: &mut RuntimeCall<'_>) -> Result<Results> {
    *reader(call)?.state.lock() = Progress::default();
    none()
}

/// The reader, if it can tell its state: those that read files in parts cannot.
fn reader_with_state(call: &RuntimeCall<'_>) -> Result<Arc<FileReader>> {
    let reader = reader(call)?;
    match RecordSource::is_single(&reader.format) {
        true => Ok(reader),
        false => {
            let detail = "its state is a place in a file".into();
            let op = call.op.name.into();
            Err(IrError::Status { code: Code::Unimplemented, op, detail }.into())
        }
    }
}

fn serialize(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let reader = reader_with_state(call)?;
    let progress = reader.state.lock();
    let message = ReaderBaseState {
        work_started: progress.started,
        work_finished: progress.finished,
        num_records_produced: progress.produced,
        current_work: progress.name.clone(),
    };
    one(HostTensor::scalar_string(message.encode_to_vec()))
}

fn restore(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let reader = reader_with_state(call)?;
    let wrong = |found: String| -> Error {
        IrError::argument(call.op.name, "state", "the state of a reader", found).into()
    };
    let state = call.host(1)?;
    let [bytes] = state.strings()? else { return Err(wrong(state.shape().to_string())) };
    let message =
        ReaderBaseState::decode(bytes.clone()).map_err(|error| wrong(error.to_string()))?;
    let ReaderBaseState { work_started, work_finished, num_records_produced, .. } = message;
    let is_sane = num_records_produced >= 0 && (0..=work_finished).contains(&work_started);
    if !is_sane {
        return Err(wrong(format!("{work_started} files begun, {work_finished} finished")));
    }
    *reader.state.lock() = Progress {
        name: message.current_work,
        source: None,
        started: work_started,
        finished: work_finished,
        produced: num_records_produced,
    };
    none()
}
