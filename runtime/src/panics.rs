//! Panics at the boundary of calls: a defect of a kernel or of a user's op becomes an error of the call.
//!
//! A panic unwinds to the nearest action of a program, which knows its node, and further on to the
//! call of the function as an error. The frame it ran in is thrown away there. Locks are not poisoned,
//! so the context and its variables stay usable, and the context counts them.

use crate::{
    context::Context,
    error::{Error, Result},
};
use ferroflow_ir::budget::Interruption;
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Runs `body`; a panic in it is an error, which the context counts, and so is the unwinding by which a
/// block of a kernel ends an interrupted call, or one that needs more memory than there is.
///
/// State that `body` borrows is what its own drop handlers leave, so a caller hands on nothing that a
/// panic leaves half-written: an executable drops its frame, and a cache of calls its entries.
pub(crate) fn caught<R>(context: &Context, body: impl FnOnce() -> Result<R>) -> Result<R> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(payload) => Err(error_of(context, &*payload)),
    }
}

#[cold]
fn error_of(context: &Context, payload: &(dyn Any + Send)) -> Error {
    if let Some(&interruption) = payload.downcast_ref::<Interruption>() {
        return Error::Interrupted(interruption);
    }
    if let Some(error) = payload.downcast_ref::<ferroflow_ir::Error>() {
        return error.clone().into();
    }
    context.count_panic();
    Error::Panic { message: message(payload) }
}

/// The message of a panic, as far as it has one.
fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_string());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".into())
}

impl Error {
    /// Whether a panic is behind this error, of which no state can be trusted that it was in.
    pub(crate) fn is_panic(&self) -> bool {
        match self {
            Error::Panic { .. } => true,
            Error::AtNode { source, .. } | Error::AtCall { source, .. } => source.is_panic(),
            Error::Ir(_)
            | Error::Kernel(_)
            | Error::Collective(_)
            | Error::Dropped { .. }
            | Error::WrongResource { .. }
            | Error::Uninitialized { .. }
            | Error::VariableMismatch { .. }
            | Error::FunctionArgument { .. }
            | Error::NoDevice { .. }
            | Error::Denied { .. }
            | Error::Interrupted(_)
            | Error::Status { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::{Error::Limit, budget};

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        let context = Context::new();
        let check = |body: fn() -> Result<()>, expected: &str| {
            let result = caught(&context, body);
            let error = result.unwrap_err();
            assert!(error.is_panic() && error.to_string().contains(expected), "{error}");
        };
        check(|| panic!("out of range"), "out of range");
        check(|| panic!("number {}", 7), "number 7");
        check(|| std::panic::panic_any(1u8), "without a message");
        assert_eq!(caught(&context, || Ok(1)).unwrap(), 1);
        let interrupted = || std::panic::panic_any(Interruption::Cancelled);
        assert!(matches!(caught(&context, interrupted), Err::<(), _>(Error::Interrupted(_))));
        let limit =
            || budget::end_with(Limit { what: "memory".into(), needed: "2".into(), limit: 1 });
        assert!(matches!(caught(&context, limit), Err::<(), _>(Error::Ir(Limit { .. }))));
        assert_eq!(context.caught_panics(), 3);
    }
}
