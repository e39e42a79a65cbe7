//! Convolutions one after the other, a few rows of an image at a time.
//!
//! The rows that a convolution needs of the one before are kept in memory of their own, which stays
//! in the second-level cache: a strip of the last result is computed, then the next, and rows that
//! both need are moved, not computed again. Threads take stretches of rows; where two of those meet,
//! the rows that both need are computed twice. An element is the same chain of operations as without
//! strips, whatever their height.

use super::{LEAST_COLUMNS, RegionKernel, epilogue};
use crate::{
    OperandSpec,
    cpu::{
        conv::PointwiseRows,
        depthwise::DepthwiseRows,
        gemm::{BlockEpilogue, weights::PackedMatrix},
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    plan::window::Sweep,
    scratch::Scratch,
    threads::Threads,
};
use epilogue::ExprEpilogue;
use ferroflow_ir::{DType, NameAttrList, registry, window::Slide};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};

/// Bytes of the rows between convolutions that stay in the second-level cache.
const STRIP_BYTES: usize = 384 << 10;

/// Tensors between convolutions that take fewer bytes stay in the second-level cache anyway.
const LEAST_BYTES: usize = 1 << 20;

/// Pieces of work for each thread, where there are several.
const PIECES: usize = 2;

/// Compiles a chain; `None` where a member cannot be computed by rows.
pub(super) fn compile(call: &OpCall<'_>) -> Result<Option<RegionKernel>> {
    Ok(Chain::new(call)?.map(|chain| {
        let pays = chain.pays();
        RegionKernel::new(chain, pays)
    }))
}

/// A convolution of a chain.
struct Layer {
    way: Way,
    epilogue: Option<ExprEpilogue>,
    /// The position of its filter among the inputs of the chain; operands of the epilogue come next.
    filter: usize,
    /// Elements of a row of the input and of the output.
    in_line: usize,
    out_line: usize,
}

enum Way {
    Pointwise(PointwiseRows),
    Depthwise(DepthwiseRows),
}

impl Layer {
    /// The layer of a call of a convolution, or of a region around one.
    fn new(call: &OpCall<'_>, filter: usize) -> Result<Option<Layer>> {
        if call.expr.is_none() {
            return Layer::of(call, None, filter);
        }
        call.with_anchor(|anchor, then| {
            let space = anchor.output_shape(0)?;
            let epilogue = ExprEpilogue::new(then.expr, &space, 1, then.others);
            match epilogue {
                Some(epilogue) if epilogue.flattens() || space.last() >= Some(&LEAST_COLUMNS) => {
                    Layer::of(anchor, Some(epilogue), filter)
                }
                _ => Ok(None),
            }
        })
    }

    fn of(
        call: &OpCall<'_>,
        epilogue: Option<ExprEpilogue>,
        filter: usize,
    ) -> Result<Option<Layer>> {
        if call.dtype(0) != DType::F32 || call.output_shape(0)?.num_elements() == 0 {
            return Ok(None);
        }
        let way = match call.op.name {
            "Conv2D" => PointwiseRows::new(call)?.map(Way::Pointwise),
            "DepthwiseConv2dNative" => DepthwiseRows::new(call)?.map(Way::Depthwise),
            _ => None,
        };
        Ok(way.map(|way| {
            let (sweep, filters) = way.sizes();
            let [_, _, columns] = sweep.slides;
            let (in_line, out_line) = (columns.input * sweep.channels, columns.output * filters);
            Layer { way, epilogue, filter, in_line, out_line }
        }))
    }

    fn sweep(&self) -> &Sweep {
        self.way.sizes().0
    }

    fn rows(&self) -> &Slide {
        &self.sweep().slides[1]
    }

    /// The rows of the input that rows of the output need.
    fn needs(&self, rows: &Range<usize>) -> Range<usize> {
        let slide = self.rows();
        let inside = |row: isize| row.clamp(0, slide.input as isize) as usize;
        let reach = (slide.size - 1) * slide.dilation + 1;
        let end = slide.first(rows.end.max(1) - 1) + reach as isize;
        let start = inside(slide.first(rows.start));
        start..inside(end).max(start)
    }

    /// The most rows of the input that so many rows of the output need.
    fn most_needed(&self, rows: usize) -> usize {
        let slide = self.rows();
        let reach = (slide.size - 1) * slide.dilation + 1;
        ((rows - 1) * slide.stride + reach).min(slide.input)
    }

