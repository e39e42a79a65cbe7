//! The devices of a context besides the CPU.

use crate::{placement::is_elsewhere, sync::RwLock};
use ferroflow_ir::device_name::DeviceName;
use ferroflow_kernels::{Device, KINDS, accelerators};
use std::sync::Arc;

/// Devices that were added, and those that are found when a call first asks for their kind.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    added: RwLock<Vec<Arc<dyn Device>>>,
}

impl Devices {
    pub(crate) fn add(&self, device: Arc<dyn Device>) {
        self.added.write().push(device);
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<dyn Device>> {
        let mut all = self.added.read().clone();
        all.extend(accelerators());
        all
    }

    /// Those that something may run on: the others have not been asked for.
    pub(crate) fn connected(&self) -> Vec<Arc<dyn Device>> {
        let mut found = self.added.read().clone();
        found.extend(KINDS.iter().flat_map(|kind| (kind.connected)()));
        found
    }

    /// The first device of a name that is not the CPU's of this process.
    pub(crate) fn find(&self, name: &DeviceName) -> Option<Arc<dyn Device>> {
        if let Some(device) = self.of_task(name) {
            return Some(device);
        }
        if !is_elsewhere(name) {
            return None;
        }
        let fits = |device: &&Arc<dyn Device>| {
            let asked =
                DeviceName { kind: name.kind.clone(), index: name.index, ..DeviceName::default() };
            let own = device.name().parse::<DeviceName>();
            own.is_ok_and(|own| own.job.is_none() && own.is_within(&asked))
        };
        if let Some(device) = self.added.read().iter().find(fits) {
            return Some(device.clone());
        }
        // Looking for drivers takes time that names of other kinds are not worth.
        let kind = KINDS.iter().find(|kind| name.kind.as_deref() == Some(kind.name))?;
        (kind.devices)().into_iter().find(|device| fits(&device))
    }

    /// The device of another process, if the name is of one that was added.
    fn of_task(&self, name: &DeviceName) -> Option<Arc<dyn Device>> {
        name.job.as_ref()?;
        let added = self.added.read();
        let is_asked = |device: &&Arc<dyn Device>| {
            device.name().parse::<DeviceName>().is_ok_and(|own| own.is_within(name))
        };
        added.iter().find(is_asked).cloned()
    }

    /// Why there is no device of this kind; `None` where there is one.
    pub(crate) fn absence(name: &DeviceName) -> Option<String> {
        let kind = name.kind.as_deref()?;
        match KINDS.iter().find(|known| known.name == kind) {
            Some(known) => (known.absence)(),
            None => Some(format!("devices called {kind} are not compiled in")),
        }
    }
}
