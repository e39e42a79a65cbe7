//! Models of a process that functions of plans are made with, each loaded once.

use crate::{
    error::{Error, Result},
    options::ModelOrigin,
    predictor::BatchPredictor,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Models by where they come from.
#[derive(Debug, Default)]
pub(super) struct LoadedModels {
    models: Mutex<HashMap<ModelOrigin, Arc<BatchPredictor>>>,
}

impl LoadedModels {
    /// The model of this origin, loaded by the first who asks for it.
    ///
    /// # Errors
    ///
    /// When it cannot be loaded here, or its files are others than they were there.
    pub(super) fn get(&self, origin: &ModelOrigin) -> Result<Arc<BatchPredictor>> {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = models.get(origin) {
            return Ok(model.clone());
        }
        let model = Arc::new(BatchPredictor::load(&origin.folder, &origin.options)?);
        match model.origin() {
            Some(found) if found.fingerprint == origin.fingerprint => {}
            found => {
                return Err(Error::OtherModel {
                    folder: origin.folder.clone(),
                    expected: origin.fingerprint.clone(),
                    found: found.map(|found| found.fingerprint.clone()).unwrap_or_default(),
                });
            }
        }
        models.insert(origin.clone(), model.clone());
        Ok(model)
    }
}
