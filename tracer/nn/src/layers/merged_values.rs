//! Values merged into one: tensors with their masks and losses.

use super::{
    LayerValue, merge,
    shapes::{rank, wrong},
    value::{mask_of_rank, where_masked},
};
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};

/// Merging of values with their masks, as the layers of this name in Keras combine them; without
/// masks it is the function of this name in [`merge`].
///
/// A step of the result counts where it does in any of the values, if all of them have masks;
/// otherwise the result has none. Concatenation takes a value without a mask as one all of whose
/// steps count. Products and extremes leave out elements whose steps do not count.
///
/// ```
/// use ferroflow_nn::{LayerValue, Merge};
/// use ferroflow_tracer::{DType, Tensor};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let mask = Tensor::from([true, false]).expand_dims(0)?;
/// let a = LayerValue::masked(Tensor::from([[[2.0f32], [3.0]]]), mask.clone());
/// let b = LayerValue::masked(Tensor::from([[[5.0f32], [7.0]]]), mask.logical_not()?);
/// let y = Merge::Multiply.apply(&[&a, &b])?;
/// assert_eq!(y.tensor.to_vec::<f32>()?, [2.0, 7.0]);
/// let mask = y.mask.expect("both have masks");
/// assert_eq!(mask.cast(DType::I32)?.to_vec::<i32>()?, [1, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// The sum.
    Add,
    /// The difference of two.
    Subtract,
    /// The product of elements; zeros where no value counts.
    Multiply,
    /// The mean.
    Average,
    /// The largest elements.
    Maximum,
    /// The smallest elements.
    Minimum,
    /// Values behind each other along an axis.
    Concatenate(i32),
    /// The dot products of two along these axes ([`merge::dot`]), without a mask.
    Dot([i32; 2]),
    /// The cosines of two along these axes ([`merge::cosine`]), without a mask.
    Cosine([i32; 2]),
}

impl Merge {
    /// The merged value, with the losses of all; a loss that several have, as branches of one value
    /// do, counts once. It is computed in the dtype of the first value.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) of no values, and of other numbers
    /// than two where there are to be two; when shapes, dtypes or masks do not fit.
    #[track_caller]
    pub fn apply(self, values: &[&LayerValue]) -> Result<LayerValue> {
        let _call = crate::called();
        let Some(first) = values.first() else {
            return Err(wrong("a value at least", "none"));
        };
        let tensor = self.tensor(values)?;
        let mask = self.mask(values)?;
        let value = LayerValue { tensor, mask, losses: losses(values), compute: first.compute };
        value.in_compute_dtype()
    }

    fn tensor(self, values: &[&LayerValue]) -> Result<Tensor> {
        let tensors: Vec<&Tensor> = values.iter().map(|value| &value.tensor).collect();
        match self {
            Merge::Add => merge::add(&tensors),
            Merge::Average => merge::average(&tensors),
            Merge::Multiply => product(values),
            Merge::Maximum => extreme(values, |a, b| a.maximum(b)),
            Merge::Minimum => extreme(values, |a, b| a.minimum(b)),
            Merge::Concatenate(axis) => merge::concatenate(&tensors, axis),
            Merge::Subtract => two(&tensors).and_then(|[x, y]| merge::subtract(x, y)),
            Merge::Dot(axes) => two(&tensors).and_then(|[x, y]| merge::dot(x, y, axes)),
            Merge::Cosine(axes) => two(&tensors).and_then(|[x, y]| merge::cosine(x, y, axes)),
        }
    }

    fn mask(self, values: &[&LayerValue]) -> Result<Option<Tensor>> {
        match self {
            Merge::Dot(_) | Merge::Cosine(_) => Ok(None),
            Merge::Concatenate(axis) if values.iter().any(|value| value.mask.is_some()) => {
                concatenated_masks(values, axis).map(Some)
            }
            _ => any_counts(values),
        }
    }
}

fn two<'a>(tensors: &[&'a Tensor]) -> Result<[&'a Tensor; 2]> {
    tensors.try_into().map_err(|_| wrong("two values", tensors.len().to_string()))
}

/// The product of the elements that count, and zeros where none does and all values have masks.
fn product(values: &[&LayerValue]) -> Result<Tensor> {
    let counted = values.iter().map(|LayerValue { tensor, mask, .. }| match mask {
        Some(mask) => where_masked(mask, tensor, &tensor.ones_like()?),
        None => Ok(tensor.clone()),
    });
    let counted: Vec<Tensor> = counted.collect::<Result<_>>()?;
    let product = merge::multiply(&counted.iter().collect::<Vec<_>>())?;
    match any_counts(values)? {
        Some(mask) => where_masked(&mask, &product, &product.zeros_like()?),
        None => Ok(product),
    }
}

/// The extreme of the elements that count: one that does not is replaced by its counterpart.
fn extreme(
    values: &[&LayerValue],
    pick: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    if values.iter().all(|value| value.mask.is_none()) {
        let tensors: Vec<&Tensor> = values.iter().map(|value| &value.tensor).collect();
        return merge::folded(&tensors, pick);
    }
    let (mut y, mut y_mask) = (values[0].tensor.clone(), values[0].mask.clone());
    for LayerValue { tensor, mask, .. } in &values[1..] {
        let chosen = |mask: &Option<Tensor>, x: &Tensor, other: &Tensor| match mask {
            Some(mask) => where_masked(mask, x, other),
            None => Ok(x.clone()),
        };
        let x = chosen(mask, tensor, &y)?;
        y = pick(&chosen(&y_mask, &y, &x)?, &x)?;
        y_mask = match (y_mask, mask) {
            (Some(a), Some(b)) => Some(a.logical_or(b)?),
            _ => None,
        };
    }
    Ok(y)
}

/// Whether a step counts in any of the values, where all of them have masks.
fn any_counts(values: &[&LayerValue]) -> Result<Option<Tensor>> {
    let masks: Option<Vec<&Tensor>> = values.iter().map(|value| value.mask.as_ref()).collect();
    let Some((first, rest)) = masks.as_deref().and_then(<[_]>::split_first) else {
        return Ok(None);
    };
    let any = rest.iter().try_fold((*first).clone(), |any, mask| any.logical_or(*mask))?;
    Ok(Some(any))
}

/// The masks of elements behind each other, as one of the dimensions before the last: it is true
/// where any element counts.
fn concatenated_masks(values: &[&LayerValue], axis: i32) -> Result<Tensor> {
    let masks = values.iter().map(|LayerValue { tensor, mask, .. }| {
        let all = tensor.ones_like()?.cast(DType::Bool)?;
        match mask {
            Some(mask) => mask_of_rank(mask, rank(tensor)?)?.logical_and(all),
            None => Ok(all),
        }
    });
    let masks: Vec<Tensor> = masks.collect::<Result<_>>()?;
    let all = merge::concatenate(&masks.iter().collect::<Vec<_>>(), axis)?;
    ops::any(&all, &Tensor::from([-1]))
}

/// The losses of all values, each once.
fn losses(values: &[&LayerValue]) -> Vec<Tensor> {
    let mut all: Vec<Tensor> = Vec::new();
    for loss in values.iter().flat_map(|value| &value.losses) {
        if !all.iter().any(|known| known.is_same(loss)) {
            all.push(loss.clone());
        }
    }
    all
}
