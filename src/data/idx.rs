//! Arrays in the format of the MNIST database.

use super::{Error, Result};
use ferroflow_ir::{DType, HostTensor, Shape};
use flate2::read::GzDecoder;
use std::{
    fs::File,
    io::{BufReader, Read},
    path::Path,
};

/// The largest array that is read, in bytes.
const MAX_BYTES: u64 = 4 << 30;

/// Reads an array of an IDX file, such as `train-images-idx3-ubyte`; one whose name ends in `.gz`
/// is unpacked.
///
/// The format is told at the end of <http://yann.lecun.com/exdb/mnist/>: two zeros, a code for the
/// type of the elements, the rank, the sizes as four bytes each, the elements; all big-endian.
///
/// # Errors
///
/// [`Error::Io`], [`Error::Format`] when the file is something else or of another length.
pub fn read_idx(path: impl AsRef<Path>) -> Result<HostTensor> {
    let path = path.as_ref();
    let failed = |source| Error::Io { path: path.into(), source };
    let file = BufReader::new(File::open(path).map_err(failed)?);
    let is_packed = path.extension().is_some_and(|extension| extension == "gz");
    let mut bytes = Vec::new();
    let read = match is_packed {
        true => GzDecoder::new(file).take(MAX_BYTES).read_to_end(&mut bytes),
        false => file.take(MAX_BYTES).read_to_end(&mut bytes),
    };
    read.map_err(failed)?;
    parse(&bytes).map_err(|what| Error::Format { path: path.into(), what })
}

fn parse(bytes: &[u8]) -> Result<HostTensor, String> {
    let (&[zero, zero_too, code, rank], rest) =
        bytes.split_first_chunk::<4>().ok_or("shorter than its header")?;
    if (zero, zero_too) != (0, 0) {
        return Err("does not begin with two zeros, as IDX files do".into());
    }
    let dtype = match code {
        0x08 => DType::U8,
        0x09 => DType::I8,
        0x0b => DType::I16,
        0x0c => DType::I32,
        0x0d => DType::F32,
        0x0e => DType::F64,
        _ => return Err(format!("{code:#04x} is no type of elements")),
    };
    let (sizes, elements) =
        rest.split_at_checked(4 * usize::from(rank)).ok_or("shorter than its header")?;
    let sizes = sizes.as_chunks::<4>().0.iter().map(|size| u32::from_be_bytes(*size) as usize);
    let shape = Shape::new(sizes).map_err(|error| error.to_string())?;
    let width = dtype.size().expect("elements of IDX files have sizes");
    let expected = shape.num_elements().checked_mul(width);
    if expected != Some(elements.len()) {
        return Err(format!("{} bytes of elements for an array of shape {shape}", elements.len()));
    }
    let little: Vec<u8> =
        elements.chunks_exact(width).flat_map(|element| element.iter().rev()).copied().collect();
    HostTensor::from_bytes(dtype, shape, &little).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_turned_around() {
        let array = parse(&[0, 0, 0x0b, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 255, 254]).unwrap();
        assert_eq!(array.shape().dims(), [1, 2]);
        assert_eq!(array.as_slice::<i16>().unwrap(), [258, -2]);
    }

    #[test]
    fn other_files_are_refused() {
        for (bytes, message) in [
            (&[0, 0, 8][..], "header"),
            (&[1, 0, 8, 0], "two zeros"),
            (&[0, 0, 7, 0], "0x07"),
            (&[0, 0, 8, 1, 0, 0, 0, 9, 1], "1 bytes of elements"),
            (&[0, 0, 8, 2, 255, 255, 255, 255, 255, 255, 255, 255], "not a valid"),
        ] {
            let error = parse(bytes).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
