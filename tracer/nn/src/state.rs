//! Variables that count or remember and are not trained.

use ferroflow_runtime::collective::Replica;
use ferroflow_tracer::{Result, Tensor, Variable, VariableOptions, init_scope};

/// A variable that is no weight, made outside all traces.
pub(crate) fn state(name: &str, initial: Tensor) -> Result<Variable> {
    let options =
        VariableOptions { name: name.into(), trainable: false, ..VariableOptions::default() };
    init_scope(|| Replica::outside(|| Variable::with_options(initial, options)))
}
