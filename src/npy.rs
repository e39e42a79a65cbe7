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
use half::f16;
use npyz::{NpyFile, Order, TypeChar, WriterBuilder, npz::NpzArchive};
use num_complex::Complex;
use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

/// An array that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct Error {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: Problem,
}

/// What can be wrong with an array.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
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
        /// What the header asks for, in bytes.
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
        let npy = NpyFile::new(BufReader::new(file))?;
        check_length(&npy, found)?;
        tensor(npy)
    };
    array().map_err(|problem| Error { path: path.into(), problem })
}

/// Reads an array of a `.npz` file; the only one, if no name is given.
///
/// # Errors
///
/// As [`read`], and [`Problem::NoArray`].
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
        match archive.by_name(name)? {
            Some(npy) => tensor(npy),
            None => Err(Problem::NoArray { name: name.into(), available: available.clone() }),
        }
    };
    array().map_err(|problem| Error { path: path.into(), problem })
}

fn check_length<R: Read>(npy: &NpyFile<R>, found: u64) -> Result<(), Problem> {
    let size = match npy.dtype() {
        npyz::DType::Plain(ty) => ty.num_bytes().unwrap_or(1) as u64,
        _ => 1,
    };
    let needed = npy.shape().iter().fold(size, |product, &dim| product.saturating_mul(dim));
    if needed > found { Err(Problem::Truncated { needed, found }) } else { Ok(()) }
}

fn tensor<R: Read>(npy: NpyFile<R>) -> Result<HostTensor, Problem> {
    let npyz::DType::Plain(ty) = npy.dtype() else {
        return Err(Problem::Dtype(npy.dtype().descr()));
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
        _ => Err(Problem::Dtype(ty.to_string())),
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

/// Writes a tensor as a `.npy` file. String tensors become byte strings as long as the longest.
///
/// # Errors
///
/// When the file cannot be written, or the elements are handles.
pub fn write(path: impl AsRef<Path>, tensor: &HostTensor) -> Result<(), Error> {
    let path = path.as_ref();
    let result = || {
        let mut file = BufWriter::new(File::create(path)?);
        write_to(&mut file, tensor)?;
        Ok(file.flush()?)
    };
    result().map_err(|problem| Error { path: path.into(), problem })
}

fn write_to(out: &mut impl Write, tensor: &HostTensor) -> Result<(), Problem> {
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
        other => return Err(Problem::Dtype(other.to_string())),
    };
    let unreadable = || Problem::Dtype(ty.clone());
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
