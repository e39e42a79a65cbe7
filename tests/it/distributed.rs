//! Strategies and models: what was saved from one replica runs and learns in several.

use ferroflow::{
    GradientTape, Tensor, Trackable, Variable,
    distribute::{
        MirroredStrategy, PerReplica, ReduceOp, VariableAggregation, VariableSynchronization,
        replica_context,
    },
    function,
    ir::{HostTensor, Shape},
    loaded_function,
    nn::optimizers::{Adam, Optimizer},
    runtime::{Context, ContextOptions, EagerTensor},
    save,
    saved_model::{
        LoadOptions, Object, SaveOptions, VariablePolicy, load,
        proto::{self, saved_object::Kind},
        read_message,
    },
    tracer::{self, Function, VariableOptions, context},
};
use std::{collections::BTreeMap, error::Error, num::NonZeroUsize, path::Path};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn cpus(n: usize) -> Context {
    let logical_cpus = NonZeroUsize::new(n);
    Context::with_options(ContextOptions { logical_cpus, ..ContextOptions::default() })
}

/// Runs `body` under a strategy of `n` replicas.
fn mirrored<R>(n: usize, body: impl FnOnce(&MirroredStrategy) -> Outcome<R>) -> Outcome<R> {
    let _guard = context::enter(&cpus(n));
    body(&MirroredStrategy::new((0..n).map(|index| format!("CPU:{index}")))?)
}

/// The root of a model, loaded in the scope of a strategy.
fn loaded(strategy: &MirroredStrategy, folder: &Path) -> Outcome<Object> {
    let context = context::context();
    let model = strategy.scope(|| load(&context, folder, &LoadOptions::default()))?;
    Ok(model.root().ok_or("a model with objects")?)
}

fn call(object: &Object, path: &str, arg: &Tensor) -> tracer::Result<Vec<f32>> {
    let function = object.get(path).and_then(|f| f.function()).map_err(tracer::Error::host)?;
    let arg: EagerTensor = arg.eager()?.clone();
    let value = function.call(&[arg.into()], &BTreeMap::new()).map_err(tracer::Error::host)?;
    let tensor = value.tensor().ok_or_else(|| tracer::Error::host("no tensor"))?;
    Ok(tensor.host()?.as_slice::<f32>().map_err(tracer::Error::host)?.to_vec())
}

type Unary = Function<(Tensor,), Tensor>;

/// A layer with an average of what it has seen, as batch normalisation has.
#[derive(Trackable)]
struct Model {
    w: Variable,
    average: Variable,
    predict: Unary,
    observe: Unary,
}

fn model(average: VariableOptions) -> tracer::Result<Model> {
    let w = Variable::named("w", [0.5f32, -1.0])?;
    let average = Variable::with_options(0.0f32, average)?;
    let predict = function({
        let w = w.clone();
        move |x: Tensor| (&x * &w)?.tanh()
    });
    let observe = function({
        let (average, w) = (average.clone(), w.clone());
        move |x: Tensor| {
            let change = ((x.mean(&[0, 1])? - average.read()?)? * 0.5f32)?;
            average.assign_add(&change)?;
            (&x - average.read()?)? * &w
        }
    });
    let x = ferroflow::spec(ferroflow::ir::DType::F32, [None, Some(2)]);
    let predict = predict.with_name("predict").with_input_signature([x.clone()]);
    let observe = observe.with_name("observe").with_input_signature([x]);
    Ok(Model { w, average, predict, observe })
}

fn saved(folder: &Path, average: VariableOptions) -> Outcome {
    let model = model(average)?;
    save(&model, folder, &SaveOptions::default())?;
    Ok(())
}

fn named(name: &str) -> VariableOptions {
    VariableOptions { name: name.into(), ..VariableOptions::default() }
}

fn batch() -> Tensor {
    let rows: Vec<f32> = (0..16).map(|i| ((i * 7) % 13) as f32 * 0.2 - 1.0).collect();
    HostTensor::from_slice(Shape::new([8, 2]).unwrap(), &rows).unwrap().into()
}

