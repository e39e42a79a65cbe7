//! Steps of optimizers: a variable and its slots, changed in place by a gradient.
//!
//! Each optimizer is a formula for one element, in `rules`; `sweep` runs it over all elements,
//! or over the rows that indices name.

mod field;
mod rules;
mod sweep;

use crate::{error::Result, threads::Threads};
use ferroflow_ir::{DType, Error, HostTensor, Shape};
use field::ArithmeticField;
use half::{bf16, f16};
use num_complex::Complex;
use rules::OptimizerRule;
use smallvec::SmallVec;

/// A step of an optimizer.
#[derive(Debug)]
pub struct Update<'a> {
    /// The op that makes it, for messages.
    pub op: &'static str,
    /// The variable and its slots, in the order of the op's arguments, all of one dtype and shape.
    pub state: Vec<&'a mut HostTensor>,
    /// The gradient: of the shape of the variable, or with a row for each index.
    pub gradient: TensorView<'a>,
    /// The rows that the gradient is for; all if there are none given.
    pub indices: Option<TensorView<'a>>,
    /// Scalars by the names of the op's arguments.
    pub scalars: &'a [(&'static str, TensorView<'a>)],
    /// The flags that are set, by the names of the op's attributes.
    pub flags: &'a [&'static str],
}

/// A tensor of numbers, wherever its elements are.
#[derive(Debug, Clone, Copy)]
pub struct TensorView<'a> {
    /// The dtype.
    pub dtype: DType,
    /// The shape.
    pub shape: &'a Shape,
    /// The elements, aligned for their dtype.
    pub bytes: &'a [u8],
}

impl<'a> From<&'a HostTensor> for TensorView<'a> {
    fn from(tensor: &'a HostTensor) -> TensorView<'a> {
        TensorView { dtype: tensor.dtype(), shape: tensor.shape(), bytes: tensor.bytes() }
    }
}

impl TensorView<'_> {
    /// The elements, which are all of type `T`.
    fn elements<T: bytemuck::Pod>(&self) -> &[T] {
        bytemuck::cast_slice(self.bytes)
    }

    /// Integers, as indices.
    fn to_i64s(self) -> Option<Vec<i64>> {
        match self.dtype {
            DType::I32 => Some(self.elements::<i32>().iter().map(|&x| x.into()).collect()),
            DType::I64 => Some(self.elements::<i64>().to_vec()),
            _ => None,
        }
    }
}

/// The optimizers that TensorFlow has ops for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are named as TensorFlow's ops")]
pub enum OptimizerKind {
    AdaMax,
    Adadelta,
    Adagrad,
    AdagradDa,
    AdagradV2,
    Adam,
    AdamWithAmsgrad,
    AddSign,
    CenteredRmsProp,
    Ftrl,
    GradientDescent,
    KerasMomentum,
    Momentum,
    PowerSign,
    ProximalAdagrad,
    ProximalGradientDescent,
    RmsProp,
}

impl OptimizerKind {
    /// Makes a step.
    ///
    /// # Errors
    ///
    /// When shapes or dtypes do not fit, a scalar has a value the formula is not made for, or an
    /// index names no row.
    pub fn step(self, update: Update<'_>, threads: &Threads) -> Result<()> {
        match self {
            OptimizerKind::AdaMax => real::<rules::AdaMax, 3>(update, threads),
            OptimizerKind::Adadelta => any::<rules::AdadeltaRule, 3>(update, threads),
            OptimizerKind::Adagrad => any::<rules::AdagradRule, 2>(update, threads),
            OptimizerKind::AdagradDa => real::<rules::AdagradDa, 3>(update, threads),
            OptimizerKind::AdagradV2 => any::<rules::AdagradV2, 2>(update, threads),
            OptimizerKind::Adam => any::<rules::AdamRule, 3>(update, threads),
            OptimizerKind::AdamWithAmsgrad => real::<rules::AdamWithAmsgrad, 4>(update, threads),
            OptimizerKind::AddSign => real::<rules::AddSign, 2>(update, threads),
            OptimizerKind::CenteredRmsProp => any::<rules::CenteredRmsProp, 4>(update, threads),
            OptimizerKind::Ftrl => real::<rules::FtrlRule, 3>(update, threads),
            OptimizerKind::GradientDescent => any::<rules::GradientDescent, 1>(update, threads),
            OptimizerKind::KerasMomentum => any::<rules::KerasMomentum, 2>(update, threads),
            OptimizerKind::Momentum => any::<rules::Momentum, 2>(update, threads),
            OptimizerKind::PowerSign => real::<rules::PowerSign, 2>(update, threads),
            OptimizerKind::ProximalAdagrad => real::<rules::ProximalAdagrad, 2>(update, threads),
            OptimizerKind::ProximalGradientDescent => {
                real::<rules::ProximalGradientDescent, 1>(update, threads)
            }
            OptimizerKind::RmsProp => any::<rules::RmsPropRule, 3>(update, threads),
        }
    }
}

