//! Views whose elements do not are contiguous: one strided copy per output.

mod moving;

use super::{cell::Cell, dispatch::with_cell, nontemporal::RunCopies};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    plan::{blocks::Blocks, strided},
};
use ferroflow_ir::{DType, Shape, StridedView, infer::OpContext};
use std::sync::Arc;

/// Elements per piece of work.
const PIECE: usize = 1 << 15;

/// Compiles a view op.
pub(super) fn compile(
    call: &OpCall<'_>,
    rule: fn(&OpContext<'_>) -> ferroflow_ir::Result<Vec<StridedView>>,
) -> Result<Option<Arc<dyn Kernel>>> {
    if !call.with_context(|context| Ok(context.host_values_known()))? {
        return moving::compile(call, rule);
    }
    let views: Vec<StridedView> =
        call.with_context(rule)?.iter().map(StridedView::simplified).collect();
    let n = call.shape(0).num_elements();
    debug_assert!(views.iter().all(|view| view.fits(n)), "{}: a view of its input", call.op.name);
    let shapes: Vec<Shape> =
        (0..views.len()).map(|index| call.output_shape(index)).collect::<Result<_>>()?;
    let dtype = call.dtype(0);
    Ok(with_cell!(dtype, T => copy::<T>(dtype, views, shapes)))
}

fn copy<T: Cell>(dtype: DType, views: Vec<StridedView>, shapes: Vec<Shape>) -> Arc<dyn Kernel> {
    let ways: Vec<Way> = views.into_iter().map(Way::of).collect();
    Arc::new(move |io: &mut Io<'_>| {
        let mut ways = ways.iter().enumerate();
        ways.try_for_each(|(index, way)| way.copy::<T>(io, (index, dtype), &shapes))
    })
}

/// Method of copying a window.
enum Way {
    InOrder(StridedView),
    InBlocks(Blocks),
}

impl Way {
    fn of(view: StridedView) -> Way {
        match Blocks::of(&view) {
            Some(blocks) => Way::InBlocks(blocks),
            None => Way::InOrder(view),
        }
    }

    /// Copies a window of input 0 to an output of this dtype; the outputs have these shapes.
    fn copy<T: Cell>(
        &self,
        io: &mut Io<'_>,
        (index, dtype): (usize, DType),
        shapes: &[Shape],
    ) -> Result<()> {
        let (source, threads) = (T::read(io, 0)?, io.threads());
        let n_elements = shapes.iter().map(Shape::num_elements).sum();
        T::write(io, index, dtype, &shapes[index], |out| {
            match self {
                Way::InOrder(view) => threads.for_each_piece(out, PIECE, |start, piece| {
                    let copies = RunCopies::to::<T>(n_elements);
                    let copy = |from: &[T], to: &mut [T]| copies.copy(from, to);
                    strided::read_by(view, source, start, piece, copy);
                }),
                Way::InBlocks(blocks) => {
                    threads.for_each_piece(out, blocks.band(), |start, piece| {
                        blocks.read(source, start, piece);
                    });
                }
            }
            Ok(())
        })
    }
}
