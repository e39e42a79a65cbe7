//! Writes what TensorBoard shows: a loss, how weights are distributed, images, a text and a graph.
//!
//! ```sh
//! cargo run --example summaries logs && tensorboard --logdir logs
//! ```

use ferroflow::{
    Tensor, function,
    graph_def::function_graph,
    ir::HostTensor,
    saved_model::proto::Message as _,
    summary,
    tracer::{Result, ops},
};

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "logs".into());
    let writer = summary::create_file_writer(&folder)?;
    let step = function(|weights: Tensor, step: Tensor| {
        let loss = weights.square()?.sum_all()?;
        summary::scalar("loss", &loss, &step)?;
        summary::histogram("weights", &weights, &step)?;
        &weights * 0.9
    });
    let mut weights = ops::lin_space(&(-2.0f32).into(), &2.0f32.into(), &100.into())?;
    writer.with(|| {
        for n in 0..20i64 {
            weights = step.call((&weights, n))?;
        }
        summary::text("note", &"Weights **decay** by a tenth each step.".into(), 0)?;
        let picture = weights.reshape(&[1, 10, 10, 1])?;
        summary::image("weights", &picture, 20)?;
        let concrete = step.concrete((&weights, 0i64))?;
        let graph = function_graph(&concrete)?.graph_def;
        summary::graph(&HostTensor::scalar_string(graph.encode_to_vec()).into(), 0)
    })?;
    writer.close()?;
    println!("{}", writer.path().display());
    Ok(())
}
