//! Complete attributes of calls made of late.

use ferroflow_ir::{Attrs, DType, OpDef, build::infer_attrs};
use smallvec::SmallVec;
use std::sync::Arc;

/// Attributes made complete of late, for calls like those that they were made for.
pub(crate) struct Completed {
    calls: Vec<CompletedCall>,
    /// The one to be forgotten next.
    oldest: usize,
}

struct CompletedCall {
    op: &'static OpDef,
    attrs: Attrs,
    dtypes: SmallVec<[DType; 4]>,
    complete: Arc<Attrs>,
}

impl Completed {
    /// As many calls as are compared at most.
    const MOST: usize = 32;

    pub(crate) const fn new() -> Completed {
        Completed { calls: Vec::new(), oldest: 0 }
    }

    /// The attributes of a call with those that follow from its inputs and from defaults; `None` if
    /// they do not fit the op.
    pub(crate) fn of(
        &mut self,
        op: &'static OpDef,
        attrs: &Attrs,
        dtypes: &[DType],
    ) -> Option<Arc<Attrs>> {
        let known = self.calls.iter().find(|known| {
            std::ptr::eq(known.op, op) && known.dtypes[..] == *dtypes && known.attrs == *attrs
        });
        if let Some(known) = known {
            return Some(known.complete.clone());
        }
        let complete = op.complete_attrs(infer_attrs(op, attrs.clone(), dtypes)).ok()?;
        let complete = Arc::new(complete);
        let (attrs, dtypes) = (attrs.clone(), dtypes.into());
        let call = CompletedCall { op, attrs, dtypes, complete: complete.clone() };
        if self.calls.len() < Completed::MOST {
            self.calls.push(call);
        } else {
            self.calls[self.oldest] = call;
            self.oldest = (self.oldest + 1) % Completed::MOST;
        }
        Some(complete)
    }
}
