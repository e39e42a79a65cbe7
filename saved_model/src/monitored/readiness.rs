//! Readiness of a model: whether its variables have values.

use crate::{error::Result, session::Session};
use ferroflow_ir::{Code, DType};

/// Check of whether a model is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// A tensor of the graph that has the names of what is missing.
    Tensor(String),
    /// Values of these variables.
    Variables(Vec<String>),
    /// Values of all variables of the graph.
    AllVariables,
}

impl Readiness {
    /// State that is missing in a session, `None` if it is ready. A tensor of another dtype than
    /// string counts as ready, as in TensorFlow.
    ///
    /// # Errors
    ///
    /// Those of the run, but for a failed precondition: something has no value yet.
    pub fn missing(&self, session: &Session) -> Result<Option<String>> {
        let names = match self {
            Readiness::Tensor(tensor) => match reported(session, tensor) {
                Err(error) if error.code() == Code::FailedPrecondition => vec![error.to_string()],
                reported => reported?,
            },
            Readiness::Variables(names) => without_value(session, Some(names))?,
            Readiness::AllVariables => without_value(session, None)?,
        };
        let missing = || format!("Variables not initialized: {}", names.join(", "));
        Ok((!names.is_empty()).then(missing))
    }
}

/// The names in a tensor.
fn reported(session: &Session, tensor: &str) -> Result<Vec<String>> {
    let values = session.run(&[], &[tensor], &[])?;
    let mut names = Vec::new();
    for value in values.iter().filter(|value| value.dtype() == DType::String) {
        let strings = value.host()?.strings()?;
        names.extend(strings.iter().map(|name| String::from_utf8_lossy(name).into_owned()));
    }
    Ok(names)
}

fn without_value(session: &Session, names: Option<&[String]>) -> Result<Vec<String>> {
    let variables = session.variables()?;
    let has_value = |name: &String| variables.get(name).is_some_and(|value| value.is_initialized());
    let mut missing = names.map_or_else(|| variables.keys().cloned().collect(), <[String]>::to_vec);
    missing.retain(|name| !has_value(name));
    Ok(missing)
}
