//! Errors as exceptions.

use ferroflow_ir::Code;
use ferroflow_saved_model::Error;
use js_sys::Reflect;
use wasm_bindgen::JsValue;

/// Errors of callers of this crate, and failures below.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// Loading or running failed.
    #[error(transparent)]
    Model(#[from] Error),
    /// A file does not belong in a folder.
    #[error("a file of the model: {0}")]
    File(#[from] std::io::Error),
    /// A dtype that there is not.
    #[error(transparent)]
    DType(#[from] ferroflow_ir::dtype::UnknownDType),
    /// A number that is none of what it stands for.
    #[error("{what} must be {expected}, found {found}")]
    Number {
        /// Name of the value.
        what: &'static str,
        /// Values that it may have.
        expected: &'static str,
        /// The number.
        found: f64,
    },
    /// Inputs whose names and tensors do not go together.
    #[error("{names} names of inputs for {tensors} tensors")]
    Inputs {
        /// The number of names.
        names: usize,
        /// The number of tensors.
        tensors: usize,
    },
}

impl From<ferroflow_ir::Error> for WebError {
    fn from(error: ferroflow_ir::Error) -> WebError {
        WebError::Model(error.into())
    }
}

impl From<ferroflow_saved_model::format::Error> for WebError {
    fn from(error: ferroflow_saved_model::format::Error) -> WebError {
        WebError::Model(error.into())
    }
}

impl From<ferroflow_runtime::Error> for WebError {
    fn from(error: ferroflow_runtime::Error) -> WebError {
        WebError::Model(error.into())
    }
}

impl WebError {
    fn code(&self) -> Code {
        match self {
            WebError::Model(error) => error.code(),
            WebError::File(_)
            | WebError::DType(_)
            | WebError::Number { .. }
            | WebError::Inputs { .. } => Code::InvalidArgument,
        }
    }
}

/// An `Error` whose name is that of TensorFlow's exception, such as `InvalidArgumentError`.
impl From<WebError> for JsValue {
    fn from(error: WebError) -> JsValue {
        let exception = js_sys::Error::new(&error.to_string());
        exception.set_name(error.code().class_name());
        exception.into()
    }
}

/// Sets a field of an object that was just made, which cannot fail.
pub(crate) fn set(object: &js_sys::Object, name: &str, value: impl Into<JsValue>) {
    let done = Reflect::set(object, &name.into(), &value.into());
    debug_assert!(done.is_ok());
}
