//! Numbers recorded from Keras 3.15: `keras_numbers.py` prints `keras_numbers.txt`, `keras_masks.py`
//! prints `keras_masks.txt`, and so on.

use ferroflow_nn::{Layer, Mode, Module};
use ferroflow_tracer::{GradientTape, Result, Tensor, Variable, function};

const RECORDED: [&str; 7] = [
    include_str!("keras_numbers.txt"),
    include_str!("keras_masks.txt"),
    include_str!("keras_random.txt"),
    include_str!("keras_gradients.txt"),
    include_str!("keras_policies.txt"),
    include_str!("keras_cells.txt"),
    include_str!("keras_augmentation.txt"),
];

fn lines() -> impl Iterator<Item = &'static str> {
    RECORDED.into_iter().flat_map(str::lines)
}

/// Numbers that are neither large nor equal.
pub(crate) fn numbers(shape: &[usize]) -> Result<Tensor> {
    let n: usize = shape.iter().product();
    let values: Vec<f32> = (0..n).map(|n| ((n * 7 % 23) as f32 - 11.0) / 20.0).collect();
    Tensor::from_slice(shape, &values)
}

/// The layer, with such weights.
pub(crate) fn filled<L: Module>(layer: Result<L>) -> Result<L> {
    let layer = layer?;
    for variable in layer.variables()? {
        let shape = variable.shape().known().expect("weights have shapes");
        variable.assign(&numbers(shape.dims())?)?;
    }
    Ok(layer)
}

/// Shape, first elements, and sum of all magnitudes.
struct Recorded {
    shape: Vec<usize>,
    first: Vec<f64>,
    sum: f64,
}

fn recorded(name: &str) -> Recorded {
    let line = lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" ["));
    let line = line.unwrap_or_else(|| panic!("nothing is recorded of `{name}`"));
    let (shape, rest) = line.split_once("] [").unwrap();
    let (first, sum) = rest.split_once("] ").unwrap();
    let numbers = |list: &str| -> Vec<f64> {
        list.split(", ").filter(|n| !n.is_empty()).map(|n| n.parse().unwrap()).collect()
    };
    let shape = numbers(shape).into_iter().map(|dim| dim as usize).collect();
    Recorded { shape, first: numbers(first), sum: sum.parse().unwrap() }
}

/// Compares with the numbers recorded by this name.
#[track_caller]
pub(crate) fn check(name: &str, found: &Tensor) {
    check_within(name, found, 1e-5);
}

/// Compares with the numbers recorded by this name, within a part of them, or of 1 for smaller ones.
#[track_caller]
pub(crate) fn check_within(name: &str, found: &Tensor, tolerance: f64) {
    let Recorded { shape, first, sum } = recorded(name);
    let found = found.cast(ferroflow_tracer::DType::F32).unwrap();
    let values = found.to_vec::<f32>().unwrap();
    let near = |a: f64, b: f64| (a - b).abs() < tolerance * b.abs().max(1.0);
    assert_eq!(found.shape().known().unwrap().dims(), shape, "{name}");
    let same = values.iter().zip(&first).all(|(&a, &b)| near(a.into(), b))
        && near(values.iter().map(|&v| f64::from(v).abs()).sum(), sum);
    assert!(same, "{name}: {found} instead of {first:?}.. which add up to {sum}");
}

/// Compares the result of a layer that is filled with numbers, eager and staged, and the gradients
/// of the sum of its squares by the input and by each weight.
#[track_caller]
pub(crate) fn check_layer<L: Layer + Clone + 'static>(name: &str, layer: Result<L>, x: &[usize]) {
    let layer = filled(layer).unwrap();
    check_call(name, &layer.trainable_variables().unwrap(), &numbers(x).unwrap(), {
        let layer = layer.clone();
        move |x| layer.call(x, Mode::Training)
    });
}

/// As [`check_layer`], of any function of a tensor and these weights.
#[track_caller]
pub(crate) fn check_call(
    name: &str,
    weights: &[Variable],
    x: &Tensor,
    f: impl Fn(&Tensor) -> Result<Tensor> + Clone + 'static + Send + Sync,
) {
    let weights = weights.to_vec();
    let run = move |x: Tensor| {
        let tape = GradientTape::persistent();
        tape.watch(&x)?;
        let y = f(&x)?;
        let loss = y.square()?.sum_all()?;
        let by_input = tape.gradient(&loss, &x)?.expect("the input matters");
        let by_weight = tape.variable_gradients(&loss, &weights)?.into_iter();
        let by_weight =
            by_weight.map(|g| g.expect("all weights matter").dense()).collect::<Result<Vec<_>>>();
        Ok::<_, ferroflow_tracer::Error>((y, by_input, by_weight?))
    };
    let staged = function(run.clone());
    for (y, by_input, by_weight) in [run(x.clone()).unwrap(), staged.call((x,)).unwrap()] {
        check(name, &y);
        check(&format!("{name} d x"), &by_input);
        for (index, gradient) in by_weight.iter().enumerate() {
            check(&format!("{name} d {index}"), gradient);
        }
        let all = format!("{name} d ");
        let n = lines().filter(|line| line.starts_with(&all)).count();
        assert_eq!(by_weight.len() + 1, n, "{name}");
    }
}
