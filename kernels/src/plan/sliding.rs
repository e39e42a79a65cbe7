//! Windows that convolutions and pools slide over their inputs, from the attributes of the calls.

use super::window::Sweep;
use crate::{device::OpCall, error::Result};
use ferroflow_ir::{
    Shape,
    window::{self, ImageLayout, Pool, Slide, convolution_steps},
};

/// The windows of a convolution of tensors of these shapes; `None` where channels come before the
/// spatial dimensions. Filters have their spatial dimensions first.
pub(crate) fn convolution(
    call: &OpCall<'_>,
    input: &Shape,
    filter: &Shape,
) -> Result<Option<Sweep>> {
    let layout = ImageLayout::read(call.attrs, input.rank() - 2)?;
    if !layout.channels_last {
        return Ok(None);
    }
    let steps = convolution_steps(call.op.name, call.attrs, layout)?;
    let slides: ferroflow_ir::Result<Vec<Slide>> = steps
        .iter()
        .enumerate()
        .map(|(index, step)| step.slide(input[layout.at(index)], filter[index]))
        .collect();
    Ok(Some(Sweep::new(input[0], input[layout.channels()], &slides?)))
}

/// The windows of a grey-scale dilation.
pub(crate) fn dilation(call: &OpCall<'_>) -> Result<Sweep> {
    let (input, filter) = (call.shape(0), call.shape(1));
    let layout = ImageLayout { spatial: 2, channels_last: true };
    let steps = window::steps(call.op.name, call.attrs, layout, "rates")?;
    let slides: [ferroflow_ir::Result<Slide>; 2] =
        std::array::from_fn(|axis| steps[axis].slide(input[axis + 1], filter[axis]));
    let [rows, columns] = slides;
    Ok(Sweep::new(input[0], input[3], &[rows?, columns?]))
}

/// Windows of a pool: its sizes and strides are attributes, or the last two inputs.
pub(crate) fn pool(call: &OpCall<'_>) -> Result<Pool> {
    let n = call.inputs.len();
    Ok(match call.attrs.get("ksize") {
        Some(_) => {
            let (sizes, strides) = (call.attrs.ints("ksize")?, call.attrs.ints("strides")?);
            window::pool(call.op.name, call.attrs, sizes, strides)?
        }
        None => {
            let (sizes, strides) = (call.ints(n - 2)?, call.ints(n - 1)?);
            window::pool(call.op.name, call.attrs, &sizes, &strides)?
        }
    })
}

/// The windows of a pool over a tensor of shape `input`.
pub(crate) fn windows(pool: &Pool, input: &Shape) -> Result<Sweep> {
    let steps = pool.steps.iter().zip(&pool.sizes).enumerate();
    let slides: ferroflow_ir::Result<Vec<Slide>> =
        steps.map(|(at, (step, &size))| step.slide(input[pool.layout.at(at)], size)).collect();
    Ok(Sweep::new(input[0], input[pool.layout.channels()], &slides?))
}
