//! Optimizers and images on meshes of devices.

use ferroflow_ir::{HostTensor, Shape};
use ferroflow_nn::optimizers::{Adam, Algorithm, Optimizer, Sgd};
use ferroflow_runtime::{Context, ContextOptions};
use ferroflow_tracer::{
    Function, GradientTape, Result, Tensor, Variable, context,
    distribute::{CollectiveKind, DistributedTensor, Layout, Mesh, MeshStrategy},
    function, ops,
};
use std::num::NonZeroUsize;

fn on_mesh(dims: &[(&str, usize)], body: impl FnOnce(&MeshStrategy) -> Result<()>) {
    let n: usize = dims.iter().map(|(_, size)| size).product();
    let options =
        ContextOptions { logical_cpus: NonZeroUsize::new(n), ..ContextOptions::default() };
    let _guard = context::enter(&Context::with_options(options));
    let mesh = Mesh::new(dims.iter().copied(), (0..n).map(|i| format!("CPU:{i}"))).unwrap();
    body(&MeshStrategy::new(&mesh).unwrap()).unwrap();
}

/// Numbers of a wave, which look random enough.
fn wave(dims: &[usize], phase: f32) -> Tensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    let numbers: Vec<f32> =
        (0..shape.num_elements()).map(|n| (n as f32 * 1.7 + phase).sin() * 0.4).collect();
    HostTensor::from_slice(shape, &numbers).unwrap().into()
}

fn assert_close(a: &Tensor, b: &Tensor) {
    let (a, b) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{a} and {b}");
    }
}

type Step = Function<(Tensor, Tensor), Tensor>;

/// A network of a convolution, a pool and two layers, and a step that trains it.
fn network(rule: impl Algorithm + 'static) -> Result<(Vec<Variable>, Step)> {
    let weights = vec![
        Variable::named("filter", wave(&[3, 3, 1, 4], 0.0))?,
        Variable::named("first", wave(&[64, 8], 1.0))?,
        Variable::named("second", wave(&[8, 3], 2.0))?,
    ];
    let optimizer = Optimizer::new(rule, 0.05)?;
    let own = weights.clone();
    let step = function(move |x: Tensor, labels: Tensor| -> Result<Tensor> {
        let tape = GradientTape::new();
        let maps = ops::relu(&ops::conv2d(&x, &own[0].read()?, &[1, 1, 1, 1], "SAME")?)?;
        let pooled = ops::max_pool(&maps, &[1, 2, 2, 1], &[1, 2, 2, 1], "SAME")?;
        let flat = pooled.reshape(&[-1, 64])?;
        let hidden = ops::tanh(&ops::matmul(&flat, &own[1].read()?)?)?;
        let scores = ops::matmul(&hidden, &own[2].read()?)?;
        let [losses, _] = ops::sparse_softmax_cross_entropy_with_logits(&scores, &labels)?;
        let loss = losses.mean(&[0])?;
        optimizer.minimize(tape, &loss, &own)?;
        Ok(loss)
    });
    Ok((weights, step))
}

/// Steps of the network on one device and on a mesh.
fn check<A: Algorithm + Clone + 'static>(
    strategy: &MeshStrategy,
    rule: &A,
    specs: &[(usize, [&str; 2])],
) -> Result<()> {
    let (single, single_step) = network(rule.clone())?;
    let (own, own_step) = network(rule.clone())?;
    let mesh = strategy.mesh();
    for (weight, specs) in specs {
        strategy.distribute(&own[*weight], &Layout::new(mesh, specs)?)?;
    }
    let (x, labels) = (wave(&[4, 8, 8, 1], 3.0), Tensor::from([0i32, 2, 1, 0]));
    let batch = if mesh.dim("batch").is_ok() { "batch" } else { "unsharded" };
    let images = Layout::new(mesh, [batch, "unsharded", "unsharded", "unsharded"])?;
    let args = [
        DistributedTensor::new(&x, &images)?,
        DistributedTensor::new(&labels, &Layout::new(mesh, [batch])?)?,
    ];
    for _ in 0..4 {
        let expected = single_step.call((&x, &labels))?;
        let loss = strategy.call(&own_step, &args)?;
        assert_close(&loss[0].fetch()?, &expected);
    }
    for (single, own) in single.iter().zip(&own) {
        assert_close(&own.read()?, &single.read()?);
    }
    let program = strategy.program(&own_step, &args)?;
    assert_eq!(program.report().gathered().count(), 0, "{}", program.report());
    assert!(program.report().count(CollectiveKind::AllReduce) > 0);
    Ok(())
}

