//! Steps of training with Adam: forward, backward and update, as one function or eagerly.

use crate::{
    inputs,
    measure::{CallOutput, Unit, Workload},
};
use anyhow::Result;
use ferroflow::{
    GradientTape, Tensor, Variable, function,
    ir::HostTensor,
    nn::{
        Activation,
        losses::{Prediction, sparse_categorical_cross_entropy},
        optimizers::{Adam, Optimizer},
    },
    ops, tracer,
};

/// A network: its weights, and its mean loss on examples.
struct Network {
    weights: Vec<Variable>,
    loss: fn(&[Variable], &Tensor, &Tensor) -> tracer::Result<Tensor>,
    x: Tensor,
    y: Tensor,
}

pub(crate) fn find<'a>(name: &str) -> Result<Option<Workload<'a>>> {
    let Some((network, mode)) = name.rsplit_once('_') else { return Ok(None) };
    let (network, unit) = match network {
        "mlp" => (mlp()?, Unit::Microseconds),
        "cnn" => (cnn()?, Unit::Milliseconds),
        "transformer" => (transformer()?, Unit::Milliseconds),
        _ => return Ok(None),
    };
    let Network { weights, loss, x, y } = network;
    let optimizer = Optimizer::new(Adam::default(), 1e-3)?;
    let owned = weights.clone();
    let step = move |x: Tensor, y: Tensor| {
        let tape = GradientTape::new();
        let loss = loss(&weights, &x, &y)?;
        optimizer.minimize(tape, &loss, &weights)?;
        Ok::<_, tracer::Error>(loss)
    };
    let workload = match mode {
        "eager" => Workload::new(unit, move || outcome(step(x.clone(), y.clone())?)),
        "fn" => {
            let step = function(step);
            Workload::new(unit, move || {
                // The function knows the weights but does not own them.
                std::hint::black_box(&owned);
                outcome(step.call((&x, &y))?)
            })
        }
        _ => return Ok(None),
    };
    Ok(Some(Workload { extra: Some(Box::new(peak)), ..workload.budget(1.5) }))
}

fn outcome(loss: Tensor) -> Result<CallOutput> {
    Ok(CallOutput::from_iter([loss.into_eager()?]))
}

/// The most memory that the process has had, in megabytes.
fn peak() -> (&'static str, serde_json::Value) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    ("peak_rss_mb", kilobytes.map(|kilobytes| (kilobytes / 102.4).round() / 10.0).into())
}

/// A weight drawn by its number, with a variance of one over its inputs.
fn drawn(number: u64, dims: &[usize]) -> Result<Variable> {
    let fan_in: usize = dims[..dims.len() - 1].iter().product();
    let bound = (3.0 / fan_in.max(1) as f32).sqrt();
    Ok(Variable::new(Tensor::from(inputs::floats(200 + number, dims, -bound, bound)?))?)
}

fn all(value: f32, size: usize) -> Result<Variable> {
    Ok(Variable::new(Tensor::from(HostTensor::vector(&vec![value; size])?))?)
}

fn mean_loss(logits: &Tensor, y: &Tensor) -> tracer::Result<Tensor> {
    sparse_categorical_cross_entropy(y, logits, Prediction::Logits)?.mean_all()
}

fn mlp() -> Result<Network> {
    let mut weights = Vec::new();
    for (number, pair) in (0..).zip([784, 512, 256, 10].windows(2)) {
        weights.push(drawn(number, pair)?);
        weights.push(all(0.0, pair[1])?);
    }
    let loss = |w: &[Variable], x: &Tensor, y: &Tensor| {
        let h = (x.matmul(&w[0])? + &w[1])?.relu()?;
        let h = (h.matmul(&w[2])? + &w[3])?.relu()?;
        mean_loss(&(h.matmul(&w[4])? + &w[5])?, y)
    };
    let x = inputs::array(41, &[128, 784], 0.0, 1.0)?.into();
    Ok(Network { weights, loss, x, y: inputs::ids(42, &[128], 10)?.into() })
}

