//! Local response normalisation: `LRN` and its gradient (Krizhevsky et al. 2012, section 3.3).

use super::{
    Shader,
    scalar_type::{Caps, ScalarType, cut, float},
    scalar_types,
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] = &[("LRN", normalize), ("LRNGrad", gradient)];

/// Geometry of a call: how far neighbours are, and the statements that make `norm` of `channel`, of
/// an input.
struct Plan {
    channels: usize,
    radius: i64,
    alpha: f32,
    beta: String,
    bias: String,
}

impl Plan {
    fn new(call: &OpCall<'_>) -> Result<Plan> {
        Ok(Plan {
            channels: call.shape(0).last().copied().unwrap_or(1).max(1),
            radius: call.attrs.int("depth_radius")?.clamp(0, 1 << 20),
            alpha: call.attrs.float("alpha")?,
            beta: float(call.attrs.float("beta")?),
            bias: float(call.attrs.float("bias")?),
        })
    }

    /// Runs `body` for each `k` that is near a channel.
    fn near(&self, k: &str, channel: &str, body: &str) -> String {
        let Plan { channels, radius, .. } = self;
        format!(
            "for (var {k} = u32(max(i32({channel}) - {radius}, 0)); {k} <= min({channel} + {radius}u, {}u); {k}++) {{\n{body}}}\n",
            channels - 1
        )
    }

    fn norm(&self, input: &str, channel: &str) -> String {
        let squares = format!("squares = squares + square_({input}[row + j]);\n");
        format!(
            "var squares = 0.0f;\n{}let norm = {} + {} * squares;\n",
            self.near("j", channel, &squares),
            self.bias,
            float(self.alpha),
        )
    }

    /// The statements that name the channel and the row of element `n`.
    fn position(&self) -> String {
        format!("let channel = n % {}u;\nlet row = n - channel;\n", self.channels)
    }
}

fn normalize(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let plan = Plan::new(call)?;
    let Some((inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let body = format!(
        "{}{}out0[n] = {};\n",
        plan.position(),
        plan.norm("in0", "channel"),
        cut(call.dtype(0), &format!("in0[n] / pow_(norm, {})", plan.beta)),
    );
    let count = call.shape(0).num_elements();
    Ok((word == ScalarType::F32).then(|| Shader::plain(inputs, vec![word], body, count)))
}

/// The gradient of the outputs, the inputs, the outputs.
fn gradient(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let plan = Plan::new(call)?;
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1, 2]) else { return Ok(None) };
    let shared = format!(
        "{}sum = sum - {} * {} * in2[row + k] * in0[row + k] / norm * in1[n];\n\
         if (k == channel) {{ sum = sum + in0[n] / pow_(norm, {}); }}\n",
        plan.norm("in1", "k"),
        float(2.0 * plan.alpha),
        plan.beta,
        plan.beta,
    );
    let body = format!(
        "{}var sum = 0.0f;\n{}out0[n] = {};\n",
        plan.position(),
        plan.near("k", "channel", &shared),
        cut(call.dtype(0), "sum"),
    );
    let count = call.shape(0).num_elements();
    Ok((word == ScalarType::F32).then(|| Shader::plain(inputs, vec![word], body, count)))
}
