//! Ops that make summaries.

use crate::{
    convert::{shape_message, tensor_message},
    proto::{HistogramProto, Summary, SummaryMetadata, TensorProto, summary},
    sound_summary::clips,
};
use bytes::Bytes;
use ferroflow_ir::{Attrs, Code, DType, Error as IrError, HostTensor, OpDef};
use ferroflow_runtime::{
    Context, EagerTensor, Error, Result, Results, execute,
    ops::{RuntimeCall, one},
};
use prost::Message;
use std::collections::HashSet;

/// Makes the ops known to a context.
pub(crate) fn add_ops(context: &Context) {
    context.add_host_op("AudioSummary", audio);
    context.add_host_op("AudioSummaryV2", audio);
    context.add_host_op("HistogramSummary", histogram);
    context.add_host_op("MergeSummary", merge);
    context.add_host_op("ScalarSummary", scalars);
    context.add_host_op("TensorSummary", tensor_of_node);
    context.add_host_op("TensorSummaryV2", tensor);
}

/// The values in an input as another dtype.
pub(crate) fn values(call: &RuntimeCall<'_>, index: usize, dtype: DType) -> Result<HostTensor> {
    let attrs = Attrs::new().with("DstT", dtype);
    execute(call.context(), "Cast", attrs, &call.inputs[index..index + 1])?.remove(0).into_host()
}

fn scalars(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (tags, values) = (call.host(0)?, values(call, 1, DType::F32)?);
    if tags.shape() != values.shape() {
        let expected = format!("of shape {}", tags.shape());
        return Err(IrError::argument(call.op.name, "values", expected, values.shape()).into());
    }
    let pairs = tags.strings()?.iter().zip(values.as_slice::<f32>()?);
    let value = pairs.map(|(tag, &value)| {
        let tag = String::from_utf8_lossy(tag).into_owned();
        let value = Some(summary::value::Value::SimpleValue(value));
        summary::Value { tag, value, ..summary::Value::default() }
    });
    one(message(Summary { value: value.collect() }))
}

fn histogram(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let tag = tag(call)?;
    let histogram = distribution(call.op, &values(call, 1, DType::F64)?)?;
    let value = Some(summary::value::Value::Histo(histogram));
    let value = summary::Value { tag, value, ..summary::Value::default() };
    one(message(Summary { value: vec![value] }))
}

/// The tag in input 0.
fn tag(call: &RuntimeCall<'_>) -> Result<String> {
    match (call.host(0)?.shape().rank(), call.host(0)?.strings()?) {
        (0, [tag]) => Ok(String::from_utf8_lossy(tag).into_owned()),
        _ => {
            let found = call.host(0)?.shape();
            Err(IrError::argument(call.op.name, "tag", "a scalar", found).into())
        }
    }
}

/// The sample rate is an attribute, or input 2.
fn audio(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let rate = match call.inputs.get(2) {
        None => call.attrs.float("sample_rate")?,
        Some(rate) => rate.host()?.as_slice::<f32>()?.first().copied().unwrap_or(0.0),
    };
    let value = clips(call, 1, &tag(call)?, rate)?;
    one(message(Summary { value }))
}

/// A tensor under the name of the node.
fn tensor_of_node(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let node_name = call.scope.node().unwrap_or(call.op.name).into();
    let named = summary::Value { node_name, ..summary::Value::default() };
    one(joined(&[named, of_tensor(call.host(0)?)?]))
}

/// A tensor under a tag; metadata that cannot be read is left out.
fn tensor(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let metadata = call.host(2)?.strings()?.first().cloned().unwrap_or_default();
    let metadata = Some(SummaryMetadata::decode(metadata).unwrap_or_default());
    let tagged = summary::Value { tag: tag(call)?, ..summary::Value::default() };
    let described = summary::Value { metadata, ..summary::Value::default() };
    one(joined(&[tagged, of_tensor(call.host(1)?)?, described]))
}

/// A tensor, whose elements are in `tensor_content`.
fn of_tensor(tensor: &HostTensor) -> Result<summary::Value> {
    let message = match tensor.dtype().size() {
        Some(_) => TensorProto {
            dtype: tensor.dtype().number(),
            tensor_shape: Some(shape_message(tensor.shape())),
            tensor_content: Bytes::copy_from_slice(tensor.bytes()),
            ..TensorProto::default()
        },
        None => tensor_message(tensor)?,
    };
    let value = Some(summary::value::Value::Tensor(message));
    Ok(summary::Value { value, ..summary::Value::default() })
}

