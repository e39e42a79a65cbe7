//! Checkpoints for `tf.train.Checkpoint`, which goes on where Rust stopped.

use super::recorder::Recorder;
use anyhow::Result;
use ferroflow::{
    Checkpoint, Tensor, Trackable, Variable,
    nn::optimizers::{self, LearningRate, Optimizer},
    ops,
    runtime::trackable::Description,
    tracer::TensorGradient,
};
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
        ..Default::default()
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

/// A network of two variables, and the gradients of each step.
fn trained() -> Result<([Variable; 2], [Tensor; 2])> {
    let variables = [
        Variable::named("w", [[1.0f32, -2.0], [3.0, 0.5]])?,
        Variable::named("b", [0.25f32, -1.0])?,
    ];
    Ok((variables, [[[0.5f32, -1.0], [2.0, 0.0]].into(), [1.0f32, -0.5].into()]))
}

fn step(optimizer: &Optimizer, variables: &[Variable; 2], gradients: &[Tensor; 2]) -> Result<()> {
    let pairs = gradients.iter().zip(variables);
    Ok(optimizer.apply(pairs.map(|(g, v)| (TensorGradient::Dense(g.clone()), v.clone())))?)
}

/// Changes of the variables in the next step, as the case notes it.
fn next_step(
    recorder: &mut Recorder,
    variables: &[Variable; 2],
    gradients: &[Tensor; 2],
) -> Result<Value> {
    let mut of = |tensors: &[Tensor]| -> Result<Vec<Value>> {
        tensors.iter().map(|tensor| recorder.tensor(tensor)).collect()
    };
    let values = [variables[0].read()?, variables[1].read()?];
    Ok(json!({
        "learning_rate": RATE, "names": ["w", "b"], "gradients": of(gradients)?, "next": of(&values)?,
    }))
}

/// An optimizer of Keras goes on with what one here has done.
pub(super) fn keras_adam(recorder: &mut Recorder) -> Result<()> {
    let (variables, gradients) = trained()?;
    let rate = Variable::named("learning_rate", RATE)?;
    let optimizer = Optimizer::new(optimizers::Adam::default(), LearningRate::Variable(rate))?;
    step(&optimizer, &variables, &gradients)?;
    step(&optimizer, &variables, &gradients)?;
    let checkpoint = Checkpoint::new().with("w", &variables[0]).with("b", &variables[1]);
    let saved = checkpoint.with("optimizer", &optimizer).save(recorder.prefix())?;
    let mut tree = serde_json::Map::new();
    for variable in &variables {
        let value = recorder.tensor(&variable.read()?)?;
        tree.insert(variable.name().into(), json!({ "variable": value }));
    }
    step(&optimizer, &variables, &gradients)?;
    let keras = next_step(recorder, &variables, &gradients)?;
    recorder.note("keras_adam", keras);
    recorder.checkpoint(&saved, Value::Object(tree))
}

/// A saver of TensorFlow 1 goes on with a checkpoint by name: first written here, then there, then
/// here once more.
pub(super) fn saver_adam(recorder: &mut Recorder) -> Result<()> {
    let w = Variable::named("w", vec![1.0f32, -2.0, 3.0])?;
    let mut optimizer = Adam::new(&w)?;
    let powers = [("beta1_power", BETAS[0]), ("beta2_power", BETAS[1])];
    let [beta1, beta2] = powers.map(|(name, beta)| Variable::named(name, beta));
    (optimizer.beta1_power, optimizer.beta2_power) = (beta1?, beta2?);
    let [m, v] = ["w/Adam", "w/Adam_1"].map(|name| Variable::named(name, vec![0.0f32; 3]));
    optimizer.slots = [m?, v?];
    let gradient = Tensor::from(vec![0.5f32, -1.0, 2.0]);
    optimizer.step(&gradient)?;
    optimizer.step(&gradient)?;
    let checkpoint = Checkpoint::new().with("w", &w).with("optimizer", &optimizer);
    let saved = checkpoint.write_named(recorder.prefix())?;
    optimizer.step(&gradient)?;
    let (gradient, next) = (recorder.tensor(&gradient)?, recorder.tensor(&w.read()?)?);
    let adam = json!({ "learning_rate": RATE, "gradient": gradient, "next": next });
    recorder.note("saver_adam", adam);
    recorder.checkpoint(&saved, json!({}))
}
