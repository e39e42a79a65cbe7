//! Tensors in host memory: dtype, shape and elements.

use crate::{
    dtype::DType,
    error::{Error, Result},
    memory::HostMemory,
    shape::Shape,
    string_elements::StringElements,
    workspace,
};
use bytemuck::Pod;
use bytes::Bytes;
use half::{bf16, f16};
use num_complex::Complex;
use std::{any::Any, fmt, mem, ops::Range, sync::Arc};

/// A Rust type that is the element type of a dtype.
///
/// `bool` tensors are stored as `u8` of 0 or 1; see [`HostTensor::from_bools`].
pub trait Element: Pod + Send + Sync + PartialEq + fmt::Debug {
    /// The dtype of tensors of this type.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => {
        $(impl Element for $rust { const DTYPE: DType = DType::$dtype; })*
    };
}

elements! {
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    Complex<f32> => C64, Complex<f64> => C128,
}

/// Target of an element of dtype resource or variant. Layers above define what it is.
pub trait Handle: Any + Send + Sync + fmt::Debug {
    /// For downcasting to the concrete type.
    fn as_any(&self) -> &dyn Any;
}

/// A tensor as an element of another, of dtype variant.
impl Handle for HostTensor {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Values of up to this many bytes live inside the tensor.
const INLINE: usize = 16;

#[derive(Clone)]
enum Data {
    /// Up to [`INLINE`] bytes, aligned for every element type.
    Inline([u64; INLINE / 8]),
    /// A range of shared memory that starts `offset` bytes in.
    Memory {
        memory: Arc<HostMemory>,
        offset: usize,
    },
    Strings(Arc<StringElements>),
    Handles(Arc<[Arc<dyn Handle>]>),
}

/// A tensor in host memory: contiguous, row-major, cheap to clone.
///
/// Cloning shares the elements; changing a shared tensor copies it first.
///
/// ```
/// use ferroflow_ir::{HostTensor, Shape};
/// # fn main() -> ferroflow_ir::Result<()> {
/// let matrix = HostTensor::from_slice(Shape::new([2, 2])?, &[1.0f32, 2.0, 3.0, 4.0])?;
/// assert_eq!(matrix.rows(1..2)?.as_slice::<f32>()?, [3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HostTensor {
    dtype: DType,
    shape: Shape,
    data: Data,
}

impl HostTensor {
    /// A tensor of zeros (empty strings for dtype string).
    ///
    /// # Errors
    ///
    /// [`Error::Size`] or [`Error::Limit`] when there is no memory for it, [`Error::DType`] for
    /// resource and variant, which have no zero.
    pub fn zeros(dtype: DType, shape: Shape) -> Result<HostTensor> {
        if dtype == DType::String {
            let strings = workspace::filled(Bytes::new(), shape.num_elements())?;
            return HostTensor::from_strings(shape, strings);
        }
        HostTensor::allocate(dtype, shape, HostMemory::zeroed)
    }

    /// A tensor whose elements are yet to be written; until then they are unspecified.
    ///
    /// # Errors
    ///
    /// As [`zeros`](HostTensor::zeros); dtype string is not possible either.
    pub fn recycled(dtype: DType, shape: Shape) -> Result<HostTensor> {
        HostTensor::allocate(dtype, shape, HostMemory::recycled)
    }

    fn allocate(
        dtype: DType,
        shape: Shape,
        memory: impl FnOnce(usize) -> Result<HostMemory>,
    ) -> Result<HostTensor> {
        let len = byte_len(dtype, &shape)?;
        let data = if len <= INLINE {
            Data::Inline([0; 2])
        } else {
            Data::Memory { memory: Arc::new(memory(len)?), offset: 0 }
        };
        Ok(HostTensor { dtype, shape, data })
    }

    /// A scalar.
    pub fn scalar<T: Element>(value: T) -> HostTensor {
        let mut inline = [0u64; 2];
        bytemuck::bytes_of_mut(&mut inline)[..size_of::<T>()]
            .copy_from_slice(bytemuck::bytes_of(&value));
        HostTensor { dtype: T::DTYPE, shape: Shape::scalar(), data: Data::Inline(inline) }
    }

