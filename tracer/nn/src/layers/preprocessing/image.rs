//! Images in the sizes and ranges of networks.

use crate::layers::{
    Interpolation, Layer, Mode,
    compute::input,
    resize::resized,
    shapes::{DimSize, operand, rank, unfit, with_sizes},
};
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// Numbers scaled and moved: `x·scale + offset`. Integers become `float32`.
#[derive(Trackable, Debug, Clone)]
pub struct Rescaling {
    #[trackable(skip)]
    scale: Tensor,
    #[trackable(skip)]
    offset: Tensor,
}

impl Rescaling {
    /// A layer of a factor and an offset, both of shapes that broadcast to those of inputs.
    pub fn new(scale: impl Into<Tensor>, offset: impl Into<Tensor>) -> Rescaling {
        Rescaling { scale: scale.into(), offset: offset.into() }
    }
}

impl Layer for Rescaling {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = input(x)?;
        (&x * self.scale.cast(x.dtype())?)? + self.offset.cast(x.dtype())?
    }
}

/// Images in another size: `[.., height, width, channels]`, one or a batch. Integers stay integers,
/// rounded.
#[derive(Trackable, Debug, Clone, Copy, PartialEq)]
pub struct Resizing {
    #[trackable(skip)]
    size: [usize; 2],
    #[trackable(skip)]
    by: Interpolation,
    #[trackable(skip)]
    fit: ResizeFit,
    #[trackable(skip)]
    antialias: bool,
}

/// The way in which images of another aspect ratio fit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum ResizeFit {
    /// They are stretched.
    #[default]
    Stretch,
    /// They are cropped around the center.
    Crop,
    /// They are padded on both sides with this value.
    Pad(f32),
}

impl Resizing {
    /// A layer to this height and width, by bilinear interpolation.
    pub fn new(height: usize, width: usize) -> Resizing {
        let (by, fit) = (Interpolation::Bilinear, ResizeFit::Stretch);
        Resizing { size: [height, width], by, fit, antialias: false }
    }

    /// The same layer, with another interpolation.
    #[must_use]
    pub fn interpolated(self, by: Interpolation) -> Resizing {
        Resizing { by, ..self }
    }

    /// The same layer, for images of another aspect ratio.
    #[must_use]
    pub fn with_fit(self, fit: ResizeFit) -> Resizing {
        Resizing { fit, ..self }
    }

    /// The same layer, which takes all pixels into account where images become smaller.
    #[must_use]
    pub fn antialiased(self) -> Resizing {
        Resizing { antialias: true, ..self }
    }

    fn of_batch(&self, x: &Tensor) -> Result<Tensor> {
        let x = match self.fit {
            ResizeFit::Stretch => x.clone(),
            ResizeFit::Crop => cropped_like(x, self.size)?,
            ResizeFit::Pad(value) => padded_like(x, self.size, value)?,
        };
        resized(&x, self.size.map(DimSize::Known), self.by, self.antialias)
    }
}

impl Layer for Resizing {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        over_batches(x, |x| {
            let y = self.of_batch(x)?;
            if y.dtype() == x.dtype() || x.dtype().is_float() {
                return y.cast(x.dtype());
            }
            saturated(&ops::round(&y)?, x.dtype())
        })
    }
}

/// The middle of images: `[.., height, width, channels]`, one or a batch. Images that are smaller are
/// cropped to the aspect ratio and resized instead.
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Eq)]
pub struct CenterCrop {
    #[trackable(skip)]
    size: [usize; 2],
}

impl CenterCrop {
    /// A layer to this height and width.
    pub fn new(height: usize, width: usize) -> CenterCrop {
        CenterCrop { size: [height, width] }
    }
}

impl Layer for CenterCrop {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        over_batches(&input(x)?, |x| {
            let sizes = DimSize::of_all(x, 1..3)?;
            let is_small =
                |(size, wanted): (&DimSize, usize)| size.known().is_some_and(|size| size < wanted);
            if sizes.iter().zip(self.size).any(is_small) {
                return resized_to_fit(x, self.size);
            }
            centered(x, self.size.map(DimSize::Known))
        })
    }
}

