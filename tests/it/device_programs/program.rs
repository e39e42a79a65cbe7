//! What the programs are made of, and how they run.

use ferroflow::{
    Function, GradientTape, Tensor, Variable, cond, device, function, ir::HostTensor, ops,
    tracer::Result, while_loop,
};
use proptest::prelude::*;
use std::sync::Arc;

pub(super) const SIDE: usize = 8;

/// Values that a program works on, and variables that it knows.
pub(super) const N_VALUES: usize = 4;
const N_VARIABLES: usize = 2;

/// More devices than there are stand for the first ones again.
const N_DEVICES: usize = 6;

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A call on values, by number, on a device or where it likes to be.
    Calc {
        op: usize,
        from: [usize; 2],
        to: usize,
        device: Option<usize>,
    },
    Assign {
        variable: usize,
        from: usize,
        adds: bool,
    },
    Read {
        variable: usize,
        to: usize,
    },
    /// A step of an optimizer; with momentum, the other variable has the last one.
    Train {
        variable: usize,
        by: usize,
        momentum: bool,
    },
    /// By the sign of a sum.
    If {
        by: usize,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
    Repeat {
        times: i32,
        body: Vec<Step>,
    },
    /// As often as a value tells.
    While {
        by: usize,
        body: Vec<Step>,
    },
    Scope {
        device: usize,
        body: Vec<Step>,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) homes: [usize; N_VARIABLES],
    pub(super) steps: Vec<Step>,
}

type Operation = fn(&Tensor, &Tensor) -> Result<Tensor>;

const OPERATIONS: &[Operation] = &[
    |a, b| a + b,
    |a, b| a - b,
    |a, b| a * b,
    |a, b| a.maximum(b),
    |a, b| a.matmul(b),
    |a, b| (a.matmul(b)? + b)?.relu(),
    |a, b| a.transpose(&[1, 0])? + b,
    |a, b| a + b.sum(&[0])?,
    |a, _| a.sum(&[1])?.expand_dims(1)? - a,
    |a, b| a.less(b)?.select(a, b),
    |a, _| a.reshape(&[4, 16])?.transpose(&[1, 0])?.reshape(&[8, 8]),
    |a, b| a.cast(ferroflow::ir::DType::I32)?.cast(ferroflow::ir::DType::F32)? - b,
    |a, b| b.gather(&Tensor::from([3, 1, 0, 2, 7, 7, 4, 5]))? + a,
    |a, _| a.sum_all()?.reshape(&[1, 1])? * a,
    // A layer with factors, which a layer gives, too.
    |a, b| {
        let factors = a.sum(&[0])?.reshape(&[1, 8])?.minimum(9.0)?.maximum(-9.0)?.matmul(b)?;
        (a.matmul(b)? + b.max(&[0])?)?.relu()? * factors.minimum(2.0)?.maximum(-2.0)?
    },
    // As many rows as turn out to be positive.
    |a, b| {
        let places = ops::where_(&a.sum(&[1])?.greater(0.0)?)?;
        b + a.gather(&places.reshape(&[-1])?)?.sum(&[0])?
    },
    |a, b| {
        let both = ops::concat_v2(&[a, b], &Tensor::from(0))?;
        ops::slice(&both, &Tensor::from([2, 0]), &Tensor::from([8, 8]))
    },
    |a, b| {
        let rows = ops::unpack(a, 8)?;
        ops::pack(&[2, 0, 7, 1, 3, 5, 6, 4].map(|row: usize| &rows[row]))? - b
    },
    |a, b| {
        ops::reverse_v2(a, &Tensor::from([1]))?
            * ops::tile(&b.max(&[1])?.reshape(&[8, 1])?, &Tensor::from([1, 8]))?
    },
    |a, b| {
        let tape = GradientTape::new();
        tape.watch(a)?;
        let layer = (a.matmul(b)? + b)?.relu()?;
        Ok(tape.gradient(&(&layer * &layer)?, &(a,))?.0.expect("a layer of it"))
    },
];

/// A number between bounds in which products stay whole.
fn bounded(x: Tensor) -> Result<Tensor> {
    x.minimum(40.0)?.maximum(-40.0)
}

