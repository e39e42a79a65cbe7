//! The convolutions of a chain, each of which computes the rows that it is asked for.

use super::super::{
    LEAST_COLUMNS,
    epilogue::{ExprEpilogue, Running},
};
use crate::{
    cpu::{
        conv::PointwiseRows,
        depthwise::DepthwiseRows,
        gemm::{BlockEpilogue, weights::PackedMatrix},
    },
    device::OpCall,
    error::Result,
    kernel::Io,
    plan::window::Sweep,
};
use ferroflow_ir::{DType, window::Slide};
use std::{ops::Range, sync::Arc};

/// A convolution of a chain.
pub(super) struct ChainedConvolution {
    way: Way,
    epilogue: Option<ExprEpilogue>,
    /// The position of its filter among the inputs of the chain; operands of the epilogue come next.
    filter: usize,
    /// Elements of a row of the input and of the output.
    pub(super) in_line: usize,
    pub(super) out_line: usize,
}

enum Way {
    Pointwise(PointwiseRows),
    Depthwise(DepthwiseRows),
}

impl ChainedConvolution {
    /// The layer of a call of a convolution, or of a region around one.
    pub(super) fn new(call: &OpCall<'_>, filter: usize) -> Result<Option<ChainedConvolution>> {
        if call.expr.is_none() {
            return ChainedConvolution::of(call, None, filter);
        }
        call.with_anchor(|anchor, then| {
            let space = anchor.output_shape(0)?;
            let epilogue = ExprEpilogue::new(then.expr, &space, 1, then.others);
            match epilogue {
                Some(epilogue) if epilogue.flattens() || space.last() >= Some(&LEAST_COLUMNS) => {
                    ChainedConvolution::of(anchor, Some(epilogue), filter)
                }
                _ => Ok(None),
            }
        })
    }

    fn of(
        call: &OpCall<'_>,
        epilogue: Option<ExprEpilogue>,
        filter: usize,
    ) -> Result<Option<ChainedConvolution>> {
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
            ChainedConvolution { way, epilogue, filter, in_line, out_line }
        }))
    }

    pub(super) fn sweep(&self) -> &Sweep {
        self.way.sizes().0
    }

    pub(super) fn rows(&self) -> &Slide {
        &self.sweep().slides[1]
    }

    /// The rows of the input that rows of the output need.
    pub(super) fn needs(&self, rows: &Range<usize>) -> Range<usize> {
        let slide = self.rows();
        let inside = |row: isize| row.clamp(0, slide.input as isize) as usize;
        let reach = (slide.size - 1) * slide.dilation + 1;
        let end = slide.first(rows.end.max(1) - 1) + reach as isize;
        let start = inside(slide.first(rows.start));
        start..inside(end).max(start)
    }

    /// The most rows of the input that so many rows of the output need.
    pub(super) fn most_needed(&self, rows: usize) -> usize {
        let slide = self.rows();
        let reach = (slide.size - 1) * slide.dilation + 1;
        ((rows - 1) * slide.stride + reach).min(slide.input)
    }

    /// The layer with its operands.
    pub(super) fn on<'a, 'io: 'a>(&'a self, io: &Io<'io>) -> RunningConvolution<'a> {
        let filter: &[f32] = io.input(self.filter);
        let packed = match &self.way {
            Way::Pointwise(pointwise) => {
                pointwise.weights().packed(io.threads(), filter, io.tensor(self.filter))
            }
            Way::Depthwise(_) => None,
        };
        let finish = self.epilogue.as_ref().map(|epilogue| epilogue.on(io, self.filter + 1));
        RunningConvolution { layer: self, filter, packed, finish }
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
pub(super) struct RunningConvolution<'a> {
    pub(super) layer: &'a ChainedConvolution,
    filter: &'a [f32],
    packed: Option<Arc<PackedMatrix>>,
    finish: Option<Running<'a>>,
}

impl RunningConvolution<'_> {
    /// Computes the rows of an image that fill `out`, from row `start` on. `input` begins with row
    /// `first` of the image.
    pub(super) fn compute(
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
