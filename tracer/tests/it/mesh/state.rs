//! State and effects on meshes: variables in pieces, and what devices share.

use super::{assert_close, ids, layout, noise, on_mesh, shaped, split};
use ferroflow_ir::{Code, DType, HostTensor};
use ferroflow_tracer::{
    GradientTape, Result, Tensor, Variable, cond,
    distribute::{CollectiveKind, DistributedTensor, Layout},
    function, ops, while_loop,
};

/// A variable is changed once, however many devices there are.
#[test]
fn replicated_variables_are_changed_once() {
    on_mesh(&[("x", 3)], |strategy| {
        let counter = Variable::new(1i32).unwrap();
        let count = {
            let counter = counter.clone();
            function(move |x: Tensor| {
                counter.assign_add(&ops::sum(&x, &Tensor::from(0i32))?)?;
                counter.assign_add(1)?;
                counter.read()
            })
        };
        let x = split(strategy, &HostTensor::vector(&[1i32, 2, 3]).unwrap().into(), &["x"]);
        for expected in [8, 15] {
            let result = strategy.call(&count, std::slice::from_ref(&x)).unwrap();
            assert_eq!(result[0].fetch().unwrap().to_scalar::<i32>().unwrap(), expected);
            assert_eq!(counter.read().unwrap().to_scalar::<i32>().unwrap(), expected);
        }
        counter.assign(100).unwrap();
        let result = strategy.call(&count, &[x]).unwrap();
        assert_eq!(result[0].fetch().unwrap().to_scalar::<i32>().unwrap(), 107);
    });
}

/// Code outside sees whole values of variables in pieces, and changes them.
#[test]
fn variables_in_pieces_are_whole_outside() {
    on_mesh(&[("x", 2)], |strategy| {
        let rows = layout(strategy, &["x", "unsharded"]);
        let w = strategy.variable(noise(&[4, 3], 1), &rows).unwrap();
        let first = w.read().unwrap();
        w.assign_add(&first).unwrap();
        assert_close(&w.read().unwrap(), &(&first + &first).unwrap(), 1e-6);
        let double = {
            let w = w.clone();
            function(move |x: Tensor| {
                w.assign_add(&ops::mul(&w.read()?, &x)?)?;
                ops::shape(&w.read()?)
            })
        };
        // On one device and on the mesh alike.
        double.call((1.0f32,)).unwrap();
        let one = DistributedTensor::new(&1.0f32.into(), &Layout::replicated(strategy.mesh(), 0));
        let shape = strategy.call(&double, &[one.unwrap()]).unwrap();
        assert_eq!(shape[0].fetch().unwrap().to_vec::<i32>().unwrap(), [4, 3]);
        assert_close(&w.read().unwrap(), &(first * Tensor::from(8.0f32)).unwrap(), 1e-6);
        assert_eq!(w.owned().unwrap().component(1).unwrap().shape().dims(), [2, 3]);
    });
}

/// The hidden state of random ops is that of one device.
#[test]
fn random_numbers_are_those_of_one_device() {
    let drawn = |devices| {
        on_mesh(&[("x", devices)], |strategy| {
            let draw = function(|x: Tensor| -> Result<Vec<Tensor>> {
                let attrs = ops::RandomUniformAttrs { seed: 3, seed2: 4 };
                let noise = ops::random_uniform_with(&ops::shape(&x)?, DType::F32, &attrs)?;
                Ok(vec![(&x + &noise)?, ops::sum(&noise, &Tensor::from(0i32))?])
            });
            let zeros = HostTensor::zeros(DType::F32, shaped(&[4])).unwrap().into();
            let x = split(strategy, &zeros, &["x"]);
            let mut all = Vec::new();
            for _ in 0..3 {
                let results = strategy.call(&draw, std::slice::from_ref(&x)).unwrap();
                for result in results {
                    all.extend(result.fetch().unwrap().to_vec::<f32>().unwrap());
                }
            }
            all
        })
    };
    let expected = drawn(1);
    assert_eq!(expected.len(), 15);
    assert!(expected[0] != expected[5], "state goes on");
    for devices in [2, 4] {
        let found = drawn(devices);
        let apart = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0.0, f32::max) < 1e-6);
    }
}

