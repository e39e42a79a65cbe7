//! Arrays of NumPy: `.npy` files, and `.npz` files of several.
//!
//! ```
//! use ferroflow::{ir::HostTensor, npy};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("x.npy");
//! let x = HostTensor::vector(&[1.0f32, 2.0, 3.0])?;
//! npy::write(&path, &x)?;
//! assert_eq!(npy::read(&path)?, x);
//! # Ok(())
//! # }
//! ```
//!
//! Text becomes string tensors in UTF-8. Dtypes that NumPy does not have are written as what it
//! has of the same size: `bfloat16` as `uint16`, quantised types as their integers.

use bytes::Bytes;
use ferroflow_ir::{DType, HostTensor, Shape};
use ferroflow_saved_model::output_file::OutputFile;
use half::f16;
use npyz::{NpyFile, Order, TypeChar, WriterBuilder, npz::NpzArchive};
use num_complex::Complex;
use std::{
    fs::File,
    io::{self, BufReader, Read, Write},
    path::{Path, PathBuf},
};

/// An array that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct Error {
    /// The file.
    pub path: PathBuf,
    /// Fault.
    pub problem: NpyError,
}

/// Fault of an array.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    /// The file cannot be read or written, or is no array.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The shape or the elements do not make a tensor.
    #[error(transparent)]
    Tensor(#[from] ferroflow_ir::Error),
    /// The elements are of a kind that tensors do not have.
    #[error("elements of type {0} are not supported")]
    Dtype(String),
    /// The file is shorter than its header says.
    #[error("{needed} bytes of elements are needed, the file has {found} in all")]
    Truncated {
        /// Length that the header asks for, in bytes.
        needed: u64,
        /// The length of the file, in bytes.
        found: u64,
    },
    /// There is no array of this name in the file.
    #[error("there is no array `{name}`; there are {available:?}")]
    NoArray {
        /// The name.
        name: String,
        /// The names of all arrays.
        available: Vec<String>,
    },
}

/// Reads an array of a `.npy` file.
///
/// # Errors
///
/// When the file cannot be read, is no array, or has elements that tensors do not have.
pub fn read(path: impl AsRef<Path>) -> Result<HostTensor, Error> {
    let path = path.as_ref();
    let array = || {
        let file = File::open(path)?;
        let found = file.metadata()?.len();
        tensor(BufReader::new(file), found)
    };
    array().map_err(|problem| Error { path: path.into(), problem })
}

/// Reads an array in the format of `.npy` files.
///
/// # Errors
///
/// As [`read`], but for those of files.
pub fn from_bytes(bytes: &[u8]) -> Result<HostTensor, NpyError> {
    tensor(bytes, bytes.len() as u64)
}

/// Reads an array of a `.npz` file; the only one, if no name is given.
///
/// # Errors
///
/// As [`read`], and [`NpyError::NoArray`].
pub fn read_npz(path: impl AsRef<Path>, name: Option<&str>) -> Result<HostTensor, Error> {
    let path = path.as_ref();
    let array = || {
        let mut archive = NpzArchive::open(path)?;
        let available: Vec<String> = archive.array_names().map(str::to_string).collect();
        let name = match (name, &available[..]) {
            (Some(name), _) => name,
            (None, [only]) => only,
            (None, _) => "",
        };
        if !available.iter().any(|array| array == name) {
            return Err(NpyError::NoArray { name: name.into(), available: available.clone() });
        }
        let file = archive.zip_archive().by_name(&format!("{name}.npy"));
        let file = file.map_err(io::Error::other)?;
        let found = file.size();
        tensor(file, found)
    };
    array().map_err(|problem| Error { path: path.into(), problem })
}

fn check_length<R: Read>(npy: &NpyFile<R>, found: u64) -> Result<(), NpyError> {
    let size = match npy.dtype() {
        npyz::DType::Plain(ty) => ty.num_bytes().unwrap_or(1) as u64,
        _ => 1,
    };
    let needed = npy.shape().iter().fold(size, |product, &dim| product.saturating_mul(dim));
    if needed > found { Err(NpyError::Truncated { needed, found }) } else { Ok(()) }
}

/// The most bytes that a header may take. It tells a dtype, an order and a shape.
const MOST_HEADER: usize = 1 << 16;

/// Greatest depth of a header. That of a structured dtype does so a little.
const MOST_NESTING: usize = 32;