/// The weights of a loaded model after some steps of training on global batches.
fn trained(folder: &Path, replicas: usize) -> Outcome<Vec<f32>> {
    mirrored(replicas, |strategy| {
        let root = loaded(strategy, folder)?;
        let w = root.get("w")?.variable().ok_or("a variable")?.clone();
        assert_eq!(w.n_components(), replicas);
        let predict = loaded_function(&root.get("predict")?.function()?.traces()[0])?;
        let optimizer = strategy.scope(|| Optimizer::new(Adam::default(), 0.1))?;
        let variable = Variable::from(w.clone());
        for global in strategy.distribute((0..6).map(|_| batch())) {
            strategy.run(&global?, |x| {
                let tape = GradientTape::new();
                let y = predict.call_flat(&[x])?.remove(0);
                let loss = ((y - 0.25f32)?.square()?.sum_all()? * (1.0f32 / 8.0))?;
                optimizer.minimize(tape, &loss, std::slice::from_ref(&variable))
            })?;
        }
        for replica in 1..replicas {
            let own = w.component(replica)?.host()?.bytes().to_vec();
            assert_eq!(own, w.component(0)?.host()?.bytes());
        }
        Ok(w.read()?.as_slice::<f32>()?.to_vec())
    })
}

// spec: 216, 220
#[test]
fn a_model_of_one_machine_is_distributed_where_it_is_loaded_in_a_scope() -> Outcome {
    let folder = tempfile::tempdir()?;
    saved(folder.path(), named("average"))?;
    let one = trained(folder.path(), 1)?;
    assert!((one[0] - 0.5).abs() > 0.1);
    for replicas in [2, 3, 4] {
        let several = trained(folder.path(), replicas)?;
        assert!(one.iter().zip(&several).all(|(a, b)| (a - b).abs() < 1e-5), "{one:?} {several:?}");
    }
    Ok(())
}

// spec: 218
#[test]
fn a_captured_variable_is_that_of_the_replica_that_calls() -> Outcome {
    let folder = tempfile::tempdir()?;
    saved(folder.path(), named("average"))?;
    mirrored(2, |strategy| {
        let root = loaded(strategy, folder.path())?;
        let w = root.get("w")?.variable().ok_or("a variable")?.clone();
        let function = root.get("predict")?.function()?.traces()[0].concrete_function().clone();
        let graph = function.def().graph.to_string();
        w.assign_component(1, HostTensor::vector(&[2.0f32, 0.0])?)?;
        let x = Tensor::from([[1.0f32, 1.0]]);
        let ys = strategy.run(&PerReplica::new([x.clone(), x.clone()]), |x| {
            Ok(Tensor::from(call(&root, "predict", &x)?))
        })?;
        let expected = [[0.5f32, -1.0], [2.0, 0.0]].map(|w| w.map(f32::tanh));
        for (y, expected) in ys.values().iter().zip(expected) {
            let near = y.to_vec::<f32>()?.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
            assert!(near);
        }
        assert_eq!(call(&root, "predict", &x)?, ys[0].to_vec::<f32>()?);
        assert_eq!(function.def().graph.to_string(), graph);
        Ok(())
    })
}

fn variables(folder: &Path) -> Outcome<Vec<proto::SavedVariable>> {
    let model: proto::SavedModel = read_message(&folder.join("saved_model.pb"))?;
    let objects = model.meta_graphs[0].object_graph_def.clone().ok_or("objects")?;
    let variables = objects.nodes.into_iter().filter_map(|node| match node.kind {
        Some(Kind::Variable(variable)) => Some(variable),
        _ => None,
    });
    Ok(variables.collect())
}

