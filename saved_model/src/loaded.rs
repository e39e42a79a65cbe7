//! Loaded objects as parts of others: they are saved as they were, with the values they have now.

use crate::{
    error::Result,
    model::Object,
    proto::{SaveableObject, saved_object::Kind as SavedKind},
};
use ferroflow_ir::HostTensor;
use ferroflow_runtime::{
    ResourceHandle,
    trackable::{Asset, Description, Identity, ObjectKind, ObjectType, Saveable, Trackable},
};
use std::{path::PathBuf, sync::Arc};

impl Trackable for Object {
    fn describe(&self, object: &mut Description<'_>) {
        object.is(self.object_kind()).origin(Arc::new(self.clone()));
        for name in self.children() {
            if let Some(child) = self.edge(&name) {
                object.shared_child(&name, Arc::new(child));
            }
        }
        for slot in &self.message().slot_variables {
            let variable = |id: i32| self.model().object(id).ok()?.variable().cloned();
            let original = variable(slot.original_variable_node_id);
            if let Some((original, slot_variable)) =
                original.zip(variable(slot.slot_variable_node_id))
            {
                object.slot(&slot.slot_name, &original, &slot_variable);
            }
        }
        for saveable in self.saveables() {
            object.saveable(Arc::new(saveable));
        }
    }

    fn identity(&self) -> Option<Identity> {
        if let Some(variable) = self.variable() {
            return variable.identity();
        }
        Some(Identity::of_part(self.model().address(), self.number()))
    }
}

impl Object {
    fn object_kind(&self) -> ObjectKind {
        match self.kind() {
            Some(SavedKind::UserObject(object)) => ObjectKind::Typed(ObjectType {
                identifier: object.identifier.clone(),
                metadata: object.metadata.clone(),
            }),
            Some(SavedKind::Variable(_)) => self
                .variable()
                .map_or(ObjectKind::Foreign, |variable| ObjectKind::Variable(variable.clone())),
            Some(SavedKind::Asset(_)) => self
                .asset_path()
                .map_or(ObjectKind::Foreign, |path| ObjectKind::Asset(Asset::new(path))),
            Some(SavedKind::Resource(_)) => {
                self.resource().map_or(ObjectKind::Foreign, ObjectKind::Resource)
            }
            Some(SavedKind::Constant(_)) => {
                self.tensor().map_or(ObjectKind::Foreign, ObjectKind::Constant)
            }
            Some(
                SavedKind::Function(_)
                | SavedKind::BareConcreteFunction(_)
                | SavedKind::CapturedTensor(_),
            )
            | None => ObjectKind::Foreign,
        }
    }

    fn asset_path(&self) -> Option<PathBuf> {
        let tensor = self.tensor().ok()?;
        let path = tensor.strings().ok()?.first()?;
        Some(PathBuf::from(String::from_utf8_lossy(path).into_owned()))
    }

    fn resource(&self) -> Option<ResourceHandle> {
        let handle = self.handle()?.host().ok()?;
        ResourceHandle::of(handle).ok().cloned()
    }

    fn saveables(&self) -> Vec<LoadedSaveable> {
        let saved = self.message().saveable_objects.iter();
        saved
            .map(|(name, &functions)| LoadedSaveable {
                object: self.clone(),
                name: name.clone(),
                functions,
            })
            .collect()
    }
}

/// State that functions of the model save and restore.
struct LoadedSaveable {
    object: Object,
    name: String,
    functions: SaveableObject,
}

impl LoadedSaveable {
    /// Results of the function that saves: for each tensor a name, a slice and the tensor itself.
    fn saved(&self) -> Result<Vec<(String, HostTensor)>> {
        let save = self.object.model().object(self.functions.save_function)?.only_function()?;
        let results = save.call(&[HostTensor::scalar_string("").into()])?;
        let parts = results.chunks_exact(3);
        parts
            .map(|part| {
                let name = part[0].host()?.strings()?.first().cloned().unwrap_or_default();
                let suffix = String::from_utf8_lossy(&name).into_owned();
                Ok((suffix, part[2].host()?.clone()))
            })
            .collect()
    }
}

impl Saveable for LoadedSaveable {
    fn name(&self) -> &str {
        &self.name
    }

    fn tensors(&self) -> ferroflow_runtime::Result<Vec<(String, HostTensor)>> {
        self.saved().map_err(crate::Error::into_runtime)
    }

    fn restore(&self, values: Vec<HostTensor>) -> ferroflow_runtime::Result<()> {
        let restore = self.object.model().object(self.functions.restore_function);
        let restore = restore.and_then(|object| object.only_function());
        let values: Vec<_> = values.into_iter().map(Into::into).collect();
        restore.map_err(crate::Error::into_runtime)?.call(&values).map(drop)
    }

    fn suffixes(&self) -> Vec<String> {
        // Who has no tensors now has none to restore.
        let saved = self.saved().unwrap_or_default();
        saved.into_iter().map(|(suffix, _)| suffix).collect()
    }
}
