//! Derivatives beyond gradients: Jacobians, directional derivatives, products with Hessians.

use crate::{
    error::{Error, Result},
    gradients::GradientOptions,
    ops::{self, NamedOp},
    tape::GradientTape,
    tensor::Tensor,
};
use ferroflow_ir::{Attrs, HostTensor, Shape, ops::names};

impl GradientTape {
    /// The Jacobian of `target` by `source`: its shape is that of the target, then that of the
    /// source. `None` if the target does not depend on the source.
    ///
    /// One backward walk is made for each element of the target, whose shape must be known.
    ///
    /// ```
    /// use ferroflow_tracer::{GradientTape, Tensor};
    /// # fn main() -> ferroflow_tracer::Result<()> {
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// let tape = GradientTape::new();
    /// tape.watch(&x)?;
    /// let y = x.square()?;
    /// let jacobian = tape.jacobian(&y, &x)?.unwrap();
    /// assert_eq!(jacobian.to_string(), "[[2. 0.]\n [0. 4.]]");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`gradient`](GradientTape::gradient); [`Error::Conversion`] when the shape of the target
    /// is not known.
    #[track_caller]
    pub fn jacobian(&self, target: &Tensor, source: &Tensor) -> Result<Option<Tensor>> {
        let shape = known_shape(target)?;
        let seeds = (0..shape.num_elements()).map(|element| vec![element]);
        let Some(rows) = self.rows(target, &shape, source, seeds)? else { return Ok(None) };
        let first: Vec<i64> = shape.to_i64();
        rows.reshape(&joined(&first, source, 0..)?).map(Some)
    }

    /// The Jacobians of the rows of `target` by the rows of `source` of the same number, where no
    /// row depends on others: of shape `[batch, ..target row, ..source row]`.
    ///
    /// One backward walk is made for each element of a row of the target, whose shape must be
    /// known.
    ///
    /// # Errors
    ///
    /// As [`jacobian`](GradientTape::jacobian); [`Error::Conversion`] when the two are not batches
    /// of one size.
    #[track_caller]
    pub fn batch_jacobian(&self, target: &Tensor, source: &Tensor) -> Result<Option<Tensor>> {
        let shape = known_shape(target)?;
        let source_shape = known_shape(source)?;
        let (Some(&n_rows), Some(&others)) = (shape.dims().first(), source_shape.dims().first())
        else {
            return Err(not_batches(target, source));
        };
        if n_rows != others {
            return Err(not_batches(target, source));
        }
        let width: usize = shape.dims()[1..].iter().product();
        let seeds = (0..width).map(|column| (0..n_rows).map(|row| row * width + column).collect());
        let Some(rows) = self.rows(target, &shape, source, seeds)? else { return Ok(None) };
        let order: Vec<i32> = [1, 0].into_iter().chain(2..source_shape.rank() as i32 + 1).collect();
        let first: Vec<i64> = shape.to_i64();
        rows.transpose(&order)?.reshape(&joined(&first, source, 1..)?).map(Some)
    }

    /// The gradients of sums of some elements of the target, stacked.
    #[track_caller]
    fn rows(
        &self,
        target: &Tensor,
        shape: &Shape,
        source: &Tensor,
        seeds: impl Iterator<Item = Vec<usize>>,
    ) -> Result<Option<Tensor>> {
        static PACK: NamedOp = NamedOp::new(names::PACK);
        let mut snapshot = self.snapshot()?;
        let mut rows = Vec::new();
        for elements in seeds {
            let mut weights = vec![0.0f64; shape.num_elements()];
            elements.into_iter().for_each(|element| weights[element] = 1.0);
            let weights = HostTensor::from_slice(shape.clone(), &weights)?;
            let weights = Tensor::from(weights).cast(target.dtype())?;
            let options = GradientOptions {
                output_gradients: Some(vec![Some(weights)]),
                ..Default::default()
            };
            let (targets, sources) = (std::slice::from_ref(target), std::slice::from_ref(source));
            let found = snapshot.gradients(targets, sources, &options)?.remove(0);
            let Some(row) = found else { return Ok(None) };
            rows.push(row.dense()?);
        }
        if rows.is_empty() {
            let none =
                Shape::new([0].into_iter().chain(known_shape(source)?.dims().iter().copied()))?;
            return Ok(Some(HostTensor::zeros(source.dtype(), none)?.into()));
        }
        let rows: Vec<&Tensor> = rows.iter().collect();
        ops::one(&PACK, Attrs::new(), &rows).map(Some)
    }
}

