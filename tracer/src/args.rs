//! Arguments of functions: tuples of nests, and what may be given for them.

#![expect(non_snake_case, reason = "values of tuples go by the names of their types")]
#![expect(clippy::unused_unit, reason = "the tuple of no arguments is made as the others are")]

use crate::{
    error::Result,
    nest::Nest,
    tensor::Tensor,
    value::{Aliases, NestedValue, TensorLeaves},
    variable::Variable,
};
use ferroflow_ir::TraceType;
use half::{bf16, f16};

/// The arguments of a function: a tuple of [`Nest`]s.
pub trait Args: Sized {
    /// Type of a function of these arguments.
    type Callable<R: 'static>: ?Sized;

    /// Number of arguments.
    const COUNT: usize;

    /// The arguments, with their structure told at run time.
    fn to_values(&self) -> Vec<NestedValue>;

    /// The arguments of this type that have such a structure.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](crate::Error::Conversion) when there are none.
    fn from_values(values: Vec<NestedValue>) -> Result<Self>;

    /// Whether these are the types of the arguments.
    fn have_types(&self, types: &[TraceType]) -> bool;

    /// Appends the tensors of the arguments, in order.
    fn leaves(&self, leaves: &mut TensorLeaves);

    /// `call` as something that is called with the arguments one by one.
    fn callable<R: 'static>(
        call: impl Fn(Self) -> Result<R> + Send + Sync + 'static,
    ) -> Box<Self::Callable<R>>;
}

/// Values that may be passed for an argument of type `T`: the value, a reference to it, or
/// something that becomes it without loss.
pub trait IntoArg<T> {
    /// The argument.
    fn into_arg(self) -> T;
}

impl<T: Nest> IntoArg<T> for T {
    fn into_arg(self) -> T {
        self
    }
}

impl<T: Nest + Clone> IntoArg<T> for &T {
    fn into_arg(self) -> T {
        self.clone()
    }
}

macro_rules! tensor_args {
    ($($rust:ty),*) => {$(
        impl IntoArg<Tensor> for $rust {
            fn into_arg(self) -> Tensor {
                self.into()
            }
        }

        impl<const N: usize> IntoArg<Tensor> for [$rust; N] {
            fn into_arg(self) -> Tensor {
                self.into()
            }
        }

        impl<const N: usize, const M: usize> IntoArg<Tensor> for [[$rust; N]; M] {
            fn into_arg(self) -> Tensor {
                self.into()
            }
        }

        impl<const N: usize, const M: usize, const K: usize> IntoArg<Tensor>
            for [[[$rust; N]; M]; K]
        {
            fn into_arg(self) -> Tensor {
                self.into()
            }
        }

        impl IntoArg<Tensor> for Vec<$rust> {
            fn into_arg(self) -> Tensor {
                self.into()
            }
        }
    )*};
}

tensor_args!(f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64);

impl IntoArg<Tensor> for bool {
    fn into_arg(self) -> Tensor {
        self.into()
    }
}

impl<const N: usize> IntoArg<Tensor> for [bool; N] {
    fn into_arg(self) -> Tensor {
        self.into()
    }
}

impl IntoArg<Tensor> for Vec<bool> {
    fn into_arg(self) -> Tensor {
        self.into()
    }
}

impl IntoArg<Tensor> for &str {
    fn into_arg(self) -> Tensor {
        self.into()
    }
}

impl<const N: usize> IntoArg<Tensor> for [&str; N] {
    fn into_arg(self) -> Tensor {
        self.into()
    }
}

/// ```
/// use ferroflow_tracer::{Tensor, function};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let f = function(|x: Tensor| x.square());
/// let y = f.call((ndarray::arr1(&[2.0f32, 3.0]).into_dyn(),))?;
/// assert_eq!(y.to_ndarray::<f32>()?, ndarray::arr1(&[4.0, 9.0]).into_dyn());
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "ndarray")]
impl<T: ferroflow_ir::Element> IntoArg<Tensor> for ndarray::ArrayD<T> {
    fn into_arg(self) -> Tensor {
        self.into()
    }
}

impl IntoArg<String> for &str {
    fn into_arg(self) -> String {
        self.into()
    }
}

impl IntoArg<NestedValue> for Tensor {
    fn into_arg(self) -> NestedValue {
        self.into()
    }
}

impl IntoArg<NestedValue> for &Tensor {
    fn into_arg(self) -> NestedValue {
        self.into()
    }
}

impl IntoArg<NestedValue> for &Variable {
    fn into_arg(self) -> NestedValue {
        self.into()
    }
}

impl IntoArg<NestedValue> for f64 {
    fn into_arg(self) -> NestedValue {
        self.into()
    }
}