fn cnn() -> Result<Network> {
    let shapes: [&[usize]; 5] =
        [&[3, 3, 3, 32], &[3, 3, 32, 32], &[3, 3, 32, 64], &[4096, 128], &[128, 10]];
    let mut weights = Vec::new();
    for (number, shape) in (0..).zip(shapes) {
        weights.push(drawn(number, shape)?);
        weights.push(all(0.0, shape[shape.len() - 1])?);
    }
    let loss = |w: &[Variable], x: &Tensor, y: &Tensor| {
        let convolved = |x: &Tensor, layer: usize| {
            let x = ops::conv2d(x, &w[2 * layer].read()?, &[1, 1, 1, 1], "SAME")?;
            ops::bias_add(&x, &w[2 * layer + 1].read()?)?.relu()
        };
        let halved = |x: &Tensor| ops::max_pool(x, &[1, 2, 2, 1], &[1, 2, 2, 1], "SAME");
        let h = halved(&convolved(&convolved(x, 0)?, 1)?)?;
        let h = halved(&convolved(&h, 2)?)?.reshape(&[64, 4096])?;
        let h = (h.matmul(&w[6])? + &w[7])?.relu()?;
        mean_loss(&(h.matmul(&w[8])? + &w[9])?, y)
    };
    let x = inputs::array(41, &[64, 32, 32, 3], 0.0, 1.0)?.into();
    Ok(Network { weights, loss, x, y: inputs::ids(42, &[64], 10)?.into() })
}

/// Examples of the language model, their words, and how many words there are.
const B: usize = 16;
const S: usize = 64;
const V: usize = 1000;
/// Size of its vectors, and that between.
const D: usize = 128;
const FF: usize = 512;
/// Its heads, its layers, and the weights of each.
const H: usize = 4;
const L: usize = 2;
const PER_LAYER: usize = 12;

fn transformer() -> Result<Network> {
    let mut weights = vec![drawn(0, &[V, D])?, drawn(1, &[S, D])?];
    for layer in (0..).take(L) {
        for (number, [rows, columns]) in
            (10 * layer + 2..).zip([[D, 3 * D], [D, D], [D, FF], [FF, D]])
        {
            weights.push(drawn(number, &[rows, columns])?);
            weights.push(all(0.0, columns)?);
        }
        weights.extend([all(1.0, D)?, all(0.0, D)?, all(1.0, D)?, all(0.0, D)?]);
    }
    weights.extend([all(1.0, D)?, all(0.0, D)?, drawn(90, &[D, V])?]);
    let x = inputs::ids(41, &[B, S], V as u64)?.into();
    let y = inputs::ids(42, &[B, S], V as u64)?.into();
    Ok(Network { weights, loss: language_loss, x, y })
}

fn language_loss(w: &[Variable], x: &Tensor, y: &Tensor) -> tracer::Result<Tensor> {
    let (tokens, size) = ((B * S) as i64, D as i64);
    let mask: Vec<f32> = (0..S * S).map(|i| if i % S > i / S { -1e9 } else { 0.0 }).collect();
    let mask = Tensor::from_slice(&[S, S], &mask)?;
    let mut h = (w[0].read()?.gather(x)? + &w[1])?.reshape(&[tokens, size])?;
    for layer in w[2..].chunks_exact(PER_LAYER) {
        let [wq, bq, wo, bo, w1, b1, w2, b2, g1, c1, g2, c2] = layer else { break };
        let qkv = (normalized(&h, g1, c1)?.matmul(wq)? + bq)?;
        let parts = qkv.reshape(&[B as i64, S as i64, 3, H as i64, (D / H) as i64])?;
        let parts = ops::unpack(&parts.transpose(&[2, 0, 3, 1, 4])?, 3)?;
        let attrs = ops::BatchMatMulV2Attrs { adj_y: true, ..Default::default() };
        let scores = ops::batch_matmul_v2_with(&parts[0], &parts[1], &attrs)?;
        let scores = ((scores * (1.0 / ((D / H) as f64).sqrt()))? + &mask)?;
        let found = scores.softmax()?.matmul(&parts[2])?;
        let found = found.transpose(&[0, 2, 1, 3])?.reshape(&[tokens, size])?;
        h = ((h + found.matmul(wo)?)? + bo)?;
        let wide = Activation::Gelu.apply(&(normalized(&h, g2, c2)?.matmul(w1)? + b1)?)?;
        h = ((h + wide.matmul(w2)?)? + b2)?;
    }
    let [.., gain, offset, out] = w else { return Ok(h) };
    mean_loss(&normalized(&h, gain, offset)?.matmul(out)?, &y.reshape(&[-1])?)
}

fn normalized(x: &Tensor, gain: &Variable, offset: &Variable) -> tracer::Result<Tensor> {
    let mean = x.mean(&[-1])?.expand_dims(-1)?;
    let variance = ops::squared_difference(x, &mean)?.mean(&[-1])?.expand_dims(-1)?;
    (((x - mean)? * ops::rsqrt(&(variance + 1e-5)?)?)? * gain)? + offset
}