/// A table of a vocabulary that is split: devices look up what they have, and what nobody has is an error.
#[test]
fn vocabularies_may_be_split() {
    on_mesh(&[("batch", 2), ("model", 2)], |strategy| {
        let table = Variable::new(noise(&[8, 4], 5)).unwrap();
        let lookup = {
            let table = table.clone();
            function(move |ids: Tensor| ops::gather_v2(&table.read()?, &ids, &Tensor::from(0i32)))
        };
        let places = ids(&[6], 8, 7);
        let expected = lookup.call((&places,)).unwrap();
        strategy.distribute(&table, &layout(strategy, &["model", "unsharded"])).unwrap();
        let args = [split(strategy, &places, &["batch"])];
        let found = strategy.call(&lookup, &args).unwrap();
        assert_close(&found[0].fetch().unwrap(), &expected, 0.0);
        let program = strategy.program(&lookup, &args).unwrap();
        assert_eq!(program.report().count(CollectiveKind::AllReduce), 1);
        assert_eq!(program.report().count(CollectiveKind::AllGather), 0);
        for outside in [-1, 8] {
            let places = HostTensor::vector(&[0, 1, 2, 3, 4, outside]).unwrap().into();
            let error =
                strategy.call(&lookup, &[split(strategy, &places, &["batch"])]).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{error}");
            assert!(lookup.call((&places,)).is_err());
        }
    });
}

#[test]
fn loops_and_branches_run_on_all_devices() {
    on_mesh(&[("x", 2)], |strategy| {
        let scale = Variable::new(2.0f32).unwrap();
        let repeat = {
            let scale = scale.clone();
            function(move |x: Tensor| -> Result<Tensor> {
                let n = ops::sum(&x, &Tensor::from(0i32))?;
                let grown = while_loop(
                    |(sum, _): &(Tensor, Tensor)| ops::less(sum, &Tensor::from(50.0f32)),
                    |(sum, x): (Tensor, Tensor)| {
                        scale.assign_add(1.0f32)?;
                        Ok(((sum * scale.read()?)?, (x + Tensor::from(1.0f32))?))
                    },
                    (n, x),
                )?;
                let large = ops::greater(&grown.0, &Tensor::from(60.0f32))?;
                cond(&large, || Ok(grown.1.clone()), || ops::neg(&grown.1))
            })
        };
        let x: Tensor = HostTensor::vector(&[1.0f32, 2.0]).unwrap().into();
        let expected = repeat.call((&x,)).unwrap();
        let after = scale.read().unwrap();
        scale.assign(2.0f32).unwrap();
        let y = strategy.call(&repeat, &[split(strategy, &x, &["x"])]).unwrap();
        assert_close(&y[0].fetch().unwrap(), &expected, 1e-6);
        assert_close(&scale.read().unwrap(), &after, 0.0);
    });
}