impl IntoArg<NestedValue> for i64 {
    fn into_arg(self) -> NestedValue {
        self.into()
    }
}

/// Values that may be passed for the arguments `A`.
pub trait IntoArgs<A> {
    /// The arguments.
    fn into_args(self) -> A;
}

/// A result of traced Rust code: a [`Nest`], or an error instead of it.
pub trait Output {
    /// The nest.
    type Value: Nest + 'static;

    /// The nest, or why there is none.
    ///
    /// # Errors
    ///
    /// That of the code.
    fn into_result(self) -> Result<Self::Value>;
}

impl<T: Nest + 'static> Output for T {
    type Value = T;

    fn into_result(self) -> Result<T> {
        Ok(self)
    }
}

impl<T: Nest + 'static, E: Into<crate::Error>> Output for Result<T, E> {
    type Value = T;

    fn into_result(self) -> Result<T> {
        self.map_err(Into::into)
    }
}

/// Rust code that can be traced: a closure that can be called any number of times.
pub trait Body<A>: Send + Sync + 'static {
    /// Type of its value.
    type Value: Nest + 'static;

    /// Runs the code.
    ///
    /// # Errors
    ///
    /// That of the code.
    fn run(&self, args: A) -> Result<Self::Value>;
}

macro_rules! arities {
    ($($count:literal: $($name:ident $given:ident)*;)*) => {$(
        impl<$($name: Nest + 'static),*> Args for ($($name,)*) {
            type Callable<R_: 'static> = dyn Fn($($name),*) -> Result<R_> + Send + Sync;

            const COUNT: usize = $count;

            fn to_values(&self) -> Vec<NestedValue> {
                let ($($name,)*) = self;
                vec![$($name.to_value()),*]
            }

            fn from_values(values: Vec<NestedValue>) -> Result<Self> {
                let mut values = values.into_iter();
                let _ = &mut values;
                Ok(($($name::from_value(values.next().unwrap_or_default())?,)*))
            }

            fn have_types(&self, types: &[TraceType]) -> bool {
                let ($($name,)*) = self;
                let mut aliases = Aliases::default();
                let (mut types, _) = (types.iter(), &mut aliases);
                $(types.next().is_some_and(|ty| $name.has_type(ty, &mut aliases)) &&)*
                    types.next().is_none()
            }

            fn leaves(&self, leaves: &mut TensorLeaves) {
                let ($($name,)*) = self;
                let mut aliases = Aliases::default();
                let _ = (&mut aliases, &leaves);
                $($name.leaves(&mut aliases, leaves);)*
            }

            fn callable<R_: 'static>(
                call: impl Fn(Self) -> Result<R_> + Send + Sync + 'static,
            ) -> Box<Self::Callable<R_>> {
                Box::new(move |$($name),*| call(($($name,)*)))
            }
        }

        impl<$($name,)* $($given: IntoArg<$name>),*> IntoArgs<($($name,)*)> for ($($given,)*) {
            fn into_args(self) -> ($($name,)*) {
                let ($($given,)*) = self;
                ($($given.into_arg(),)*)
            }
        }

        impl<F, O, $($name: Nest),*> Body<($($name,)*)> for F
        where
            F: Fn($($name),*) -> O + Send + Sync + 'static,
            O: Output,
        {
            type Value = O::Value;

            fn run(&self, args: ($($name,)*)) -> Result<O::Value> {
                let ($($name,)*) = args;
                self($($name),*).into_result()
            }
        }
    )*};
}

arities! {
    0: ;
    1: A GA;
    2: A GA B GB;
    3: A GA B GB C GC;
    4: A GA B GB C GC D GD;
    5: A GA B GB C GC D GD E GE;
    6: A GA B GB C GC D GD E GE F1 GF;
    7: A GA B GB C GC D GD E GE F1 GF G GG;
    8: A GA B GB C GC D GD E GE F1 GF G GG H GH;
    9: A GA B GB C GC D GD E GE F1 GF G GG H GH I GI;
    10: A GA B GB C GC D GD E GE F1 GF G GG H GH I GI J GJ;
    11: A GA B GB C GC D GD E GE F1 GF G GG H GH I GI J GJ K GK;
    12: A GA B GB C GC D GD E GE F1 GF G GG H GH I GI J GJ K GK L GL;
    13: A GA B GB C GC D GD E GE F1 GF G GG H GH I GI J GJ K GK L GL M GM;
    14: A GA B GB C GC D GD E GE F1 GF G GG H GH I GI J GJ K GK L GL M GM N GN;
    15: A GA B GB C GC D GD E GE F1 GF G GG H GH I GI J GJ K GK L GL M GM N GN P GP;
    16: A GA B GB C GC D GD E GE F1 GF G GG H GH I GI J GJ K GK L GL M GM N GN P GP Q GQ;
}
