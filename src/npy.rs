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

use crate::python_literal::PythonLiteral;
use bytes::Bytes;
use ferroflow_ir::{DType, HostTensor, Shape};
use ferroflow_saved_model::output_file::OutputFile;
use std::{
    fs::File,
    io::{self, BufReader, Read, Write},
    path::{Path, PathBuf},
};
use zip::{ZipArchive, result::ZipError};

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
    #[error("there is no array `{name}`; there are [{}]", available.join(", "))]
    NoArray {
        /// The name.
        name: String,
        /// The names of all arrays.
        available: Vec<String>,
    },
    /// A file of several arrays, none of which was named.
    #[error("the file has the arrays [{}]: name one of them", available.join(", "))]
    Unnamed {
        /// The names of all arrays.
        available: Vec<String>,
    },
    /// The file ends within its header.
    #[error("the file ends within the header of an array")]
    NoHeader,
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

/// Reads an array of a `.npz` file; the only one, if no name is passed.
///
/// # Errors
///
/// As [`read`], [`NpyError::NoArray`] and [`NpyError::Unnamed`].
pub fn read_npz(path: impl AsRef<Path>, name: Option<&str>) -> Result<HostTensor, Error> {
    let path = path.as_ref();
    let array = || {
        let failed = |error: ZipError| match error {
            ZipError::Io(error) => error,
            other => io::Error::other(other),
        };
        let mut archive = ZipArchive::new(BufReader::new(File::open(path)?)).map_err(failed)?;
        let names = archive.file_names().filter_map(|name| name.strip_suffix(".npy"));
        let mut available: Vec<String> = names.map(str::to_string).collect();
        available.sort();
        let name = match (name, &available[..]) {
            (Some(name), _) => name,
            (None, [only]) => only,
            (None, _) => return Err(NpyError::Unnamed { available }),
        };
        if !available.iter().any(|array| array == name) {
            return Err(NpyError::NoArray { name: name.into(), available: available.clone() });
        }
        let file = archive.by_name(&format!("{name}.npy")).map_err(failed)?;
        let found = file.size();
        tensor(file, found)
    };
    array().map_err(|problem| Error { path: path.into(), problem })
}

/// The most bytes that a header may take. It tells a dtype, an order and a shape.
const MOST_HEADER: usize = 1 << 16;

/// Content of the header of an array.
struct Header {
    /// The type of the elements: byte order, kind, bytes or characters of each.
    descr: String,
    /// Whether the first dimension runs fastest.
    fortran_order: bool,
    shape: Vec<u64>,
}

fn unsound(what: &str) -> NpyError {
    NpyError::Io(io::Error::new(io::ErrorKind::InvalidData, what))
}

impl Header {
    /// Reads a header, within bounded memory: its length is the file's own word.
    fn read(file: &mut impl Read) -> Result<Header, NpyError> {
        let mut filled = |bytes: &mut [u8]| match file.read_exact(bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(NpyError::NoHeader),
            result => Ok(result?),
        };
        let mut start = [0; 8];
        filled(&mut start)?;
        let length = match start {
            [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _] => {
                let mut length = [0; 2];
                filled(&mut length)?;
                u16::from_le_bytes(length).into()
            }
            [0x93, b'N', b'U', b'M', b'P', b'Y', 2 | 3, _] => {
                let mut length = [0; 4];
                filled(&mut length)?;
                u32::from_le_bytes(length)
            }
            _ => return Err(unsound("not an array in the format of `.npy` files")),
        };
        let length = usize::try_from(length).ok().filter(|&length| length <= MOST_HEADER);
        let length = length.ok_or_else(|| unsound("an array with a header of more than 64 KiB"))?;
        let mut text = vec![0; length];
        filled(&mut text)?;
        Header::parse(&text)
    }

