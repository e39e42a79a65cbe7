//! Generated functions compute the same on tensors, eagerly and traced, as on numbers.

use ferroflow_tracer::{
    DType, Function, GraphDataset, Nest, Result, Tensor, autograph::DatasetElements, context,
    function, range,
};

/// A function on tensors.
type OnTensors = Function<(Tensor, Tensor, i64, bool), Tensor>;

/// A function on tensors, and the same on numbers.
pub(crate) struct Program {
    seed: u64,
    tensors: fn() -> &'static OnTensors,
    numbers: fn(i32, i32, i64, bool) -> i32,
}

fn add(a: i32, b: i32) -> i32 {
    a.wrapping_add(b)
}

fn sub(a: i32, b: i32) -> i32 {
    a.wrapping_sub(b)
}

fn mul(a: i32, b: i32) -> i32 {
    a.wrapping_mul(b)
}

fn rem(a: i32, b: i32) -> i32 {
    a.rem_euclid(b)
}

fn counts(start: i32, end: i32, step: i32) -> impl Iterator<Item = i32> {
    (0..).map(move |i| start + i * step).take_while(move |i| *i > end)
}

fn keep<T: Clone>(value: &T) -> T {
    value.clone()
}

fn option<T>(is_there: bool, value: T) -> Option<T> {
    is_there.then_some(value)
}

/// A structure whose fields are assigned one by one.
#[derive(Nest, Clone)]
struct Fields<T: Nest> {
    a: T,
    b: T,
}

/// A data set of numbers.
#[derive(Clone)]
struct Elements([i32; 3]);

impl GraphDataset for Elements {
    type Element = Tensor;

    fn elements(&self) -> DatasetElements<Tensor> {
        Box::new(self.0.into_iter().map(|element| Ok(Tensor::from(element))))
    }
}

fn is_small(n: i64) -> bool {
    n < 2
}

/// Twice a number, or a tensor.
trait Twice {
    type Output;

    fn twice(self) -> Self::Output;
}

impl Twice for i32 {
    type Output = i32;

    fn twice(self) -> i32 {
        self.wrapping_mul(2)
    }
}

impl Twice for Result<Tensor> {
    type Output = Result<Tensor>;

    fn twice(self) -> Result<Tensor> {
        self? * 2
    }
}

fn twice<T: Twice>(value: T) -> T::Output {
    value.twice()
}

/// The functions, or those that the environment names.
#[allow(
    unused_assignments,
    unused_mut,
    unused_variables,
    unused_labels,
    unused_parens,
    unused_comparisons,
    unreachable_code,
    dead_code,
    clippy::all,
    reason = "of code that nobody wrote"
)]
mod programs {
    include!(env!("FERROFLOW_GENERATED_FUNCTIONS"));
}

/// Fault of a program.
fn fault(program: &Program) -> Option<String> {
    let inputs = [(0, 0), (1, -3), (5, 2), (-7, 4), (3, 9)];
    for n in [0, 1, 3] {
        for flag in [false, true] {
            for (p, q) in inputs {
                let expected = (program.numbers)(p, q, n, flag);
                let function = (program.tensors)();
                let args = (Tensor::from(p), Tensor::from(q), n, flag);
                let eager = context::with_functions_run_eagerly(true, || {
                    (function.host_fn())(args.clone())
                });
                let results = [("eager", eager), ("traced", function.call(args))];
                for (how, result) in results {
                    let found = result.and_then(|tensor| tensor.to_scalar::<i32>());
                    if !matches!(&found, Ok(found) if *found == expected) {
                        return Some(format!(
                            "seed {}, {how}, ({p}, {q}, {n}, {flag}): {found:?}, not {expected}",
                            program.seed
                        ));
                    }
                }
            }
        }
    }
    None
}

#[test]
fn functions_on_tensors_are_those_on_numbers() {
    let faults: Vec<String> = programs::PROGRAMS.iter().filter_map(fault).collect();
    println!("{} functions", programs::PROGRAMS.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
