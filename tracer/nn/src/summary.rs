//! Tables of weights.

use ferroflow_ir::{DType, PartialShape};
use std::fmt;

/// The weights of an object, by the paths that lead to them: prints as a table with the number of
/// parameters.
///
/// ```
/// use ferroflow_nn::{BatchNorm, Dense, Module, Sequential, Weights};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let weights = &mut Weights::seeded(1);
/// let network =
///     Sequential::new().then(Dense::new(weights, 8, 4)?).then(BatchNorm::new(weights, 4)?);
/// let summary = network.summary()?;
/// assert_eq!((summary.parameters(), summary.trained_parameters()), (52, 44));
/// assert!(summary.weights.iter().any(|weight| weight.path == "layer_with_weights-0.kernel"));
/// assert!(summary.to_string().ends_with("\n52 parameters, 44 of them trained"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleSummary {
    /// The weights; the nearest first.
    pub weights: Vec<WeightSummary>,
}

/// A weight.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightSummary {
    /// The names that lead to it, divided by dots.
    pub path: String,
    /// Its dtype.
    pub dtype: DType,
    /// Its shape.
    pub shape: PartialShape,
    /// Whether it is made to be trained.
    pub is_trained: bool,
}

impl WeightSummary {
    /// The number of its elements; 0 where sizes are not known.
    pub fn parameters(&self) -> usize {
        self.shape.known().map_or(0, |shape| shape.dims().iter().product())
    }
}

impl ModuleSummary {
    /// The number of elements of all weights.
    pub fn parameters(&self) -> usize {
        self.weights.iter().map(WeightSummary::parameters).sum()
    }

    /// The number of elements of those that are trained.
    pub fn trained_parameters(&self) -> usize {
        self.weights.iter().filter(|weight| weight.is_trained).map(WeightSummary::parameters).sum()
    }
}

impl fmt::Display for ModuleSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |weight: &WeightSummary| {
            let kept = if weight.is_trained { "" } else { "  not trained" };
            let (shape, count) = (weight.shape.to_string(), weight.parameters().to_string());
            ([weight.path.clone(), weight.dtype.to_string(), shape, count], kept)
        };
        let rows: Vec<_> = self.weights.iter().map(row).collect();
        let width = |column: usize| rows.iter().map(|(cells, _)| cells[column].len()).max();
        let widths: Vec<usize> = (0..4).map(|column| width(column).unwrap_or(0)).collect();
        for ([path, dtype, shape, count], kept) in &rows {
            let (a, b, c, d) = (widths[0], widths[1], widths[2], widths[3]);
            writeln!(f, "{path:a$}  {dtype:b$}  {shape:c$}  {count:>d$}{kept}")?;
        }
        let (all, trained) = (self.parameters(), self.trained_parameters());
        write!(f, "{all} parameters, {trained} of them trained")
    }
}