fn known_shape(tensor: &Tensor) -> Result<Shape> {
    tensor.shape().known().ok_or_else(|| Error::Conversion {
        expected: "a tensor of known shape".into(),
        found: tensor.spec().to_string(),
    })
}

fn joined(first: &[i64], source: &Tensor, rest: std::ops::RangeFrom<usize>) -> Result<Vec<i64>> {
    let own = known_shape(source)?.to_i64();
    Ok(first.iter().chain(&own[rest]).copied().collect())
}

fn not_batches(target: &Tensor, source: &Tensor) -> Error {
    let found = format!("{} and {}", target.spec(), source.spec());
    Error::Conversion { expected: "two batches of one size".into(), found }
}

/// The values of a function, and how they change when its arguments change in a direction: the
/// Jacobian times `tangents`.
///
/// Made of two backward walks: the gradient is linear in what it is weighted with, and its own
/// derivative by the weights is the direction's (Townsend 2017, "A new trick for calculating
/// Jacobian vector products").
///
/// ```
/// use ferroflow_tracer::{Tensor, derivatives::jvp};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let x = Tensor::from([1.0f32, 2.0]);
/// let direction = Tensor::from([1.0f32, 0.5]);
/// let (y, dy) = jvp(|x| x[0].square(), &[x], &[direction])?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 4.0]);
/// assert_eq!(dy.to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of `function`; as [`GradientTape::gradient`]; [`Error::Conversion`] when there are not as
/// many tangents as arguments.
#[track_caller]
pub fn jvp(
    function: impl FnOnce(&[Tensor]) -> Result<Tensor>,
    primals: &[Tensor],
    tangents: &[Tensor],
) -> Result<(Tensor, Tensor)> {
    if primals.len() != tangents.len() {
        return Err(Error::Conversion {
            expected: format!("{} tangents, one for each argument", primals.len()),
            found: tangents.len().to_string(),
        });
    }
    let outer = GradientTape::new();
    let inner = GradientTape::new();
    inner.watch(&primals.to_vec())?;
    let y = function(primals)?;
    let weights = y.zeros_like()?;
    outer.watch(&weights)?;
    let options = GradientOptions {
        output_gradients: Some(vec![Some(weights.clone())]),
        ..Default::default()
    };
    let gradients = inner.gradient_with(&y, primals, &options)?;
    let connected = gradients.into_iter().zip(tangents);
    let (gradients, tangents): (Vec<Tensor>, Vec<Option<Tensor>>) = connected
        .filter_map(|(gradient, tangent)| Some((gradient?, Some(tangent.clone()))))
        .unzip();
    let options = GradientOptions { output_gradients: Some(tangents), zero_unconnected: true };
    let dy = outer.gradient_with(&gradients, &weights, &options)?;
    let dy = match dy {
        Some(dy) => dy,
        None => y.zeros_like()?,
    };
    Ok((y, dy))
}

/// The Hessian of a function that returns a scalar, times a direction, for each of its arguments.
///
/// ```
/// use ferroflow_tracer::{Tensor, derivatives::hessian_vector_product};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let (x, direction) = (Tensor::from([1.0f32, 2.0]), Tensor::from([1.0f32, 0.0]));
/// let cubes = |x: &[Tensor]| (x[0].square()? * &x[0])?.sum_all();
/// let product = hessian_vector_product(cubes, &[x], &[direction])?.remove(0);
/// assert_eq!(product.to_vec::<f32>()?, [6.0, 0.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of `function`; as [`GradientTape::gradient`].
#[track_caller]
pub fn hessian_vector_product(
    function: impl FnOnce(&[Tensor]) -> Result<Tensor>,
    args: &[Tensor],
    directions: &[Tensor],
) -> Result<Vec<Tensor>> {
    let outer = GradientTape::new();
    let inner = GradientTape::new();
    for tape in [&outer, &inner] {
        tape.watch(&args.to_vec())?;
    }
    let y = function(args)?;
    let gradients = inner.gradient(&y, args)?;
    let connected = gradients.into_iter().zip(directions);
    let (gradients, weights): (Vec<Tensor>, Vec<Option<Tensor>>) = connected
        .filter_map(|(gradient, direction)| Some((gradient?, Some(direction.clone()))))
        .unzip();
    let options = GradientOptions { output_gradients: Some(weights), zero_unconnected: true };
    let directional = outer.gradient_with(&gradients, args, &options)?;
    let zeros = |(product, arg): (Option<Tensor>, &Tensor)| match product {
        Some(product) => Ok(product),
        None => arg.zeros_like(),
    };
    directional.into_iter().zip(args).map(zeros).collect()
}
