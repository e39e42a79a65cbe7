//! Sound in WAV format: `DecodeWav`, `EncodeWav`.
//!
//! The format is that of RIFF files (IBM and Microsoft 1991) with samples of 16 bits.

use super::{Build, cell::Cell};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error, HostTensor, Shape, workspace};
use std::{fmt, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] = &[("DecodeWav", decode), ("EncodeWav", encode)];

/// The number that stands for 1.
const ONE: f32 = 32768.0;

fn wrong(expected: &'static str, found: impl fmt::Display) -> crate::Error {
    Error::argument("DecodeWav", "contents", expected, found).into()
}

/// Bytes that are read from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let end = || wrong("as long as it says", "less bytes");
        self.0.split_off(..n).ok_or_else(end)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.take(N)?;
        Ok(*bytes.first_chunk().expect("as many bytes as asked for"))
    }

    fn word(&mut self) -> Result<usize> {
        Ok(u16::from_le_bytes(self.array()?).into())
    }

    fn long(&mut self) -> Result<usize> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    fn tag(&mut self, tag: &'static str) -> Result<()> {
        match self.take(tag.len())? {
            found if found == tag.as_bytes() => Ok(()),
            found => Err(wrong(tag, found.escape_ascii())),
        }
    }
}

/// Samples, channel by channel within each.
#[derive(Debug, PartialEq)]
struct Sound<'a> {
    rate: usize,
    channels: usize,
    samples: &'a [[u8; 2]],
}

fn read(contents: &[u8]) -> Result<Sound<'_>> {
    let mut reader = Reader(contents);
    reader.tag("RIFF")?;
    reader.long()?;
    reader.tag("WAVE")?;
    reader.tag("fmt ")?;
    let extra = match reader.long()? {
        size @ (16 | 18) => size - 16,
        size => return Err(wrong("with a format of 16 or 18 bytes", size)),
    };
    let format = reader.word()?;
    if format != 1 {
        return Err(wrong("in format 1", format));
    }
    let (channels, rate) = (reader.word()?, reader.long()?);
    let (per_second, per_sample, bits) = (reader.long()?, reader.word()?, reader.word()?);
    if channels == 0 || bits != 16 {
        return Err(wrong("of 16 bits in some channels", format!("{bits} bits, {channels}")));
    }
    if per_sample != 2 * channels || per_second != per_sample * rate {
        return Err(wrong("consistent", format!("{per_sample} and {per_second} bytes")));
    }
    reader.take(extra)?;
    let mut data = None;
    while !reader.0.is_empty() {
        let (tag, size) = (reader.array::<4>()?, reader.long()?);
        let chunk = reader.take(size)?;
        if &tag == b"data" && data.replace(chunk).is_some() {
            return Err(wrong("with one chunk of data", "two"));
        }
    }
    let data = data.ok_or_else(|| wrong("with a chunk of data", "none"))?;
    let whole = data.len() / per_sample * per_sample;
    Ok(Sound { rate, channels, samples: data[..whole].as_chunks().0 })
}

/// Missing channels repeat the last one, missing samples are 0.
fn decode(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let wanted =
        |name: &str| -> Result<Option<usize>> { Ok(usize::try_from(call.attrs.int(name)?).ok()) };
    let (channels, samples) = (wanted("desired_channels")?, wanted("desired_samples")?);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let sound = read(&io.strings(0)?[0])?;
        let channels = channels.unwrap_or(sound.channels);
        let samples = samples.unwrap_or(sound.samples.len() / sound.channels);
        f32::write(io, 0, DType::F32, &Shape::new([samples, channels])?, |out| {
            for (index, out) in out.iter_mut().enumerate() {
                let (sample, channel) = (index / channels, index % channels);
                let sample_index = sample * sound.channels + channel.min(sound.channels - 1);
                let found = sound.samples.get(sample_index).copied().unwrap_or_default();
                *out = f32::from(i16::from_le_bytes(found)) / ONE;
            }
            Ok(())
        })?;
        io.output::<i32>(1)[0] = sound.rate as i32;
        Ok(())
    })))
}

fn encode(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (op, channels) = (call.op.name, call.shape(0)[1]);
    let channels = u16::try_from(channels)
        .ok()
        .filter(|&channels| channels > 0)
        .ok_or_else(|| call.wrong("audio", "of 1 to 65535 channels", call.shape(0)))?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (audio, rate): (&[f32], i32) = (io.input(0), io.scalar(1));
        let rate = u32::try_from(rate)
            .ok()
            .filter(|&rate| rate > 0)
            .ok_or_else(|| Error::argument(op, "sample_rate", "positive", rate))?;
        let contents = write(audio, channels, rate)
            .ok_or_else(|| Error::argument(op, "audio", "less than 4 GiB", audio.len()))?;
        io.put(0, HostTensor::from_strings(Shape::scalar(), vec![Bytes::from(contents)])?)
    })))
}

/// `None` where a size does not fit the format.
fn write(audio: &[f32], channels: u16, rate: u32) -> Option<Vec<u8>> {
    let per_sample = channels.checked_mul(2)?;
    let size = u32::try_from(audio.len()).ok()?.checked_mul(2)?;
    let mut contents = workspace::reserve(44 + size as usize).ok()?;
    contents.extend(b"RIFF");
    contents.extend(size.checked_add(36)?.to_le_bytes());
    contents.extend(b"WAVEfmt ");
    contents.extend(16u32.to_le_bytes());
    contents.extend(1u16.to_le_bytes());
    contents.extend(channels.to_le_bytes());
    contents.extend(rate.to_le_bytes());
    contents.extend(rate.checked_mul(per_sample.into())?.to_le_bytes());
    contents.extend(per_sample.to_le_bytes());
    contents.extend(16u16.to_le_bytes());
    contents.extend(b"data");
    contents.extend(size.to_le_bytes());
    contents.extend(audio.iter().flat_map(|x| ((x * ONE).round() as i16).to_le_bytes()));
    Some(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let contents = write(&[0.5, -0.5, 1.5, -2.0], 2, 8000).unwrap();
        let samples = [16384i16, -16384, 32767, -32768].map(i16::to_le_bytes);
        let sound = Sound { rate: 8000, channels: 2, samples: &samples };
        assert_eq!(read(&contents).unwrap(), sound);
        assert!((0..contents.len()).all(|end| read(&contents[..end]).is_err()));
    }
}
