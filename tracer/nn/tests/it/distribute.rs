//! Strategies over logical CPUs.

use ferroflow_ir::{Code, DType, HostTensor};
use ferroflow_nn::{
    BatchNorm, Dense, Layer, Mode, Module, Weights,
    optimizers::{Adam, Optimizer, Sgd},
};
use ferroflow_runtime::{Context, ContextOptions};
use ferroflow_tracer::{
    Error, GradientTape, Result, Tensor, Variable, VariableOptions, context,
    distribute::{
        MirroredStrategy, OneDeviceStrategy, PerReplica, ReduceOp, VariableAggregation,
        VariableSynchronization, replica_context,
    },
    function,
};
use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering},
};

fn cpus(n: usize) -> Context {
    let threads = NonZeroUsize::new(2);
    let logical_cpus = NonZeroUsize::new(n);
    Context::with_options(ContextOptions { threads, logical_cpus, ..ContextOptions::default() })
}

/// Runs `body` under a strategy of `n` replicas.
fn mirrored<R>(n: usize, body: impl FnOnce(&MirroredStrategy) -> Result<R>) -> R {
    let _guard = context::enter(&cpus(n));
    let names = (0..n).map(|index| format!("/cpu:{index}"));
    body(&MirroredStrategy::new(names).unwrap()).unwrap()
}

fn scalar(value: &Tensor) -> f32 {
    value.to_scalar::<f32>().unwrap()
}

#[test]
fn devices_that_do_not_exist_are_errors() {
    let _guard = context::enter(&cpus(2));
    assert_eq!(context::list_physical_devices()[..2], ["/device:CPU:0", "/device:CPU:1"]);
    let error = MirroredStrategy::new(["CPU:0", "CPU:2"]).unwrap_err();
    assert!(error.to_string().contains("CPU:2 (the context has 2 logical CPUs)"), "{error}");
    assert!(MirroredStrategy::new(["CPU:0", "/device:CPU:0"]).is_err());
    assert!(MirroredStrategy::new::<&str>([]).is_err());
    assert!(OneDeviceStrategy::new("CPU:1").is_ok());
}

#[test]
fn replicas_know_each_other() {
    let seen = mirrored(3, |strategy| {
        strategy.run(&PerReplica::new([10, 20, 30]), |value| {
            let replica = replica_context()?;
            Ok((replica.replica_id_in_sync_group(), replica.device().to_string(), value))
        })
    });
    let expected = [(0, 10), (1, 20), (2, 30)]
        .map(|(rank, value)| (rank, format!("/device:CPU:{rank}"), value));
    assert_eq!(seen.values(), expected);
    assert_eq!(replica_context().unwrap_err().code(), Code::FailedPrecondition);
}

