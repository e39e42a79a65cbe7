//! `SobolSample`: the points of a Sobol sequence in the order of Gray codes (Antonov and Saleev, "An
//! economic method of computing LP-tau sequences", 1979).
//!
//! `sobol.bin` holds the direction numbers of Joe and Kuo ("Constructing Sobol sequences with better
//! two-dimensional projections", 2008) as little-endian 16-bit integers. The first dimension needs
//! none; for each other one there are the degree of its primitive polynomial, the inner coefficients,
//! and as many odd numbers as the degree says.

use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{Code, DType, Error};
use std::sync::{Arc, OnceLock};

pub(crate) const KERNELS: &[(&str, Build)] = &[("SobolSample", sobol)];

static NUMBERS: &[u8] = include_bytes!("sobol.bin");

/// The number of bits of a coordinate.
const BITS: usize = 32;

/// The bits by which a coordinate changes, one number for each bit of an index.
type Directions = [u32; BITS];

fn sobol(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let scalar =
        |index: usize| Ok::<_, crate::Error>(call.ints(index)?.first().copied().unwrap_or(0));
    let (n_dims, skip) = (call.output_shape(0)?[1], scalar(2)?);
    let directions = directions();
    if n_dims > directions.len() {
        let detail = format!("{n_dims} dimensions, of which {} are known", directions.len());
        let op = call.op.name.into();
        return Err(Error::Status { code: Code::Unimplemented, op, detail }.into());
    }
    let (directions, first) = (&directions[..n_dims], skip as u64 + 1);
    Ok(Some(match call.attrs.dtype("dtype")? {
        DType::F32 => Arc::new(move |io: &mut Io<'_>| {
            points(io, directions, first, |x| x as f32 / (1u64 << BITS) as f32)
        }),
        _ => Arc::new(move |io: &mut Io<'_>| {
            points(io, directions, first, |x| f64::from(x) / (1u64 << BITS) as f64)
        }),
    }))
}

/// The points from number `first` on, each of which differs from the one before in one direction.
fn points<T: bytemuck::Pod>(
    io: &mut Io<'_>,
    directions: &[Directions],
    first: u64,
    convert: impl Fn(u32) -> T,
) -> Result<()> {
    let gray = first ^ (first >> 1);
    let start = |own: &Directions| {
        let set = own.iter().enumerate().filter(|(bit, _)| gray >> bit & 1 == 1);
        set.fold(0, |x, (_, direction)| x ^ direction)
    };
    let mut point: Vec<u32> = directions.iter().map(start).collect();
    for (number, out) in (first..).zip(io.output::<T>(0).chunks_mut(directions.len().max(1))) {
        out.iter_mut().zip(&point).for_each(|(out, &x)| *out = convert(x));
        let bit = number.trailing_ones() as usize;
        let steps = directions.iter().map(|own| own[bit % BITS]);
        point.iter_mut().zip(steps).for_each(|(x, step)| *x ^= step);
    }
    Ok(())
}

/// The directions of all dimensions.
fn directions() -> &'static [Directions] {
    static MADE: OnceLock<Vec<Directions>> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut numbers =
            NUMBERS.chunks_exact(2).map(|pair| u32::from(u16::from_le_bytes([pair[0], pair[1]])));
        let mut all = vec![std::array::from_fn(|bit| 1 << (BITS - 1 - bit))];
        while let (Some(degree), Some(inner)) = (numbers.next(), numbers.next()) {
            let first: Vec<u32> = numbers.by_ref().take(degree as usize).collect();
            all.push(of_polynomial(degree as usize, inner, &first));
        }
        all
    })
}

/// The directions of a dimension, from its first numbers and its polynomial.
fn of_polynomial(degree: usize, inner: u32, first: &[u32]) -> Directions {
    let mut own = [0u32; BITS];
    for bit in 0..BITS {
        own[bit] = match first.get(bit) {
            Some(number) => number << (BITS - 1 - bit),
            None => {
                let oldest = own[bit - degree];
                let terms = (1..degree).filter(|term| inner >> (degree - 1 - term) & 1 == 1);
                terms.fold(oldest ^ (oldest >> degree), |x, term| x ^ own[bit - term])
            }
        };
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dimension_has_directions() {
        let all = directions();
        assert_eq!(all.len(), 1111);
        // The highest bit of each direction makes it independent of those before.
        let is_triangle = |own: &Directions| {
            own.iter().enumerate().all(|(bit, x)| x.trailing_zeros() as usize == BITS - 1 - bit)
        };
        assert!(all.iter().all(is_triangle));
    }
}
