//! Random programs in random layouts: the results on meshes of 1 to 4 devices are those of one device.

use super::{
    generator::{Generator, Random},
    on_mesh, shaped,
};
use ferroflow_ir::HostTensor;
use ferroflow_tracer::{
    Function, GradientTape, Result, Tensor, Variable,
    distribute::{DistributedTensor, Layout, MeshStrategy},
    function, ops,
};

/// A layout of a shape, each of whose sizes divides.
fn random_layout(random: &mut Random, strategy: &MeshStrategy, dims: &[usize]) -> Layout {
    let mesh = strategy.mesh();
    let mut specs = vec![None; dims.len()];
    for mesh_dim in 0..mesh.rank() {
        let axis = random.below(dims.len() + 1);
        if axis < dims.len()
            && specs[axis].is_none()
            && dims[axis].is_multiple_of(mesh.dim_size(mesh_dim))
        {
            specs[axis] = Some(mesh_dim);
        }
    }
    Layout::of_dims(mesh, specs).unwrap()
}

fn random_dims(random: &mut Random) -> Vec<usize> {
    let rank = [0, 1, 2, 2, 3, 3, 4][random.below(7)];
    let size = |random: &mut Random| match random.below(24) {
        0 => 0,
        1..4 => 1,
        n => [2, 3, 4, 6, 8, 12][n % 6],
    };
    let mut dims: Vec<usize> = (0..rank).map(|_| size(random)).collect();
    while dims.iter().product::<usize>() > 600 {
        dims.pop();
    }
    dims
}

type Program = Function<(Tensor, Tensor, Tensor), Vec<Tensor>>;

/// A program of a seed; with gradients by its arguments if it is smooth.
fn program(seed: u64, weight: &Variable, smooth: bool) -> Program {
    let weight = weight.clone();
    let n_steps = 1 + seed as usize % 14;
    function(move |x: Tensor, y: Tensor, n: Tensor| -> Result<Vec<Tensor>> {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        tape.watch(&y)?;
        let floats = vec![x.clone(), y.clone(), weight.read()?];
        let mut results = Generator::new(seed, floats, vec![n], smooth).run(n_steps)?;
        let is_float = |tensor: &&Tensor| tensor.dtype() == x.dtype();
        let floats: Vec<Tensor> = results.iter().filter(is_float).cloned().collect();
        if !smooth || floats.is_empty() {
            return Ok(results);
        }
        let sum = |tensor: &Tensor| ops::sum(&ops::tanh(tensor)?, &all_axes(tensor));
        let sums: Vec<Tensor> = floats.iter().map(sum).collect::<Result<_>>()?;
        let loss = ops::add_n(&sums.iter().collect::<Vec<_>>())?;
        results.extend(tape.gradient(&loss, &[&x, &y])?.into_iter().flatten());
        Ok(results)
    })
}

fn all_axes(tensor: &Tensor) -> Tensor {
    let rank = tensor.shape().rank().unwrap_or(0) as i32;
    HostTensor::vector(&(0..rank).collect::<Vec<i32>>()).unwrap().into()
}

fn numbers(random: &mut Random, dims: &[usize]) -> Tensor {
    let n = dims.iter().product();
    let numbers: Vec<f64> = (0..n).map(|_| random.unit()).collect();
    HostTensor::from_slice(shaped(dims), &numbers).unwrap().into()
}

/// Runs the program of a seed on a mesh and on one device.
fn check(strategy: &MeshStrategy, seed: u64) {
    let mut random = Random::new(seed);
    let smooth = seed.is_multiple_of(3);
    let (x, y) = (random_dims(&mut random), random_dims(&mut random));
    let (n, w) = (random_dims(&mut random), random_dims(&mut random));
    let (x, y) = (numbers(&mut random, &x), numbers(&mut random, &y));
    let ids: Vec<i32> =
        (0..n.iter().product::<usize>()).map(|_| random.below(7) as i32 - 1).collect();
    let n: Tensor = HostTensor::from_slice(shaped(&n), &ids).unwrap().into();
    let weight = Variable::new(numbers(&mut random, &w)).unwrap();
    let program = program(seed, &weight, smooth);
    let expected = program.call((&x, &y, &n));
    let own = random_layout(&mut random, strategy, &w);
    strategy.distribute(&weight, &own).unwrap();
    let args: Vec<DistributedTensor> = [&x, &y, &n]
        .into_iter()
        .map(|tensor| {
            let dims = tensor.shape().known().unwrap();
            let layout = random_layout(&mut random, strategy, dims.dims());
            DistributedTensor::new(tensor, &layout).unwrap()
        })
        .collect();
    let results = strategy.call(&program, &args);
    let Ok(expected) = expected else {
        assert!(results.is_err(), "seed {seed}: {expected:?} on one device");
        return;
    };
    let case = format!("seed {seed}, {args:?}, w {own}");
    let results = results.unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_results(&case, &results, &expected);
    // The same program, with its results in layouts that are asked for.
    let layout = |tensor: &Tensor| {
        let dims = tensor.shape().known().unwrap();
        (random.below(3) > 0).then(|| random_layout(&mut random, strategy, dims.dims()))
    };
    let layouts: Vec<Option<Layout>> = expected.iter().map(layout).collect();
    let types = args.iter().map(|arg| (arg.shape().clone(), arg.layout().clone()));
    let concrete = program.concrete((&x, &y, &n)).unwrap();
    let asked = strategy.partition(&concrete, &types.collect::<Vec<_>>(), &layouts);
    let asked = asked.unwrap_or_else(|error| panic!("{case}, {layouts:?}: {error}"));
    let results = asked.call(&args).unwrap();
    for (result, layout) in results.iter().zip(&layouts) {
        assert!(layout.as_ref().is_none_or(|layout| result.layout() == layout));
    }
    assert_results(&format!("{case}, {layouts:?}"), &results, &expected);
}

fn assert_results(case: &str, results: &[DistributedTensor], expected: &[Tensor]) {
    assert_eq!(results.len(), expected.len(), "{case}");
    for (index, (result, expected)) in results.iter().zip(expected).enumerate() {
        let found = super::distance(&result.fetch().unwrap(), expected).unwrap();
        assert!(found <= 1e-9, "{case}: result {index} is {found} apart");
    }
}

fn check_all(dims: &[(&str, usize)], seeds: std::ops::Range<u64>) {
    on_mesh(dims, |strategy| seeds.for_each(|seed| check(strategy, seed)));
}

/// The number of programs for each mesh.
fn n_programs() -> u64 {
    std::env::var("FERROFLOW_MESH_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(30)
}

#[test]
fn programs_on_one_device() {
    check_all(&[("x", 1)], 0..n_programs());
}

#[test]
fn programs_on_two_devices() {
    check_all(&[("x", 2)], 1000..1000 + n_programs());
}

#[test]
fn programs_on_three_devices() {
    check_all(&[("x", 3)], 2000..2000 + n_programs());
}

#[test]
fn programs_on_four_devices() {
    check_all(&[("x", 4)], 3000..3000 + n_programs());
}

#[test]
fn programs_on_a_mesh_of_two_dimensions() {
    check_all(&[("x", 2), ("y", 2)], 4000..4000 + n_programs());
}
