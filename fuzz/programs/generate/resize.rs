//! Loops whose iterations change the shape of a variable, and gradients through them.

use super::super::program::{Head, Id};
use super::{
    Gen, Template,
    control::CountedLoop,
    operands::{int, ints, pairs, value},
};
use ferroflow::ir::{Attrs, DType};

pub(super) const TEMPLATES: &[(f64, Template)] = &[(1.0, resized)];

pub(super) const GRADIENTS: &[(f64, Template)] = &[(2.0, gradient)];

impl Gen {
    /// The value with more, fewer or other rows, columns or axes, whatever its size.
    fn resize(&mut self, x: Id) -> Option<Id> {
        let rank = self.type_of(x).rank()?;
        let axis = self.rng.below(rank.max(1)) as i64;
        let plain = Attrs::new();
        match self.rng.below(8) {
            0 => self.op("GatherV2", vec![value(x), ints(&[0]), int(axis)], plain),
            1 => {
                let rows = self.rng.pick(&[&[0, 0][..], &[0, 0, 0], &[]]);
                self.op("GatherV2", vec![value(x), ints(rows), int(axis)], plain)
            }
            2 => {
                let (begin, end, mask) = self.rng.pick(&[
                    (0, 1, "begin_mask"),
                    (1, 0, "end_mask"),
                    (0, -1, "begin_mask"),
                ]);
                let args = vec![value(x), ints(&[begin]), ints(&[end]), ints(&[1])];
                self.op("StridedSlice", args, Attrs::new().with(mask, 1i64))
            }
            3 => self.op("ConcatV2", vec![value(x), value(x), int(axis)], plain),
            4 => {
                let pads: Vec<[i64; 2]> = (0..rank).map(|_| [self.rng.within(0, 1), 0]).collect();
                self.op("Pad", vec![value(x), pairs(&pads)?], plain)
            }
            5 => {
                let mut order: Vec<i64> = (0..rank as i64).collect();
                order.reverse();
                self.op("Transpose", vec![value(x), ints(&order)], plain)
            }
            6 => {
                let sum = plain.with("keep_dims", true);
                self.op("Sum", vec![value(x), ints(&[axis])], sum)
            }
            _ => self.op("Reshape", vec![value(x), ints(&[-1, 1][..rank.min(2)])], plain),
        }
    }

    /// A loop that resizes a value, beside a value that it may use.
    fn resizing(&mut self, x: Id, other: Id) -> Option<CountedLoop> {
        self.looped(&[x, other], |g, params| {
            let mut rows = g.resize(params[1])?;
            if g.rng.chance(0.3) {
                rows = g.resize(rows)?;
            }
            if g.rng.chance(0.5) {
                let name = g.rng.pick(&["Neg", "Square", "Abs"]);
                rows = g.call(name, &[rows])?;
            }
            Some(vec![rows, g.settle(params[2])?])
        })
    }
}

fn resized(g: &mut Gen) -> Option<()> {
    let (x, other) = (g.array()?, g.number()?);
    let resizing = g.resizing(x, other)?;
    g.emit_loop(resizing).map(drop)
}

/// The gradient of what such a loop makes.
fn gradient(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.dtype == DType::F32 && seen.rank() > Some(0))?;
    let other = g.find(|seen| seen.dtype == DType::F32)?;
    let (sources, n) = ([g.items(x), g.items(other)], g.rng.below(2));
    let block = g.block(&sources, n, |g, params| {
        let resizing = g.resizing(params[0], params[1])?;
        let outs = g.emit_loop(resizing)?;
        let rows = match g.rng.chance(0.5) {
            true => g.call("Square", &[outs[1]])?,
            false => outs[1],
        };
        Some(if g.rng.chance(0.5) { vec![rows] } else { vec![rows, outs[2]] })
    })?;
    let args = vec![value(x), value(other)];
    g.emit(Head::Grad, args, vec![block], 2, None).map(drop)
}