/// A summary of a value in parts, one behind the other as TensorFlow writes them.
fn joined(parts: &[summary::Value]) -> EagerTensor {
    const VALUE: u8 = 0x0A;
    let value: Vec<u8> = parts.iter().flat_map(Message::encode_to_vec).collect();
    let mut summary = vec![VALUE];
    prost::encode_length_delimiter(value.len(), &mut summary)
        .expect("a vector has room for a length");
    summary.extend(value);
    HostTensor::scalar_string(summary).into()
}

/// The distribution of values, which must be finite.
pub(crate) fn distribution(op: &OpDef, values: &HostTensor) -> Result<HistogramProto> {
    let values = values.as_slice::<f64>()?;
    match values.iter().find(|value| !value.is_finite()) {
        Some(value) => Err(IrError::argument(op.name, "values", "finite", value).into()),
        None => Ok(histogram_of(values)),
    }
}

/// The distribution over buckets that grow by a tenth each (TensorFlow's `histogram.cc`); runs of
/// empty buckets are one.
fn histogram_of(values: &[f64]) -> HistogramProto {
    let limits = limits();
    let mut counts = vec![0.0; limits.len()];
    let mut histogram =
        HistogramProto { min: f64::MAX, max: -f64::MAX, ..HistogramProto::default() };
    for &value in values {
        let bucket = limits.partition_point(|&limit| limit <= value).min(limits.len() - 1);
        counts[bucket] += 1.0;
        histogram.min = histogram.min.min(value);
        histogram.max = histogram.max.max(value);
        histogram.num += 1.0;
        histogram.sum += value;
        histogram.sum_squares += value * value;
    }
    for (index, (limit, count)) in limits.into_iter().zip(counts).enumerate() {
        let after_empty = index > 0 && histogram.bucket.last() == Some(&0.0);
        if after_empty && count == 0.0 {
            histogram.bucket_limit.pop();
            histogram.bucket.pop();
        }
        histogram.bucket_limit.push(limit);
        histogram.bucket.push(count);
    }
    histogram
}

/// The upper limits of the buckets, from the most negative number to the greatest.
fn limits() -> Vec<f64> {
    let mut positive = Vec::new();
    let mut limit = 1e-12;
    while limit < 1e20 {
        positive.push(limit);
        limit *= 1.1;
    }
    positive.push(f64::MAX);
    let negative = positive.iter().rev().map(|limit| -limit);
    negative.chain([0.0]).chain(positive.iter().copied()).collect()
}

fn merge(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let mut merged = Summary::default();
    let mut tags = HashSet::new();
    for index in 0..call.inputs.len() {
        for bytes in call.host(index)?.strings()? {
            let part = Summary::decode(bytes.clone()).map_err(|error| damaged(call, &error))?;
            merged.value.extend(part.value);
        }
    }
    for value in merged.value.iter().filter(|value| !value.tag.is_empty()) {
        if !tags.insert(value.tag.as_str()) {
            let expected = "with different tags";
            return Err(IrError::argument(call.op.name, "inputs", expected, &value.tag).into());
        }
    }
    one(message(merged))
}

fn damaged(call: &RuntimeCall<'_>, error: &prost::DecodeError) -> Error {
    let (op, detail) = (call.op.name.into(), format!("no summary: {error}"));
    IrError::Status { code: Code::InvalidArgument, op, detail }.into()
}

fn message(summary: Summary) -> EagerTensor {
    HostTensor::scalar_string(summary.encode_to_vec()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_buckets_are_joined() {
        let histogram = histogram_of(&[1.0, 0.0]);
        assert_eq!(histogram.bucket, [0.0, 1.0, 0.0, 1.0, 0.0]);
        assert_eq!(histogram.bucket_limit[..2], [0.0, 1e-12]);
        assert_eq!(histogram.bucket_limit[4], f64::MAX);
        assert_eq!(histogram_of(&[]).bucket, [0.0]);
    }
}
