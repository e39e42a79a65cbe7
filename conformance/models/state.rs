//! Models with state that their functions change.

use super::recorder::Recorder;
use anyhow::Result;
use ferroflow::{
    Checkpoint, Functions, HasFunctions, Tensor, Trackable, Variable, function, ir::DType,
    lookup::MutableHashTable, runtime::trackable::Description, saved_model::SaveOptions, spec,
    tracer,
};
use std::sync::Arc;

#[derive(Trackable, HasFunctions)]
struct Counter {
    count: Variable,
    functions: Functions,
}

impl Counter {
    #[function(input_signature = [spec(i64, [])])]
    fn add(&self, by: &Tensor) -> tracer::Result<Tensor> {
        self.count.assign_add(by)?;
        self.count.read()
    }
}

pub(super) fn counter(recorder: &mut Recorder) -> Result<()> {
    let counter =
        Counter { count: Variable::named("count", 5i64)?, functions: Functions::default() };
    let add = counter.add_concrete([spec(DType::I64, [])])?;
    recorder.save(&counter, &SaveOptions::default().signature(&add)?)?;
    let two = Tensor::from(2i64);
    recorder.variable("count", &counter.count)?;
    recorder.signature("serving_default", &[("by", &two)], &[("output_0", &7i64.into())])?;
    recorder.function("add", &[&two], &9i64.into())?;
    recorder.assign("count", &0i64.into())?;
    recorder.function("add", &[&two], &two)?;
    recorder.also(&["resaved"]);
    Ok(())
}

pub(super) fn mutable_table(recorder: &mut Recorder) -> Result<()> {
    let table = MutableHashTable::new(DType::String, -1i64)?;
    table.insert(&["a", "b"].into(), &vec![1i64, 2].into())?;
    let find = function({
        let table = table.clone();
        move |words: Tensor| table.lookup(&words)
    });
    let find = find.with_name("find").with_parameters(["words"]);
    let find = find.with_input_signature([spec(DType::String, [None])]);
    let insert = function({
        let table = table.clone();
        move |words: Tensor, numbers: Tensor| table.insert(&words, &numbers)
    });
    let insert = insert.with_name("insert").with_parameters(["words", "numbers"]);
    let insert =
        insert.with_input_signature([spec(DType::String, [None]), spec(DType::I64, [None])]);
    let root = Checkpoint::new().with("table", &table).with("find", &find).with("insert", &insert);
    recorder.save(&root, &SaveOptions::default().signature(&find)?)?;
    let words = Tensor::from(["a", "b", "c"]);
    let found = find(words.clone())?;
    recorder.signature("serving_default", &[("words", &words)], &[("output_0", &found)])?;
    recorder.function("find", &[&words], &found)?;
    recorder.also(&["resaved"]);
    Ok(())
}

/// Gradient descent with momentum, by hand: a variable more for each that it trains.
struct Momentum {
    slots: Vec<(Variable, Variable)>,
}

impl Trackable for Momentum {
    fn describe(&self, object: &mut Description<'_>) {
        for (variable, slot) in &self.slots {
            if let (Ok(variable), Ok(slot)) = (variable.owned(), slot.owned()) {
                object.slot("momentum", variable, slot);
            }
        }
    }
}

pub(super) fn momentum(recorder: &mut Recorder) -> Result<()> {
    let w = Variable::named("w", [1.0f32, 2.0])?;
    let slot = Variable::named("w/momentum", [0.0f32, 0.0])?;
    let step = function({
        let (w, slot) = (w.clone(), slot.clone());
        move |gradient: Tensor| -> tracer::Result<Tensor> {
            slot.assign((&(&slot.read()? * 0.9f32)? + &gradient)?)?;
            w.assign_sub((&slot.read()? * 0.1f32)?)?;
            w.read()
        }
    });
    let step = step.with_name("step").with_parameters(["gradient"]);
    let step = step.with_input_signature([spec(DType::F32, [Some(2)])]);
    let optimizer = Momentum { slots: vec![(w.clone(), slot)] };
    let gradient = Tensor::from([1.0f32, -1.0]);
    step(gradient.clone())?;
    let root = Checkpoint::new().with("w", &w).with("optimizer", &optimizer).with("step", &step);
    recorder.save(&root, &SaveOptions::default().without_signatures())?;
    recorder.variable("w", &w)?;
    recorder.function("step", &[&gradient], &step(gradient.clone())?)?;
    recorder.function("step", &[&gradient], &step(gradient.clone())?)?;
    recorder.also(&["resaved"]);
    Ok(())
}

#[derive(Trackable)]
struct Encoder {
    w: Variable,
}

#[derive(Trackable)]
struct Autoencoder {
    encoder: Arc<Encoder>,
    decoder: Arc<Encoder>,
    first: Variable,
}

pub(super) fn shared_objects(recorder: &mut Recorder) -> Result<()> {
    let w = Variable::named("w", 3.0f32)?;
    let shared = Arc::new(Encoder { w: w.clone() });
    let model = Autoencoder { encoder: shared.clone(), decoder: shared, first: w.clone() };
    let f = function({
        let w = w.clone();
        move |x: Tensor| &x * &w
    });
    f(2.0f32.into())?;
    recorder.save(&Checkpoint::of(&model).with("f", &f), &SaveOptions::default())?;
    recorder.assign("encoder.w", &10.0f32.into())?;
    w.assign(10.0f32)?;
    recorder.variable("decoder.w", &w)?;
    recorder.variable("first", &w)?;
    recorder.function("f", &[&2.0f32.into()], &20.0f32.into())?;
    Ok(())
}
