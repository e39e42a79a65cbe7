//! Gradients of records against differences, first and second order, in `f64`.
//!
//! Every elementwise record with a rule is tried, on arguments from its domain; other ops have
//! recipes.

use crate::{error::Result, ops::call, tape::GradientTape, tensor::Tensor};
use ferroflow_ir::{
    Attrs, DType, Gradient, Lowering, OpDef,
    op::{ArgKind, ArgType},
    ops, registry,
};
use std::panic::Location;

/// A call whose floating-point inputs are differentiated.
struct Recipe {
    attrs: Attrs,
    inputs: Vec<Tensor>,
}

/// Numbers without a pattern between two bounds.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, (low, high): (f64, f64)) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (high - low) * ((self.0 >> 11) as f64 / (1u64 << 53) as f64)
    }

    fn tensor(&mut self, shape: &[usize], range: (f64, f64)) -> Tensor {
        let elements: Vec<f64> = (0..shape.iter().product()).map(|_| self.next(range)).collect();
        Tensor::from_slice(shape, &elements).unwrap()
    }
}

/// A call of an elementwise op whose inputs all have the dtype of attribute `T`.
fn elementwise(op: &'static OpDef, numbers: &mut Numbers) -> Option<Recipe> {
    let is_plain = |kind: ArgKind| matches!(kind, ArgKind::One(ArgType::Attr("T")));
    let takes = op.inputs.iter().all(|arg| is_plain(arg.kind));
    let is_supported = op.outputs.iter().all(|arg| is_plain(arg.kind));
    let f64_fits = op.attr("T").is_some_and(|attr| attr.check(op.name, &DType::F64.into()).is_ok());
    if !matches!(op.lowering, Lowering::Elementwise(_)) || !takes || !is_supported || !f64_fits {
        return None;
    }
    let count = op.inputs.len();
    let range = op.domain.unwrap_or((0.1, 0.9));
    let inputs = (0..count).map(|_| numbers.tensor(&[5], range)).collect();
    Some(Recipe { attrs: Attrs::new(), inputs })
}

fn run(op: &'static OpDef, attrs: &Attrs, inputs: &[Tensor]) -> Result<Tensor> {
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let outputs = call(op, attrs.clone(), &inputs, "", Location::caller())?;
    // Weights without a pattern, so that errors do not cancel.
    let mut numbers = Numbers(7);
    let mut total = Tensor::from(0.0f64);
    for output in outputs.iter().filter(|output| output.dtype() == DType::F64) {
        let shape = output.shape().known().unwrap();
        let weights = numbers.tensor(shape.dims(), (0.5, 1.5));
        total = (total + (output * weights)?.sum_all()?)?;
    }
    Ok(total)
}

fn gradient(op: &'static OpDef, recipe: &Recipe, inputs: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
    let tape = GradientTape::new();
    let floats: Vec<Tensor> =
        inputs.iter().filter(|input| input.dtype() == DType::F64).cloned().collect();
    tape.watch(&floats)?;
    let y = run(op, &recipe.attrs, inputs)?;
    tape.gradient(&y, &floats)
}

/// The sum of all gradients, weighted: a function whose gradient is of second order.
fn folded(op: &'static OpDef, recipe: &Recipe, inputs: &[Tensor]) -> Result<Tensor> {
    let mut numbers = Numbers(11);
    let mut total = Tensor::from(0.0f64);
    for dx in gradient(op, recipe, inputs)?.into_iter().flatten() {
        let weights = numbers.tensor(dx.shape().known().unwrap().dims(), (0.5, 1.5));
        total = (total + (dx * weights)?.sum_all()?)?;
    }
    Ok(total)
}