    fn parse(text: &[u8]) -> Result<Header, NpyError> {
        let text = std::str::from_utf8(text).map_err(|error| unsound(&error.to_string()))?;
        let header: PythonLiteral =
            text.parse().map_err(|error| unsound(&format!("the header is {error}")))?;
        let PythonLiteral::Dict(entries) = header else {
            return Err(unsound("the header is no dictionary"));
        };
        let entry = |name: &str| {
            let is_named = |key: &PythonLiteral| *key == PythonLiteral::Text(name.into());
            let found = entries.iter().find(|(key, _)| is_named(key));
            found
                .map(|(_, value)| value)
                .ok_or_else(|| unsound(&format!("the header has no `{name}`")))
        };
        let descr = match entry("descr")? {
            PythonLiteral::Text(descr) => descr.clone(),
            other => return Err(NpyError::Dtype(other.to_string())),
        };
        let PythonLiteral::Bool(fortran_order) = *entry("fortran_order")? else {
            return Err(unsound("`fortran_order` is no truth value"));
        };
        let PythonLiteral::Tuple(sizes) = entry("shape")? else {
            return Err(unsound("`shape` is no tuple"));
        };
        let size = |size: &PythonLiteral| match size {
            PythonLiteral::Integer(size) => u64::try_from(*size).ok(),
            _ => None,
        };
        let shape = sizes.iter().map(size).collect::<Option<_>>();
        let shape = shape.ok_or_else(|| unsound("`shape` holds something else than sizes"))?;
        Ok(Header { descr, fortran_order, shape })
    }
}

/// The array in a file of so many bytes.
fn tensor(mut file: impl Read, found: u64) -> Result<HostTensor, NpyError> {
    let header = Header::read(&mut file)?;
    let unknown = || NpyError::Dtype(header.descr.clone());
    let (order, ty) = header.descr.split_at_checked(1).ok_or_else(unknown)?;
    let (kind, size) = ty.split_at_checked(1).ok_or_else(unknown)?;
    let size: usize = size.parse().map_err(|_| unknown())?;
    let dtype = match (kind, size) {
        ("b", 1) => DType::Bool,
        ("i", 1) => DType::I8,
        ("i", 2) => DType::I16,
        ("i", 4) => DType::I32,
        ("i", 8) => DType::I64,
        ("u", 1) => DType::U8,
        ("u", 2) => DType::U16,
        ("u", 4) => DType::U32,
        ("u", 8) => DType::U64,
        ("f", 2) => DType::F16,
        ("f", 4) => DType::F32,
        ("f", 8) => DType::F64,
        ("c", 8) => DType::C64,
        ("c", 16) => DType::C128,
        ("S" | "U", _) => DType::String,
        _ => return Err(unknown()),
    };
    // Characters of text take four bytes.
    let size = if kind == "U" { size.saturating_mul(4) } else { size };
    let needed = header.shape.iter().fold(size as u64, |bytes, &dim| bytes.saturating_mul(dim));
    if needed > found {
        return Err(NpyError::Truncated { needed, found });
    }
    let dims = header.shape.iter().map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX));
    let shape = Shape::new(dims)?;
    let mut bytes = Vec::new();
    file.by_ref().take(needed).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < needed {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    let number = match kind {
        "c" => size / 2,
        "U" => 4,
        "S" => 1,
        _ => size,
    };
    if order == ">" {
        bytes.chunks_exact_mut(number.max(1)).for_each(<[u8]>::reverse);
    }
    if header.fortran_order {
        bytes = in_order(&bytes, size, &shape);
    }
    match kind {
        "b" => bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0)),
        "S" | "U" => {
            let n = shape.num_elements();
            let text = |index: usize| text(kind, &bytes[index * size..][..size]);
            let texts = (0..n).map(text).collect::<Result<_, NpyError>>()?;
            return Ok(HostTensor::from_strings(shape, texts)?);
        }
        _ => {}
    }
    Ok(HostTensor::from_bytes(dtype, shape, &bytes)?)
}