    /// The layer with its operands.
    fn on<'a, 'io: 'a>(&'a self, io: &Io<'io>) -> BoundLayer<'a> {
        let filter: &[f32] = io.input(self.filter);
        let packed = match &self.way {
            Way::Pointwise(pointwise) => {
                pointwise.weights().packed(io.threads(), filter, io.tensor(self.filter))
            }
            Way::Depthwise(_) => None,
        };
        let finish = self.epilogue.as_ref().map(|epilogue| epilogue.on(io, self.filter + 1));
        BoundLayer { layer: self, filter, packed, finish }
    }
}

impl Way {
    /// The windows, and the channels of the result.
    fn sizes(&self) -> (&Sweep, usize) {
        match self {
            Way::Pointwise(pointwise) => (pointwise.sweep(), pointwise.filters()),
            Way::Depthwise(depthwise) => (depthwise.sweep(), depthwise.sweep().channels),
        }
    }
}

/// A layer with its operands.
struct BoundLayer<'a> {
    layer: &'a Layer,
    filter: &'a [f32],
    packed: Option<Arc<PackedMatrix>>,
    finish: Option<epilogue::Running<'a>>,
}

impl BoundLayer<'_> {
    /// Computes the rows of an image that fill `out`, from row `start` on. `input` begins with row
    /// `first` of the image.
    fn compute(
        &self,
        image: usize,
        (input, first): (&[f32], usize),
        (out, start): (&mut [f32], usize),
    ) {
        let [_, rows, columns] = &self.layer.sweep().slides;
        let finish = self.finish.as_ref().map(|finish| finish as &dyn BlockEpilogue);
        let start = image * rows.output + start;
        match &self.layer.way {
            Way::Pointwise(pointwise) => pointwise.weights().multiply(
                input,
                self.filter,
                self.packed.as_deref(),
                out,
                finish,
                start * columns.output,
            ),
            Way::Depthwise(depthwise) => {
                let input = (input, image * rows.input + first);
                depthwise.compute(input, self.filter, (out, start), finish);
            }
        }
    }
}

/// Convolutions of which each reads the result of the one before.
struct Chain {
    layers: Vec<Layer>,
    /// Rows of the last result that are computed at a time.
    strip: usize,
}

impl Chain {
    fn new(call: &OpCall<'_>) -> Result<Option<Chain>> {
        let mut layers: Vec<Layer> = Vec::new();
        let (mut result, mut taken): (Option<OperandSpec>, usize) = (None, 0);
        for convolution in call.attrs.funcs("convolutions")? {
            let NameAttrList { name, attrs, expr } = convolution;
            let Some(op) = registry::find(name) else { return Ok(None) };
            let fed = usize::from(result.is_some());
            let own = op.input_dtypes(attrs)?.len() - fed;
            let others = call.inputs[taken..taken + own].iter().cloned();
            let inputs: SmallVec<[OperandSpec; 6]> = result.into_iter().chain(others).collect();
            let own_call = OpCall::new(op, attrs, &inputs, expr.as_deref())?;
            let Some(layer) = Layer::new(&own_call, taken + 1 - fed)? else { return Ok(None) };
            layers.push(layer);
            result = Some(OperandSpec::new(DType::F32, own_call.output_shape(0)?));
            taken += own;
        }
        let Some(last) = layers.last() else { return Ok(None) };
        let rows = last.rows().output;
        let mut chain = Chain { layers, strip: 1 };
        let fits = |&rows: &usize| chain.strip_bytes(rows) <= STRIP_BYTES;
        chain.strip = (1..=rows).take_while(fits).last().unwrap_or(1);
        Ok(Some(chain))
    }

    /// Rows of the input of each layer but the first that so many rows of the last result need.
    fn most_needed(&self, rows: usize) -> Vec<usize> {
        let mut needed: Vec<usize> = Vec::new();
        for layer in self.layers[1..].iter().rev() {
            needed.push(layer.most_needed(*needed.last().unwrap_or(&rows)));
        }
        needed.reverse();
        needed
    }

    /// Bytes between the layers, for so many rows of the last result.
    fn strip_bytes(&self, rows: usize) -> usize {
        let needed = self.most_needed(rows).into_iter();
        let lines = needed.zip(&self.layers[1..]).map(|(rows, layer)| rows * layer.in_line);
        lines.sum::<usize>() * size_of::<f32>()
    }

    /// Whether what is between the layers would not stay in a cache as a whole, but does by strips.
    fn pays(&self) -> bool {
        let batch = self.layers[0].sweep().batch;
        let between = |layer: &Layer| layer.rows().input * layer.in_line * size_of::<f32>();
        let most = self.layers[1..].iter().map(between).max().unwrap_or(0);
        batch.saturating_mul(most) >= LEAST_BYTES && self.strip_bytes(1) <= STRIP_BYTES
    }
}

