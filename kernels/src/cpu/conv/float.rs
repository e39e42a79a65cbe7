//! Convolutions of `f32`: as one matmul, by areas, or by im2col matrices.

#[cfg(target_arch = "x86_64")]
use super::split::{Split, SplitPlan};
use super::{
    super::gemm::{
        BlockEpilogue, GemmWeights, Matrix, apply_all, gemm_by_weights, rows::RowsByWeights,
        weights::PackedWeights,
    },
    Geometry, by_im2col,
    direct::{Direct, DirectPlan},
};
use crate::{
    Precision, device::OpCall, error::Result, kernel::Io, plan::window::Sweep, threads::Threads,
};
use ferroflow_ir::HostTensor;

/// A pointwise convolution that is computed some rows of an image at a time.
pub(in crate::cpu) struct PointwiseRows {
    sweep: Sweep,
    filters: usize,
    weights: RowsByWeights,
}

impl PointwiseRows {
    /// The convolution of a call; `None` where it is none of a matmul's.
    pub(in crate::cpu) fn new(call: &OpCall<'_>) -> Result<Option<PointwiseRows>> {
        let g = Geometry::new(call, call.shape(0), call.shape(1))?;
        if g.groups != 1 || !g.sweep.is_pointwise() {
            return Ok(None);
        }
        let weights = RowsByWeights::new(g.pointwise(), call.precision);
        let Geometry { sweep, filters, .. } = g;
        Ok(weights.map(|weights| PointwiseRows { sweep, filters, weights }))
    }

    pub(in crate::cpu) fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    pub(in crate::cpu) fn filters(&self) -> usize {
        self.filters
    }

    pub(in crate::cpu) fn weights(&self) -> &RowsByWeights {
        &self.weights
    }
}

/// Convolutions of one geometry.
pub(super) struct FloatConvolution {
    g: Geometry,
    precision: Precision,
    way: Way,
}

enum Way {
    /// A single matmul.
    Pointwise(PackedWeights),
    ByAreas(DirectPlan),
    /// In tile registers, but by areas where numbers cannot be split.
    #[cfg(target_arch = "x86_64")]
    Split(SplitPlan, DirectPlan),
    ByTaps,
}

impl Way {
    /// The better of the ways of a convolution that can be computed by areas.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(unused_variables, reason = "the registers are those of one processor family")
    )]
    fn of_areas(g: &Geometry, direct: DirectPlan, precision: Precision) -> Way {
        #[cfg(target_arch = "x86_64")]
        if let Some(split) = SplitPlan::new(g, precision) {
            return Way::Split(split, direct);
        }
        Way::ByAreas(direct)
    }
}

impl FloatConvolution {
    pub(super) fn new(g: Geometry, precision: Precision) -> FloatConvolution {
        let way = if g.groups == 1 && g.sweep.is_pointwise() {
            Way::Pointwise(PackedWeights::default())
        } else {
            match DirectPlan::new(&g) {
                Some(direct) => Way::of_areas(&g, direct, precision),
                None => Way::ByTaps,
            }
        };
        FloatConvolution { g, precision, way }
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
                let weights = GemmWeights { tensor, kept, precision: self.precision };
                gemm_by_weights(threads, g.pointwise(), a, b, weights, out, finish);
            }
            Way::ByAreas(plan) => {
                let direct = Direct::new(threads, g, plan, input, filter, tensor);
                direct.forward(threads, out, finish)?;
            }
            #[cfg(target_arch = "x86_64")]
            Way::Split(plan, direct) => {
                Split { g, plan, direct, input, filter }.forward(threads, tensor, out, finish)?;
            }
            Way::ByTaps => {
                by_im2col(threads, g, input, filter, out)?;
                if let Some(finish) = finish {
                    apply_all(threads, finish, out, g.filters);
                }
            }
        }
        Ok(())
    }
}
