//! Categories as vectors, and anything as categories.

use super::{OutputMode, output_mode::counted};
use crate::layers::{Layer, Mode, shapes::wrong};
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// Categories as vectors of `float32`: `[batch, n] → [batch, depth]`, or `[..] → [.., depth]` as
/// one-hot vectors. Indices are integers from 0 to below the depth; larger ones are left out.
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Eq)]
pub struct CategoryEncoding {
    #[trackable(skip)]
    depth: usize,
    #[trackable(skip)]
    output_mode: OutputMode,
}

impl CategoryEncoding {
    /// A layer of so many categories, in this form.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for no categories, and for forms
    /// that are no vectors of zeros, ones and counts.
    pub fn new(depth: usize, output_mode: OutputMode) -> Result<CategoryEncoding> {
        output_mode.check_unweighted()?;
        if depth == 0 || output_mode == OutputMode::Int {
            let found = format!("{depth} categories as {output_mode:?}");
            return Err(wrong("categories that become vectors", found));
        }
        Ok(CategoryEncoding { depth, output_mode })
    }

    /// The sums of weights by category: `[batch, n] × [batch, n] → [batch, depth]`.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the form is not
    /// [`OutputMode::Count`]; when the shapes differ.
    pub fn weighted(&self, x: &Tensor, weights: &Tensor) -> Result<Tensor> {
        if self.output_mode != OutputMode::Count {
            return Err(wrong("categories that are counted", format!("{:?}", self.output_mode)));
        }
        counted(&indices(x)?, self.depth, DType::F32, Some(&weights.cast(DType::F32)?), false)
    }
}

impl Layer for CategoryEncoding {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.output_mode.of(&indices(x)?, self.depth, DType::F32)
    }
}

/// Numbers as indices.
fn indices(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::I32 | DType::I64 => Ok(x.clone()),
        _ => x.cast(DType::I64),
    }
}

/// Strings or integers as categories by their hashes, FarmHash64 or, with a salt, SipHash64:
/// `int64` of the shape of the input, or vectors of `float32`.
#[derive(Trackable, Debug, Clone)]
pub struct Hashing {
    #[trackable(skip)]
    depth: usize,
    #[trackable(skip)]
    output_mode: OutputMode,
    #[trackable(skip)]
    mask: Option<Tensor>,
    #[trackable(skip)]
    salt: Option<[i64; 2]>,
}

impl Hashing {
    /// A layer into so many categories.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for no categories.
    pub fn new(depth: usize) -> Result<Hashing> {
        if depth == 0 {
            return Err(wrong("a category at least", "none"));
        }
        Ok(Hashing { depth, output_mode: OutputMode::Int, mask: None, salt: None })
    }

    /// The same layer, whose categories are returned in this form.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for [`OutputMode::TfIdf`].
    pub fn with_output_mode(self, output_mode: OutputMode) -> Result<Hashing> {
        output_mode.check_unweighted()?;
        Ok(Hashing { output_mode, ..self })
    }

    /// The same layer, where this value has category 0 for itself.
    #[must_use]
    pub fn masked(self, value: impl Into<Tensor>) -> Hashing {
        Hashing { mask: Some(value.into()), ..self }
    }

    /// The same layer, whose hashes depend on these numbers.
    #[must_use]
    pub fn salted(self, salt: [i64; 2]) -> Hashing {
        Hashing { salt: Some(salt), ..self }
    }

    fn hashed(&self, x: &Tensor) -> Result<Tensor> {
        let mask = self.mask.as_ref().filter(|_| self.depth > 1);
        let depth = self.depth as i64 - i64::from(mask.is_some());
        let text = match x.dtype() {
            DType::String => x.clone(),
            dtype if dtype.is_float() => ops::as_string(&x.cast(DType::I64)?)?,
            _ => ops::as_string(x)?,
        };
        let hashes = match &self.salt {
            Some(salt) => ops::string_to_hash_bucket_strong(&text, depth, salt)?,
            None => ops::string_to_hash_bucket_fast(&text, depth)?,
        };
        match mask {
            Some(mask) => {
                let is_masked = x.equal(mask.cast(x.dtype())?)?;
                is_masked.select(hashes.zeros_like()?, (hashes + 1)?)
            }
            None => Ok(hashes),
        }
    }
}

impl Layer for Hashing {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.output_mode.of(&self.hashed(x)?, self.depth, DType::F32)
    }
}
