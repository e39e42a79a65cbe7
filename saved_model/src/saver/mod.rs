//! Variables of sessions, saved and restored by name.

mod ops;

pub(crate) use ops::add_saver;

use crate::{
    bundle::{Reader, Writer},
    error::Result,
    session::Session,
};
use ferroflow_ir::HostTensor;
use ferroflow_runtime::{ResourceHandle, ResourceVariable, VariableState};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

impl Session {
    /// The variables of the graph, by name. Not all of them need to have a value.
    ///
    /// # Errors
    ///
    /// When the state of the session could not be restored.
    pub fn variables(&self) -> Result<BTreeMap<String, ResourceVariable>> {
        let graph = self.graph().graph();
        let handles = graph.iter().filter(|(_, node)| node.op.name() == "VarHandleOp");
        let mut variables = BTreeMap::new();
        for (_, node) in handles {
            let name = node.attrs.string("shared_name")?.to_string();
            let container = node.attrs.string("container")?;
            let found = || self.resources().find(container, &name);
            if found().is_none() {
                self.run(&[], &[&node.name], &[])?;
            }
            let absent = || ferroflow_ir::Error::NotFound { kind: "variable", name: name.clone() };
            let handle = ResourceHandle::owning(name.as_str(), found().ok_or_else(absent)?);
            let state = handle.downcast::<VariableState>("a variable");
            variables.insert(name, state?.into());
        }
        Ok(variables)
    }

    /// Writes the values of all variables to a checkpoint, each under its name.
    ///
    /// # Errors
    ///
    /// When a variable has no value, or the files cannot be written.
    pub fn save_variables(&self, prefix: impl Into<PathBuf>) -> Result<()> {
        let mut writer = Writer::create(prefix)?;
        for (name, variable) in self.variables()? {
            writer.add(&name, &variable.read()?)?;
        }
        Ok(writer.finish()?)
    }

    /// Gives all variables the values that a checkpoint has under their names.
    ///
    /// # Errors
    ///
    /// When the checkpoint has no value for a variable, in which case none is changed, or one that
    /// does not fit it.
    pub fn restore_variables(&self, prefix: impl AsRef<Path>) -> Result<()> {
        let reader = Reader::open(prefix, self.context().limits())?;
        let named = self.variables()?.into_iter();
        let values = named.map(|(name, variable)| Ok((variable, reader.read(&name)?)));
        let values: Vec<(ResourceVariable, HostTensor)> = values.collect::<Result<_>>()?;
        for (variable, value) in values {
            variable.assign(value)?;
        }
        Ok(())
    }
}
