//! `Conv`: a convolution behind any number of batch dimensions, as `Conv2D` or `Conv3D` of one.

use crate::{
    attr::Attrs,
    emit::{Composite, Value, call_with},
    error::{Error, Result},
    infer::OpContext,
    shape::{PartialShape, Shape},
};
use std::borrow::Cow;

/// Numbers of batch dimensions and of spatial ones.
fn split(context: &OpContext<'_>, rank: usize) -> Result<(usize, usize)> {
    let batch_dims = context.attrs.int("batch_dims")?;
    let batch = usize::try_from(batch_dims)
        .ok()
        .filter(|batch| (1..=3).contains(&rank.saturating_sub(batch + 1)));
    let Some(batch) = batch else {
        return Err(context.wrong_attr(
            "batch_dims",
            format!("fewer than {rank} dimensions"),
            batch_dims,
        ));
    };
    match rank - batch - 1 {
        spatial @ (2 | 3) => Ok((batch, spatial)),
        spatial => Err(context.wrong(0, "of 2 or 3 spatial dimensions", spatial)),
    }
}

/// The attributes of `Conv2D` or `Conv3D`.
fn attrs(attrs: &Attrs, spatial: usize) -> Result<Attrs> {
    let dilations = attrs.ints("dilations")?;
    let all = if dilations.is_empty() {
        Cow::Owned(vec![1; spatial + 2])
    } else {
        Cow::Borrowed(dilations)
    };
    Ok(attrs
        .clone()
        .with("dilations", all.to_vec())
        .with("data_format", if spatial == 2 { "NHWC" } else { "NDHWC" }))
}

pub(super) fn convolution(context: &mut OpContext<'_>) -> Result<()> {
    let unsupported = |what: &str| Error::Unsupported {
        op: context.op.name.into(),
        what: what.to_string().into(),
    };
    if context.attrs.string("data_format")? != "CHANNELS_LAST" {
        return Err(unsupported("channels come last on CPUs"));
    }
    if context.attrs.int("groups")? != 1 {
        return Err(unsupported("groups of channels"));
    }
    let Some(dims) = context.shape(0).dims() else { return Ok(()) };
    let (batch, spatial) = split(context, dims.len())?;
    let strides = context.attrs.ints("strides")?;
    if strides.len() != spatial + 2 {
        let expected = format!("{} numbers", spatial + 2);
        return Err(context.wrong_attr("strides", expected, format!("{strides:?}")));
    }
    if spatial == 3 && context.attrs.string("padding")? == "EXPLICIT" {
        return Err(context.wrong_attr("padding", "SAME or VALID for volumes", "EXPLICIT"));
    }
    let rest = dims[batch..].iter().copied();
    let one = PartialShape::ranked(std::iter::once(Some(1)).chain(rest));
    let attrs = attrs(context.attrs, spatial)?;
    let shape = super::conv::shape_of_dense(context, &attrs, spatial, &one)?;
    let Some(found) = shape.dims() else { return Ok(()) };
    let all = dims[..batch].iter().chain(&found[1..]).copied();
    context.set(0, PartialShape::ranked(all));
    Ok(())
}

pub(super) fn formula<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (x, filter) = (c.x(0), c.x(1));
    let dims = x.shape();
    let spatial = filter.shape().rank().saturating_sub(2);
    let batch = dims.rank().saturating_sub(spatial + 1);
    let (op, rest) = (if spatial == 2 { "Conv2D" } else { "Conv3D" }, &dims[batch..]);
    let rows: usize = dims[..batch].iter().product();
    let sizes = |first: &[usize], rest: &[usize]| -> Vec<i64> {
        first.iter().chain(rest).map(|&size| size as i64).collect()
    };
    let found = attrs(c.attrs, spatial);
    c.check(found.as_ref().map(|_| ()).map_err(Clone::clone));
    let one = x.reshape(&sizes(&[rows], rest));
    let y = call_with(op, found.unwrap_or_default(), [one, filter]);
    let own: Shape = y.shape();
    vec![y.reshape(&sizes(&dims[..batch], own.get(1..).unwrap_or_default()))]
}