impl Kernel for Chain {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let layers: Vec<BoundLayer<'_>> = self.layers.iter().map(|layer| layer.on(io)).collect();
        let input: &[f32] = io.input(0);
        let (threads, out): (&Threads, &mut [f32]) = (io.threads(), io.output(0));
        let last = &self.layers[self.layers.len() - 1];
        let (line, rows) = (last.out_line, last.rows().output);
        let pieces = if threads.count() > 1 { PIECES * threads.count() } else { 1 };
        let all = out.len() / line;
        // Whole images where there are enough of them: what is between them is computed once.
        let lines = match all / rows >= pieces {
            true => rows,
            false => all.div_ceil(pieces).next_multiple_of(self.strip),
        };
        threads.try_for_each_piece(out, lines * line, |start, mut out| {
            let mut strips = Strips::new(self, &layers, input)?;
            let mut at = start / line;
            while !out.is_empty() {
                let (image, row) = (at / rows, at % rows);
                let count = self.strip.min(rows - row).min(out.len() / line);
                let (strip, rest) = out.split_at_mut(count * line);
                strips.compute(image, row..row + count, strip);
                (at, out) = (at + count, rest);
            }
            Ok(())
        })
    }
}

/// The rows between the layers, as one thread goes from strip to strip.
struct Strips<'a, 'b> {
    layers: &'a [BoundLayer<'b>],
    input: &'a [f32],
    image: usize,
    /// For each layer but the first, rows of its input, from the first of `held` on.
    rows: SmallVec<[Scratch<f32>; 2]>,
    held: SmallVec<[Range<usize>; 2]>,
}

impl<'a, 'b> Strips<'a, 'b> {
    fn new(
        chain: &Chain,
        layers: &'a [BoundLayer<'b>],
        input: &'a [f32],
    ) -> Result<Strips<'a, 'b>> {
        let needed = chain.most_needed(chain.strip).into_iter().zip(&chain.layers[1..]);
        let rows: std::result::Result<SmallVec<[Scratch<f32>; 2]>, _> =
            needed.map(|(rows, layer)| Scratch::new(rows * layer.in_line)).collect();
        let held = chain.layers[1..].iter().map(|_| 0..0).collect();
        Ok(Strips { layers, input, image: 0, rows: rows?, held })
    }

    /// Computes rows of an image, which come after those of the last call if it is the same.
    fn compute(&mut self, image: usize, rows: Range<usize>, out: &mut [f32]) {
        if image != self.image {
            self.held.iter_mut().for_each(|held| *held = 0..0);
            self.image = image;
        }
        let n = self.layers.len();
        // The rows that each layer computes, from the last to the first.
        let mut wanted: SmallVec<[Range<usize>; 3]> = SmallVec::from_elem(rows.clone(), n);
        for index in (1..n).rev() {
            let needed = self.layers[index].layer.needs(&wanted[index]);
            let kept = self.keep(index - 1, &needed);
            wanted[index - 1] = kept..needed.end.max(kept);
        }
        for (index, layer) in self.layers.iter().enumerate() {
            let wanted = &wanted[index];
            if wanted.is_empty() {
                continue;
            }
            let line = layer.layer.out_line;
            let (before, after) = self.rows.split_at_mut(index);
            let (input, first) = match before.last() {
                Some(rows) => (&rows[..], self.held[index - 1].start),
                None => {
                    let needed = layer.layer.needs(wanted);
                    let first = image * layer.layer.rows().input + needed.start;
                    (&self.input[first * layer.layer.in_line..], needed.start)
                }
            };
            let out = match after.first_mut() {
                Some(rows) => {
                    let start = (wanted.start - self.held[index].start) * line;
                    self.held[index].end = wanted.end;
                    &mut rows[start..start + wanted.len() * line]
                }
                None => &mut *out,
            };
            layer.compute(image, (input, first), (out, wanted.start));
        }
    }

    /// Moves what is held of the needed rows to the front; returns the first row that is missing.
    fn keep(&mut self, index: usize, needed: &Range<usize>) -> usize {
        let line = self.layers[index].layer.out_line;
        let held = &mut self.held[index];
        if held.contains(&needed.start) {
            let first = (needed.start - held.start) * line;
            self.rows[index].copy_within(first..held.len() * line, 0);
            held.start = needed.start;
        } else {
            *held = needed.start..needed.start;
        }
        held.end
    }
}

#[cfg(test)]
mod tests;
