//! Convolutions of `f32`: as one product, by areas, or by matrices of taps.

use super::{
    super::gemm::{
        BlockEpilogue, GemmWeights, Matrix, finish_all, gemm_by_weights, weights::PackedWeights,
    },
    Geometry, by_taps,
    direct::{Direct, DirectPlan},
};
use crate::{error::Result, kernel::Io, threads::Threads};
use ferroflow_ir::HostTensor;

/// Convolutions of one geometry.
pub(super) struct FloatConvolution {
    g: Geometry,
    way: Way,
}

enum Way {
    /// A single matmul.
    Pointwise(PackedWeights),
    ByAreas(DirectPlan),
    ByTaps,
}

impl FloatConvolution {
    pub(super) fn new(g: Geometry) -> FloatConvolution {
        let way = if g.groups == 1 && g.sweep.is_pointwise() {
            Way::Pointwise(PackedWeights::default())
        } else {
            DirectPlan::new(&g).map_or(Way::ByTaps, Way::ByAreas)
        };
        FloatConvolution { g, way }
    }

    /// Convolves input 0 by input 1, and finishes the windows.
    pub(super) fn run(&self, io: &mut Io<'_>, finish: Option<&dyn BlockEpilogue>) -> Result<()> {
        let filter = (io.input(1), io.tensor(1));
        self.forward(io.threads(), io.input(0), filter, io.output(0), finish)
    }

    /// Computes the windows of `input` times a filter, which is all of a tensor if it is that, and
    /// finishes them.
    pub(super) fn forward(
        &self,
        threads: &Threads,
        input: &[f32],
        (filter, tensor): (&[f32], Option<&HostTensor>),
        out: &mut [f32],
        finish: Option<&dyn BlockEpilogue>,
    ) -> Result<()> {
        let g = &self.g;
        if out.is_empty() {
            return Ok(());
        }
        match &self.way {
            Way::Pointwise(kept) => {
                let (a, b) =
                    (Matrix::row_major(input, g.depth()), Matrix::row_major(filter, g.filters));
                let weights = GemmWeights { tensor, kept };
                gemm_by_weights(threads, g.pointwise(), a, b, weights, out, finish);
            }
            Way::ByAreas(plan) => {
                let direct = Direct::new(threads, g, plan, input, filter, tensor);
                direct.forward(threads, out, finish)?;
            }
            Way::ByTaps => {
                by_taps(threads, g, input, filter, out)?;
                if let Some(finish) = finish {
                    finish_all(threads, finish, out, g.filters);
                }
            }
        }
        Ok(())
    }
}
