//! Layouts that cannot be: typed errors, with what they are about.

use super::{layout, noise, on_mesh, split};
use ferroflow_ir::{Code, HostTensor};
use ferroflow_tracer::{
    Error, Tensor, Variable,
    distribute::{DistributedTensor, Layout, Mesh, MeshStrategy},
    function, ops,
};

#[test]
fn uneven_splits_are_errors() {
    on_mesh(&[("x", 2)], |strategy| {
        let rows = layout(strategy, &["x"]);
        let odd: Tensor = HostTensor::vector(&[1.0f32, 2.0, 3.0]).unwrap().into();
        let error = DistributedTensor::new(&odd, &rows).unwrap_err();
        assert!(error.to_string().contains("layout (x)"), "{error}");
        assert_eq!(error.code(), Code::InvalidArgument);
        let variable = Variable::named("odd", odd.clone()).unwrap();
        let error = strategy.distribute(&variable, &rows).unwrap_err().to_string();
        assert!(error.contains("variable `odd`"), "{error}");
        let identity = function(|x: Tensor| ops::neg(&x));
        let concrete = identity.concrete((&odd,)).unwrap();
        let shape = odd.shape().known().unwrap();
        let whole = Layout::replicated(strategy.mesh(), 1);
        let error = strategy.partition(&concrete, &[(shape, whole)], &[Some(rows)]).unwrap_err();
        assert!(error.to_string().contains("(node `Neg`, op Neg"), "{error}");
    });
}

#[test]
fn conflicting_layouts_are_errors() {
    on_mesh(&[("x", 2)], |strategy| {
        let (rows, columns) = (["x", "unsharded"], ["unsharded", "x"]);
        let w = strategy.variable(noise(&[2, 2], 1), &layout(strategy, &rows)).unwrap();
        let m = strategy.variable(noise(&[2, 2], 2), &layout(strategy, &columns)).unwrap();
        assert!(strategy.distribute(&w, &layout(strategy, &columns)).is_err());
        let step = function(move |gradient: Tensor| {
            ops::resource_apply_momentum(
                &w.handle(),
                &m.handle(),
                &0.1f32.into(),
                &gradient,
                &0.9f32.into(),
            )
        });
        let gradient = split(strategy, &noise(&[2, 2], 3), &rows);
        let error = strategy.call(&step, &[gradient]).unwrap_err().to_string();
        assert!(
            error.contains("ResourceApplyMomentum") && error.contains("(unsharded, x)"),
            "{error}"
        );
    });
}

#[test]
fn what_cannot_be_distributed_is_unsupported() {
    on_mesh(&[("x", 2)], |strategy| {
        let w = strategy.variable(noise(&[2], 1), &layout(strategy, &["x"])).unwrap();
        let scatter = function(move |ids: Tensor| {
            ops::resource_scatter_add(&w.handle(), &ids, &Tensor::from(1.0f32))
        });
        let ids = split(strategy, &HostTensor::vector(&[0i32, 1]).unwrap().into(), &["unsharded"]);
        let error = strategy.call(&scatter, &[ids]).unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented, "{error}");
        assert!(error.to_string().contains("must be replicated"), "{error}");
    });
}

#[test]
fn strangers_are_refused() {
    on_mesh(&[("x", 2)], |strategy| {
        let other = Mesh::new([("y", 2)], ["CPU:0", "CPU:1"]).unwrap();
        let x = DistributedTensor::new(&noise(&[2], 1), &Layout::new(&other, ["y"]).unwrap());
        let f = function(|x: Tensor| ops::neg(&x));
        assert!(matches!(strategy.call(&f, &[x.unwrap()]), Err(Error::Conversion { .. })));
        assert!(
            strategy
                .distribute(&Variable::new(1i32).unwrap(), &Layout::replicated(&other, 0))
                .is_err()
        );
        let absent = Mesh::new([("x", 2)], ["CPU:0", "CPU:7"]).unwrap();
        assert!(MeshStrategy::new(&absent).is_err());
        let whole = Layout::replicated(strategy.mesh(), 1);
        let one = DistributedTensor::pack([noise(&[2], 1)], &whole);
        assert!(matches!(one, Err(Error::PerReplica { replicas: 2, found: 1 })));
        let pieces = [noise(&[2], 1), noise(&[3], 1)];
        assert!(matches!(DistributedTensor::pack(pieces, &whole), Err(Error::Conversion { .. })));
    });
}

/// A device that fails ends the call on all of them.
#[test]
fn errors_of_devices_are_those_of_the_call() {
    on_mesh(&[("x", 2)], |strategy| {
        let divide = function(|x: Tensor| {
            let inverse = ops::floor_div(&Tensor::from(6i32), &x)?;
            ops::sum(&inverse, &Tensor::from(0i32))
        });
        let x = split(strategy, &HostTensor::vector(&[1i32, 0]).unwrap().into(), &["x"]);
        let error = strategy.call(&divide, &[x]).unwrap_err().to_string();
        assert!(error.contains("division by zero"), "{error}");
        let x = split(strategy, &HostTensor::vector(&[1i32, 2]).unwrap().into(), &["x"]);
        let sum = strategy.call(&divide, &[x]).unwrap();
        assert_eq!(sum[0].fetch().unwrap().to_scalar::<i32>().unwrap(), 9);
    });
}

/// A device that fails is missed by the members of its groups, and by theirs, before they have met once.
#[test]
fn no_device_waits_for_one_that_failed() {
    on_mesh(&[("x", 2), ("y", 2)], |strategy| {
        let divide = function(|x: Tensor, y: Tensor| {
            let inverse = ops::floor_div(&Tensor::from(6i32), &x)?;
            let sums = ops::add_v2(&ops::sum(&inverse, &Tensor::from(0i32))?, &y)?;
            ops::sum(&sums, &Tensor::from(0i32))
        });
        let y = split(strategy, &HostTensor::vector(&[1i32, 0]).unwrap().into(), &["y"]);
        for numbers in [[1i32, 0], [0, 1]] {
            let x = split(strategy, &HostTensor::vector(&numbers).unwrap().into(), &["x"]);
            let error = strategy.call(&divide, &[x, y.clone()]).unwrap_err().to_string();
            assert!(error.contains("division by zero"), "{error}");
        }
    });
}

/// Devices agree on variables after a call that some of them did not finish.
#[test]
fn variables_are_in_line_after_errors() {
    on_mesh(&[("x", 2)], |strategy| {
        let counter = Variable::new(1i32).unwrap();
        let count = {
            let counter = counter.clone();
            function(move |x: Tensor| {
                let inverse = ops::floor_div(&Tensor::from(6i32), &x)?;
                counter.assign_add(1)?;
                ops::sum(&inverse, &Tensor::from(0i32))
            })
        };
        for numbers in [[1i32, 0], [0, 1]] {
            let x = split(strategy, &HostTensor::vector(&numbers).unwrap().into(), &["x"]);
            assert!(strategy.call(&count, &[x]).is_err());
            let value = |device| {
                let piece = counter.owned().unwrap().component(device).unwrap();
                piece.host().unwrap().as_scalar::<i32>().unwrap()
            };
            assert_eq!(value(0), value(1));
        }
    });
}
