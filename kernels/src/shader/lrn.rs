//! Local response normalisation: `LRN` and its gradient (Krizhevsky et al. 2012, section 3.3).

use super::{
    Shader,
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    scalar_type::{Caps, ScalarType},
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] = &[("LRN", normalize), ("LRNGrad", gradient)];

/// Geometry of a call: how far neighbours are, and the constants of the norm.
struct Plan {
    channels: usize,
    radius: usize,
    alpha: f32,
    beta: f32,
    bias: f32,
}

impl Plan {
    fn new(call: &OpCall<'_>) -> Result<Plan> {
        Ok(Plan {
            channels: call.shape(0).last().copied().unwrap_or(1).max(1),
            radius: call.attrs.int("depth_radius")?.clamp(0, 1 << 20) as usize,
            alpha: call.attrs.float("alpha")?,
            beta: call.attrs.float("beta")?,
            bias: call.attrs.float("bias")?,
        })
    }

    /// Runs statements for each channel near one.
    fn for_each_near<'k>(
        &self,
        k: &'k KernelBuilder,
        channel: KernelValue<'k>,
        body: impl FnOnce(KernelValue<'k>),
    ) {
        let first = channel.max(self.radius) - self.radius;
        let last = (channel + self.radius).min(self.channels - 1);
        k.for_range("near", (first, last + 1, 1), body);
    }

    /// The norm of a channel of an input, and its power.
    fn norm<'k>(
        &self,
        k: &'k KernelBuilder,
        input: KernelBuffer<'k>,
        row: KernelValue<'k>,
        channel: KernelValue<'k>,
    ) -> (KernelValue<'k>, KernelValue<'k>) {
        let squares = k.variable("squares", k.float(0.0));
        self.for_each_near(k, channel, |near| {
            squares.set(squares + input.at(row + near).function("square_"));
        });
        let norm = k.bind("norm", self.bias + self.alpha * squares);
        (norm, norm.function_with("pow_", self.beta))
    }

    /// The channel and the row of this invocation's element.
    fn position<'k>(&self, k: &'k KernelBuilder) -> (KernelValue<'k>, KernelValue<'k>) {
        let channel = k.bind("channel", k.element() % self.channels);
        (channel, k.bind("row", k.element() - channel))
    }
}

fn normalize(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let plan = Plan::new(call)?;
    let k = KernelBuilder::new(caps);
    let ([data], out, n) = (k.inputs(call, [0]), k.result(call), k.element());
    k.requires(out.scalar == ScalarType::F32);
    let (channel, row) = plan.position(&k);
    let (_, power) = plan.norm(&k, data, row, channel);
    out.set(n, (data.at(n) / power).rounded(call.dtype(0)));
    k.finish(call.shape(0).num_elements())
}

/// The gradient of the outputs, the inputs, the outputs.
fn gradient(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let plan = Plan::new(call)?;
    let k = KernelBuilder::new(caps);
    let ([gradients, data, results], out) = (k.inputs(call, [0, 1, 2]), k.result(call));
    k.requires(out.scalar == ScalarType::F32);
    let (channel, row) = plan.position(&k);
    let n = k.element();
    let sum = k.variable("sum", k.float(0.0));
    plan.for_each_near(&k, channel, |near| {
        let (norm, power) = plan.norm(&k, data, row, near);
        let slope = k.float(2.0 * plan.alpha) * plan.beta;
        let at = row + near;
        sum.set(sum - slope * results.at(at) * gradients.at(at) / norm * data.at(n));
        k.when(near.eq(channel), || sum.set(sum + gradients.at(n) / power));
    });
    out.set(n, sum.rounded(call.dtype(0)));
    k.finish(call.shape(0).num_elements())
}