    /// A scalar of dtype bool.
    pub fn scalar_bool(value: bool) -> HostTensor {
        HostTensor { dtype: DType::Bool, ..HostTensor::scalar(u8::from(value)) }
    }

    /// A scalar of dtype string.
    pub fn scalar_string(value: impl Into<Bytes>) -> HostTensor {
        let data = Data::Strings(StringElements::made(vec![value.into()]));
        HostTensor { dtype: DType::String, shape: Shape::scalar(), data }
    }

    /// A scalar of dtype resource or variant.
    pub fn scalar_handle(dtype: DType, handle: Arc<dyn Handle>) -> HostTensor {
        HostTensor { dtype, shape: Shape::scalar(), data: Data::Handles(Arc::new([handle])) }
    }

    /// A vector.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when there is no memory for it.
    pub fn vector<T: Element>(elements: &[T]) -> Result<HostTensor> {
        HostTensor::from_slice(Shape::new([elements.len()])?, elements)
    }

    /// A tensor of these elements, in row-major order.
    ///
    /// # Errors
    ///
    /// [`Error::ElementCount`] when their number does not fit the shape.
    pub fn from_slice<T: Element>(shape: Shape, elements: &[T]) -> Result<HostTensor> {
        HostTensor::from_bytes(T::DTYPE, shape, bytemuck::cast_slice(elements))
    }

    /// A tensor of dtype bool.
    ///
    /// # Errors
    ///
    /// [`Error::ElementCount`] when their number does not fit the shape.
    pub fn from_bools(shape: Shape, elements: &[bool]) -> Result<HostTensor> {
        let bytes: Vec<u8> = elements.iter().map(|&element| u8::from(element)).collect();
        HostTensor::from_bytes(DType::Bool, shape, &bytes)
    }

    /// A tensor from the bytes of its elements, in the machine's byte order. They are
    /// [normalised](DType::normalize).
    ///
    /// # Errors
    ///
    /// [`Error::ElementCount`] when their number does not fit the shape.
    pub fn from_bytes(dtype: DType, shape: Shape, bytes: &[u8]) -> Result<HostTensor> {
        if byte_len(dtype, &shape)? != bytes.len() {
            let found = bytes.len() / dtype.size().unwrap_or(1).max(1);
            return Err(Error::ElementCount { dtype, shape, found });
        }
        let mut tensor = HostTensor::recycled(dtype, shape)?;
        let elements = tensor.bytes_mut();
        elements.copy_from_slice(bytes);
        dtype.normalize(elements);
        Ok(tensor)
    }

    /// A tensor of dtype string.
    ///
    /// # Errors
    ///
    /// [`Error::ElementCount`] when their number does not fit the shape, [`Error::Limit`] when they exceed
    /// the budget of the call in progress.
    pub fn from_strings(shape: Shape, strings: Vec<Bytes>) -> Result<HostTensor> {
        if strings.len() != shape.num_elements() {
            let found = strings.len();
            return Err(Error::ElementCount { dtype: DType::String, shape, found });
        }
        Ok(HostTensor {
            dtype: DType::String,
            shape,
            data: Data::Strings(StringElements::new(strings)?),
        })
    }

    /// A tensor of dtype resource or variant.
    ///
    /// # Errors
    ///
    /// [`Error::ElementCount`] when their number does not fit the shape.
    pub fn from_handles(
        dtype: DType,
        shape: Shape,
        handles: Vec<Arc<dyn Handle>>,
    ) -> Result<HostTensor> {
        if handles.len() != shape.num_elements() {
            return Err(Error::ElementCount { dtype, shape, found: handles.len() });
        }
        Ok(HostTensor { dtype, shape, data: Data::Handles(handles.into()) })
    }

    /// The dtype.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.num_elements()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the elements are plain bytes, that is neither strings nor handles.
    #[inline]
    pub fn is_plain(&self) -> bool {
        matches!(self.data, Data::Inline(_) | Data::Memory { .. })
    }

