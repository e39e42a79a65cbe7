//! Values made of tensors.

use crate::error::{Error, Result};
use ferroflow_runtime::EagerTensor;
use std::{any::type_name, fmt};

/// A value made of tensors, its leaves, in the order of their positions.
///
/// ```
/// use ferroflow_runtime::EagerTensor;
/// use ferroflow_tracer::Nest;
/// let x = || EagerTensor::scalar(1.0f32);
/// let value = (x(), [x(), x()], None::<EagerTensor>, vec![Some(x())]);
/// assert_eq!(value.structure().to_string(), "(·, [·, ·], None, [·])");
/// assert_eq!(value.structure().n_leaves(), 4);
/// ```
pub trait Nest: Sized {
    /// Appends the tensors in it.
    fn flatten(&self, leaves: &mut Vec<EagerTensor>);

    /// What it is made of, but for the tensors.
    fn structure(&self) -> Structure;

    /// Takes as many tensors as it needs to become a value; where that may be any number, as few
    /// as leave enough for what comes after, or all that are left.
    ///
    /// # Errors
    ///
    /// [`Error::Leaves`] when there are too few.
    fn unflatten(leaves: &mut Leaves) -> Result<Self>;
}

/// The shape of a nest: containers with places for tensors.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Structure {
    /// A tensor.
    Leaf,
    /// A value that is left out.
    None,
    /// A list or an array.
    List(Vec<Structure>),
    /// A tuple.
    Tuple(Vec<Structure>),
}

impl Structure {
    /// The number of tensors.
    pub fn n_leaves(&self) -> usize {
        match self {
            Structure::Leaf => 1,
            Structure::None => 0,
            Structure::List(items) | Structure::Tuple(items) => {
                items.iter().map(Structure::n_leaves).sum()
            }
        }
    }
}

impl fmt::Display for Structure {
    /// As Python writes such values, with a dot for each tensor.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = |f: &mut fmt::Formatter<'_>, items: &[Structure]| {
            items.iter().enumerate().try_for_each(|(index, item)| {
                write!(f, "{}{item}", if index > 0 { ", " } else { "" })
            })
        };
        match self {
            Structure::Leaf => f.write_str("·"),
            Structure::None => f.write_str("None"),
            Structure::List(list) => {
                f.write_str("[")?;
                items(f, list)?;
                f.write_str("]")
            }
            Structure::Tuple(tuple) => {
                f.write_str("(")?;
                items(f, tuple)?;
                f.write_str(if tuple.len() == 1 { ",)" } else { ")" })
            }
        }
    }
}

/// Tensors that are yet to be put into a nest.
#[derive(Debug)]
pub struct Leaves {
    rest: std::vec::IntoIter<EagerTensor>,
    n: usize,
}

impl Leaves {
    /// The number of tensors that are left.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Puts tensors into a nest: all of them.
///
/// # Errors
///
/// [`Error::Leaves`] when it takes fewer or more.
pub fn pack<R: Nest>(tensors: Vec<EagerTensor>) -> Result<R> {
    let n = tensors.len();
    let mut leaves = Leaves { rest: tensors.into_iter(), n };
    let value = R::unflatten(&mut leaves)?;
    if !leaves.is_empty() {
        let expected = n - leaves.len();
        return Err(Error::Leaves { ty: type_name::<R>(), expected, at_least: false, found: n });
    }
    Ok(value)
}

impl Nest for EagerTensor {
    fn flatten(&self, leaves: &mut Vec<EagerTensor>) {
        leaves.push(self.clone());
    }

    fn structure(&self) -> Structure {
        Structure::Leaf
    }

    fn unflatten(leaves: &mut Leaves) -> Result<EagerTensor> {
        let found = leaves.n;
        let missing = Error::Leaves { ty: "the value", expected: found + 1, at_least: true, found };
        leaves.rest.next().ok_or(missing)
    }
}

/// `None` has no tensors; what is packed is there.
impl<T: Nest> Nest for Option<T> {
    fn flatten(&self, leaves: &mut Vec<EagerTensor>) {
        self.iter().for_each(|value| value.flatten(leaves));
    }