/// Compares what `gradients` tells with differences of `value`, by each element of each input.
fn compare(
    op: &'static OpDef,
    inputs: &[Tensor],
    gradients: &[Option<Tensor>],
    value: impl Fn(&[Tensor]) -> Result<Tensor>,
) -> Result<Option<String>> {
    const STEP: f64 = 1e-5;
    let floats = (0..inputs.len()).filter(|&index| inputs[index].dtype() == DType::F64);
    for (index, found) in floats.zip(gradients) {
        let shape = inputs[index].shape().known().unwrap();
        let elements = inputs[index].to_vec::<f64>()?;
        let found = match found {
            Some(found) => found.to_vec::<f64>()?,
            None => vec![0.0; elements.len()],
        };
        for element in 0..elements.len() {
            let moved = |by: f64| -> Result<f64> {
                let mut elements = elements.clone();
                elements[element] += by;
                let mut inputs = inputs.to_vec();
                inputs[index] = Tensor::from_slice(shape.dims(), &elements)?;
                value(&inputs)?.to_scalar::<f64>()
            };
            let expected = (moved(STEP)? - moved(-STEP)?) / (2.0 * STEP);
            if (found[element] - expected).abs() > 2e-5 * (1.0 + expected.abs()) {
                let found = found[element];
                return Ok(Some(format!(
                    "{} input {index} element {element}: {found} instead of {expected}",
                    op.name
                )));
            }
        }
    }
    Ok(None)
}

fn check(op: &'static OpDef, recipe: &Recipe, second: bool) -> Option<String> {
    let tried = || -> Result<Option<String>> {
        let dx = gradient(op, recipe, &recipe.inputs)?;
        let value = |inputs: &[Tensor]| run(op, &recipe.attrs, inputs);
        if let Some(why) = compare(op, &recipe.inputs, &dx, value)? {
            return Ok(Some(why));
        }
        if !second {
            return Ok(None);
        }
        let tape = GradientTape::new();
        let floats: Vec<Tensor> =
            recipe.inputs.iter().filter(|input| input.dtype() == DType::F64).cloned().collect();
        tape.watch(&floats)?;
        let total = folded(op, recipe, &recipe.inputs)?;
        let found = tape.gradient(&total, &floats)?;
        let why = compare(op, &recipe.inputs, &found, |inputs| folded(op, recipe, inputs))?;
        Ok(why.map(|why| format!("second order: {why}")))
    };
    tried().unwrap_or_else(|error| Some(format!("{}: {error}", op.name)))
}

/// Records whose gradient is not the derivative by all arguments: TensorFlow has none by the order
/// of a polygamma or zeta function, and calls one argument of `NextAfter` the result. Arguments of
/// `ClipByValue` are in order, which random ones are not.
const CONVENTIONS: &[&str] = &["ClipByValue", "NextAfter", "Polygamma", "Zeta"];

/// Records whose gradients are made of ops without a gradient, or of logarithms of gradients.
const FIRST_ORDER: &[&str] = &["CumulativeLogsumexp", "Igamma", "Igammac", "Softsign"];

#[test]
fn every_elementwise_record_with_a_rule() {
    let mut numbers = Numbers(1);
    let (mut tried, mut wrong) = (0, Vec::new());
    for op in ops::all().filter(|op| !CONVENTIONS.contains(&op.name)) {
        if !matches!(op.gradient, Gradient::Rule(_) | Gradient::Broadcast(_)) {
            continue;
        }
        let Some(recipe) = elementwise(op, &mut numbers) else { continue };
        tried += 1;
        wrong.extend(check(op, &recipe, !FIRST_ORDER.contains(&op.name)));
    }
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tried > 80, "only {tried} records were tried");
}

fn recipe(name: &str, attrs: Attrs, inputs: Vec<Tensor>) -> (&'static OpDef, Recipe) {
    (registry::find(name).expect("recipes are for ops that exist"), Recipe { attrs, inputs })
}

