//! Ops that write event files.

use super::EventsWriter;
use crate::{
    file::decode_message,
    proto::{Event, Summary, SummaryMetadata, event::What, summary},
    sound_summary::clips,
    summary_ops::{distribution, values},
};
use bytes::Bytes;
use ferroflow_ir::{Code, DType, Error as IrError, HostTensor};
use ferroflow_runtime::{
    Context, Error, Resource, Result, Results, execute,
    ops::{RuntimeCall, none, one},
};
use parking_lot::Mutex;
use prost::Message;
use std::{path::Path, sync::Arc, time::Duration};

/// Makes the ops known to a context.
pub(crate) fn add_ops(context: &Context) {
    context.add_host_op("CloseSummaryWriter", close);
    context.add_host_op("CreateSummaryFileWriter", create_file);
    context.add_host_op("FlushSummaryWriter", flush);
    context.add_host_op("ImportEvent", import);
    context.add_host_op("SummaryWriter", new);
    context.add_host_op("WriteAudioSummary", write_audio);
    context.add_host_op("WriteGraphSummary", write_graph);
    context.add_host_op("WriteHistogramSummary", write_histogram);
    context.add_host_op("WriteImageSummary", write_images);
    context.add_host_op("WriteRawProtoSummary", write_raw);
    context.add_host_op("WriteScalarSummary", write_scalar);
    context.add_host_op("WriteSummary", write);
}

/// Where ops send events: a file, once one was begun and until it is closed.
///
/// Dropping the last handle of it closes the file.
#[derive(Debug, Default)]
pub struct SummaryWriterResource(Mutex<Option<EventsWriter>>);

impl SummaryWriterResource {
    /// A writer of a file.
    pub fn new(file: EventsWriter) -> SummaryWriterResource {
        SummaryWriterResource(Mutex::new(Some(file)))
    }

    /// Does something with the file.
    ///
    /// # Errors
    ///
    /// `FAILED_PRECONDITION` when there is none, and those of `act`.
    pub fn with<R>(
        &self,
        act: impl FnOnce(&mut EventsWriter) -> ferroflow_format::Result<R>,
    ) -> Result<R> {
        let mut file = self.0.lock();
        let file = file.as_mut().ok_or_else(|| IrError::Status {
            code: Code::FailedPrecondition,
            op: "SummaryWriter".into(),
            detail: "the writer has no file, or it was closed".into(),
        })?;
        act(file).map_err(status)
    }

    /// Writes what is left and closes the file.
    ///
    /// # Errors
    ///
    /// When the system cannot write.
    pub fn close(&self) -> Result<()> {
        self.0.lock().take().map_or(Ok(()), |mut file| file.flush()).map_err(status)
    }
}

impl Resource for SummaryWriterResource {
    fn kind(&self) -> &'static str {
        "a summary writer"
    }
}

fn status(error: ferroflow_format::Error) -> Error {
    Error::Status { code: error.code(), message: error.to_string() }
}

fn writer(call: &RuntimeCall<'_>) -> Result<Arc<SummaryWriterResource>> {
    call.resource(0, "a summary writer")
}

fn new(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let make = || Ok(Arc::<SummaryWriterResource>::default() as Arc<dyn Resource>);
    one(call.named_resource(make)?.to_tensor())
}

fn create_file(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (writer, folder) = (writer(call)?, call.path(1)?);
    call.scope.check_file(&folder)?;
    let max_queue = usize::try_from(call.host(2)?.as_scalar::<i32>()?).unwrap_or(0);
    let millis = u64::try_from(call.host(3)?.as_scalar::<i32>()?).unwrap_or(0);
    let suffix = text(call, 4)?;
    let mut file = writer.0.lock();
    if file.is_none() {
        let flush_after = Duration::from_millis(millis);
        let new = EventsWriter::create(&folder, &suffix, max_queue, flush_after).map_err(status)?;
        *file = Some(new);
    }
    none()
}

fn close(call: &mut RuntimeCall<'_>) -> Result<Results> {
    writer(call)?.close()?;
    none()
}

fn flush(call: &mut RuntimeCall<'_>) -> Result<Results> {
    writer(call)?.with(EventsWriter::flush)?;
    none()
}

fn write(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let tensor = crate::convert::tensor_message(call.host(2)?)?;
    let metadata: SummaryMetadata = message(call, 4)?;
    let value = summary::Value {
        tag: text(call, 3)?,
        metadata: Some(metadata),
        value: Some(summary::value::Value::Tensor(tensor)),
        ..summary::Value::default()
    };
    add(call, What::Summary(Summary { value: vec![value] }))
}

fn write_scalar(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let value = values(call, 3, DType::F32)?.as_scalar::<f32>()?;
    add_value(call, summary::value::Value::SimpleValue(value))
}

fn write_histogram(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let histogram = distribution(call.op, &values(call, 3, DType::F64)?)?;
    add_value(call, summary::value::Value::Histo(histogram))
}

fn write_images(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let images = pictures(call)?;
    let tag = text(call, 2)?;
    let single = images.len() == 1;
    let value = images.into_iter().enumerate().map(|(index, image)| {
        let tag = if single { format!("{tag}/image") } else { format!("{tag}/image/{index}") };
        let value = Some(summary::value::Value::Image(image));
        summary::Value { tag, value, ..summary::Value::default() }
    });
    let summary = Summary { value: value.collect() };
    add(call, What::Summary(summary))
}