    fn structure(&self) -> Structure {
        self.as_ref().map_or(Structure::None, Nest::structure)
    }

    fn unflatten(leaves: &mut Leaves) -> Result<Option<T>> {
        if leaves.is_empty() { Ok(None) } else { T::unflatten(leaves).map(Some) }
    }
}

/// Packs all that is left.
impl<T: Nest> Nest for Vec<T> {
    fn flatten(&self, leaves: &mut Vec<EagerTensor>) {
        self.iter().for_each(|value| value.flatten(leaves));
    }

    fn structure(&self) -> Structure {
        Structure::List(self.iter().map(Nest::structure).collect())
    }

    fn unflatten(leaves: &mut Leaves) -> Result<Vec<T>> {
        let mut values = Vec::new();
        while !leaves.is_empty() {
            let before = leaves.len();
            values.push(T::unflatten(leaves)?);
            if leaves.len() == before {
                // Values without tensors: there is no telling how many.
                values.pop();
                break;
            }
        }
        Ok(values)
    }
}

impl<T: Nest, const N: usize> Nest for [T; N] {
    fn flatten(&self, leaves: &mut Vec<EagerTensor>) {
        self.iter().for_each(|value| value.flatten(leaves));
    }

    fn structure(&self) -> Structure {
        Structure::List(self.iter().map(Nest::structure).collect())
    }

    fn unflatten(leaves: &mut Leaves) -> Result<[T; N]> {
        let values: Vec<T> = (0..N).map(|_| T::unflatten(leaves)).collect::<Result<_>>()?;
        Ok(values.try_into().unwrap_or_else(|_| unreachable!("there are N values")))
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        impl<$($name: Nest),*> Nest for ($($name,)*) {
            fn flatten(&self, leaves: &mut Vec<EagerTensor>) {
                #[expect(non_snake_case, reason = "values go by the names of their types")]
                let ($($name,)*) = self;
                $($name.flatten(leaves);)*
                let _ = leaves;
            }

            fn structure(&self) -> Structure {
                #[expect(non_snake_case, reason = "values go by the names of their types")]
                let ($($name,)*) = self;
                Structure::Tuple(vec![$($name.structure()),*])
            }

            fn unflatten(leaves: &mut Leaves) -> Result<Self> {
                let _ = &leaves;
                Ok(($($name::unflatten(leaves)?,)*))
            }
        }
    )*};
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensors(n: usize) -> Vec<EagerTensor> {
        (0..n).map(|value| EagerTensor::scalar(value as i32)).collect()
    }

    fn values(nest: &impl Nest) -> Vec<i32> {
        let mut leaves = Vec::new();
        nest.flatten(&mut leaves);
        leaves.iter().map(|leaf| leaf.host().unwrap().as_scalar().unwrap()).collect()
    }

    #[test]
    fn what_is_flattened_packs_again() {
        type Value = (EagerTensor, [EagerTensor; 2], Vec<(EagerTensor, EagerTensor)>);
        let value: Value = pack(tensors(7)).unwrap();
        assert_eq!(value.structure().to_string(), "(·, [·, ·], [(·, ·), (·, ·)])");
        assert_eq!(values(&value), (0..7).collect::<Vec<_>>());
        assert_eq!(value.structure().n_leaves(), 7);
    }

    #[test]
    fn too_few_and_too_many_are_refused() {
        assert!(pack::<(EagerTensor, EagerTensor)>(tensors(1)).is_err());
        assert!(pack::<EagerTensor>(tensors(2)).unwrap_err().to_string().contains("found 2"));
        assert!(pack::<Vec<(EagerTensor, EagerTensor)>>(tensors(3)).is_err());
        assert_eq!(pack::<Option<EagerTensor>>(tensors(0)).unwrap().structure(), Structure::None);
    }
}
