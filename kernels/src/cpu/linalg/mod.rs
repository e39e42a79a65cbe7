//! Linear algebra: one matrix of a stack at a time, and the stack shared among threads.

mod condensed;
mod eigen;
mod exponential;
mod function;
mod general;
mod lu;
mod qr;
mod real_schur;
mod reflection;
mod schur;
mod svd;
mod triangular;
mod tridiagonal;

use super::{Build, gemm::GemmElement};
use crate::{
    error::Result,
    kernel::Io,
    simd::{Vectorized, vectorize},
    threads::Threads,
};
use ferroflow_ir::{Error, Shape};
use num_complex::Complex;
use reflection::Exact;

/// A type of elements that matrices can be solved in.
trait Field: GemmElement<Acc = Self> {
    /// The complex conjugate.
    fn conj(self) -> Self;

    /// The value in double precision.
    fn to_complex(self) -> Complex<f64>;

    /// The nearest value; the imaginary part of a real type is dropped.
    fn from_complex(value: Complex<f64>) -> Self;

    /// The type of double precision, real or complex as this one.
    type Exact: Exact;

    /// The value in double precision.
    fn to_exact(self) -> Self::Exact;

    /// The nearest value.
    fn from_exact(value: Self::Exact) -> Self;

    /// Writes values in double precision.
    fn write(out: &mut [Self], values: impl IntoIterator<Item = Self::Exact>) {
        out.iter_mut().zip(values).for_each(|(out, value)| *out = Self::from_exact(value));
    }

    /// The magnitude.
    fn magnitude(self) -> f64 {
        self.to_complex().norm()
    }
}

macro_rules! reals {
    ($($type:ty)*) => {$(
        impl Field for $type {
            fn conj(self) -> $type {
                self
            }

            fn to_complex(self) -> Complex<f64> {
                Complex::new(self.into(), 0.0)
            }

            fn from_complex(value: Complex<f64>) -> $type {
                value.re as $type
            }

            type Exact = f64;

            fn to_exact(self) -> f64 {
                self.into()
            }

            fn from_exact(value: f64) -> $type {
                value as $type
            }

            fn magnitude(self) -> f64 {
                f64::from(self).abs()
            }
        }

        impl Field for Complex<$type> {
            fn conj(self) -> Complex<$type> {
                Complex::new(self.re, -self.im)
            }

            fn to_complex(self) -> Complex<f64> {
                Complex::new(self.re.into(), self.im.into())
            }

            fn from_complex(value: Complex<f64>) -> Complex<$type> {
                Complex::new(value.re as $type, value.im as $type)
            }

            type Exact = Complex<f64>;

            fn to_exact(self) -> Complex<f64> {
                self.to_complex()
            }

            fn from_exact(value: Complex<f64>) -> Complex<$type> {
                Self::from_complex(value)
            }
        }
    )*};
}

reals! { f32 f64 }

/// The types of linear algebra.
macro_rules! with_field {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            ferroflow_ir::DType::F32 => {
                type $T = f32;
                Some($body)
            }
            ferroflow_ir::DType::F64 => {
                type $T = f64;
                Some($body)
            }
            dtype => $crate::cpu::dispatch::with_complex!(dtype, $T => $body),
        }
    };
}

use with_field;

pub(super) const KERNELS: &[&[(&str, Build)]] = &[
    condensed::KERNELS,
    eigen::KERNELS,
    exponential::KERNELS,
    function::KERNELS,
    general::KERNELS,
    lu::KERNELS,
    qr::KERNELS,
    svd::KERNELS,
    triangular::KERNELS,
    tridiagonal::KERNELS,
];

/// Contiguous matrices in a tensor.
#[derive(Debug, Clone, Copy)]
struct Stack {
    count: usize,
    rows: usize,
    columns: usize,
}

impl Stack {
    fn new(shape: &Shape) -> Stack {
        let (outer, matrix) = shape.split_at(shape.rank() - 2);
        Stack { count: outer.iter().product(), rows: matrix[0], columns: matrix[1] }
    }

    /// The matrices in input `index`.
    fn input<'a, T: Field>(&self, io: &Io<'a>, index: usize) -> Vec<&'a [T]> {
        let (data, len): (&[T], _) = (io.input(index), self.rows * self.columns);
        (0..self.count).map(|matrix| &data[matrix * len..][..len]).collect()
    }

    /// The parts of `len` elements of output `index`, one for each matrix.
    fn output<'a, T: bytemuck::Pod>(
        &self,
        io: &mut Io<'a>,
        index: usize,
        len: usize,
    ) -> Vec<&'a mut [T]> {
        let mut data: &mut [T] = io.output(index);
        let next = |_| data.split_off_mut(..len).expect("the output has room for the stack");
        (0..self.count).map(next).collect()
    }
}

/// Does work on each item; returns the error of the first that fails.
fn try_each<I: Send>(
    threads: &Threads,
    items: impl IntoIterator<Item = I>,
    work: impl Fn(&mut I) -> Result<()> + Sync,
) -> Result<()> {
    let mut items: Vec<I> = items.into_iter().collect();
    threads.try_for_each_piece(&mut items, 1, |_, items| items.iter_mut().try_for_each(&work))
}

/// The error that a matrix has no inverse.
fn not_invertible(op: &'static str) -> crate::Error {
    Error::argument(op, "input", "invertible", "a singular matrix").into()
}

/// The rows and columns of a square matrix exchanged and conjugated.
fn adjoint<T: Field>(matrix: &[T], n: usize) -> Vec<T> {
    let element = |index: usize| matrix[index % n * n + index / n].conj();
    (0..n * n).map(element).collect()
}

/// Subtracts a multiple of a row from another one.
fn subtract<T: Field>(row: &mut [T], factor: T, other: &[T]) {
    vectorize(Subtract(row, factor, other));
}

struct Subtract<'a, T>(&'a mut [T], T, &'a [T]);

impl<T: Field> Vectorized for Subtract<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Subtract(row, factor, other) = self;
        row.iter_mut().zip(other).for_each(|(x, &y)| *x = x.minus(factor.times(y)));
    }
}
