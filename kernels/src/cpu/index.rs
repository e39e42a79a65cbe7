//! Indices that come as data: reading them, and checking them before anything is touched.

use super::{cell::Cell, dispatch::with_index};
use crate::{device::OpCall, error::Result, kernel::Io, scratch::Scratch};
use bytemuck::Pod;
use ferroflow_ir::{DType, Error, Shape};
use std::borrow::Cow;

/// In a list of positions, one that is left out.
pub(super) const OUTSIDE: usize = usize::MAX;

/// Treatment of an index out of range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bad {
    /// The call fails.
    Fail,
    /// The position is [`OUTSIDE`].
    Ignore,
}

impl Bad {
    /// Treatment that the attribute `bad_indices_policy` asks for, where the op has it.
    pub(super) fn of(call: &OpCall<'_>) -> Result<Bad> {
        if call.op.attr("bad_indices_policy").is_none() {
            return Ok(Bad::Fail);
        }
        match call.attrs.string("bad_indices_policy")? {
            "" | "DEFAULT" | "ERROR" => Ok(Bad::Fail),
            "IGNORE" => Ok(Bad::Ignore),
            other => Err(call.wrong("bad_indices_policy", "DEFAULT, ERROR or IGNORE", other)),
        }
    }
}

/// The elements of an integer input.
pub(super) fn integers<'a>(io: &Io<'a>, input: usize, dtype: DType) -> Cow<'a, [i64]> {
    if dtype == DType::I64 {
        return Cow::Borrowed(io.input(input));
    }
    #[expect(clippy::useless_conversion, reason = "one of the types is `i64` itself")]
    let widened = with_index!(dtype, I => {
        io.input::<I>(input).iter().map(|&index| i64::from(index)).collect()
    });
    Cow::Owned(widened.unwrap_or_default())
}

/// The only element of an integer input.
pub(super) fn integer(io: &Io<'_>, input: usize, dtype: DType) -> i64 {
    integers(io, input, dtype)[0]
}

/// An integer type positions are passed in.
pub(super) trait PositionElement: Cell + Pod {
    /// The position; nonsense if it does not fit.
    fn from_position(position: usize) -> Self;
}

macro_rules! positions {
    ($($type:ty)*) => {$(
        impl PositionElement for $type {
            fn from_position(position: usize) -> $type {
                position as $type
            }
        }
    )*};
}

positions! { i8 i16 i32 i64 u8 u16 }

/// Sets an integer output.
///
/// # Errors
///
/// When there is no room for it.
pub(super) fn put_integers(
    io: &mut Io<'_>,
    output: usize,
    dtype: DType,
    shape: &Shape,
    values: impl Iterator<Item = usize>,
) -> Result<()> {
    let written = with_index!(dtype, I => {
        I::write(io, output, dtype, shape, |out| {
            out.iter_mut().zip(values).for_each(|(out, value)| *out = value as I);
            Ok(())
        })
    });
    written.unwrap_or(Ok(()))
}

/// Where the slices are that the indices in an input name: each of the `count` vectors of indices
/// is a position in an array of the sizes `dims`, counted row-major.
///
/// # Errors
///
/// [`Error::Index`] for an index out of range, unless it is to be ignored.
pub(super) fn checked_indices(
    io: &Io<'_>,
    input: usize,
    dtype: DType,
    count: usize,
    dims: &[usize],
    bad: Bad,
) -> Result<Scratch<usize>> {
    if dims.is_empty() {
        let mut positions = Scratch::new(count)?;
        positions.fill(0);
        return Ok(positions);
    }
    let found = with_index!(dtype, I => resolve(io.input::<I>(input), dims, bad));
    found.unwrap_or_else(|| Ok(Scratch::new(0)?))
}

/// As [`checked_indices`] for the only index of a call, into `size` rows.
///
/// # Errors
///
/// [`Error::Index`] for an index out of range.
pub(super) fn checked_index(io: &Io<'_>, input: usize, dtype: DType, size: usize) -> Result<usize> {
    #[expect(clippy::useless_conversion, reason = "one of the types is `i64` itself")]
    let found =
        with_index!(dtype, I => io.input::<I>(input).first().map(|&index| i64::from(index)));
    let index = found.flatten().unwrap_or_default();
    let position = usize::try_from(index).ok().filter(|&position| position < size);
    position.ok_or_else(|| {
        let what = "number 0 of the indices,".into();
        Error::Index { what, index, low: 0, high: size as i64 }.into()
    })
}

fn resolve<I: Copy + Into<i64>>(indices: &[I], dims: &[usize], bad: Bad) -> Result<Scratch<usize>> {
    let mut positions = Scratch::new(indices.len().div_ceil(dims.len()))?;
    let outside = |position: usize, index: I, size: usize| -> Result<usize> {
        match bad {
            Bad::Ignore => Ok(OUTSIDE),
            Bad::Fail => {
                let what = format!("number {position} of the indices,").into();
                Err(Error::Index { what, index: index.into(), low: 0, high: size as i64 }.into())
            }
        }
    };
    if let [size] = *dims {
        // No exit before the end, so that it is done in vectors. Negative ones become large.
        let mut inside = true;
        for (position, &index) in positions.iter_mut().zip(indices) {
            let index = index.into() as u64;
            *position = index as usize;
            inside &= index < size as u64;
        }
        if inside {
            return Ok(positions);
        }
    }
    let position_of = |(position, vector): (usize, &[I])| {
        let mut checked = 0;
        for (&index, &size) in vector.iter().zip(dims) {
            match usize::try_from(index.into()) {
                Ok(step) if step < size => checked = checked * size + step,
                _ => return outside(position, index, size),
            }
        }
        Ok(checked)
    };
    for (out, vector) in positions.iter_mut().zip(indices.chunks(dims.len()).enumerate()) {
        *out = position_of(vector)?;
    }
    Ok(positions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_indices_are_positions() {
        fn positions<I: Copy + Into<i64>>(
            indices: &[I],
            dims: &[usize],
            bad: Bad,
        ) -> Option<Vec<usize>> {
            resolve(indices, dims, bad).ok().map(|positions| positions.to_vec())
        }
        let check = |indices: &[i32], dims: &[usize]| positions(indices, dims, Bad::Fail);
        assert_eq!(check(&[1, 2, 0, 3], &[2, 4]), Some(vec![6, 3]));
        assert_eq!(check(&[1, 0], &[2]), Some(vec![1, 0]));
        assert_eq!(check(&[2], &[2]), None);
        assert_eq!(check(&[0, -1], &[2, 4]), None);
        assert_eq!(check(&[1, -1], &[2]), None);
        assert_eq!(positions(&[1i64 << 32], &[2], Bad::Fail), None);
        assert_eq!(positions(&[5i64, 1], &[2], Bad::Ignore), Some(vec![OUTSIDE, 1]));
        assert_eq!(positions(&[1i64, 5, 1, 1], &[2, 2], Bad::Ignore), Some(vec![OUTSIDE, 3]));
    }
}