// spec: 217
#[test]
fn a_file_says_the_devices_that_are_in_force_where_that_is_asked_for() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    mirrored(2, |strategy| {
        let model = strategy.scope(|| model(named("average")))?;
        for (name, variable_policy) in [
            ("none", VariablePolicy::None),
            ("devices", VariablePolicy::SaveVariableDevices),
            ("all", VariablePolicy::ExpandDistributedVariables),
        ] {
            let mut options = SaveOptions::default();
            options.variable_policy = variable_policy;
            save(&model, path(name), &options)?;
        }
        Ok(())
    })?;
    for variable in variables(&path("none"))? {
        assert!(variable.device.is_empty());
        assert!(variable.experimental_distributed_variable_components.is_empty());
    }
    for variable in variables(&path("devices"))? {
        assert_eq!(variable.device, "/device:CPU:0");
        assert!(variable.experimental_distributed_variable_components.is_empty());
    }
    let all = variables(&path("all"))?;
    let w = all.iter().find(|variable| variable.name == "w").ok_or("w")?;
    let components = w.experimental_distributed_variable_components.iter();
    let components: Vec<_> = components.map(|v| (v.name.as_str(), v.device.as_str())).collect();
    assert_eq!(components, [("w", "/device:CPU:0"), ("w/replica_1", "/device:CPU:1")]);
    // A model of replicas runs on one machine as well.
    let model = load(&Context::new(), path("all"), &LoadOptions::default())?;
    let root = model.root().ok_or("objects")?;
    assert_eq!(call(&root, "predict", &Tensor::from([[0.0f32, 0.0]]))?, [0.0, 0.0]);
    Ok(())
}

// spec: 219
#[test]
fn files_carry_how_variables_are_synchronised_and_aggregated() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (first, second) = (folder.path().join("1"), folder.path().join("2"));
    let mean = VariableOptions {
        synchronization: VariableSynchronization::OnRead,
        aggregation: VariableAggregation::Mean,
        ..named("average")
    };
    saved(&first, mean)?;
    let said = |folder: &Path| -> Outcome<Vec<(String, i32, i32)>> {
        let said = variables(folder)?.into_iter();
        let mut said: Vec<_> = said.map(|v| (v.name, v.synchronization, v.aggregation)).collect();
        said.sort();
        Ok(said)
    };
    let expected = [("average".to_string(), 3, 2), ("w".to_string(), 0, 0)];
    assert_eq!(said(&first)?, expected);
    let model = load(&Context::new(), &first, &LoadOptions::default())?;
    let root = model.root().ok_or("objects")?;
    let annotations = root.get("average")?.variable().ok_or("a variable")?.annotations();
    assert_eq!(annotations.synchronization, VariableSynchronization::OnRead);
    assert_eq!(annotations.aggregation, VariableAggregation::Mean);
    save(&root, &second, &SaveOptions::default())?;
    assert_eq!(said(&second)?, expected);
    Ok(())
}

/// The average outside replicas, and that of each replica, after a loaded function has changed it; and
/// the average that a checkpoint of the model then holds.
fn observed(average: VariableOptions) -> Outcome<(f32, Vec<f32>, f32)> {
    let folder = tempfile::tempdir()?;
    let (first, second) = (folder.path().join("1"), folder.path().join("2"));
    saved(&first, average)?;
    let (read, own) = mirrored(2, |strategy| {
        let root = loaded(strategy, &first)?;
        let xs = [[[1.0f32, 3.0]], [[10.0, 30.0]]].map(Tensor::from);
        strategy.run(&PerReplica::new(xs), |x| call(&root, "observe", &x).map(drop))?;
        let average = root.get("average")?.variable().ok_or("a variable")?.clone();
        let own: Vec<f32> = (0..2)
            .map(|n| Ok(average.component(n)?.host()?.as_scalar::<f32>()?))
            .collect::<Outcome<_>>()?;
        save(&root, &second, &SaveOptions::default())?;
        Ok((average.read()?.as_scalar::<f32>()?, own))
    })?;
    let model = load(&Context::new(), &second, &LoadOptions::default())?;
    let average = model.root().ok_or("objects")?.get("average")?;
    let kept = average.variable().ok_or("a variable")?.read()?.as_scalar::<f32>()?;
    Ok((read, own, kept))
}

