//! Reductions across members: a merge of two tensors, and what is done to the last of them.

use crate::{context::Context, error::Result, execute::execute_in_place};
use ferroflow_ir::{Attrs, DType, HostTensor, ops::names};

/// The combination of two tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MergeOp {
    /// Their sum.
    Add,
    /// Their product.
    Mul,
    /// The smaller of each two elements.
    Min,
    /// The larger of each two elements.
    Max,
}

/// A reduction of the tensors of all members, element by element, in the order of the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reduction {
    /// The combination of two tensors.
    pub merge: MergeOp,
    /// Whether the last one is divided by the number of members.
    pub mean: bool,
}

impl Reduction {
    /// The sum over members.
    pub const SUM: Reduction = Reduction { merge: MergeOp::Add, mean: false };
    /// The mean over members.
    pub const MEAN: Reduction = Reduction { merge: MergeOp::Add, mean: true };

    /// The reduction that TensorFlow names so: `Add` or `sum`, and so on.
    pub fn named(merge: &str) -> Option<Reduction> {
        let merge = match merge {
            "Add" | "sum" => MergeOp::Add,
            "Mul" | "prod" => MergeOp::Mul,
            "Min" | "min" => MergeOp::Min,
            "Max" | "max" => MergeOp::Max,
            _ => return None,
        };
        Some(Reduction { merge, mean: false })
    }

    /// Merges `part` into `merged`, in its memory where that is possible.
    ///
    /// # Errors
    ///
    /// When dtypes or shapes differ.
    pub fn merge(
        self,
        context: &Context,
        merged: &mut HostTensor,
        part: &HostTensor,
    ) -> Result<()> {
        let op = match self.merge {
            MergeOp::Add => names::ADD_V2,
            MergeOp::Mul => names::MUL,
            MergeOp::Min => names::MINIMUM,
            MergeOp::Max => names::MAXIMUM,
        };
        execute_in_place(context, op, Attrs::new(), merged, &[part.clone().into()])
    }

    /// Ends the reduction of the tensors of `members`.
    ///
    /// # Errors
    ///
    /// When there is no division of this dtype.
    pub fn finish(self, context: &Context, merged: &mut HostTensor, members: usize) -> Result<()> {
        if !self.mean || members == 1 {
            return Ok(());
        }
        let count = HostTensor::scalar(members as i64);
        let to = Attrs::new().with("DstT", merged.dtype());
        let count = match merged.dtype() {
            DType::I64 => count.into(),
            _ => crate::execute(context, names::CAST, to, &[count.into()])?.remove(0),
        };
        execute_in_place(context, names::DIV, Attrs::new(), merged, &[count])
    }

    /// The reduction of the tensors of all members, in the order of the ranks.
    ///
    /// # Errors
    ///
    /// When dtypes or shapes differ.
    pub fn reduce<'a>(
        self,
        context: &Context,
        parts: impl IntoIterator<Item = &'a HostTensor>,
    ) -> Result<Option<HostTensor>> {
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else { return Ok(None) };
        let (mut merged, mut members) = (first.clone(), 1);
        for part in parts {
            self.merge(context, &mut merged, part)?;
            members += 1;
        }
        self.finish(context, &mut merged, members)?;
        Ok(Some(merged))
    }
}
