//! Values of the inputs that calls of a signature leave out.

use crate::{convert, error::Result, proto};
use ferroflow_ir::Limits;
use ferroflow_runtime::EagerTensor;
use std::collections::BTreeMap;

/// The default of an input, if the signature has one.
pub(crate) fn default_of(
    signature: &proto::SignatureDef,
    input: &str,
) -> Result<Option<EagerTensor>> {
    let message = signature.defaults.get(input);
    let tensor = message.map(|message| convert::tensor(message, &Limits::default())).transpose()?;
    Ok(tensor.map(EagerTensor::from))
}

/// The defaults of all inputs that have one.
pub(crate) fn defaults_of(
    signature: Option<&proto::SignatureDef>,
) -> Result<BTreeMap<String, EagerTensor>> {
    let mut defaults = BTreeMap::new();
    let Some(signature) = signature else { return Ok(defaults) };
    for input in signature.defaults.keys() {
        defaults.extend(default_of(signature, input)?.map(|value| (input.clone(), value)));
    }
    Ok(defaults)
}
