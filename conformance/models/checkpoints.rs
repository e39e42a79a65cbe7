//! Checkpoints for `tf.train.Checkpoint`, which goes on where Rust stopped.

use super::recorder::Recorder;
use anyhow::Result;
use ferroflow::{Checkpoint, Tensor, Trackable, Variable, ops, runtime::trackable::Description};
use serde_json::{Value, json};
use std::{collections::BTreeMap, num::NonZeroUsize};

#[derive(Trackable)]
struct Model {
    kernel: Variable,
    layers: Vec<Variable>,
    names: BTreeMap<String, Variable>,
    inner: Inner,
}

#[derive(Trackable)]
struct Inner {
    texts: Variable,
    flags: Variable,
}

/// Values in all kinds of containers, spread over several files.
pub(super) fn tree(recorder: &mut Recorder) -> Result<()> {
    let model = Model {
        kernel: Variable::new([[1.0f32, 2.0], [3.0, 4.0]])?,
        layers: vec![Variable::new(vec![1i64, 2])?, Variable::new(0.5f64)?],
        names: BTreeMap::from([("a/b".to_string(), Variable::new(7i32)?)]),
        inner: Inner { texts: Variable::new(["x", ""])?, flags: Variable::new([true, false])? },
    };
    let options = ferroflow::saved_model::checkpoint::WriteOptions {
        shards: NonZeroUsize::MIN.saturating_add(2),
    };
    let checkpoint = Checkpoint::new().with("model", &model);
    let saved = checkpoint.save_with(recorder.prefix(), &options)?;
    let variable = |recorder: &mut Recorder, variable: &Variable| -> Result<Value> {
        Ok(json!({ "variable": recorder.tensor(&variable.read()?)? }))
    };
    let layers: Result<Vec<Value>> =
        model.layers.iter().map(|layer| variable(recorder, layer)).collect();
    let tree = json!({ "model": { "object": {
        "kernel": variable(recorder, &model.kernel)?,
        "layers": { "list": layers? },
        "names": { "dict": { "a/b": variable(recorder, &model.names["a/b"])? } },
        "inner": { "object": {
            "texts": variable(recorder, &model.inner.texts)?,
            "flags": variable(recorder, &model.inner.flags)?,
        } },
    } } });
    recorder.checkpoint(&saved, tree)
}

/// Adam as TensorFlow 1 has it: two variables for each that it trains.
struct Adam {
    beta1_power: Variable,
    beta2_power: Variable,
    slots: [Variable; 2],
    trained: Variable,
}

const RATE: f32 = 0.1;
const BETAS: [f32; 2] = [0.9, 0.999];

impl Adam {
    fn new(trained: &Variable) -> Result<Adam> {
        let zero = || Variable::new(vec![0.0f32; 3]);
        let power = |beta: f32| Variable::new(beta);
        let [beta1_power, beta2_power] = [power(BETAS[0])?, power(BETAS[1])?];
        let (slots, trained) = ([zero()?, zero()?], trained.clone());
        Ok(Adam { beta1_power, beta2_power, slots, trained })
    }

    fn step(&self, gradient: &Tensor) -> Result<()> {
        let [m, v] = &self.slots;
        ops::resource_apply_adam(
            &self.trained.handle(),
            &m.handle(),
            &v.handle(),
            &self.beta1_power.read()?,
            &self.beta2_power.read()?,
            &RATE.into(),
            &BETAS[0].into(),
            &BETAS[1].into(),
            &1e-8f32.into(),
            gradient,
        )?;
        self.beta1_power.assign((&self.beta1_power.read()? * BETAS[0])?)?;
        self.beta2_power.assign((&self.beta2_power.read()? * BETAS[1])?)?;
        Ok(())
    }
}

impl Trackable for Adam {
    fn describe(&self, object: &mut Description<'_>) {
        object.child("beta1_power", &self.beta1_power).child("beta2_power", &self.beta2_power);
        if let Ok(trained) = self.trained.owned() {
            for (name, slot) in ["m", "v"].into_iter().zip(&self.slots) {
                if let Ok(slot) = slot.owned() {
                    object.slot(name, trained, slot);
                }
            }
        }
    }
}

/// Two steps here, the third there.
pub(super) fn adam(recorder: &mut Recorder) -> Result<()> {
    let w = Variable::named("w", vec![1.0f32, -2.0, 3.0])?;
    let optimizer = Adam::new(&w)?;
    let gradient = Tensor::from(vec![0.5f32, -1.0, 2.0]);
    optimizer.step(&gradient)?;
    optimizer.step(&gradient)?;
    let checkpoint = Checkpoint::new().with("w", &w).with("optimizer", &optimizer);
    let saved = checkpoint.save(recorder.prefix())?;
    let tree = json!({ "w": { "variable": recorder.tensor(&w.read()?)? } });
    optimizer.step(&gradient)?;
    let (gradient, next) = (recorder.tensor(&gradient)?, recorder.tensor(&w.read()?)?);
    let adam = json!({ "learning_rate": RATE, "of": "w", "gradient": gradient, "next": next });
    recorder.note("adam", adam);
    recorder.checkpoint(&saved, tree)
}
