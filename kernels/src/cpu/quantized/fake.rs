//! `FakeQuant…`: rounding reals to what a quantised type could hold (Jacob et al. 2018).

use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::workspace;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("FakeQuantWithMinMaxArgs", args),
    ("FakeQuantWithMinMaxArgsGradient", args_gradient),
    ("FakeQuantWithMinMaxVars", |call| vars(call, true)),
    ("FakeQuantWithMinMaxVarsGradient", vars_gradient),
    ("FakeQuantWithMinMaxVarsPerChannel", |call| vars(call, false)),
    ("FakeQuantWithMinMaxVarsPerChannelGradient", vars_gradient),
];

/// Elements per piece of work.
const PIECE: usize = 1 << 14;

/// The values of a quantised type.
#[derive(Debug, Clone, Copy)]
struct Values {
    min: f32,
    max: f32,
}

impl Values {
    fn read(call: &OpCall<'_>) -> Result<Values> {
        let bits = call.attrs.int("num_bits")?;
        if !(2..=16).contains(&bits) {
            return Err(call.wrong("num_bits", "between 2 and 16", bits));
        }
        let min = if call.attrs.bool("narrow_range")? { 1.0 } else { 0.0 };
        Ok(Values { min, max: ((1i64 << bits) - 1) as f32 })
    }
}

/// A range moved so that 0 is one of its values.
#[derive(Debug, Clone, Copy)]
struct Grid {
    min: f32,
    max: f32,
    scale: f32,
    /// Reciprocal of the scale, rounded once.
    inverse: f32,
    /// Whether the range is 0 alone, which stands for a range that was never set.
    unset: bool,
}

impl Grid {
    fn new(values: Values, min: f32, max: f32) -> Grid {
        let scale = (max - min) / (values.max - values.min);
        let inverse = (values.max - values.min) / (max - min);
        let zero = values.min - min / scale;
        let zero = if zero < values.min {
            values.min
        } else if zero > values.max {
            values.max
        } else {
            zero.round()
        };
        Grid {
            min: (values.min - zero) * scale,
            max: (values.max - zero) * scale,
            scale,
            inverse,
            unset: min == 0.0 && max == 0.0,
        }
    }

    /// The nearest value. Which of two it is, in the middle between them, depends on whether steps
    /// are counted by a division, as those of a range of variables are.
    fn round(&self, x: f32, divides: bool) -> f32 {
        if self.unset {
            return 0.0;
        }
        let above = self.inside(x) - self.min;
        let steps = if divides { above / self.scale } else { above * self.inverse };
        let zero = (-self.min * self.inverse + 0.5).floor();
        (steps - zero + 0.5).floor() * self.scale
    }

    /// The nearest number of the range; what is not a number stays that.
    fn inside(&self, x: f32) -> f32 {
        let x = if x > self.max { self.max } else { x };
        if x < self.min { self.min } else { x }
    }

    /// 1 inside the range, and 0 elsewhere: TensorFlow multiplies by it, so that gradients which are
    /// infinite or not numbers do not vanish.
    fn slope(&self, x: f32) -> f32 {
        f32::from(u8::from(self.unset || (self.min <= x && x <= self.max)))
    }
}

fn fixed(call: &OpCall<'_>) -> Result<Grid> {
    let (min, max) = (call.attrs.float("min")?, call.attrs.float("max")?);
    if min.partial_cmp(&max) != Some(std::cmp::Ordering::Less) {
        return Err(call.wrong("min", "smaller than `max`", format!("{min} and {max}")));
    }
    Ok(Grid { unset: false, ..Grid::new(Values::read(call)?, min, max) })
}

fn args(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let grid = fixed(call)?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (x, y): (&[f32], &mut [f32]) = (io.input(0), io.output(0));
        io.threads().for_each_piece(y, PIECE, |start, y| {
            y.iter_mut().zip(&x[start..]).for_each(|(y, &x)| *y = grid.round(x, false));
        });
        Ok(())
    })))
}

fn args_gradient(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let grid = fixed(call)?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (dy, x): (&[f32], &[f32]) = (io.input(0), io.input(1));
        io.threads().for_each_piece(io.output(0), PIECE, |start, dx: &mut [f32]| {
            for ((dx, &dy), &x) in dx.iter_mut().zip(&dy[start..]).zip(&x[start..]) {
                *dx = dy * grid.slope(x);
            }
        });
        Ok(())
    })))
}

/// A single grid, or a grid per element of the last dimension.
fn grids(io: &Io<'_>, values: Values, min: usize) -> Vec<Grid> {
    let (min, max): (&[f32], &[f32]) = (io.input(min), io.input(min + 1));
    min.iter().zip(max).map(|(&min, &max)| Grid::new(values, min, max)).collect()
}

fn vars(call: &OpCall<'_>, divides: bool) -> Result<Option<Arc<dyn Kernel>>> {
    let values = Values::read(call)?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let grids = grids(io, values, 1);
        let (x, y): (&[f32], &mut [f32]) = (io.input(0), io.output(0));
        io.threads().for_each_piece(y, PIECE.next_multiple_of(grids.len().max(1)), |start, y| {
            let grids = grids.iter().cycle();
            for ((y, &x), grid) in y.iter_mut().zip(&x[start..]).zip(grids) {
                *y = grid.round(x, divides);
            }
        });
        Ok(())
    })))
}

/// Inside the range the gradient is that of the input, outside it is that of the nearest end.
fn vars_gradient(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let values = Values::read(call)?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let grids = grids(io, values, 2);
        let (dy, x): (&[f32], &[f32]) = (io.input(0), io.input(1));
        let dx: &mut [f32] = io.output(0);
        let (d_min, d_max): (&mut [f32], &mut [f32]) = (io.output(1), io.output(2));
        let mut sums = workspace::filled((0.0f64, 0.0f64), grids.len())?;
        for (index, dx) in dx.iter_mut().enumerate() {
            let slice = index % grids.len();
            let (grid, sum) = (&grids[slice], &mut sums[slice]);
            let (x, dy) = (x[index], dy[index]);
            *dx = dy * grid.slope(x);
            let part = |is_outside: bool| dy * f32::from(u8::from(!grid.unset && is_outside));
            sum.0 += f64::from(part(x < grid.min));
            sum.1 += f64::from(part(x > grid.max));
        }
        for ((sum, d_min), d_max) in sums.iter().zip(d_min).zip(d_max) {
            (*d_min, *d_max) = (sum.0 as f32, sum.1 as f32);
        }
        Ok(())
    })))
}
