//! Tensors from Rust values.

use crate::{error::Result, tensor::Tensor};
use ferroflow_ir::{HostTensor, Shape};
use half::{bf16, f16};

/// A tensor of `shape` from elements whose number is that of the shape by construction.
macro_rules! from_elements {
    ($($element:ty),*) => {$(
        impl From<$element> for Tensor {
            fn from(value: $element) -> Tensor {
                HostTensor::scalar(value).into()
            }
        }

        impl From<&[$element]> for Tensor {
            fn from(elements: &[$element]) -> Tensor {
                filled(&[elements.len()], HostTensor::vector(elements).map_err(Into::into))
            }
        }

        impl From<Vec<$element>> for Tensor {
            fn from(elements: Vec<$element>) -> Tensor {
                Tensor::from(&elements[..])
            }
        }

        impl<const N: usize> From<[$element; N]> for Tensor {
            fn from(elements: [$element; N]) -> Tensor {
                Tensor::from(&elements[..])
            }
        }

        impl<const N: usize, const M: usize> From<[[$element; N]; M]> for Tensor {
            fn from(rows: [[$element; N]; M]) -> Tensor {
                filled(&[M, N], Tensor::from_slice(&[M, N], rows.as_flattened()).and_then(into_host))
            }
        }

        impl<const N: usize, const M: usize, const K: usize> From<[[[$element; N]; M]; K]> for Tensor {
            fn from(planes: [[[$element; N]; M]; K]) -> Tensor {
                let elements = planes.as_flattened().as_flattened();
                filled(&[K, M, N], Tensor::from_slice(&[K, M, N], elements).and_then(into_host))
            }
        }
    )*};
}

from_elements!(f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64);

fn into_host(tensor: Tensor) -> Result<HostTensor> {
    tensor.host().cloned()
}

fn filled(shape: &[usize], tensor: Result<HostTensor>) -> Tensor {
    tensor.unwrap_or_else(|error| panic!("memory for a tensor of shape {shape:?}: {error}")).into()
}

impl From<bool> for Tensor {
    fn from(value: bool) -> Tensor {
        HostTensor::scalar_bool(value).into()
    }
}

impl<const N: usize> From<[bool; N]> for Tensor {
    fn from(elements: [bool; N]) -> Tensor {
        Tensor::from(elements.to_vec())
    }
}

impl From<Vec<bool>> for Tensor {
    fn from(elements: Vec<bool>) -> Tensor {
        let shape = Shape::new([elements.len()]).map_err(Into::into);
        let tensor = shape.and_then(|shape| Ok(HostTensor::from_bools(shape, &elements)?));
        filled(&[elements.len()], tensor)
    }
}

impl From<&str> for Tensor {
    fn from(text: &str) -> Tensor {
        HostTensor::scalar_string(text.to_string()).into()
    }
}

impl From<String> for Tensor {
    fn from(text: String) -> Tensor {
        HostTensor::scalar_string(text).into()
    }
}

impl<const N: usize> From<[&str; N]> for Tensor {
    fn from(texts: [&str; N]) -> Tensor {
        let strings = texts.map(|text| text.to_string().into()).to_vec();
        let shape = Shape::new([N]).map_err(Into::into);
        let tensor = shape.and_then(|shape| Ok(HostTensor::from_strings(shape, strings)?));
        filled(&[N], tensor)
    }
}

/// ```
/// use ferroflow_tracer::Tensor;
/// let x = Tensor::from(ndarray::arr2(&[[1.0f32, 2.0], [3.0, 4.0]]).into_dyn());
/// assert_eq!(x.shape().to_string(), "[2,2]");
/// ```
#[cfg(feature = "ndarray")]
impl<T: ferroflow_ir::Element> From<ndarray::ArrayD<T>> for Tensor {
    fn from(array: ndarray::ArrayD<T>) -> Tensor {
        let shape = array.shape().to_vec();
        let elements: Vec<T> = array.iter().copied().collect();
        filled(&shape, Tensor::from_slice(&shape, &elements).and_then(into_host))
    }
}

#[cfg(feature = "ndarray")]
impl Tensor {
    /// The value as an array of the `ndarray` crate.
    ///
    /// # Errors
    ///
    /// [`Error::Symbolic`](crate::Error::Symbolic) in a trace; when the dtype is not that of `T`.
    pub fn to_ndarray<T: ferroflow_ir::Element>(&self) -> Result<ndarray::ArrayD<T>> {
        let host = self.host()?;
        let dims = host.shape().dims().to_vec();
        ndarray::ArrayD::from_shape_vec(dims, host.as_slice::<T>()?.to_vec())
            .map_err(crate::Error::host)
    }
}