// spec: 222
#[test]
fn averages_in_loaded_graphs_are_each_replicas_own_until_they_are_read() -> Outcome {
    let mean = VariableOptions {
        synchronization: VariableSynchronization::OnRead,
        aggregation: VariableAggregation::Mean,
        ..named("average")
    };
    assert_eq!(observed(mean)?, (5.5, vec![1.0, 10.0], 5.5));
    // What says nothing is the first replica's, with a warning.
    assert_eq!(observed(named("average"))?, (1.0, vec![1.0, 10.0], 1.0));
    Ok(())
}

// spec: 215
#[test]
fn a_strategy_trains_inside_a_function() -> Outcome {
    let weights = |replicas: usize| {
        mirrored(replicas, |strategy| {
            let (w, optimizer) = strategy.scope(|| {
                let optimizer = Optimizer::new(Adam::default(), 0.1)?;
                Ok::<_, tracer::Error>((Variable::named("w", [0.5f32, -1.0])?, optimizer))
            })?;
            let step = function({
                let (strategy, w) = (strategy.clone(), w.clone());
                move |batch: Tensor| {
                    let losses = strategy.run(&strategy.split(&batch)?, |x: Tensor| {
                        let tape = GradientTape::new();
                        let error = ((&x * &w)?.tanh()? - 0.25f32)?.square()?.sum_all()?;
                        let loss = (error * (1.0f32 / 8.0))?;
                        optimizer.minimize(tape, &loss, std::slice::from_ref(&w))?;
                        replica_context()?.all_reduce(ReduceOp::Sum, &loss)
                    })?;
                    Ok::<_, tracer::Error>(losses[0].clone())
                }
            });
            let losses: Vec<f32> = (0..6)
                .map(|_| step.call((batch(),))?.to_scalar::<f32>())
                .collect::<tracer::Result<_>>()?;
            assert!(losses.is_sorted_by(|a, b| a > b), "{losses:?}");
            assert_eq!(step.tracing_count(), 1);
            Ok(w.read()?.to_vec::<f32>()?)
        })
    };
    let one = weights(1)?;
    for replicas in [2, 4] {
        let several = weights(replicas)?;
        assert!(one.iter().zip(&several).all(|(a, b)| (a - b).abs() < 1e-5), "{one:?} {several:?}");
    }
    Ok(())
}

// spec: 214
#[cfg(feature = "cluster")]
#[test]
fn devices_may_be_those_of_other_processes() -> Outcome {
    use ferroflow::cluster::remote::{
        ConnectOptions, ServerOptions, WorkerServer, connect_to_host,
    };
    let options = ServerOptions { task: 1, ..ServerOptions::default() };
    let server = WorkerServer::start("127.0.0.1:0", &options)?;
    let context = Context::new();
    let task = ConnectOptions { task: 1, ..ConnectOptions::default() };
    let names = connect_to_host(&context, server.address(), &task)?;
    let _guard = context::enter(&context);
    let square = function(|x: Tensor| (&x * &x)? + 1.0f32);
    let name = "/job:worker/task:1/device:CPU:0";
    let (sum, called) = ferroflow::device(name, || {
        let x = Tensor::from([1.0f32, 2.0]);
        Ok(((&x + &x)?, square.call((x,))?))
    })?;
    for (tensor, expected) in [(sum, [2.0f32, 4.0]), (called, [2.0, 5.0])] {
        assert_eq!(tensor.eager()?.device(), Some(names[0].as_str()));
        assert_eq!(tensor.host()?.as_slice::<f32>()?, expected);
        // Read here, it is used here as any tensor is.
        let here = (tensor * 2.0f32)?;
        assert_eq!(here.host()?.as_slice::<f32>()?, expected.map(|value| 2.0 * value));
    }
    Ok(())
}