    /// The bytes of the elements; empty for strings and handles.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let len = self.byte_len();
        match &self.data {
            Data::Inline(inline) => &bytemuck::bytes_of(inline)[..len],
            Data::Memory { memory, offset } => &memory.bytes()[*offset..offset + len],
            Data::Strings(_) | Data::Handles(_) => &[],
        }
    }

    /// The bytes of the elements, to be changed: copied first if anyone else holds them.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.byte_len();
        if let Data::Memory { memory, .. } = &mut self.data
            && Arc::get_mut(memory).is_none()
        {
            self.make_unique();
        }
        match &mut self.data {
            Data::Inline(inline) => &mut bytemuck::bytes_of_mut(inline)[..len],
            Data::Memory { memory, offset } => {
                let memory = Arc::get_mut(memory).expect("made unique above");
                &mut memory.bytes_mut()[*offset..*offset + len]
            }
            Data::Strings(_) | Data::Handles(_) => &mut [],
        }
    }

    /// Moves the memory away from those who only remember it, or copies it from those who hold it.
    #[cold]
    fn make_unique(&mut self) {
        let len = self.byte_len();
        let Data::Memory { memory, offset } =
            mem::replace(&mut self.data, Data::Inline([0; INLINE / 8]))
        else {
            unreachable!("only shared memory is made unique");
        };
        self.data = match Arc::try_unwrap(memory) {
            Ok(memory) => Data::Memory { memory: Arc::new(memory), offset },
            Err(memory) => {
                let mut copy =
                    HostMemory::copy_room(len).expect("as much memory as the original has");
                copy.bytes_mut().copy_from_slice(&memory.bytes()[offset..offset + len]);
                Data::Memory { memory: Arc::new(copy), offset: 0 }
            }
        };
    }

    /// The memory that the elements are in, and where they begin; `None` for those inside the
    /// tensor, strings and handles.
    pub(crate) fn memory(&self) -> Option<(&Arc<HostMemory>, usize)> {
        match &self.data {
            Data::Memory { memory, offset } => Some((memory, *offset)),
            Data::Inline(_) | Data::Strings(_) | Data::Handles(_) => None,
        }
    }

    /// Whether changing the elements would not have to copy them.
    pub fn is_unique(&self) -> bool {
        match &self.data {
            Data::Inline(_) => true,
            Data::Memory { memory, .. } => Arc::strong_count(memory) == 1,
            Data::Strings(strings) => Arc::strong_count(strings) == 1,
            Data::Handles(handles) => Arc::strong_count(handles) == 1,
        }
    }

    /// The elements.
    ///
    /// # Errors
    ///
    /// [`Error::DType`] when `T` is not the type of this tensor's elements.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.check(T::DTYPE)?;
        Ok(bytemuck::cast_slice(self.bytes()))
    }

    /// The elements, to be changed: copied first if anyone else holds them.
    ///
    /// # Errors
    ///
    /// [`Error::DType`] when `T` is not the type of this tensor's elements.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.check(T::DTYPE)?;
        Ok(bytemuck::cast_slice_mut(self.bytes_mut()))
    }

    /// The only element of a tensor with one element.
    ///
    /// # Errors
    ///
    /// [`Error::DType`] or [`Error::ElementCount`] when it is not that.
    pub fn as_scalar<T: Element>(&self) -> Result<T> {
        match self.as_slice::<T>()? {
            [element] => Ok(*element),
            elements => Err(self.not_one(elements.len())),
        }
    }

    /// The only element of a bool tensor with one element.
    ///
    /// # Errors
    ///
    /// [`Error::DType`] or [`Error::ElementCount`] when it is not that.
    pub fn as_bool(&self) -> Result<bool> {
        self.check(DType::Bool)?;
        match self.bytes() {
            [byte] => Ok(*byte != 0),
            bytes => Err(self.not_one(bytes.len())),
        }
    }

    fn not_one(&self, found: usize) -> Error {
        Error::ElementCount { dtype: self.dtype, shape: Shape::scalar(), found }
    }

    /// The elements of a string tensor.
    ///
    /// # Errors
    ///
    /// [`Error::DType`] for any other tensor.
    pub fn strings(&self) -> Result<&[Bytes]> {
        match &self.data {
            Data::Strings(strings) => Ok(strings.as_slice()),
            _ => Err(Error::DType { expected: DType::String, found: self.dtype }),
        }
    }

    /// The elements of a resource or variant tensor.
    ///
    /// # Errors
    ///
    /// [`Error::DType`] for any other tensor.
    pub fn handles(&self) -> Result<&[Arc<dyn Handle>]> {
        match &self.data {
            Data::Handles(handles) => Ok(handles),
            _ => Err(Error::DType { expected: DType::Variant, found: self.dtype }),
        }
    }

    /// The elements of a resource or variant tensor, to be changed; `None` when anyone else holds
    /// them, and for any other tensor.
    pub fn handles_mut(&mut self) -> Option<&mut [Arc<dyn Handle>]> {
        match &mut self.data {
            Data::Handles(handles) => Arc::get_mut(handles),
            _ => None,
        }
    }

    /// The elements of an integer tensor as `i64`: the form in which shapes and axes are used.
    ///
    /// # Errors
    ///
    /// [`Error::DType`] for tensors that are not integer, [`Error::Size`] for `u64` values beyond
    /// an `i64`.
    pub fn to_i64s(&self) -> Result<Vec<i64>> {
        fn widen<T: Element + Into<i64>>(tensor: &HostTensor) -> Result<Vec<i64>> {
            Ok(tensor.as_slice::<T>()?.iter().map(|&element| element.into()).collect())
        }
        match self.dtype {
            DType::I64 => Ok(self.as_slice::<i64>()?.to_vec()),
            DType::I32 => widen::<i32>(self),
            DType::I16 => widen::<i16>(self),
            DType::I8 => widen::<i8>(self),
            DType::U32 => widen::<u32>(self),
            DType::U16 => widen::<u16>(self),
            DType::U8 => widen::<u8>(self),
            DType::U64 => {
                let narrow = |&element: &u64| {
                    i64::try_from(element).map_err(|_| Error::Size {
                        what: "integer".into(),
                        size: element.to_string(),
                    })
                };
                self.as_slice::<u64>()?.iter().map(narrow).collect()
            }
            found => Err(Error::DType { expected: DType::I64, found }),
        }
    }

    /// The same elements under another shape.
    ///
    /// # Errors
    ///
    /// [`Error::ElementCount`] when the number of elements differs.
    pub fn reshaped(&self, shape: Shape) -> Result<HostTensor> {
        if shape.num_elements() != self.len() {
            return Err(Error::ElementCount { dtype: self.dtype, shape, found: self.len() });
        }
        Ok(HostTensor { dtype: self.dtype, shape, data: self.data.clone() })
    }

    /// The same bytes as elements of another dtype of equal size.
    ///
    /// # Errors
    ///
    /// [`Error::DType`] when the sizes differ.
    pub fn reinterpreted(&self, dtype: DType) -> Result<HostTensor> {
        if !self.is_plain() || dtype.size() != self.dtype.size() {
            return Err(Error::DType { expected: self.dtype, found: dtype });
        }
        Ok(HostTensor { dtype, shape: self.shape.clone(), data: self.data.clone() })
    }

    /// Rows `range` of the first dimension, sharing the memory.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] when the range leaves the first dimension (a scalar has none).
    pub fn rows(&self, range: Range<usize>) -> Result<HostTensor> {
        let n_rows = self.shape.first().copied().unwrap_or(0);
        if self.shape.rank() == 0 || range.start > range.end || range.end > n_rows {
            return Err(Error::Index {
                what: "row".into(),
                index: range.end as i64,
                low: 0,
                high: n_rows as i64 + 1,
            });
        }
        let row = self.shape[1..].iter().product::<usize>();
        let mut dims = self.shape.to_vec();
        dims[0] = range.len();
        let elements = range.start * row..range.end * row;
        self.window(elements, Shape::new(dims)?)
    }

    /// The elements `range` (row-major) as a tensor of shape `shape`, sharing the memory.
    ///
    /// # Errors
    ///
    /// [`Error::ElementCount`] when the range does not fit the shape or this tensor.
    pub fn window(&self, range: Range<usize>, shape: Shape) -> Result<HostTensor> {
        if range.len() != shape.num_elements() || range.end > self.len() {
            return Err(Error::ElementCount { dtype: self.dtype, shape, found: range.len() });
        }
        let size = self.dtype.size().unwrap_or(0);
        let data = match &self.data {
            Data::Inline(inline) => {
                let mut moved = [0u64; 2];
                let len = range.len() * size;
                bytemuck::bytes_of_mut(&mut moved)[..len]
                    .copy_from_slice(&bytemuck::bytes_of(inline)[range.start * size..][..len]);
                Data::Inline(moved)
            }
            Data::Memory { memory, offset } => {
                Data::Memory { memory: memory.clone(), offset: offset + range.start * size }
            }
            Data::Strings(strings) => {
                Data::Strings(StringElements::made(strings.as_slice()[range].into()))
            }
            Data::Handles(handles) => Data::Handles(handles[range].into()),
        };
        Ok(HostTensor { dtype: self.dtype, shape, data })
    }

    /// Checks the dtype.
    ///
    /// # Errors
    ///
    /// [`Error::DType`] when it is another one.
    pub fn check(&self, expected: DType) -> Result<()> {
        if self.dtype == expected {
            Ok(())
        } else {
            Err(Error::DType { expected, found: self.dtype })
        }
    }

    fn byte_len(&self) -> usize {
        self.len() * self.dtype.size().unwrap_or(0)
    }
}