#[test]
fn optimizers_step_pieces_as_whole_weights() {
    let pair = [(1, ["unsharded", "model"]), (2, ["model", "unsharded"])];
    on_mesh(&[("batch", 2), ("model", 2)], |strategy| {
        check(strategy, &Adam::default(), &pair)?;
        check(strategy, &Sgd { momentum: 0.9, ..Sgd::default() }, &pair)
    });
}

#[test]
fn batches_of_images_may_be_split() {
    on_mesh(&[("batch", 4)], |strategy| {
        check(strategy, &Sgd { momentum: 0.9, ..Sgd::default() }, &[])?;
        // A small epsilon makes large steps of gradients that are rounding alone.
        check(strategy, &Adam { epsilon: 1e-3, ..Adam::default() }, &[])
    });
}

/// The slots of a weight in pieces are in pieces too.
#[test]
fn slots_have_the_layouts_of_their_weights() {
    on_mesh(&[("model", 2)], |strategy| {
        let w = strategy
            .variable(wave(&[4, 4], 0.0), &Layout::new(strategy.mesh(), ["model", "unsharded"])?)?;
        let optimizer = Optimizer::new(Adam::default(), 0.1)?;
        let (weights, own) = ([w.clone()], optimizer.clone());
        let step = function(move |x: Tensor| -> Result<Tensor> {
            let tape = GradientTape::new();
            let loss = ops::square(&(weights[0].read()? * x)?)?.sum(&[0, 1])?;
            own.minimize(tape, &loss, &weights)?;
            Ok(loss)
        });
        let x = DistributedTensor::new(&2.0f32.into(), &Layout::replicated(strategy.mesh(), 0))?;
        strategy.call(&step, &[x])?;
        let slots = optimizer.variables();
        let split = slots.iter().filter(|slot| slot.shape() == w.shape());
        let split: Vec<&Variable> = split.collect();
        assert_eq!(split.len(), 2);
        for slot in split {
            let layout = slot.owned()?.layout().map(ToString::to_string);
            assert_eq!(layout.as_deref(), Some("(model, unsharded)"));
        }
        Ok(())
    });
}

/// Rows of a table of embeddings, which is split by rows or by columns.
#[test]
fn embeddings_in_pieces_learn_as_whole_ones_do() {
    for specs in [["model", "unsharded"], ["unsharded", "model"]] {
        on_mesh(&[("batch", 2), ("model", 2)], |strategy| {
            let made = || -> Result<(Variable, Function<(Tensor,), Tensor>)> {
                let table = Variable::new(wave(&[6, 4], 0.0))?;
                let (own, optimizer) = (table.clone(), Optimizer::new(Sgd::default(), 0.5)?);
                let step = function(move |ids: Tensor| -> Result<Tensor> {
                    let tape = GradientTape::new();
                    let rows = ops::gather_v2(&own.read()?, &ids, &Tensor::from(0i32))?;
                    let loss = ops::square(&rows)?.sum(&[0, 1])?;
                    optimizer.minimize(tape, &loss, std::slice::from_ref(&own))?;
                    let handle = own.handle();
                    let looked_up = ops::resource_gather(&handle, &ids, ferroflow_ir::DType::F32)?;
                    loss + looked_up.sum(&[0, 1])?
                });
                Ok((table, step))
            };
            let ((single, single_step), (own, own_step)) = (made()?, made()?);
            strategy.distribute(&own, &Layout::new(strategy.mesh(), specs)?)?;
            let ids = Tensor::from([0i32, 5, 3, 3]);
            let args = [DistributedTensor::new(&ids, &Layout::new(strategy.mesh(), ["batch"])?)?];
            for _ in 0..3 {
                let expected = single_step.call((&ids,))?;
                let loss = strategy.call(&own_step, &args)?;
                assert_close(&loss[0].fetch()?, &expected);
            }
            assert_close(&own.read()?, &single.read()?);
            let text = strategy.program(&own_step, &args)?.text();
            assert!(text.contains("ResourceScatterSub"), "{text}");
            let outside = Tensor::from([0i32, 1, 2, 6]);
            let outside = DistributedTensor::new(&outside, args[0].layout())?;
            assert!(strategy.call(&own_step, &[outside]).is_err());
            Ok(())
        });
    }
}