/// The text of an element, which zeros fill up.
fn text(kind: &str, element: &[u8]) -> Result<Bytes, NpyError> {
    if kind == "S" {
        let end = element.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        return Ok(Bytes::copy_from_slice(&element[..end]));
    }
    let points = element.chunks_exact(4).map(|point| point.try_into().expect("four bytes"));
    let points: Vec<u32> = points.map(u32::from_le_bytes).collect();
    let end = points.iter().rposition(|&point| point != 0).map_or(0, |last| last + 1);
    let text: Option<String> = points[..end].iter().map(|&point| char::from_u32(point)).collect();
    Ok(text.ok_or_else(|| unsound("a text with a character that there is not"))?.into())
}

/// Elements of `size` bytes with the last dimension running fastest, of those where the first does.
fn in_order(elements: &[u8], size: usize, shape: &Shape) -> Vec<u8> {
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
    (0..shape.num_elements())
        .flat_map(|index| &elements[position(index) * size..][..size])
        .copied()
        .collect()
}

/// Writes a tensor as a `.npy` file, which appears when all of it is on the disk. String tensors
/// become byte strings as long as the longest.
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
    write_header(out, &ty, tensor.shape())?;
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

/// Writes the first version of a header, filled up so that the elements begin at a multiple of 64
/// bytes.
fn write_header(out: &mut impl Write, descr: &str, shape: &Shape) -> io::Result<()> {
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}");
    let before = b"\x93NUMPY\x01\x00";
    let length = (before.len() + 2 + text.len() + 1).next_multiple_of(64) - before.len() - 2;
    let field = u16::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?;
    out.write_all(before)?;
    out.write_all(&field.to_le_bytes())?;
    writeln!(out, "{text:<width$}", width = length - 1)
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
        check(&file(1, &60_000u16.to_le_bytes(), &deep), "not a literal");
        check(&file(2, &60_000u32.to_le_bytes(), &deep), "not a literal");
        for short in [&b""[..], b"\x93NUMPY", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x01\x00\xff"] {
            refused(short);
        }
    }

    #[test]
    fn arrays_of_every_layout_are_read() {
        let check = |descr: &str, order: &str, elements: &[u8], expected: HostTensor| {
            let sizes: Vec<String> =
                expected.shape().iter().map(|size| format!("{size}, ")).collect();
            let header = format!(
                "{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({}), }}\n",
                sizes.concat()
            );
            let length = (header.len() as u16).to_le_bytes();
            let file = [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), elements].concat();
            assert_eq!(from_bytes(&file).unwrap(), expected, "{descr}");
        };
        let vector = |values: &[i16]| HostTensor::vector(values).unwrap();
        check("<i2", "False", &[1, 0, 0, 1], vector(&[1, 256]));
        check(">i2", "False", &[1, 0, 0, 1], vector(&[256, 1]));
        let matrix = HostTensor::from_slice(Shape::new([2, 2]).unwrap(), &[1u8, 3, 2, 4]).unwrap();
        check("|u1", "True", &[1, 2, 3, 4], matrix);
        let bools = HostTensor::from_bools(Shape::new([3]).unwrap(), &[true, false, true]);
        check("|b1", "False", &[1, 0, 2], bools.unwrap());
        let texts = |texts: &[&'static str]| {
            let texts = texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect();
            HostTensor::from_strings(Shape::new([2]).unwrap(), texts).unwrap()
        };
        check("|S2", "False", b"ab\x00\x00", texts(&["ab", ""]));
        check("<U1", "False", &[0xe9, 0, 0, 0, b'a', 0, 0, 0], texts(&["é", "a"]));
        check(">U1", "False", &[0, 0, 0, 0xe9, 0, 0, 0, b'a'], texts(&["é", "a"]));
    }

    #[test]
    fn arrays_of_archives_are_bounded_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npz");
        let check = |version: u8, length: &[u8], header: &str| {
            let mut archive = zip::ZipWriter::new(File::create(&path).unwrap());
            archive.start_file("a.npy", Default::default()).unwrap();
            for part in [b"\x93NUMPY", &[version, 0][..], length, header.as_bytes()] {
                archive.write_all(part).unwrap();
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
