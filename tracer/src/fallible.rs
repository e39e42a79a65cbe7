//! Code that fails with errors of its own.

use crate::{
    args::Args,
    error::{Error, Result},
    function::PolymorphicFunction,
    nest::Nest,
};
use std::cell::Cell;

impl PolymorphicFunction {
    /// Calls the function, whose code `body` has errors of its own: an error of the code comes back
    /// as it is.
    ///
    /// ```
    /// use ferroflow_tracer::{FunctionOptions, PolymorphicFunction, Tensor};
    /// #[derive(Debug, PartialEq)]
    /// enum Refused {
    ///     TooOld,
    ///     Other(String),
    /// }
    /// impl From<ferroflow_tracer::Error> for Refused {
    ///     fn from(error: ferroflow_tracer::Error) -> Refused {
    ///         Refused::Other(error.to_string())
    ///     }
    /// }
    /// let f = PolymorphicFunction::new(FunctionOptions::default(), 1);
    /// let refused = f.call_fallible((Tensor::from(1),), &|_| Err::<(), _>(Refused::TooOld));
    /// assert_eq!(refused, Err(Refused::TooOld));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`call`](PolymorphicFunction::call), converted; those of `body` as they are.
    #[track_caller]
    pub fn call_fallible<A: Args, R: Nest, E: From<Error>>(
        &self,
        args: A,
        body: &dyn Fn(A) -> Result<R, E>,
    ) -> Result<R, E> {
        let failure = Cell::new(None);
        let code = |args| {
            body(args).map_err(|error| {
                failure.set(Some(error));
                Error::host("an error of the code, which is kept aside")
            })
        };
        self.call(args, &code).map_err(|error| failure.take().unwrap_or_else(|| error.into()))
    }
}
