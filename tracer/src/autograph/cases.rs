//! `match` on integers, of Rust or of a tensor.

use super::{
    choice::{AutographCondition, ChoiceState, StagedIf},
    repeat::{AutographLoop, StagedWhile},
};
use crate::{
    error::{Error, Result},
    tensor::Tensor,
};
use ferroflow_ir::error::SourceLocation;

/// Values that a `match` with numbers in its arms takes.
#[diagnostic::on_unimplemented(
    message = "`match` with numbers in its arms takes a whole number or a Tensor, not `{Self}`",
    label = "neither a whole number nor a `Tensor`",
    note = "ops on tensors give a `Result`: write `?` after them"
)]
pub trait Subject: Clone {}

/// The number that a `match` looks at, which the arms compare and may take.
pub fn subject<S: Subject>(subject: &S) -> S {
    subject.clone()
}

/// A number that patterns are compared with.
pub trait Cases<L> {
    /// The answer.
    type Is: AutographCondition;

    /// Whether the number is in one of these ranges, whose ends are part of them.
    fn is_one_of(&self, ranges: &[(L, L)]) -> Self::Is;
}

/// Whether a number is in one of these ranges, whose ends are part of them.
#[track_caller]
pub fn is_one_of<N: Cases<L>, L>(number: &N, ranges: &[(L, L)]) -> N::Is {
    number.is_one_of(ranges)
}

macro_rules! integers {
    ($($number:ident)*) => {$(
        impl Subject for $number {}

        impl Cases<$number> for $number {
            type Is = bool;

            fn is_one_of(&self, ranges: &[($number, $number)]) -> bool {
                ranges.iter().any(|(first, last)| (first..=last).contains(&self))
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

impl Subject for Tensor {}
impl<S: Subject> Subject for &S {}

impl<L, N: Cases<L>> Cases<L> for &N {
    type Is = N::Is;

    #[track_caller]
    fn is_one_of(&self, ranges: &[(L, L)]) -> N::Is {
        (**self).is_one_of(ranges)
    }
}

impl Cases<i64> for Tensor {
    type Is = Found;

    #[track_caller]
    fn is_one_of(&self, ranges: &[(i64, i64)]) -> Found {
        Found(in_ranges(self, ranges))
    }
}

#[track_caller]
fn in_ranges(number: &Tensor, ranges: &[(i64, i64)]) -> Result<Tensor> {
    if !number.dtype().is_integer() {
        return Err(Error::Conversion {
            expected: "what a `match` with numbers in its arms takes: a tensor of integers".into(),
            found: number.to_string(),
        });
    }
    let mut found: Option<Tensor> = None;
    for &(first, last) in ranges {
        let is = match first == last {
            true => number.equal(first)?,
            false => number.greater_equal(first)?.logical_and(&number.less_equal(last)?)?,
        };
        found = Some(match found {
            Some(found) => found.logical_or(&is)?,
            None => is,
        });
    }
    Ok(found.unwrap_or_else(|| Tensor::from(false)))
}

/// Whether a tensor is what an arm of a `match` names, or why that cannot be told.
#[derive(Debug)]
pub struct Found(Result<Tensor>);

#[diagnostic::do_not_recommend]
impl AutographCondition for Found {
    type If = StagedIf;
    type While = StagedWhile;

    fn into_if(self, location: SourceLocation) -> StagedIf {
        match self.0 {
            Ok(found) => found.into_if(location),
            Err(error) => StagedIf::new(ChoiceState::Failed(error), location),
        }
    }

    fn into_while(self, of: &mut AutographLoop) -> StagedWhile {
        of.condition(self.0.as_ref())
    }
}