/// The file from its beginning on, once its header is known to be one that can be read in bounded memory
/// and depth: the length of a header is the file's own word.
fn with_sound_header<R: Read>(mut file: R) -> Result<impl Read, NpyError> {
    let unsound = |what: &str| NpyError::Io(io::Error::new(io::ErrorKind::InvalidData, what));
    let mut start = Vec::new();
    file.by_ref().take(PREAMBLE as u64).read_to_end(&mut start)?;
    if let [_, _, _, _, _, _, version, _, length @ ..] = &start[..] {
        let (length, given) = match (version, length) {
            (1, [a, b, given @ ..]) => (u32::from(u16::from_le_bytes([*a, *b])), given),
            (_, [a, b, c, d, given @ ..]) => (u32::from_le_bytes([*a, *b, *c, *d]), given),
            _ => return Err(unsound("an array without a header")),
        };
        let length = usize::try_from(length).ok().filter(|&length| length <= MOST_HEADER);
        let length = length.ok_or_else(|| unsound("an array with a header of more than 64 KiB"))?;
        let rest = length.saturating_sub(given.len());
        file.by_ref().take(rest as u64).read_to_end(&mut start)?;
        if nesting(&start[start.len().min(PREAMBLE - 4)..]) > MOST_NESTING {
            return Err(unsound("an array with a header that nests too deep"));
        }
    }
    Ok(io::Cursor::new(start).chain(file))
}

/// The bytes before the header of the second version of the format; the first has two fewer.
const PREAMBLE: usize = 12;

/// Largest number of open brackets.
fn nesting(header: &[u8]) -> usize {
    let (mut open, mut most) = (0usize, 0);
    for byte in header {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// The array in a file of so many bytes.
fn tensor<R: Read>(file: R, found: u64) -> Result<HostTensor, NpyError> {
    let npy = NpyFile::new(with_sound_header(file)?)?;
    check_length(&npy, found)?;
    let npyz::DType::Plain(ty) = npy.dtype() else {
        return Err(NpyError::Dtype(npy.dtype().descr()));
    };
    let dims = npy.shape().iter().map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX));
    let shape = Shape::new(dims)?;
    let order = npy.order();
    macro_rules! plain {
        ($t:ty) => {{
            let elements = in_order(npy.into_vec::<$t>()?, order, &shape);
            Ok(HostTensor::from_slice(shape, &elements)?)
        }};
    }
    match (ty.type_char(), ty.size_field()) {
        (TypeChar::Bool, _) => {
            let elements = in_order(npy.into_vec::<bool>()?, order, &shape);
            Ok(HostTensor::from_bools(shape, &elements)?)
        }
        (TypeChar::Int, 1) => plain!(i8),
        (TypeChar::Int, 2) => plain!(i16),
        (TypeChar::Int, 4) => plain!(i32),
        (TypeChar::Int, 8) => plain!(i64),
        (TypeChar::Uint, 1) => plain!(u8),
        (TypeChar::Uint, 2) => plain!(u16),
        (TypeChar::Uint, 4) => plain!(u32),
        (TypeChar::Uint, 8) => plain!(u64),
        (TypeChar::Float, 2) => plain!(f16),
        (TypeChar::Float, 4) => plain!(f32),
        (TypeChar::Float, 8) => plain!(f64),
        (TypeChar::Complex, 8) => plain!(Complex<f32>),
        (TypeChar::Complex, 16) => plain!(Complex<f64>),
        (TypeChar::ByteStr, _) => {
            let strings = in_order(npy.into_vec::<Vec<u8>>()?, order, &shape);
            Ok(HostTensor::from_strings(shape, strings.into_iter().map(Bytes::from).collect())?)
        }
        (TypeChar::UnicodeStr, _) => {
            let strings = in_order(npy.into_vec::<String>()?, order, &shape);
            Ok(HostTensor::from_strings(shape, strings.into_iter().map(Bytes::from).collect())?)
        }
        _ => Err(NpyError::Dtype(ty.to_string())),
    }
}

