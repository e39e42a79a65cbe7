//! Models of variables: no reader sees a half-changed value, and no change is lost.

use super::*;
use ferroflow_ir::{Mesh, sync::explore};
use shuttle::thread;

fn variable(value: f32) -> ResourceVariable {
    ResourceVariable::new("v", vector(value))
}

fn vector(value: f32) -> HostTensor {
    HostTensor::vector(&[value; 2]).expect("a small tensor")
}

/// The value of all elements.
fn one_value(tensor: &HostTensor) -> f32 {
    let values = tensor.as_slice::<f32>().expect("floats");
    assert!(values.iter().all(|value| *value == values[0]), "a torn value: {values:?}");
    values[0]
}

fn read(variable: &ResourceVariable) -> f32 {
    one_value(&variable.read().expect("there is a value"))
}

/// Adds to each element; other threads have a chance to run between two of them.
fn add(tensor: &mut HostTensor, value: f32) -> Result<()> {
    for element in tensor.as_mut_slice::<f32>()? {
        *element += value;
        thread::yield_now();
    }
    Ok(())
}

#[test]
fn readers_see_whole_values_and_no_change_in_place_is_lost() {
    explore(2000, || {
        let variable = variable(0.0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    variable.state().update(|value| add(value, 1.0)).expect("it is changed");
                    let double = |old: EagerTensor| {
                        thread::yield_now();
                        Ok(vector(one_value(old.host()?) + 10.0).into())
                    };
                    variable.state().replace(double).expect("it is replaced");
                });
            }
            let before = variable.read().expect("there is a value");
            let value = one_value(&before);
            assert!(read(&variable) >= value);
            assert_eq!(one_value(&before), value, "a value that was read has changed");
        });
        assert_eq!(read(&variable), 22.0);
    });
}

#[test]
fn assignments_at_once_leave_one_of_the_values() {
    explore(2000, || {
        let variable = variable(0.0);
        thread::scope(|scope| {
            for value in [1.0, 2.0] {
                let variable = &variable;
                scope.spawn(move || variable.assign(vector(value)).expect("it fits"));
            }
            scope.spawn(|| variable.state().clear());
            if let Ok(value) = variable.read() {
                assert!([0.0, 1.0, 2.0].contains(&one_value(&value)));
            }
        });
        let value = variable.read().map(|value| one_value(&value));
        assert!(value.map_or(true, |value| [1.0, 2.0].contains(&value)));
    });
}

/// Moves from the first to the second.
fn transfer(from: &ResourceVariable, to: &ResourceVariable) {
    let variables = [from, to].map(|variable| variable.0.clone());
    let moved = update_all(&variables, |mut values| {
        add(values[0], -1.0)?;
        add(values[1], 1.0)
    });
    moved.expect("both are changed");
}

fn sum(a: &ResourceVariable, b: &ResourceVariable) -> f32 {
    let variables = [a, b].map(|variable| variable.0.clone());
    let sum = update_all(&variables, |values| Ok(one_value(values[0]) + one_value(values[1])));
    sum.expect("both are read")
}

#[test]
fn steps_on_variables_in_any_order_end_and_are_whole() {
    explore(1500, || {
        let (a, b) = (variable(5.0), variable(5.0));
        thread::scope(|scope| {
            scope.spawn(|| transfer(&a, &b));
            scope.spawn(|| transfer(&b, &a));
            assert_eq!(sum(&a, &b), 10.0);
        });
        assert_eq!((read(&a), read(&b)), (5.0, 5.0));
    });
}

fn in_pieces(value: f32) -> ResourceVariable {
    let mesh = Mesh::new([("x", 2)], ["CPU:0", "CPU:1"]).expect("a mesh");
    let variable = variable(value);
    variable.distribute(&Layout::new(&mesh, ["x"]).expect("a layout")).expect("it is split");
    variable
}

