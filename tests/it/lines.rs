//! Errors and warnings reach the program that caused them: its lines, and standard error.

use ferroflow::{
    Trackable,
    nn::{Dense, Layer, LayerNorm, Mode, Module, Sequential, Weights},
    ops,
    tracer::{Error, Result, Tensor, function},
};
use std::process::Command;

/// Checks that an error names a line of this file, and no other.
#[track_caller]
fn names(error: Error, line: u32) {
    let text = error.to_string();
    let place = format!("{}:{line}:", file!());
    assert!(text.contains(&place) && text.matches(".rs:").count() == 1, "{text}");
}

fn numbers(n: usize) -> Tensor {
    Tensor::from(vec![1.0f32; n])
}

#[test]
fn eager_errors_name_their_line() -> Result<()> {
    let (x, y) = (numbers(2), numbers(3));
    names((&x + &y).unwrap_err(), line!());
    names(x.matmul(&y).unwrap_err(), line!());
    names(ops::add_v2(&x, &y).unwrap_err(), line!());
    names(ops::split(&Tensor::from(0i32), &y, 2).unwrap_err(), line!());
    let sum = &x + &y;
    let line = line!() - 1;
    names((sum * &x).unwrap_err(), line);
    let error = x.reshape(&[5]).unwrap_err();
    assert_eq!(error.code(), ferroflow::ir::Code::InvalidArgument);
    // The line of a traced op stays, where the function is called eagerly.
    let line = line!() + 1;
    let row = function(|x: Tensor, index: Tensor| x.gather(&index));
    names(row.call((&x, 2i32)).unwrap_err(), line);
    Ok(())
}

/// A layer of the program's own: a layer of the library between two ops.
#[derive(Trackable, Clone)]
struct Own {
    dense: Dense,
    /// The number of rows that is added to.
    #[trackable(skip)]
    rows: usize,
}

const DENSE_LINE: u32 = line!() + 5;
const SUM_LINE: u32 = line!() + 5;

impl Layer for Own {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let y = self.dense.call(x, mode)?;
        y + numbers(self.rows)
    }
}

#[test]
fn errors_in_layers_name_the_line_of_the_caller() -> Result<()> {
    let weights = &mut Weights::seeded(1);
    let dense = Dense::new(weights, 3, 4)?;
    let wrong = Tensor::from([[1.0f32, 2.0]]);
    let right = Tensor::from([[1.0f32, 2.0, 3.0]]);
    let call = |layer: &Dense| layer.call(&wrong, Mode::Inference);
    names(call(&dense).unwrap_err(), line!() - 1);
    let network = Sequential::new().then(LayerNorm::new(weights, 2)?).then(dense.clone());
    names(network.call(&wrong, Mode::Inference).unwrap_err(), line!());
    let line = line!() + 1;
    let traced = function(move |x: Tensor| network.call(&x, Mode::Training));
    names(traced.call((&wrong,)).unwrap_err(), line);
    // Code of the program in a network of the library's keeps its lines.
    let own = Sequential::new().then(Own { dense: dense.clone(), rows: 4 });
    names(own.call(&wrong, Mode::Inference).unwrap_err(), DENSE_LINE);
    let own = Sequential::new().then(Own { dense: dense.clone(), rows: 3 });
    names(own.call(&right, Mode::Inference).unwrap_err(), SUM_LINE);
    // After a call of a library, lines are those of the program again.
    dense.call(&right, Mode::Inference)?;
    names(wrong.reshape(&[5]).unwrap_err(), line!());
    assert_eq!(dense.trainable_variables()?.len(), 2);
    Ok(())
}

/// Calls a function for other and other numbers. The test below runs it once more in a process of its
/// own, as what a process prints is one stream.
#[test]
fn retraces() -> Result<()> {
    let step = function(|x: Tensor, n: i64| x * n as f64).with_name("step");
    (0..10).try_for_each(|n| step.call((1.0f32, n)).map(drop))
}

#[test]
fn warnings_of_retracing_reach_standard_error() {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "lines::retraces", "--nocapture"]);
    let output = program.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    let warnings: Vec<&str> = text.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert!(warnings.len() == 2 && warnings[0].contains("calls of function `step`"), "{text}");
}
