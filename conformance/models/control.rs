//! Models with control flow of Rust, which is part of their graphs.

use super::recorder::Recorder;
use anyhow::{Context as _, Result};
use ferroflow::{
    Functions, HasFunctions, Tensor, Trackable, Variable, function, ir::DType,
    lookup::MutableHashTable, ops, range, saved_model::SaveOptions, spec, tracer,
};
use std::sync::OnceLock;

#[derive(Default, Trackable, HasFunctions)]
#[trackable(methods(root))]
struct Newton {
    functions: Functions,
}

impl Newton {
    /// Square roots, scaled down where they add up to much.
    #[function(input_signature = [spec(f32, [3])])]
    fn root(&self, x: &Tensor) -> tracer::Result<Tensor> {
        let (mut y, mut steps) = (ops::ones_like(x)?, Tensor::from(0));
        while steps.less(20)? {
            y = (&(&y + &(x / &y)?)? * 0.5f32)?;
            steps = (steps + 1)?;
        }
        if y.sum_all()?.greater(6.0f32)? {
            y = (&y * 0.5f32)?;
        } else {
            y = (&y + 1.0f32)?;
        }
        Ok(y)
    }
}

pub(super) fn newton(recorder: &mut Recorder) -> Result<()> {
    let model = Newton::default();
    recorder.save(&model, &SaveOptions::default())?;
    recorder.frozen("serving_default")?;
    for x in [[1.0f32, 4.0, 9.0], [0.25, 1.0, 4.0]] {
        let x = Tensor::from(x);
        let y = model.root(&x)?;
        recorder.signature("serving_default", &[("x", &x)], &[("output_0", &y)])?;
        recorder.function("root", &[&x], &y)?;
    }
    recorder.also(&["keras_layer", "lite", "resaved", "frozen"]);
    Ok(())
}

#[derive(Trackable, HasFunctions)]
struct Walker {
    visits: Variable,
    names: MutableHashTable,
    functions: Functions,
}

impl Walker {
    /// Loops within loops and branches that change a variable, and jumps out of them.
    #[function(input_signature = [spec(i32, [])])]
    fn walk(&self, limit: &Tensor) -> tracer::Result<Tensor> {
        let mut sum = Tensor::from(0);
        for i in range(limit) {
            let mut j = i.clone();
            while j.greater(0)? {
                if (&j % 4)?.equal(3)? {
                    j = (j - 2)?;
                    continue;
                }
                self.visits.assign_add(Tensor::from(1i64))?;
                sum = (sum + &j)?;
                if sum.greater(100)? {
                    return sum.neg();
                }
                j = (j - 1)?;
            }
        }
        Ok(sum)
    }

    /// Looks up words one by one.
    #[function(input_signature = [spec(string, [None])])]
    fn total(&self, words: &Tensor) -> tracer::Result<Tensor> {
        let mut total = Tensor::from(0i64);
        for word in words {
            let number = self.names.lookup(&word)?;
            if number.greater(0i64)? {
                total = (total + &number)?;
            }
        }
        Ok(total)
    }
}

pub(super) fn walker(recorder: &mut Recorder) -> Result<()> {
    let names = MutableHashTable::new(DType::String, -1i64)?;
    names.insert(&["one", "two"].into(), &vec![1i64, 2].into())?;
    let visits = Variable::named("visits", 0i64)?;
    let model = Walker { visits, names, functions: Functions::default() };
    let (walk, total) = (
        model.walk_concrete([spec(DType::I32, [])])?,
        model.total_concrete([spec(DType::String, [None])])?,
    );
    let options = SaveOptions::default().signature(&walk)?.named_signature("total", &total)?;
    recorder.save(&model, &options)?;
    for limit in [0, 5, 9] {
        let limit = Tensor::from(limit);
        let sum = model.walk(&limit)?;
        recorder.signature("serving_default", &[("limit", &limit)], &[("output_0", &sum)])?;
        recorder.variable("visits", &model.visits)?;
    }
    let words = Tensor::from(["two", "three", "one", "two"]);
    let sum = model.total(&words)?;
    recorder.signature("total", &[("words", &words)], &[("output_0", &sum)])?;
    recorder.function("total", &[&words], &sum)?;
    recorder.also(&["resaved"]);
    Ok(())
}

#[derive(Trackable, HasFunctions)]
struct Recurrent {
    kernel: Variable,
    functions: Functions,
}

impl Recurrent {
    /// A recurrent cell over the rows of a sequence.
    #[function(input_signature = [spec(f32, [None, 2])])]
    fn last(&self, sequence: &Tensor) -> tracer::Result<Tensor> {
        let mut state = Tensor::from([0.0f32, 0.0]);
        for row in sequence {
            let joined = ops::concat_v2(&[&row, &state], &Tensor::from(0))?;
            let joined = ops::reshape(&joined, &vec![1i64, 4].into())?;
            let next = joined.matmul(&self.kernel)?.tanh()?;
            state = ops::reshape(&next, &vec![2i64].into())?;
        }
        Ok(state)
    }
}

pub(super) fn recurrent(recorder: &mut Recorder) -> Result<()> {
    let kernel = Tensor::from([[0.5f32, -0.25], [0.125, 0.75], [-0.5, 1.0], [0.25, 0.5]]);
    let kernel = Variable::named("kernel", kernel)?;
    let model = Recurrent { kernel, functions: Functions::default() };
    let last = model.last_concrete([spec(DType::F32, [None, Some(2)])])?;
    recorder.save(&model, &SaveOptions::default().signature(&last)?)?;
    recorder.frozen("serving_default")?;
    for sequence in [vec![], vec![1.0f32, 2.0, -1.0, 0.5, 3.0, 0.0]] {
        let n_rows = sequence.len() as i64 / 2;
        let sequence = ops::reshape(&sequence.into(), &vec![n_rows, 2].into())?;
        let state = model.last(&sequence)?;
        let inputs = [("sequence", &sequence)];
        recorder.signature("serving_default", &inputs, &[("output_0", &state)])?;
    }
    recorder.also(&["keras_layer", "resaved", "frozen"]);
    Ok(())
}

/// Makes its variable of its first argument.
#[derive(Default, Trackable, HasFunctions)]
struct Lazy {
    shift: OnceLock<Variable>,
    functions: Functions,
}

impl Lazy {
    #[function]
    fn apply(&self, x: &Tensor) -> tracer::Result<Tensor> {
        if self.shift.get().is_none() {
            let _ = self.shift.set(Variable::named("shift", (x * 2.0f32)?)?);
        }
        self.shift.get().map_or_else(|| Ok(x.clone()), |shift| x + shift)
    }
}

pub(super) fn lazy(recorder: &mut Recorder) -> Result<()> {
    let model = Lazy::default();
    let x = Tensor::from([1.0f32, 2.0]);
    model.apply(&x)?;
    recorder.save(&model, &SaveOptions::default())?;
    recorder.function("apply", &[&x], &model.apply(&x)?)?;
    recorder.variable("shift", model.shift.get().context("a variable")?)?;
    recorder.also(&["resaved"]);
    Ok(())
}