/// A batch of images, cropped to an aspect ratio and resized.
pub(super) fn resized_to_fit(x: &Tensor, size: [usize; 2]) -> Result<Tensor> {
    let cropped = cropped_like(x, size)?;
    resized(&cropped, size.map(DimSize::Known), Interpolation::Bilinear, false)?.cast(x.dtype())
}

/// The result of `f` for a batch of images, or of one as a batch.
pub(super) fn over_batches(
    x: &Tensor,
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    match rank(x)? {
        4 => f(x),
        3 => {
            let attrs = ops::SqueezeAttrs { squeeze_dims: vec![0] };
            ops::squeeze_with(&f(&x.expand_dims(0)?)?, &attrs)
        }
        _ => Err(unfit("an image or a batch of images", x)),
    }
}

/// A window of images `[batch, height, width, channels]` that begins here.
pub(super) fn window_of(x: &Tensor, begin: [&Tensor; 2], size: [DimSize; 2]) -> Result<Tensor> {
    let [height, width] = size;
    let sizes = [DimSize::of(x, 0)?, height, width, DimSize::of(x, 3)?];
    let zero = Tensor::from(0);
    let begin = ops::pack(&[&zero, begin[0], begin[1], &zero])?;
    with_sizes(ops::slice(x, &begin, &operand(&sizes)?)?, &sizes)
}

/// The middle of images.
fn centered(x: &Tensor, size: [DimSize; 2]) -> Result<Tensor> {
    let start = |axis: usize| {
        let space = (DimSize::of(x, axis)?.tensor() - size[axis - 1].tensor())?;
        space.floor_div(2)
    };
    let (top, left) = (start(1)?, start(2)?);
    window_of(x, [&top, &left], size)
}

/// The largest middle of images with the aspect ratio of a size.
fn cropped_like(x: &Tensor, [height, width]: [usize; 2]) -> Result<Tensor> {
    let (rows, columns) = (DimSize::of(x, 1)?, DimSize::of(x, 2)?);
    let crop_rows = rows.least(&columns.in_ratio(height, width)?)?;
    let crop_columns = columns.least(&rows.in_ratio(width, height)?)?;
    centered(x, [crop_rows.at_least_one()?, crop_columns.at_least_one()?])
}

/// Images padded to the aspect ratio of a size.
fn padded_like(x: &Tensor, [height, width]: [usize; 2], value: f32) -> Result<Tensor> {
    let (rows, columns) = (DimSize::of(x, 1)?.tensor(), DimSize::of(x, 2)?.tensor());
    let wanted_rows = DimSize::of(x, 2)?.in_ratio(height, width)?.tensor();
    let wanted_columns = DimSize::of(x, 1)?.in_ratio(width, height)?.tensor();
    let half = |wanted: Tensor, size: &Tensor| (wanted - size)?.floor_div(2)?.maximum(0);
    let (above, left) = (half(wanted_rows, &rows)?, half(wanted_columns, &columns)?);
    let (none, above, left) =
        (Tensor::from([0, 0]), ops::pack(&[&above; 2])?, ops::pack(&[&left; 2])?);
    let paddings = ops::pack(&[&none, &above, &left, &none])?;
    let y = ops::pad_v2(x, &paddings, &Tensor::from(value).cast(x.dtype())?)?;
    with_sizes(
        y,
        &[DimSize::of(x, 0)?, DimSize::Late(rows), DimSize::Late(columns), DimSize::of(x, 3)?],
    )
}

/// Numbers as integers of a dtype, those that are too small or large being its limits.
fn saturated(x: &Tensor, dtype: DType) -> Result<Tensor> {
    let (low, high) = match dtype {
        DType::U8 => (0.0, 255.0),
        DType::I8 => (-128.0, 127.0),
        DType::U16 => (0.0, 65535.0),
        DType::I16 => (-32768.0, 32767.0),
        _ => return x.cast(dtype),
    };
    x.maximum(low)?.minimum(high)?.cast(dtype)
}