#[test]
fn other_records_by_recipe() {
    let mut n = Numbers(3);
    let mut x = |shape: &[usize]| n.tensor(shape, (0.1, 0.9));
    let none = Attrs::new;
    let int = |elements: &[i32]| Tensor::from(elements);
    let window = || {
        Attrs::new()
            .with("ksize", vec![1i64, 2, 2, 1])
            .with("strides", vec![1i64, 1, 1, 1])
            .with("padding", "VALID")
    };
    let conv = || Attrs::new().with("strides", vec![1i64, 1, 1, 1]).with("padding", "SAME");
    let recipes = vec![
        recipe("MatMul", none().with("transpose_a", true), vec![x(&[3, 2]), x(&[3, 4])]),
        recipe("BatchMatMulV2", none().with("adj_y", true), vec![x(&[2, 2, 3]), x(&[1, 4, 3])]),
        recipe("Einsum", none().with("equation", "abc,cd->abd"), vec![x(&[2, 2, 3]), x(&[3, 2])]),
        recipe("Conv2D", conv(), vec![x(&[1, 4, 4, 2]), x(&[3, 3, 2, 2])]),
        recipe("DepthwiseConv2dNative", conv(), vec![x(&[1, 4, 4, 2]), x(&[3, 3, 2, 1])]),
        recipe("AvgPool", window(), vec![x(&[1, 4, 4, 2])]),
        recipe("MaxPool", window(), vec![x(&[1, 4, 4, 2])]),
        recipe("BiasAdd", none(), vec![x(&[2, 3]), x(&[3])]),
        recipe("Softmax", none(), vec![x(&[2, 3])]),
        recipe("LogSoftmax", none(), vec![x(&[2, 3])]),
        recipe("Sum", none(), vec![x(&[2, 3]), int(&[1])]),
        recipe("Mean", none().with("keep_dims", true), vec![x(&[2, 3]), int(&[-1])]),
        recipe("Prod", none(), vec![x(&[2, 3]), int(&[0])]),
        recipe("Max", none(), vec![x(&[2, 3]), int(&[1])]),
        recipe("EuclideanNorm", none(), vec![x(&[2, 3]), int(&[1])]),
        recipe("ClipByValue", none(), vec![x(&[9]), Tensor::from(0.3), Tensor::from(0.6)]),
        recipe("Cumsum", none().with("exclusive", true), vec![x(&[2, 3]), Tensor::from(1)]),
        recipe("Cumprod", none().with("reverse", true), vec![x(&[2, 3]), Tensor::from(1)]),
        recipe("CumulativeLogsumexp", none(), vec![x(&[4]), Tensor::from(0)]),
        recipe("Reshape", none(), vec![x(&[2, 3]), int(&[3, 2])]),
        recipe("Transpose", none(), vec![x(&[2, 3, 2]), int(&[2, 0, 1])]),
        recipe("Tile", none(), vec![x(&[2, 3]), int(&[2, 1])]),
        recipe("BroadcastTo", none(), vec![x(&[1, 3]), int(&[2, 2, 3])]),
        recipe("Slice", none(), vec![x(&[3, 4]), int(&[1, 0]), int(&[2, 3])]),
        recipe(
            "StridedSlice",
            none().with("shrink_axis_mask", 2i64),
            vec![x(&[4, 3]), int(&[3, 1]), int(&[0, 2]), int(&[-2, 1])],
        ),
        recipe("Pad", none(), vec![x(&[2, 2]), Tensor::from([[1i32, 0], [0, 2]])]),
        recipe("ConcatV2", none(), vec![x(&[2, 1]), x(&[2, 3]), Tensor::from(1)]),
        recipe("Pack", none().with("axis", 1i64), vec![x(&[2]), x(&[2])]),
        recipe("GatherV2", none(), vec![x(&[3, 4]), int(&[3, 0, 3]), Tensor::from(1)]),
        recipe("GatherNd", none(), vec![x(&[3, 2]), Tensor::from([[2i32, 0], [2, 0]])]),
        recipe(
            "UnsortedSegmentProd",
            none(),
            vec![x(&[4, 2]), int(&[1, 0, 1, -1]), Tensor::from(2)],
        ),
        recipe("SegmentMean", none(), vec![x(&[4, 2]), int(&[0, 0, 1, 2])]),
        recipe("TopKV2", none(), vec![x(&[2, 4]), Tensor::from(2)]),
        recipe("TensorScatterAdd", none(), vec![x(&[3]), Tensor::from([[2i32], [0]]), x(&[2])]),
        recipe("MatrixInverse", none(), vec![x(&[2, 2])]),
        recipe("MatrixDeterminant", none(), vec![x(&[3, 3])]),
        recipe("MatrixSolve", none(), vec![x(&[2, 2]), x(&[2, 1])]),
        recipe("L2Loss", none(), vec![x(&[2, 3])]),
        recipe("SelectV2", none(), vec![Tensor::from([true, false]), x(&[2]), x(&[2])]),
        recipe("AddN", none(), vec![x(&[2]), x(&[2]), x(&[2])]),
    ];
    let wrong: Vec<String> = recipes
        .iter()
        .filter_map(|(op, recipe)| check(op, recipe, !FIRST_ORDER.contains(&op.name)))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), recipes.len(), wrong.join("\n"));
}
