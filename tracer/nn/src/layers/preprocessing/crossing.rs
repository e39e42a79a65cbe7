//! Combinations of categories.

use super::OutputMode;
use crate::layers::shapes::{rank, wrong};
use ferroflow_ir::DType;
use ferroflow_runtime::trackable::{Description, Trackable};
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};

/// Combinations of the values of several features as categories, by their hashes (FarmHash64).
///
/// ```
/// use ferroflow_nn::HashedCrossing;
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let crossing = HashedCrossing::new(5)?;
/// let places = Tensor::from(["A", "B", "A"]);
/// let found = crossing.cross(&[&places, &Tensor::from([101i64, 101, 101])])?.to_vec::<i64>()?;
/// assert!(found[0] == found[2] && found.iter().all(|category| (0..5).contains(category)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct HashedCrossing {
    depth: usize,
    output_mode: OutputMode,
}

/// The key of hashes that TensorFlow takes (`sparse_ops.py`).
const HASH_KEY: i64 = 0x00DE_CAFC_AFFE;

impl HashedCrossing {
    /// A layer into so many categories.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for no categories.
    pub fn new(depth: usize) -> Result<HashedCrossing> {
        if depth == 0 {
            return Err(wrong("a category at least", "none"));
        }
        Ok(HashedCrossing { depth, output_mode: OutputMode::Int })
    }

    /// The same layer, which returns a vector of `float32` with a 1 at the category.
    #[must_use]
    pub fn one_hot(self) -> HashedCrossing {
        HashedCrossing { output_mode: OutputMode::OneHot, ..self }
    }

    /// The category of the values of each example: features of strings or integers, all `[]`,
    /// `[batch]` or `[batch, 1]`, to `int64` of that shape, or vectors.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) of fewer than two features, and for
    /// those of other shapes.
    pub fn cross(&self, features: &[&Tensor]) -> Result<Tensor> {
        let [first, _, ..] = features else {
            return Err(wrong("two features at least", features.len().to_string()));
        };
        let rank = rank(first)?;
        let is_column = rank < 2 || (rank == 2 && first.shape().dim(1) == Some(1));
        if !is_column || features.iter().any(|x| !x.shape().is_compatible_with(&first.shape())) {
            let found = features.iter().map(|x| x.spec().to_string()).collect::<Vec<_>>();
            return Err(wrong(
                "features of one shape, [], [batch] or [batch, 1]",
                found.join(", "),
            ));
        }
        let column = |x: &&Tensor| {
            let x = (rank..2).try_fold((*x).clone(), |x, _| x.expand_dims(-1))?;
            if x.dtype() == DType::String { Ok(x) } else { x.cast(DType::I64) }
        };
        let columns = features.iter().map(column).collect::<Result<Vec<Tensor>>>()?;
        let is_text = columns.iter().all(|x| x.dtype() == DType::String);
        let [_, categories, _] = ops::sparse_cross(
            &[],
            &[],
            &[],
            &columns.iter().collect::<Vec<_>>(),
            true,
            self.depth as i64,
            HASH_KEY,
            DType::I64,
            if is_text { DType::String } else { DType::I64 },
        )?;
        let categories = ops::reshape(&categories, &first.shape_tensor()?)?;
        self.output_mode.of(&categories, self.depth, DType::F32)
    }
}

impl Trackable for HashedCrossing {
    fn describe(&self, _: &mut Description<'_>) {}
}