#[test]
fn values_are_reduced_and_gathered() {
    mirrored(3, |strategy| {
        let values = strategy.values_from(|rank| Ok(Tensor::from(vec![rank as f32; rank + 1])))?;
        let all = strategy.gather(&values, 0)?;
        assert_eq!(all.to_vec::<f32>()?, [0.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
        let values = strategy.values_from(|rank| Ok(Tensor::from([rank as i64, 5])))?;
        assert_eq!(strategy.reduce(ReduceOp::Sum, &values)?.to_vec::<i64>()?, [3, 15]);
        assert_eq!(strategy.reduce(ReduceOp::Mean, &values)?.to_vec::<i64>()?, [1, 5]);
        let few = PerReplica::new([Tensor::from(1.0f32)]);
        let error = strategy.reduce(ReduceOp::Sum, &few).unwrap_err();
        assert_eq!(error.to_string(), "a strategy of 3 replicas was given 1 values");
        Ok(())
    });
}

#[test]
fn a_function_is_traced_for_each_replica_and_meets_the_others() {
    mirrored(3, |strategy| {
        let traces = AtomicUsize::new(0);
        let step = function(|x: Tensor| {
            let replica = replica_context()?;
            let rank = replica.replica_id_in_sync_group() as f32;
            replica.all_reduce(ReduceOp::Sum, &(x * 2.0f32)?)? + rank
        });
        for round in 0..3 {
            let values = PerReplica::new([1.0f32, 10.0, 100.0]);
            let sums = strategy.run(&values, |x| {
                traces.fetch_add(1, Ordering::Relaxed);
                step.call((Tensor::from(x + round as f32),))
            })?;
            let sum = 2.0 * (111.0 + 3.0 * round as f32);
            let sums: Vec<f32> = sums.values().iter().map(scalar).collect();
            assert_eq!(sums, [sum, sum + 1.0, sum + 2.0]);
        }
        assert_eq!(step.tracing_count(), 3);
        Ok(())
    });
}

#[test]
fn gradients_go_through_reductions_and_gathers() {
    mirrored(2, |strategy| {
        let check = |traced: bool| {
            let step = |x: Tensor| -> Result<Tensor> {
                let tape = GradientTape::new();
                tape.watch(&x)?;
                let replica = replica_context()?;
                let rank = replica.replica_id_in_sync_group() as f32 + 1.0;
                let sum = replica.all_reduce(ReduceOp::Sum, &x.square()?)?;
                let all = replica.all_gather(&(&x * rank)?)?;
                let loss = (((sum * rank)?.sum_all()? + all.square()?.sum_all()?)?) * 1.0f32;
                tape.gradient(&loss?, &x)?.ok_or(Error::NoGradients)
            };
            let traced_step = function(step);
            let values = PerReplica::new([3.0f32, 5.0]);
            let gradients = strategy.run(&values, |x| {
                let x = Tensor::from([x]);
                if traced { traced_step.call((x,)) } else { step(x) }
            })?;
            // Losses of ranks 1 and 2 weigh the sum 1 and 2; both have the squares of all rows.
            let expected = [3.0f32, 5.0].map(|x| 2.0 * x * 3.0);
            let rows = [2.0 * 3.0 * 2.0, 2.0 * 5.0 * 4.0 * 2.0];
            for rank in 0..2 {
                let found = gradients[rank].to_vec::<f32>()?;
                assert_eq!(found, [expected[rank] + rows[rank]]);
            }
            Ok(())
        };
        check(false)?;
        check(true)
    });
}

/// The weights of a small network after some steps on global batches.
fn trained(strategy: &MirroredStrategy, traced: bool) -> Result<Vec<f32>> {
    let (first, second, optimizer) = strategy.scope(|| {
        let mut weights = Weights::seeded(3);
        let (first, second) = (Dense::new(&mut weights, 3, 4)?, Dense::new(&mut weights, 4, 1)?);
        Ok::<_, Error>((first, second, Optimizer::new(Adam::default(), 0.05)?))
    })?;
    let variables = [first.kernel(), second.kernel()].map(Variable::clone);
    let batch = 12;
    let step = function({
        let (optimizer, variables) = (optimizer.clone(), variables.clone());
        move |x: Tensor| {
            let tape = GradientTape::new();
            let y = second.call(&first.call(&x, Mode::Training)?.tanh()?, Mode::Training)?;
            let loss = ((y - 1.0f32)?.square()?.sum_all()? * (1.0 / batch as f32))?;
            optimizer.minimize(tape, &loss, &variables)?;
            Ok::<_, Error>(loss)
        }
    });
    let rows: Vec<f32> = (0..batch * 3).map(|i| ((i * 5) % 11) as f32 * 0.1 - 0.4).collect();
    let batches = (0..5).map(|_| Tensor::from(rows.clone()).reshape(&[batch as i64, 3]).unwrap());
    for batch in strategy.distribute(batches) {
        let call = |x: Tensor| match traced {
            true => step.call((x,)),
            false => context::with_functions_run_eagerly(true, || step.call((x,))),
        };
        strategy.run(&batch?, call)?;
    }
    assert_eq!(optimizer.iterations().read()?.to_scalar::<i64>()?, 5);
    for variable in variables.iter().chain(&optimizer.variables()) {
        let variable = variable.owned()?;
        let first = variable.component(0)?.host()?.clone();
        for replica in 1..strategy.num_local_replicas() {
            assert_eq!(variable.component(replica)?.host()?.bytes(), first.bytes());
        }
    }
    Ok(variables.iter().flat_map(|v| v.read().unwrap().to_vec::<f32>().unwrap()).collect())
}

#[test]
fn replicas_train_as_one_does_on_the_global_batch() {
    for traced in [false, true] {
        let one = mirrored(1, |strategy| trained(strategy, traced));
        for replicas in [2, 4, 5] {
            let several = mirrored(replicas, |strategy| trained(strategy, traced));
            let near = one.iter().zip(&several).all(|(a, b)| (a - b).abs() < 1e-5);
            assert!(near, "{replicas}: {one:?} {several:?}");
        }
    }
}

#[test]
fn variables_read_as_their_annotations_say() {
    use VariableAggregation as A;
    use VariableSynchronization as S;
    let check = |synchronization, aggregation, expected: f32| {
        mirrored(3, |strategy| {
            let options = VariableOptions { synchronization, aggregation, ..Default::default() };
            let v = strategy.scope(|| Variable::with_options(0.0f32, options))?;
            let values = PerReplica::new([1.0f32, 2.0, 6.0]);
            strategy.run(&values, |x| v.assign(x))?;
            assert_eq!(scalar(&v.read()?), expected);
            v.assign(7.0f32)?;
            let seen = strategy.run(&values, |_| v.read())?;
            assert_eq!(seen.values().iter().map(scalar).collect::<Vec<_>>(), [7.0; 3]);
            Ok(())
        });
    };
    check(S::OnRead, A::Sum, 9.0);
    check(S::OnRead, A::Mean, 3.0);
    check(S::OnRead, A::OnlyFirstReplica, 1.0);
    check(S::Auto, A::Sum, 9.0);
    check(S::OnWrite, A::Mean, 3.0);
    check(S::Auto, A::OnlyFirstReplica, 1.0);
}

#[test]
fn assignments_without_an_aggregation_are_errors_in_replicas() {
    mirrored(2, |strategy| {
        let v = strategy.scope(|| Variable::named("v", 0.0f32))?;
        let error = strategy.run(&PerReplica::new([1.0f32, 2.0]), |x| v.assign_add(x)).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(error.to_string().contains("variable `v`"), "{error}");
        let error = strategy
            .run(&PerReplica::new([(), ()]), |()| Variable::named("late", 0.0f32).map(drop))
            .unwrap_err();
        assert!(error.to_string().contains("in the scope of the strategy"), "{error}");
        let (outside, optimizer) =
            (Variable::named("outside", 1.0f32)?, Optimizer::new(Sgd::default(), 0.1)?);
        let step = |()| {
            let tape = GradientTape::new();
            optimizer.minimize(tape, &outside.read()?.square()?, std::slice::from_ref(&outside))
        };
        let error = strategy.run(&PerReplica::new([(), ()]), step).unwrap_err();
        assert!(error.to_string().contains("outside the scope"), "{error}");
        Ok(())
    });
}

#[test]
fn averages_of_batches_are_each_replicas_own_until_they_are_read() {
    mirrored(2, |strategy| {
        let norm = strategy.scope(|| BatchNorm::new(&mut Weights::seeded(1), 1))?;
        let values = PerReplica::new([[1.0f32, 3.0], [10.0, 30.0]]);
        strategy.run(&values, |x| {
            norm.call(&Tensor::from(x).reshape(&[2, 1])?, Mode::Training).map(drop)
        })?;
        let variables = norm.variables()?;
        let is_mean = |variable: &&Variable| variable.name().ends_with("moving_mean");
        let moving_mean = variables.iter().find(is_mean).unwrap();
        let mean = moving_mean.owned()?.clone();
        let of = |replica| -> Result<f32> {
            Ok(mean.component(replica)?.host()?.as_slice::<f32>().unwrap()[0])
        };
        let share = 1.0 - 0.99;
        assert!((of(0)? - 2.0 * share).abs() < 1e-6 && (of(1)? - 20.0 * share).abs() < 1e-6);
        let read = moving_mean.read()?.to_vec::<f32>()?[0];
        assert!((read - 11.0 * share).abs() < 1e-6);
        Ok(())
    });
}

#[test]
fn the_error_of_one_replica_ends_all() {
    mirrored(3, |strategy| {
        let step = |rank: usize| match rank {
            1 => Err(Error::host("the data is bad")),
            _ => replica_context()?.all_reduce(ReduceOp::Sum, &Tensor::from(1.0f32)),
        };
        let error = strategy.run(&PerReplica::new([0, 1, 2]), step).unwrap_err();
        assert_eq!(error.to_string(), "the data is bad");
        let panics = |rank: usize| {
            assert!(rank != 2, "on purpose");
            replica_context()?.all_reduce(ReduceOp::Sum, &Tensor::from(1.0f32))
        };
        let error = strategy.run(&PerReplica::new([0, 1, 2]), panics).unwrap_err();
        assert_eq!(error.code(), Code::Internal);
        let shapes = |rank: usize| {
            let zeros = HostTensor::zeros(DType::F32, ferroflow_ir::Shape::new([rank]).unwrap());
            replica_context()?.all_reduce(ReduceOp::Sum, &Tensor::from(zeros.unwrap()))
        };
        let error = strategy.run(&PerReplica::new([0, 1, 2]), shapes).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        Ok(())
    });
}

#[test]
fn a_strategy_inside_a_replica_is_an_error() {
    mirrored(2, |strategy| {
        let units = PerReplica::new([(), ()]);
        let nested = |()| strategy.run(&units, |()| Ok(())).map(drop);
        let error = strategy.run(&units, nested).unwrap_err();
        assert!(error.to_string().contains("this is a replica already"), "{error}");
        Ok(())
    });
}

#[test]
fn a_step_is_run_in_replicas_from_inside_a_function() {
    mirrored(3, |strategy| {
        let (total, optimizer, w) = strategy.scope(|| {
            let options = VariableOptions {
                synchronization: VariableSynchronization::OnRead,
                aggregation: VariableAggregation::Sum,
                ..VariableOptions::default()
            };
            let total = Variable::with_options(0.0f32, options)?;
            Ok::<_, Error>((total, Optimizer::new(Sgd::default(), 0.25)?, Variable::new(4.0f32)?))
        })?;
        let step = function({
            let (strategy, total, w) = (strategy.clone(), total.clone(), w.clone());
            move |batch: Tensor| {
                let losses = strategy.run(&strategy.split(&batch)?, |x: Tensor| {
                    let tape = GradientTape::new();
                    let loss = ((w.read()? * x)?.sum_all()? * (1.0f32 / 6.0))?;
                    optimizer.minimize(tape, &loss, std::slice::from_ref(&w))?;
                    total.assign_add(&loss)?;
                    Ok(loss)
                })?;
                let [a, b, c] = [0, 1, 2].map(|replica| losses[replica].clone());
                (a + b)? + c
            }
        });
        for round in 0..3 {
            let before = 4.0 - 0.25 * 3.5 * round as f32;
            let loss = step.call((Tensor::from([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]),))?;
            assert!((scalar(&loss) - before * 3.5).abs() < 1e-5);
            assert!((scalar(&w.read()?) - (before - 0.25 * 3.5)).abs() < 1e-5);
        }
        assert!((scalar(&total.read()?) - 3.5 * (4.0 + 3.125 + 2.25)).abs() < 1e-4);
        assert_eq!(step.tracing_count(), 1);
        Ok(())
    });
}
