//! Extent of a differentiation: which functions it is inside, and how many calls it has left.

use crate::{
    error::{Error, Result},
    function::{FunctionDef, FunctionLibrary},
    limits::Limits,
};
use std::{cell::Cell, rc::Rc, sync::Arc};

/// The functions around the one at hand, and the calls that may still be copied. Functions from a
/// file may call themselves, or one another so often that copying them never ends.
#[derive(Clone)]
pub(super) struct CopyBudget<'a> {
    library: &'a FunctionLibrary,
    path: Vec<Arc<str>>,
    limit: usize,
    left: Rc<Cell<usize>>,
}

impl<'a> CopyBudget<'a> {
    /// Inside no function yet.
    pub(super) fn new(library: &'a FunctionLibrary) -> CopyBudget<'a> {
        CopyBudget::limited(library, Limits::default().nodes)
    }

    /// Inside no function yet, for so many calls.
    pub(super) fn limited(library: &'a FunctionLibrary, limit: usize) -> CopyBudget<'a> {
        CopyBudget { library, path: Vec::new(), limit, left: Rc::new(Cell::new(limit)) }
    }

    pub(super) fn library(&self) -> &'a FunctionLibrary {
        self.library
    }

    /// Goes into a function.
    pub(super) fn enter(&mut self, def: &FunctionDef) -> Result<()> {
        let limit = Limits::default().call_depth;
        if self.path.contains(&def.name) || self.path.len() >= limit {
            let what = format!("a call of `{}` inside itself or too deep", def.name).into();
            let needed = format!("depth {}", self.path.len() + 1);
            return Err(Error::Limit { what, needed, limit: limit as u64 });
        }
        self.path.push(def.name.clone());
        Ok(())
    }

    /// Comes out of the function that was entered last.
    pub(super) fn leave(&mut self) {
        self.path.pop();
    }

    /// Takes note of a call that is copied.
    pub(super) fn take_call(&self) -> Result<()> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| {
            let limit = self.limit;
            let what = "the gradient of a function with all it calls".into();
            Error::Limit { what, needed: format!("more than {limit} nodes"), limit: limit as u64 }
        })?;
        self.left.set(left);
        Ok(())
    }
}