/// The elements with the last dimension running fastest.
fn in_order<T: Clone>(elements: Vec<T>, order: Order, shape: &Shape) -> Vec<T> {
    if order == Order::C || shape.rank() < 2 {
        return elements;
    }
    let mut strides = vec![1; shape.rank()];
    for axis in 1..shape.rank() {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    let position = |mut index: usize| {
        let mut position = 0;
        for axis in (0..shape.rank()).rev() {
            position += index % shape[axis] * strides[axis];
            index /= shape[axis];
        }
        position
    };
    (0..elements.len()).map(|index| elements[position(index)].clone()).collect()
}

/// Writes a tensor as a `.npy` file, which appears when all of it is on the disk. String tensors become
/// byte strings as long as the longest.
///
/// # Errors
///
/// When the file cannot be written, or the elements are handles.
pub fn write(path: impl AsRef<Path>, tensor: &HostTensor) -> Result<(), Error> {
    let path = path.as_ref();
    let result = || {
        let mut file = OutputFile::create(path).map_err(unwritable)?;
        write_to(&mut file, tensor)?;
        file.commit().map_err(unwritable)
    };
    result().map_err(|problem| Error { path: path.into(), problem })
}

/// The failure to write a file that its path is told of elsewhere.
fn unwritable(error: ferroflow_format::Error) -> NpyError {
    match error {
        ferroflow_format::Error::Io { source, .. } => source.into(),
        other => std::io::Error::other(other).into(),
    }
}

fn write_to(out: &mut impl Write, tensor: &HostTensor) -> Result<(), NpyError> {
    let ty = match tensor.dtype() {
        DType::Bool => "|b1".to_string(),
        DType::I8 | DType::QI8 => "|i1".into(),
        DType::U8 | DType::QU8 => "|u1".into(),
        DType::I16 | DType::QI16 => "<i2".into(),
        DType::U16 | DType::QU16 | DType::BF16 => "<u2".into(),
        DType::I32 | DType::QI32 => "<i4".into(),
        DType::U32 => "<u4".into(),
        DType::I64 => "<i8".into(),
        DType::U64 => "<u8".into(),
        DType::F16 => "<f2".into(),
        DType::F32 => "<f4".into(),
        DType::F64 => "<f8".into(),
        DType::C64 => "<c8".into(),
        DType::C128 => "<c16".into(),
        DType::String => {
            let longest = tensor.strings()?.iter().map(Bytes::len).max().unwrap_or(0);
            format!("|S{}", longest.max(1))
        }
        other => return Err(NpyError::Dtype(other.to_string())),
    };
    let unreadable = || NpyError::Dtype(ty.clone());
    let plain = ty.parse().map_err(|_| unreadable())?;
    let shape: Vec<u64> = tensor.shape().iter().map(|&dim| dim as u64).collect();
    npyz::WriteOptions::new_header_only()
        .dtype(npyz::DType::Plain(plain))
        .shape(&shape)
        .writer(&mut *out)
        .write_header_only()?;
    match tensor.strings() {
        Ok(strings) => {
            let length = strings.iter().map(Bytes::len).max().unwrap_or(0).max(1);
            for string in strings {
                out.write_all(string)?;
                out.write_all(&vec![0; length - string.len()])?;
            }
        }
        Err(_) => out.write_all(tensor.bytes())?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file of these bytes; what is wrong with it.
    fn refused(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        std::fs::write(&path, bytes).unwrap();
        read(&path).unwrap_err().to_string()
    }

    #[test]
    fn headers_are_bounded() {
        let file = |version: u8, length: &[u8], header: &str| {
            [b"\x93NUMPY", &[version, 0][..], length, header.as_bytes()].concat()
        };
        let check = |bytes: &[u8], expected: &str| {
            let error = refused(bytes);
            assert!(error.contains(expected), "{error}");
        };
        check(&file(2, &u32::MAX.to_le_bytes(), "{}"), "more than 64 KiB");
        check(&file(3, &(1u32 << 20).to_le_bytes(), ""), "more than 64 KiB");
        let deep = "(".repeat(60_000);
        check(&file(1, &60_000u16.to_le_bytes(), &deep), "nests too deep");
        check(&file(2, &60_000u32.to_le_bytes(), &deep), "nests too deep");
        for short in [&b""[..], b"\x93NUMPY", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x01\x00\xff"] {
            refused(short);
        }
    }

    #[test]
    fn arrays_of_archives_are_bounded_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npz");
        let check = |version: u8, length: &[u8], header: &str| {
            let mut archive = npyz::npz::NpzWriter::create(&path).unwrap();
            archive.zip_writer().start_file("a.npy", Default::default()).unwrap();
            for part in [b"\x93NUMPY", &[version, 0][..], length, header.as_bytes()] {
                archive.zip_writer().write_all(part).unwrap();
            }
            drop(archive);
            read_npz(&path, None).unwrap_err().to_string()
        };
        let header =
            "{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693951,), }\n";
        let huge = check(1, &(header.len() as u16).to_le_bytes(), header);
        assert!(huge.contains("bytes of elements are needed"), "{huge}");
        let long = check(2, &u32::MAX.to_le_bytes(), header);
        assert!(long.contains("more than 64 KiB"), "{long}");
    }
}
