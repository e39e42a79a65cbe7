//! Tensors on their way between JavaScript and programs.

use crate::{error::WebError, limits::whole};
use bytes::Bytes;
use ferroflow_ir::{DType, Error as IrError, HostTensor, Shape, host_tensor::byte_len};
use js_sys::Uint8Array;
use std::panic::AssertUnwindSafe;
use wasm_bindgen::prelude::wasm_bindgen;

/// A tensor. Elements are stored in memory as typed arrays of the same dtype have them; 16-bit
/// floats as their bits, complex numbers as pairs, truth values as bytes.
#[wasm_bindgen]
#[derive(Debug)]
pub struct WebTensor(AssertUnwindSafe<HostTensor>);

#[wasm_bindgen]
impl WebTensor {
    /// A tensor of a dtype of fixed size.
    ///
    /// # Errors
    ///
    /// When there is no such dtype, or the bytes are not those of so many elements.
    pub fn plain(dtype: &str, shape: Vec<f64>, bytes: &Uint8Array) -> Result<WebTensor, WebError> {
        let (dtype, shape) = (dtype.parse::<DType>()?, shape_of(&shape)?);
        // The length is compared before anything is copied.
        let (expected, found) = (byte_len(dtype, &shape)?, bytes.length() as usize);
        if expected != found {
            let expected = format!("{expected} bytes for {dtype}{shape}");
            return Err(IrError::argument("tensor", "bytes", expected, found).into());
        }
        let mut tensor = HostTensor::recycled(dtype, shape)?;
        bytes.copy_to(tensor.bytes_mut());
        if dtype == DType::Bool {
            tensor.bytes_mut().iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(WebTensor::from(tensor))
    }

    /// A tensor of byte strings.
    ///
    /// # Errors
    ///
    /// When the shape has another number of elements.
    pub fn strings(shape: Vec<f64>, strings: Vec<Uint8Array>) -> Result<WebTensor, WebError> {
        let strings = strings.iter().map(|string| Bytes::from(string.to_vec())).collect();
        Ok(HostTensor::from_strings(shape_of(&shape)?, strings)?.into())
    }

    /// The name of the dtype, as TensorFlow writes it.
    #[wasm_bindgen(getter)]
    pub fn dtype(&self) -> String {
        self.0.dtype().name().into()
    }

    /// The sizes of the dimensions.
    #[wasm_bindgen(getter)]
    pub fn shape(&self) -> Vec<f64> {
        self.0.shape().dims().iter().map(|&size| size as f64).collect()
    }

    /// The bytes of the elements, copied.
    ///
    /// # Errors
    ///
    /// When elements have no fixed size, as strings and handles.
    pub fn bytes(&self) -> Result<Uint8Array, WebError> {
        if self.0.dtype().size().is_none() {
            let found = self.0.dtype();
            let expected = "a dtype of fixed size";
            return Err(IrError::argument("tensor", "dtype", expected, found).into());
        }
        Ok(Uint8Array::from(self.0.bytes()))
    }

    /// The strings, copied.
    ///
    /// # Errors
    ///
    /// When elements are no strings.
    pub fn texts(&self) -> Result<Vec<Uint8Array>, WebError> {
        Ok(self.0.strings()?.iter().map(|string| Uint8Array::from(&string[..])).collect())
    }
}

impl Clone for WebTensor {
    fn clone(&self) -> WebTensor {
        self.0.0.clone().into()
    }
}

impl From<HostTensor> for WebTensor {
    fn from(tensor: HostTensor) -> WebTensor {
        WebTensor(AssertUnwindSafe(tensor))
    }
}

impl WebTensor {
    /// The tensor.
    pub(crate) fn into_host(self) -> HostTensor {
        self.0.0
    }
}

fn shape_of(sizes: &[f64]) -> Result<Shape, WebError> {
    let size = |&size: &f64| {
        let size = whole("the size of a dimension", size)?;
        let found = size as f64;
        let (what, expected) = ("the size of a dimension", "less than 2^32");
        usize::try_from(size).map_err(|_| WebError::Number { what, expected, found })
    };
    let sizes = sizes.iter().map(size).collect::<Result<Vec<usize>, WebError>>()?;
    Ok(Shape::new(sizes)?)
}