fn steps(depth: u32) -> BoxedStrategy<Vec<Step>> {
    let value = || 0..N_VALUES;
    let calc = (
        0..OPERATIONS.len(),
        [value(), value()],
        value(),
        proptest::option::weighted(0.4, 0..N_DEVICES),
    );
    let calc = calc.prop_map(|(op, from, to, device)| Step::Calc { op, from, to, device });
    let assign = (0..N_VARIABLES, value(), any::<bool>())
        .prop_map(|(variable, from, adds)| Step::Assign { variable, from, adds });
    let read = (0..N_VARIABLES, value()).prop_map(|(variable, to)| Step::Read { variable, to });
    let train = (0..N_VARIABLES, value(), any::<bool>())
        .prop_map(|(variable, by, momentum)| Step::Train { variable, by, momentum });
    if depth == 0 {
        let step = prop_oneof![6 => calc, 1 => assign, 1 => read, 1 => train];
        return prop::collection::vec(step, 0..6).boxed();
    }
    let inner = move || steps(depth - 1);
    let choice = (value(), inner(), inner()).prop_map(|(by, then, otherwise)| Step::If {
        by,
        then,
        otherwise,
    });
    let repeat = (0..4, inner()).prop_map(|(times, body)| Step::Repeat { times, body });
    let until = (value(), inner()).prop_map(|(by, body)| Step::While { by, body });
    let scope = (0..N_DEVICES, inner()).prop_map(|(device, body)| Step::Scope { device, body });
    let step = prop_oneof![
        8 => calc, 2 => assign, 2 => read, 1 => train, 1 => choice, 1 => repeat, 1 => until, 1 => scope
    ];
    prop::collection::vec(step, 0..8).boxed()
}

pub(super) fn programs() -> impl Strategy<Value = Program> {
    let homes = prop::array::uniform2(0..N_DEVICES);
    (homes, steps(2)).prop_map(|(homes, steps)| Program { homes, steps })
}

/// What a program runs with: variables, and the devices that numbers stand for.
#[derive(Clone)]
pub(super) struct World {
    pub(super) variables: Vec<Variable>,
    pub(super) devices: Arc<[String]>,
}

impl World {
    pub(super) fn new(program: &Program, devices: &Arc<[String]>) -> Result<World> {
        let make = |(number, home): (usize, &usize)| {
            let start = [number as f32 + 1.0; SIDE * SIDE];
            let start = HostTensor::from_slice(shape()?, &start)?;
            device(name(devices, *home), || Variable::new(Tensor::from(start)))
        };
        let variables = program.homes.iter().enumerate().map(make).collect::<Result<_>>()?;
        Ok(World { variables, devices: devices.clone() })
    }

    pub(super) fn function(self, program: Program) -> Function<(Vec<Tensor>,), Vec<Tensor>> {
        function(move |values: Vec<Tensor>| self.run(&program.steps, values))
    }

    pub(super) fn run(&self, steps: &[Step], mut values: Vec<Tensor>) -> Result<Vec<Tensor>> {
        for step in steps {
            match step {
                Step::Calc { op, from: [a, b], to, device: place } => {
                    let calc = || bounded(OPERATIONS[*op](&values[*a], &values[*b])?);
                    values[*to] = match place {
                        Some(number) => device(name(&self.devices, *number), calc)?,
                        None => calc()?,
                    };
                }
                Step::Assign { variable, from, adds } => {
                    let (variable, value) = (&self.variables[*variable], &values[*from]);
                    match adds {
                        true => variable.assign(&bounded((variable.read()? + value)?)?)?,
                        false => variable.assign(value)?,
                    };
                }
                Step::Read { variable, to } => {
                    values[*to] = bounded(self.variables[*variable].read()?)?;
                }
                Step::Train { variable, by, momentum } => {
                    let [own, other] =
                        [*variable, 1 - variable].map(|at| self.variables[at].handle());
                    let (rate, by) = (Tensor::from(1.0f32), &values[*by]);
                    match momentum {
                        true => ops::resource_apply_momentum(&own, &other, &rate, by, &rate)?,
                        false => ops::resource_apply_gradient_descent(&own, &rate, by)?,
                    }
                }
                Step::If { by, then, otherwise } => {
                    let positive = values[*by].sum_all()?.greater(0.0)?;
                    let branch = |steps| self.run(steps, values.clone());
                    values = cond(&positive, || branch(then), || branch(otherwise))?;
                }
                Step::Repeat { times, body } => {
                    let more = |(i, _): &(Tensor, Vec<Tensor>)| i.less(*times);
                    let next = |(i, values): (Tensor, Vec<Tensor>)| {
                        Ok(((i + 1)?, self.run(body, values)?))
                    };
                    values = while_loop(more, next, (Tensor::from(0), values))?.1;
                }
                Step::While { by, body } => {
                    let more = |(left, _): &(Tensor, Vec<Tensor>)| left.greater(0.0);
                    let next = |(left, values): (Tensor, Vec<Tensor>)| {
                        Ok(((left - 1.0)?, self.run(body, values)?))
                    };
                    let times = values[*by].max_all()?.minimum(3.0)?;
                    values = while_loop(more, next, (times, values))?.1;
                }
                Step::Scope { device: place, body } => {
                    values = device(name(&self.devices, *place), || self.run(body, values))?;
                }
            }
        }
        Ok(values)
    }
}

fn name(devices: &[String], number: usize) -> &str {
    &devices[number % devices.len()]
}

pub(super) fn shape() -> Result<ferroflow::ir::Shape> {
    Ok(ferroflow::ir::Shape::new([SIDE, SIDE])?)
}
