//! Shapes of targets beside shapes of predictions.

use ferroflow_tracer::{Result, Tensor, ops};

/// Both with the same rank, where one is known to have a last dimension of 1 more than the other, as
/// Keras does (`squeeze_or_expand_to_same_rank`): `[n]` beside `[n, 1]` would broadcast to `[n, n]`.
pub(crate) fn same_rank(a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
    let (wide, narrow) = (extra(a, b), extra(b, a));
    Ok(match (wide, narrow) {
        (Some(1), _) => (a.clone(), b.expand_dims(-1)?),
        (Some(_), _) => (squeezed(a)?, b.clone()),
        (_, Some(1)) => (a.expand_dims(-1)?, b.clone()),
        (_, Some(_)) => (a.clone(), squeezed(b)?),
        (None, None) => (a.clone(), b.clone()),
    })
}

/// The rank of `b`, if `a` has one dimension more, of size 1.
fn extra(a: &Tensor, b: &Tensor) -> Option<usize> {
    let (long, short) = (a.shape().rank()?, b.shape().rank()?);
    (long == short + 1 && a.shape().dim(-1) == Some(1)).then_some(short)
}

/// Without the last dimension, which is 1.
pub(crate) fn squeezed(x: &Tensor) -> Result<Tensor> {
    ops::squeeze_with(x, &ops::SqueezeAttrs { squeeze_dims: vec![-1] })
}