/// The number of bytes a tensor of plain elements takes.
///
/// # Errors
///
/// [`Error::DType`] for string, resource and variant; [`Error::Size`] when the bytes cannot be
/// counted.
pub fn byte_len(dtype: DType, shape: &Shape) -> Result<usize> {
    let size = dtype.size().ok_or(Error::DType { expected: DType::U8, found: dtype })?;
    match shape.num_elements().checked_mul(size) {
        Some(len) if isize::try_from(len).is_ok() => Ok(len),
        _ => Err(Error::Size { what: "tensor".into(), size: format!("{dtype}{shape}") }),
    }
}

impl PartialEq for HostTensor {
    /// Equal dtype, shape and elements: bit for bit, handles by identity.
    fn eq(&self, other: &HostTensor) -> bool {
        if self.dtype != other.dtype || self.shape != other.shape {
            return false;
        }
        match (&self.data, &other.data) {
            (Data::Strings(lhs), Data::Strings(rhs)) => lhs.as_slice() == rhs.as_slice(),
            (Data::Handles(lhs), Data::Handles(rhs)) => {
                lhs.iter().zip(rhs.iter()).all(|(lhs, rhs)| Arc::ptr_eq(lhs, rhs))
            }
            _ => self.bytes() == other.bytes(),
        }
    }
}

