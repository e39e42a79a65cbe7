//! Code that fails with errors of its own.

use ferroflow_tracer::{Error, FunctionOptions, PolymorphicFunction, Tensor, function};
use std::fmt;

#[derive(Debug)]
enum Refused {
    TooSmall(usize),
    Traced(Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::TooSmall(rank) => write!(f, "rank {rank} is too small"),
            Refused::Traced(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Traced(error)
    }
}

#[function]
fn rows(x: &Tensor) -> Result<Tensor, Refused> {
    match x.shape().rank() {
        Some(rank) if rank < 2 => Err(Refused::TooSmall(rank)),
        _ => Ok(x.square()?),
    }
}

#[function]
fn outer(x: &Tensor) -> Result<Tensor, Refused> {
    rows(x)
}

// spec: b28
#[test]
fn an_error_of_the_code_comes_back_as_it_is() {
    assert!(matches!(rows(&Tensor::from([1.0f32])), Err(Refused::TooSmall(1))));
    assert!(matches!(outer(&Tensor::from(1.0f32)), Err(Refused::TooSmall(0))));
    assert!(rows::function().concrete_functions().is_empty());
    assert_eq!(rows(&Tensor::from([[2.0f32]])).unwrap().to_vec::<f32>().unwrap(), [4.0]);
    assert_eq!(outer(&Tensor::from([[2.0f32]])).unwrap().to_vec::<f32>().unwrap(), [4.0]);
}

#[test]
fn an_error_of_the_tracer_is_converted() {
    let error = rows(&Tensor::from([["text"]].map(|[text]| text))).unwrap_err();
    assert!(matches!(error, Refused::TooSmall(1)));
    let strings = Tensor::from_strings(&[1, 1], ["text"]).unwrap();
    assert!(matches!(rows(&strings), Err(Refused::Traced(Error::Runtime(_)))));
}

#[test]
fn the_handle_tells_errors_of_the_code_as_those_of_the_host() {
    let error = rows::concrete((Tensor::from([1.0f32]),)).unwrap_err();
    assert!(matches!(error, Error::Host(_)));
    assert_eq!(error.to_string(), "rank 1 is too small");
}

#[test]
fn errors_that_are_no_errors_of_the_standard_library_pass_too() {
    struct Silent;
    impl From<Error> for Silent {
        fn from(_: Error) -> Silent {
            Silent
        }
    }
    let f = PolymorphicFunction::new(FunctionOptions::default(), 0);
    assert!(f.call_fallible((), &|()| Err::<(), _>(Silent)).is_err());
    assert!(f.call_fallible((), &|()| Ok::<_, Silent>(())).is_ok());
}
