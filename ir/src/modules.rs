//! Programs of other frameworks inside attributes of a call, as functions.
//!
//! The op `XlaCallModule` holds a program in a format of its own. The crate that reads the format
//! lies above this one, so it registers an [`Importer`] here; [`FunctionLibrary::module`] asks it
//! for the function once for each program and keeps it.

use crate::{
    attr::Attrs,
    error::{Error, Result},
    function::{FunctionDef, FunctionLibrary},
    ops::names,
};
use std::sync::{Arc, OnceLock};

/// Makes the function of a call's attributes. Functions that it calls are added to the library.
pub type Importer = fn(&Attrs, &FunctionLibrary) -> Result<Arc<FunctionDef>>;

static IMPORTER: OnceLock<Importer> = OnceLock::new();

/// Registers the importer; the first one stays.
pub fn set_importer(importer: Importer) {
    IMPORTER.get_or_init(|| importer);
}

/// The function of a call's attributes.
pub(crate) fn import(attrs: &Attrs, library: &FunctionLibrary) -> Result<Arc<FunctionDef>> {
    let importer = IMPORTER.get().ok_or_else(|| Error::Unsupported {
        op: names::XLA_CALL_MODULE.into(),
        what: "nothing here reads its program".into(),
    })?;
    importer(attrs, library)
}