impl fmt::Debug for HostTensor {
    /// The dtype, the shape and the first few elements.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        write!(f, "{}{} [", self.dtype, self.shape)?;
        for index in 0..self.len().min(SHOWN) {
            if index > 0 {
                f.write_str(", ")?;
            }
            self.fmt_element(index, f)?;
        }
        f.write_str(if self.len() > SHOWN { ", …]" } else { "]" })
    }
}

impl HostTensor {
    /// Writes element `index` (row-major) as text: numbers as Rust prints them, strings quoted.
    ///
    /// # Errors
    ///
    /// Only those of the formatter.
    ///
    /// # Panics
    ///
    /// When `index` is not below [`len`](HostTensor::len).
    pub fn fmt_element(&self, index: usize, f: &mut dyn fmt::Write) -> fmt::Result {
        macro_rules! plain {
            ($rust:ty) => {{
                let elements: &[$rust] = bytemuck::cast_slice(self.bytes());
                write!(f, "{:?}", elements[index])
            }};
        }
        match self.dtype {
            DType::F16 => plain!(f16),
            DType::BF16 => plain!(bf16),
            DType::F32 => plain!(f32),
            DType::F64 => plain!(f64),
            DType::I8 | DType::QI8 | DType::I4 | DType::I2 => plain!(i8),
            DType::I16 | DType::QI16 => plain!(i16),
            DType::I32 | DType::QI32 => plain!(i32),
            DType::I64 => plain!(i64),
            DType::U8 | DType::QU8 | DType::U4 | DType::U2 => plain!(u8),
            DType::U16 | DType::QU16 => plain!(u16),
            DType::U32 => plain!(u32),
            DType::U64 => plain!(u64),
            DType::C64 => {
                let elements: &[Complex<f32>] = bytemuck::cast_slice(self.bytes());
                write!(f, "{}", elements[index])
            }
            DType::C128 => {
                let elements: &[Complex<f64>] = bytemuck::cast_slice(self.bytes());
                write!(f, "{}", elements[index])
            }
            DType::Bool => write!(f, "{}", self.bytes()[index] != 0),
            DType::F8E5M2
            | DType::F8E4M3FN
            | DType::F8E4M3FNUZ
            | DType::F8E4M3B11FNUZ
            | DType::F8E5M2FNUZ
            | DType::F4E2M1FN => write!(f, "{:#04x}", self.bytes()[index]),
            DType::String | DType::Resource | DType::Variant => match &self.data {
                Data::Strings(strings) => {
                    write!(
                        f,
                        "\"{}\"",
                        String::from_utf8_lossy(&strings.as_slice()[index]).escape_debug()
                    )
                }
                Data::Handles(handles) => write!(f, "{:?}", handles[index]),
                Data::Inline(_) | Data::Memory { .. } => unreachable!("elements are not plain"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims.iter().copied()).unwrap()
    }

    #[test]
    fn changing_a_shared_tensor_copies_it() {
        let original = HostTensor::vector(&[1.0f32; 8]).unwrap();
        let mut copy = original.clone();
        copy.as_mut_slice::<f32>().unwrap()[0] = 5.0;
        assert_eq!(original.as_slice::<f32>().unwrap()[0], 1.0);
        assert_eq!(copy.as_slice::<f32>().unwrap()[0], 5.0);
        assert!(copy.is_unique() && original.is_unique());
    }

    #[test]
    fn rows_share_memory() {
        let matrix = HostTensor::from_slice(shape(&[3, 4]), &[7i32; 12]).unwrap();
        let rows = matrix.rows(1..3).unwrap();
        assert_eq!(rows.shape(), &shape(&[2, 4]));
        assert!(!matrix.is_unique());
        assert!(matrix.rows(2..4).is_err());
        assert!(HostTensor::scalar(1.0f32).rows(0..1).is_err());
    }

    #[test]
    fn small_tensors_and_windows_stay_inline() {
        let vector = HostTensor::vector(&[1i32, 2, 3, 4]).unwrap();
        assert_eq!(vector.rows(2..4).unwrap().as_slice::<i32>().unwrap(), [3, 4]);
        assert_eq!(HostTensor::scalar(2.5f64).as_scalar::<f64>().unwrap(), 2.5);
        assert!(HostTensor::scalar_bool(true).as_bool().unwrap());
    }

    #[test]
    fn wrong_types_and_counts_are_errors() {
        let vector = HostTensor::vector(&[1i32, 2]).unwrap();
        assert!(vector.as_slice::<f32>().is_err());
        assert!(HostTensor::from_slice(shape(&[3]), &[1i32, 2]).is_err());
        assert!(vector.as_scalar::<i32>().is_err());
        assert!(vector.strings().is_err());
        assert!(HostTensor::zeros(DType::Resource, Shape::scalar()).is_err());
        assert!(HostTensor::zeros(DType::C128, shape(&[1 << 60])).is_err());
    }

    #[test]
    fn debug_shows_the_first_elements() {
        let strings = HostTensor::from_strings(shape(&[2]), vec!["a\n".into(), "".into()]).unwrap();
        assert_eq!(format!("{strings:?}"), r#"string[2] ["a\n", ""]"#);
        let many = HostTensor::vector(&[1u8; 20]).unwrap();
        assert_eq!(format!("{many:?}"), "uint8[20] [1, 1, 1, 1, 1, 1, 1, 1, …]");
    }
}