/// Tensors of every dtype that travels.
#[test]
fn dtypes_travel() {
    use DType::{BF16, Bool, C64, C128, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    let dtypes = [BF16, Bool, C64, C128, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64];
    on_mesh(&[("x", 2)], |strategy| {
        for dtype in dtypes {
            let travel = function(move |x: Tensor| -> Result<Vec<Tensor>> {
                let axis = Tensor::from(0i32);
                let x = ops::cast(&x, dtype)?;
                let reversed = ops::reverse_v2(&x, &HostTensor::vector(&[0i32])?.into())?;
                let columns = ops::reverse_v2(&x, &HostTensor::vector(&[1i32])?.into())?;
                if dtype == Bool {
                    return Ok(vec![reversed, columns, ops::all(&x, &axis)?, ops::any(&x, &axis)?]);
                }
                let mut results = vec![reversed, columns, ops::sum(&x, &axis)?];
                results.extend([ops::prod(&x, &axis)?, ops::mean(&x, &axis)?]);
                if ![C64, C128].contains(&dtype) {
                    results.extend([ops::max(&x, &axis)?, ops::min(&x, &axis)?]);
                }
                Ok(results)
            });
            let numbers: Vec<f32> = (0..8).map(|n| n as f32).collect();
            let x = HostTensor::from_slice(shaped(&[2, 4]), &numbers).unwrap().into();
            let expected = travel.call((&x,)).unwrap();
            for specs in [["x", "unsharded"], ["unsharded", "x"]] {
                let results = strategy.call(&travel, &[split(strategy, &x, &specs)]).unwrap();
                for (result, expected) in results.iter().zip(&expected) {
                    let result = result.fetch().unwrap();
                    let (own, other) = (result.host().unwrap(), expected.host().unwrap());
                    assert_eq!(own.bytes(), other.bytes(), "{dtype} {specs:?}");
                }
            }
        }
    });
}

/// Largest and smallest elements are NaN if any is, on whatever device.
#[test]
fn extremes_of_pieces_are_those_of_the_whole() {
    on_mesh(&[("x", 2)], |strategy| {
        let extremes = function(|x: Tensor| -> Result<Vec<Tensor>> {
            let axis = Tensor::from(0i32);
            Ok(vec![ops::max(&x, &axis)?, ops::min(&x, &axis)?])
        });
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        for numbers in [[1.0, nan], [nan, 1.0], [inf, nan], [-inf, inf], [-0.0, 0.0]] {
            let x = HostTensor::vector(&numbers).unwrap().into();
            let expected = extremes.call((&x,)).unwrap();
            let results = strategy.call(&extremes, &[split(strategy, &x, &["x"])]).unwrap();
            for (result, expected) in results.iter().zip(&expected) {
                assert_close(&result.fetch().unwrap(), expected, 0.0);
            }
        }
    });
}

/// Collectives inside loops and branches, of weights in pieces that are changed there.
#[test]
fn weights_in_pieces_learn_inside_loops() {
    on_mesh(&[("batch", 2), ("model", 2)], |strategy| {
        let weights = || -> Result<[Variable; 2]> {
            Ok([Variable::new(noise(&[4, 8], 1))?, Variable::new(noise(&[8, 2], 2))?])
        };
        let descent = |[a, b]: &[Variable; 2]| {
            let (a, b) = (a.clone(), b.clone());
            function(move |x: Tensor| -> Result<Vec<Tensor>> {
                let step = |x: &Tensor| -> Result<Tensor> {
                    let tape = GradientTape::new();
                    let hidden = ops::tanh(&ops::matmul(x, &a.read()?)?)?;
                    let out = ops::matmul(&hidden, &b.read()?)?;
                    let axes = HostTensor::vector(&[0i32, 1])?.into();
                    let loss = ops::mean(&ops::square(&out)?, &axes)?;
                    for (weight, gradient) in
                        [&a, &b].into_iter().zip(tape.gradient(&loss, &[&a, &b])?)
                    {
                        weight.assign_sub(
                            &(gradient.expect("it depends on it") * Tensor::from(0.1f32))?,
                        )?;
                    }
                    Ok(loss)
                };
                let (_, loss, x) = while_loop(
                    |(n, _, _): &(Tensor, Tensor, Tensor)| ops::less(n, &Tensor::from(3i32)),
                    |(n, _, x): (Tensor, Tensor, Tensor)| {
                        let loss = step(&x)?;
                        let reversed = ops::reverse_v2(&x, &HostTensor::vector(&[0i32])?.into())?;
                        Ok(((n + Tensor::from(1i32))?, loss, reversed))
                    },
                    (Tensor::from(0i32), Tensor::from(0.0f32), x),
                )?;
                let large = ops::greater(&loss, &Tensor::from(0.001f32))?;
                let y = cond(&large, || ops::matmul(&x, &a.read()?), || ops::neg(&a.read()?))?;
                Ok(vec![loss, ops::sum(&y, &Tensor::from(0i32))?])
            })
        };
        let (single, own) = (weights().unwrap(), weights().unwrap());
        strategy.distribute(&own[0], &layout(strategy, &["unsharded", "model"])).unwrap();
        strategy.distribute(&own[1], &layout(strategy, &["model", "unsharded"])).unwrap();
        let (single_descent, own_descent) = (descent(&single), descent(&own));
        let x = noise(&[4, 4], 3);
        let expected = single_descent.call((&x,)).unwrap();
        let args = [split(strategy, &x, &["batch", "unsharded"])];
        let results = strategy.call(&own_descent, &args).unwrap();
        for (result, expected) in results.iter().zip(&expected) {
            assert_close(&result.fetch().unwrap(), expected, 1e-5);
        }
        for (single, own) in single.iter().zip(&own) {
            assert_close(&own.read().unwrap(), &single.read().unwrap(), 1e-5);
        }
        let program = strategy.program(&own_descent, &args).unwrap();
        assert!(program.report().count(CollectiveKind::AllReduce) > 3, "{}", program.report());
    });
}

/// Hidden state of random ops inside a loop goes on as it does on one device.
#[test]
fn random_numbers_inside_loops_are_those_of_one_device() {
    let drawn = |devices| {
        on_mesh(&[("x", devices)], |strategy| {
            let draw = function(|x: Tensor| -> Result<Tensor> {
                let attrs = ops::RandomUniformAttrs { seed: 3, seed2: 4 };
                let step = |(n, x): (Tensor, Tensor)| {
                    let noise = ops::random_uniform_with(&ops::shape(&x)?, DType::F32, &attrs)?;
                    Ok(((n + Tensor::from(1i32))?, (x + noise)?))
                };
                let more = |(n, _): &(Tensor, Tensor)| ops::less(n, &Tensor::from(4i32));
                Ok(while_loop(more, step, (Tensor::from(0i32), x))?.1)
            });
            let zeros = HostTensor::zeros(DType::F32, shaped(&[4])).unwrap().into();
            let results = strategy.call(&draw, &[split(strategy, &zeros, &["x"])]).unwrap();
            results[0].fetch().unwrap()
        })
    };
    assert_close(&drawn(2), &drawn(1), 1e-6);
}

/// Calls from several threads, and code outside, change a variable one after the other.
#[test]
fn calls_from_several_threads_take_turns() {
    on_mesh(&[("x", 2)], |strategy| {
        let counter = strategy.variable([0i32, 0], &layout(strategy, &["unsharded"])).unwrap();
        let rows = strategy.variable([0i32, 0], &layout(strategy, &["x"])).unwrap();
        let count = {
            let (counter, rows) = (counter.clone(), rows.clone());
            function(move |x: Tensor| {
                // Not commutative: devices must do it in one order.
                counter.assign(&((counter.read()? * Tensor::from(2i32))? + &x)?)?;
                rows.assign_add(&x)?;
                counter.read()
            })
        };
        let context = ferroflow_tracer::context::context();
        std::thread::scope(|scope| {
            for n in 0..3 {
                let (count, rows, context) = (&count, &rows, &context);
                scope.spawn(move || {
                    let _context = ferroflow_tracer::context::enter(context);
                    let x = split(strategy, &[n, n + 1].into(), &["x"]);
                    for _ in 0..8 {
                        strategy.call(count, std::slice::from_ref(&x)).unwrap();
                        rows.assign_add(Tensor::from([1i32, 1])).unwrap();
                    }
                });
            }
        });
        let piece = |device| {
            let piece = counter.owned().unwrap().component(device).unwrap();
            piece.host().unwrap().as_slice::<i32>().unwrap().to_vec()
        };
        assert_eq!(piece(0), piece(1));
        assert_eq!(rows.read().unwrap().to_vec::<i32>().unwrap(), [24 + 24, 48 + 24]);
    });
}