/// The first images of a batch, as PNG files. Floats from 0 to 1 are scaled up to bytes, as in
/// TensorFlow; those that are not finite become the colour of input 4.
fn pictures(call: &RuntimeCall<'_>) -> Result<Vec<summary::Image>> {
    let batch = call.host(3)?;
    let [n, height, width, channels] = *batch.shape().dims() else {
        let expected = "of shape [batch, height, width, channels]";
        return Err(IrError::argument(call.op.name, "tensor", expected, batch.shape()).into());
    };
    let wanted = usize::try_from(call.attrs.int("max_images")?).unwrap_or(0);
    let bytes = match batch.dtype() {
        DType::U8 => batch.clone(),
        _ => scaled(call, &values(call, 3, DType::F32)?, channels)?,
    };
    let size = height * width * channels;
    let mut images = Vec::new();
    for image in bytes.bytes().chunks_exact(size.max(1)).take(n.min(wanted)) {
        let shape = ferroflow_ir::Shape::new([height, width, channels])?;
        let pixels = HostTensor::from_bytes(DType::U8, shape, image)?;
        let png = execute(call.context(), "EncodePng", Default::default(), &[pixels.into()])?;
        let dim = |size: usize| i32::try_from(size).unwrap_or(i32::MAX);
        images.push(summary::Image {
            height: dim(height),
            width: dim(width),
            colorspace: dim(channels),
            encoded_image_string: png[0].host()?.strings()?[0].clone(),
        });
    }
    Ok(images)
}

/// Floats as bytes: around zero if some are negative, else from zero; the largest becomes 127 or
/// 255 (`tensorflow/core/kernels/summary_image_op.cc`).
fn scaled(call: &RuntimeCall<'_>, batch: &HostTensor, channels: usize) -> Result<HostTensor> {
    let bad = call.host(4)?.bytes().to_vec();
    if bad.len() < channels {
        let expected = format!("a colour of {channels} channels");
        return Err(IrError::argument(call.op.name, "bad_color", expected, bad.len()).into());
    }
    let pixels = batch.as_slice::<f32>()?;
    let finite = pixels.iter().copied().filter(|pixel| pixel.is_finite());
    let (low, high) = finite.fold((0.0f32, 0.0f32), |(low, high), x| (low.min(x), high.max(x)));
    let (scale, offset) = if low < 0.0 {
        let largest = high.max(-low);
        (if largest < 0.9e-30 { 0.0 } else { 127.0 / largest }, 128.0)
    } else {
        (if high < 0.9e-30 { 0.0 } else { 255.0 / high }, 0.0)
    };
    let channels = channels.max(1);
    let bytes: Vec<u8> = pixels
        .chunks(channels)
        .flat_map(|pixel| {
            let finite = pixel.iter().all(|value| value.is_finite());
            let byte = |(value, bad): (&f32, &u8)| match finite {
                true => (value * scale + offset) as u8,
                false => *bad,
            };
            pixel.iter().zip(&bad).map(byte).collect::<Vec<u8>>()
        })
        .collect();
    Ok(HostTensor::from_bytes(DType::U8, batch.shape().clone(), &bytes)?)
}

fn write_audio(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let rate = call.host(4)?.as_scalar::<f32>()?;
    let value = clips(call, 3, &text(call, 2)?, rate)?;
    add(call, What::Summary(Summary { value }))
}

fn write_graph(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let graph = scalar(call, 2)?;
    add(call, What::GraphDef(graph))
}

fn write_raw(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let summary = message(call, 2)?;
    add(call, What::Summary(summary))
}

fn import(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let event: Event = message(call, 1)?;
    writer(call)?.with(|file| file.add_event(&event))?;
    none()
}

/// Adds a value under the tag in input 2.
fn add_value(call: &RuntimeCall<'_>, value: summary::value::Value) -> Result<Results> {
    let (tag, value) = (text(call, 2)?, Some(value));
    let value = summary::Value { tag, value, ..summary::Value::default() };
    add(call, What::Summary(Summary { value: vec![value] }))
}

/// Adds what happened at the step in input 1.
fn add(call: &RuntimeCall<'_>, what: What) -> Result<Results> {
    let step = call.host(1)?.as_scalar::<i64>()?;
    writer(call)?.with(|file| file.add(step, what))?;
    none()
}

fn scalar(call: &RuntimeCall<'_>, index: usize) -> Result<Bytes> {
    let tensor = call.host(index)?;
    match (tensor.shape().rank(), tensor.strings()?) {
        (0, [string]) => Ok(string.clone()),
        _ => {
            let name = format!("input {index}");
            Err(IrError::argument(call.op.name, name, "a scalar", tensor.shape()).into())
        }
    }
}

fn text(call: &RuntimeCall<'_>, index: usize) -> Result<String> {
    Ok(String::from_utf8_lossy(&scalar(call, index)?).into_owned())
}

fn message<M: Message + Default>(call: &RuntimeCall<'_>, index: usize) -> Result<M> {
    let from = format!("input {index} of {}", call.op.name);
    decode_message(Path::new(&from), scalar(call, index)?).map_err(status)
}
