//! An encoder like BERT (Devlin et al. 2018), in inference, with weights of seeds.

use super::{
    batch,
    measure::MeasuredRow,
    ops::{attended, normalized},
    place::BenchDevice,
    sizes,
    weights::DeviceWeights,
};
use anyhow::{Context as _, Result, ensure};
use ferroflow::{Tensor, Variable, function, nn::Activation, tracer};

/// The words there are.
const WORDS: usize = 30522;
/// The size of a head.
const HEAD: usize = 64;

/// A product with a matrix, and a sum.
struct Dense {
    weight: Variable,
    bias: Variable,
}

/// Factor and offset of the rows of a layer norm.
struct Norm {
    gain: Variable,
    offset: Variable,
}

struct Layer {
    query: Dense,
    key: Dense,
    value: Dense,
    out: Dense,
    attention_norm: Norm,
    widen: Dense,
    narrow: Dense,
    norm: Norm,
}

pub(super) fn infer(place: &BenchDevice, rest: &str) -> Result<MeasuredRow> {
    let (model, batch) = batch(rest)?;
    let dims = sizes(model.strip_prefix("bert_").context("a BERT")?)?;
    let [layers, width, steps] = dims;
    ensure!(width % HEAD == 0, "the width is a multiple of {HEAD}");
    let ids = place.ids(31, &[batch, steps], WORDS as u64)?;
    let mut weights = DeviceWeights::on(place);
    let words = weights.between(&[WORDS, width], -1.0, 1.0)?;
    let positions = weights.between(&[steps, width], -1.0, 1.0)?;
    let first = Norm::new(&mut weights, width)?;
    let layers: Vec<Layer> =
        (0..layers).map(|_| Layer::new(&mut weights, width)).collect::<Result<_>>()?;
    let f = function(move |ids: Tensor| {
        let rows = [(batch * steps) as i64, width as i64];
        let x = (words.read()?.gather(&ids)? + &positions)?.reshape(&rows)?;
        let x = first.apply(&x)?;
        layers.iter().try_fold(x, |x, layer| layer.apply(&x, batch, steps))
    });
    let weights = weights.made;
    Ok(MeasuredRow::new(move || {
        std::hint::black_box(&weights);
        Ok(f.call((&ids,))?)
    }))
}

impl Dense {
    fn new(weights: &mut DeviceWeights<'_>, from: usize, to: usize) -> Result<Dense> {
        let weight = weights.scaled(&[from, to], from, 1.0)?;
        Ok(Dense { weight, bias: weights.between(&[to], -0.1, 0.1)? })
    }

    fn apply(&self, x: &Tensor) -> tracer::Result<Tensor> {
        x.matmul(&self.weight)? + &self.bias
    }
}

impl Norm {
    fn new(weights: &mut DeviceWeights<'_>, width: usize) -> Result<Norm> {
        let gain = weights.between(&[width], 0.8, 1.2)?;
        Ok(Norm { gain, offset: weights.between(&[width], -0.1, 0.1)? })
    }

    fn apply(&self, x: &Tensor) -> tracer::Result<Tensor> {
        normalized(x, &self.gain.read()?, &self.offset.read()?)
    }
}

impl Layer {
    fn new(weights: &mut DeviceWeights<'_>, width: usize) -> Result<Layer> {
        Ok(Layer {
            query: Dense::new(weights, width, width)?,
            key: Dense::new(weights, width, width)?,
            value: Dense::new(weights, width, width)?,
            out: Dense::new(weights, width, width)?,
            attention_norm: Norm::new(weights, width)?,
            widen: Dense::new(weights, width, 4 * width)?,
            narrow: Dense::new(weights, 4 * width, width)?,
            norm: Norm::new(weights, width)?,
        })
    }

    /// `[batch · steps, width] → [batch · steps, width]`.
    fn apply(&self, x: &Tensor, batch: usize, steps: usize) -> tracer::Result<Tensor> {
        let width = x.shape().dim(1).unwrap_or(HEAD);
        let split = [batch, steps, width / HEAD, HEAD].map(|size| size as i64);
        let heads = |dense: &Dense| dense.apply(x)?.reshape(&split)?.transpose(&[0, 2, 1, 3]);
        let found = attended(&heads(&self.query)?, &heads(&self.key)?, &heads(&self.value)?)?;
        let found = found.transpose(&[0, 2, 1, 3])?.reshape(&[-1, width as i64])?;
        let x = self.attention_norm.apply(&(x + self.out.apply(&found)?)?)?;
        let wide = Activation::Gelu.apply(&self.widen.apply(&x)?)?;
        let y = self.narrow.apply(&wide)?;
        self.norm.apply(&(x + y)?)
    }
}
