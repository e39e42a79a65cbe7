//! Sound in summaries: clips as WAV files (`summary_audio_op.cc` of TensorFlow).

use crate::proto::summary;
use bytes::Bytes;
use ferroflow_ir::{Attrs, Error as IrError, HostTensor, Shape};
use ferroflow_runtime::{EagerTensor, Result, execute, ops::RuntimeCall};

/// The first clips in input `index`, of shape `[clips, frames]` or `[clips, frames, channels]`, under
/// a tag.
///
/// # Errors
///
/// When the input has another rank, or its numbers do not fit a file.
pub(crate) fn clips(
    call: &RuntimeCall<'_>,
    index: usize,
    tag: &str,
    sample_rate: f32,
) -> Result<Vec<summary::Value>> {
    let batch = call.host(index)?;
    let [n, frames, channels] = match *batch.shape().dims() {
        [n, frames] => [n, frames, 1],
        [n, frames, channels] => [n, frames, channels],
        _ => {
            let expected = "of rank 2 or 3";
            return Err(IrError::argument(call.op.name, "tensor", expected, batch.shape()).into());
        }
    };
    let most = usize::try_from(call.attrs.int("max_outputs")?).unwrap_or(0);
    let samples = batch.as_slice::<f32>()?;
    let mut values = Vec::new();
    for number in 0..n.min(most) {
        let own = &samples[number * frames * channels..][..frames * channels];
        let clip = HostTensor::from_slice(Shape::new([frames, channels])?, own)?;
        let audio = summary::Audio {
            sample_rate,
            num_channels: channels as i64,
            length_frames: frames as i64,
            encoded_audio_string: file(call, clip.into(), sample_rate)?,
            content_type: "audio/wav".into(),
        };
        let tag = if most == 1 { format!("{tag}/audio") } else { format!("{tag}/audio/{number}") };
        let value = Some(summary::value::Value::Audio(audio));
        values.push(summary::Value { tag, value, ..summary::Value::default() });
    }
    Ok(values)
}

fn file(call: &RuntimeCall<'_>, clip: EagerTensor, sample_rate: f32) -> Result<Bytes> {
    let rate = HostTensor::scalar(sample_rate.round_ties_even() as i32).into();
    let file = execute(call.context(), "EncodeWav", Attrs::new(), &[clip, rate])?;
    Ok(file[0].host()?.strings()?.first().cloned().unwrap_or_default())
}