#[test]
fn readers_see_the_whole_of_a_value_in_pieces() {
    explore(1000, || {
        let variable = in_pieces(0.0);
        thread::scope(|scope| {
            scope.spawn(|| variable.assign(vector(10.0)).expect("it fits"));
            scope.spawn(|| {
                let step = || {
                    let piece = |n| variable.component(n).expect("a piece").into_host();
                    for n in 0..2 {
                        let mut piece = piece(n)?;
                        add(&mut piece, 1.0)?;
                        variable.assign_component(n, piece)?;
                    }
                    Ok::<(), Error>(())
                };
                step_pieces(std::slice::from_ref(&variable), step).expect("a step");
            });
            assert!([0.0, 1.0, 10.0, 11.0].contains(&read(&variable)));
        });
        assert!([10.0, 11.0].contains(&read(&variable)));
    });
}

#[test]
fn steps_on_values_in_pieces_in_any_order_end_and_are_whole() {
    explore(700, || {
        let (a, b) = (in_pieces(5.0), in_pieces(5.0));
        thread::scope(|scope| {
            scope.spawn(|| transfer(&a, &b));
            scope.spawn(|| transfer(&b, &a));
            let both = [b.clone(), a.clone()];
            let sums = || Ok::<f32, Error>(joined(&a) + joined(&b));
            assert_eq!(step_pieces(&both, sums).expect("a step"), 10.0);
        });
        assert_eq!((read(&a), read(&b)), (5.0, 5.0));
    });
}

/// The value of a variable in pieces whose lock the caller has.
fn joined(variable: &ResourceVariable) -> f32 {
    let layout = variable.layout().expect("it is in pieces");
    one_value(&variable.state().joined(layout).expect("there is a value"))
}

fn components(variable: &ResourceVariable) -> [f32; 2] {
    [0, 1].map(|n| one_value(variable.component(n).expect("a value").host().expect("on the host")))
}

#[test]
fn assignments_outside_replicas_leave_the_same_value_in_all() {
    explore(1500, || {
        let variable = variable(0.0);
        variable.mirror(2).expect("it has no replicas yet");
        thread::scope(|scope| {
            scope.spawn(|| variable.assign(vector(10.0)).expect("it fits"));
            scope
                .spawn(|| variable.state().update(|value| add(value, 1.0)).expect("it is changed"));
            scope.spawn(|| {
                let double = |old: EagerTensor| Ok(vector(one_value(old.host()?) + 2.0).into());
                variable.state().replace(double).expect("it is replaced");
            });
        });
        let [first, second] = components(&variable);
        assert_eq!(first, second);
        assert!([10.0, 11.0, 12.0, 13.0].contains(&first), "{first}");
    });
}

#[test]
fn steps_outside_replicas_leave_the_same_values_in_all() {
    explore(1500, || {
        let (a, b) = (variable(5.0), variable(5.0));
        [&a, &b].iter().try_for_each(|variable| variable.mirror(2)).expect("no replicas yet");
        let step = |variables: [&ResourceVariable; 2]| {
            let changed = update_all(&variables.map(|variable| variable.0.clone()), |values| {
                for (value, change) in values.into_iter().zip([1.0, -1.0]) {
                    value.as_mut_slice::<f32>()?.iter_mut().for_each(|element| *element += change);
                }
                Ok(())
            });
            changed.expect("both are changed");
        };
        thread::scope(|scope| {
            scope.spawn(|| step([&a, &b]));
            scope.spawn(|| step([&b, &a]));
        });
        assert_eq!((components(&a), components(&b)), ([5.0; 2], [5.0; 2]));
    });
}

#[test]
fn changes_of_a_variable_beside_one_in_pieces_are_not_lost() {
    explore(1000, || {
        let (whole, split) = (variable(5.0), in_pieces(5.0));
        thread::scope(|scope| {
            scope.spawn(|| transfer(&split, &whole));
            scope.spawn(|| whole.state().update(|value| add(value, 10.0)).expect("it is changed"));
            scope.spawn(|| transfer(&whole, &split));
        });
        assert_eq!((read(&whole), read(&split)), (15.0, 5.0));
    });
}