/// A step for real elements.
fn real<R, const N: usize>(update: Update<'_>, threads: &Threads) -> Result<()>
where
    R: OptimizerRule<f16, N>
        + OptimizerRule<bf16, N>
        + OptimizerRule<f32, N>
        + OptimizerRule<f64, N>,
{
    match update.gradient.dtype {
        DType::F16 => run::<f16, R, N>(update, threads),
        DType::BF16 => run::<bf16, R, N>(update, threads),
        DType::F32 => run::<f32, R, N>(update, threads),
        DType::F64 => run::<f64, R, N>(update, threads),
        dtype => Err(unsupported(&update, dtype)),
    }
}

/// A step for real or complex elements.
fn any<R, const N: usize>(update: Update<'_>, threads: &Threads) -> Result<()>
where
    R: OptimizerRule<f16, N>
        + OptimizerRule<bf16, N>
        + OptimizerRule<f32, N>
        + OptimizerRule<f64, N>,
    R: OptimizerRule<Complex<f32>, N> + OptimizerRule<Complex<f64>, N>,
{
    match update.gradient.dtype {
        DType::C64 => run::<Complex<f32>, R, N>(update, threads),
        DType::C128 => run::<Complex<f64>, R, N>(update, threads),
        _ => real::<R, N>(update, threads),
    }
}

fn unsupported(update: &Update<'_>, dtype: DType) -> crate::Error {
    let what = format!("{dtype} has no such step").into();
    Error::Unsupported { op: update.op.into(), what }.into()
}

fn run<T, R, const N: usize>(update: Update<'_>, threads: &Threads) -> Result<()>
where
    T: ArithmeticField,
    R: OptimizerRule<T, N>,
{
    let shape = check_state(&update, N)?;
    let rows = rows(&update, &shape)?;
    let parameters = Parameters::<T>::read(&update)?;
    let step = R::step(&parameters)?;
    let gradient = update.gradient;
    let gradient = gradient.elements::<T>();
    let mut tensors = update.state.into_iter();
    let state: [&mut [T]; N] = std::array::from_fn(|_| {
        let tensor = tensors.next().expect("the number of tensors was checked");
        bytemuck::cast_slice_mut(tensor.bytes_mut())
    });
    match rows {
        None => sweep::all(state, gradient, &step, threads),
        Some(rows) => sweep::rows(state, gradient, &rows, &step, threads),
    }
    Ok(())
}

fn wrong(
    update: &Update<'_>,
    argument: &'static str,
    expected: impl Into<std::borrow::Cow<'static, str>>,
    found: impl std::fmt::Display,
) -> crate::Error {
    Error::argument(update.op, argument, expected, found).into()
}

/// Checks that the tensors of the state belong together; gives their shape.
fn check_state(update: &Update<'_>, count: usize) -> Result<Shape> {
    let dtype = update.gradient.dtype;
    let shape = match update.state.first() {
        Some(first) if update.state.len() == count => first.shape().clone(),
        _ => return Err(wrong(update, "var", format!("{count} tensors"), update.state.len())),
    };
    for tensor in &update.state {
        if tensor.dtype() != dtype {
            return Err(wrong(update, "var", dtype.name(), tensor.dtype()));
        }
        if *tensor.shape() != shape {
            return Err(wrong(update, "var", format!("of shape {shape}"), tensor.shape()));
        }
    }
    Ok(shape)
}

/// The rows that the gradient is for, in its order; none where it is for all.
fn rows(update: &Update<'_>, shape: &Shape) -> Result<Option<Vec<usize>>> {
    let found = update.gradient.shape;
    let Some(indices) = update.indices else {
        if found != shape {
            return Err(wrong(update, "grad", format!("of shape {shape}"), found));
        }
        return Ok(None);
    };
    let Some((&n_rows, row)) = shape.split_first() else {
        return Err(wrong(update, "var", "of rank 1 or more", shape));
    };
    let n_indices = indices.shape.num_elements();
    let expected = Shape::new([n_indices].into_iter().chain(row.iter().copied()))?;
    if *found != expected || indices.shape.rank() != 1 {
        return Err(wrong(update, "grad", format!("of shape {expected}"), found));
    }
    let to_row = |index: i64| {
        usize::try_from(index).ok().filter(|&row| row < n_rows).ok_or_else(|| {
            let (what, high) = ("indices".into(), n_rows as i64);
            crate::Error::from(Error::Index { what, index, low: 0, high })
        })
    };
    let indices =
        indices.to_i64s().ok_or_else(|| wrong(update, "indices", "integers", indices.dtype))?;
    indices.into_iter().map(to_row).collect::<Result<_>>().map(Some)
}

/// The scalars and flags of a step.
struct Parameters<'a, A> {
    op: &'static str,
    values: SmallVec<[(&'static str, A); 8]>,
    flags: &'a [&'static str],
}

impl<'a, A: ArithmeticField> Parameters<'a, A> {
    fn read(update: &Update<'a>) -> Result<Parameters<'a, A>> {
        let mut values = SmallVec::new();
        for &(name, tensor) in update.scalars {
            if tensor.shape.rank() != 0 {
                return Err(wrong(update, name, "a scalar", tensor.shape));
            }
            values.push((
                name,
                match tensor.dtype {
                    DType::I64 => A::of(tensor.elements::<i64>()[0] as f64),
                    _ => tensor.elements::<A>()[0],
                },
            ));
        }
        Ok(Parameters { op: update.op, values, flags: update.flags })
    }

    fn find(&self, name: &str) -> Option<A> {
        self.values.iter().find(|(found, _)| *found == name).map(|(_, value)| *value)
    }

    fn get(&self, name: &'static str) -> Result<A> {
        self.find(name).ok_or_else(|| self.wrong(name, "given"))
    }

    fn flag(&self, name: &str) -> bool {
        self.flags.contains(&name)
    }

    fn wrong(&self, name: &'static str, expected: &'static str) -> crate::Error {
        let found = format!("{:?}", self.find(name));
        Error::argument(self.op, name, expected, found).into()
    }
}
