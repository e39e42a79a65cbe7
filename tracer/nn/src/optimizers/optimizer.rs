//! The optimizer: an algorithm with a learning rate and state.

use super::{Algorithm, Clip, LearningRate, LossScale, Step};
use crate::state::state;
use ferroflow_ir::HostTensor;
use ferroflow_runtime::{
    collective::Replica,
    trackable::{Deferral, Description, Identity, Trackable},
};
use ferroflow_tracer::{
    context::init_scope,
    control_flow::cond,
    distribute,
    error::{Error, Result},
    gradients::TensorGradient,
    ops::IntoOperand,
    tape::GradientTape,
    tensor::Tensor,
    variable::Variable,
};
use parking_lot::Mutex;
use std::{fmt, panic::Location, sync::Arc};

/// Steps variables along gradients. Clones share their state.
///
/// ```
/// use ferroflow_nn::optimizers::{Optimizer, Sgd};
/// use ferroflow_tracer::{GradientTape, Variable};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let w = Variable::new(5.0f32)?;
/// let optimizer = Optimizer::new(Sgd::default(), 0.1)?;
/// for _ in 0..100 {
///     let tape = GradientTape::new();
///     let loss = (w.read()? - 2.0)?.square()?;
///     optimizer.minimize(tape, &loss, &[w.clone()])?;
/// }
/// assert!((w.read()?.to_scalar::<f32>()? - 2.0).abs() < 1e-3);
/// assert_eq!(optimizer.iterations().read()?.to_scalar::<i64>()?, 100);
/// # Ok(())
/// # }
/// ```
///
/// Inside a function a step is part of the graph; the slots of a variable are made outside it, when
/// the step is traced.
#[derive(Clone)]
pub struct Optimizer(Arc<Inner>);

struct Inner {
    algorithm: Box<dyn Algorithm>,
    options: OptimizerOptions,
    iterations: Variable,
    /// The slots of each variable, in the order in which variables were first seen.
    slots: Mutex<Vec<(Variable, Vec<Variable>)>>,
    /// Where restored values wait for slots.
    deferral: Deferral,
    /// By what the optimizer within one with a loss scale is known in object graphs.
    inner_identity: Arc<()>,
}

/// Options of all optimizers.
#[derive(Debug, Clone)]
pub struct OptimizerOptions {
    /// The learning rate.
    pub learning_rate: LearningRate,
    /// Fraction of itself that each variable loses in a step, times the learning rate (Loshchilov
    /// and Hutter 2019): what makes Adam AdamW. 0 for nothing.
    pub weight_decay: f64,
    /// Bounds on gradients.
    pub clip: Clip,
    /// The factor that losses have been scaled with. Steps whose gradients are not finite are left
    /// out.
    pub loss_scale: Option<LossScale>,
    /// Whether rows of a variable that have no gradient in a step are left alone, with their slots.
    /// By default, and in Keras 3, they step along a gradient of 0: momenta go on, means decay.
    /// Algorithms without a form for rows (Adam and its kin) do that in any case.
    pub lazy_rows: bool,
    /// Prefix of the names of slots; the algorithm's name if empty.
    pub name: String,
}

impl Default for OptimizerOptions {
    fn default() -> OptimizerOptions {
        OptimizerOptions {
            learning_rate: LearningRate::Constant(0.001),
            weight_decay: 0.0,
            clip: Clip::None,
            loss_scale: None,
            lazy_rows: false,
            name: String::new(),
        }
    }
}

impl Optimizer {
    /// An optimizer with this learning rate.
    ///
    /// # Errors
    ///
    /// None at present: its state is made outside all traces.
    pub fn new(
        algorithm: impl Algorithm + 'static,
        learning_rate: impl Into<LearningRate>,
    ) -> Result<Optimizer> {
        let learning_rate = learning_rate.into();
        let options = OptimizerOptions { learning_rate, ..OptimizerOptions::default() };
        Optimizer::with_options(algorithm, options)
    }

    /// An optimizer.
    ///
    /// # Errors
    ///
    /// As [`new`](Optimizer::new).
    pub fn with_options(
        algorithm: impl Algorithm + 'static,
        mut options: OptimizerOptions,
    ) -> Result<Optimizer> {
        if options.name.is_empty() {
            options.name = algorithm.name().into();
        }
        let iterations = state(&format!("{}/iteration", options.name), 0i64.into())?;
        let (algorithm, slots) = (Box::new(algorithm), Mutex::default());
        let deferral = Deferral::default();
        let inner_identity = Arc::default();
        let inner = Inner { algorithm, options, iterations, slots, deferral, inner_identity };
        Ok(Optimizer(Arc::new(inner)))
    }

    /// The factor of losses, if there is one.
    pub fn loss_scale(&self) -> Option<&LossScale> {
        self.0.options.loss_scale.as_ref()
    }

    /// The number of steps made, an `i64`.
    pub fn iterations(&self) -> &Variable {
        &self.0.iterations
    }

    /// The learning rate of the next step.
    ///
    /// # Errors
    ///
    /// Those of a schedule that is a function.
    pub fn learning_rate(&self) -> Result<Tensor> {
        self.0.options.learning_rate.at(&self.0.iterations.read()?)
    }

    /// Makes the slots of variables, which otherwise are made when they are first stepped. They
    /// take the values that a restored checkpoint has for them.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] for a variable of unknown shape, or one that is an argument of a
    /// function that is being traced; when a restored value does not fit its slot.
    pub fn build(&self, variables: &[Variable]) -> Result<()> {
        let n_before = self.0.slots.lock().len();
        variables.iter().try_for_each(|variable| self.slots_of(variable).map(drop))?;
        if self.0.slots.lock().len() > n_before {
            match self.0.options.loss_scale {
                Some(_) => self.0.deferral.appeared(&InnerOptimizer(self))?,
                None => self.0.deferral.appeared(self)?,
            }
        }
        Ok(())
    }

    /// The slot of a variable that has this name.
    pub fn slot(&self, variable: &Variable, name: &str) -> Option<Variable> {
        let position = self.0.algorithm.slots().iter().position(|slot| slot.name == name)?;
        let slots = self.0.slots.lock();
        let (_, own) = slots.iter().find(|(seen, _)| seen.is(variable))?;
        own.get(position).cloned()
    }

    /// All state: the number of steps, then the slots of each variable.
    pub fn variables(&self) -> Vec<Variable> {
        let slots = self.0.slots.lock();
        let slots = slots.iter().flat_map(|(_, slots)| slots.iter().cloned());
        std::iter::once(self.0.iterations.clone()).chain(slots).collect()
    }

    /// Takes the gradients of a loss from the tape that recorded it, and applies them. With a loss
    /// scale the loss is scaled here.
    ///
    /// # Errors
    ///
    /// [`Error::NoGradients`] when the loss depends on none of the variables; otherwise as
    /// [`GradientTape::gradient`] and [`apply`](Optimizer::apply).
    #[track_caller]
    pub fn minimize(
        &self,
        tape: GradientTape,
        loss: &Tensor,
        variables: &[Variable],
    ) -> Result<()> {
        let scaled = match &self.0.options.loss_scale {
            Some(scale) => scale.scaled(loss)?,
            None => loss.clone(),
        };
        let gradients = tape.variable_gradients(&scaled, variables)?;
        drop(tape);
        let pairs = gradients.into_iter().zip(variables.iter().cloned());
        self.apply(pairs.filter_map(|(gradient, variable)| Some((gradient?, variable))))
    }

    /// Steps variables along gradients. In a replica of a strategy these are the sums over all
    /// replicas, so each divides its loss by the size of the global batch.
    ///
    /// # Errors
    ///
    /// [`Error::NoGradients`] when there are none; when one does not fit its variable; as
    /// [`build`](Optimizer::build).
    #[track_caller]
    pub fn apply(
        &self,
        gradients: impl IntoIterator<Item = (TensorGradient, Variable)>,
    ) -> Result<()> {
        let location = Location::caller();
        let (gradients, variables): (Vec<TensorGradient>, Vec<Variable>) =
            gradients.into_iter().unzip();
        if variables.is_empty() {
            return Err(Error::NoGradients);
        }
        self.build(&variables)?;
        let state = std::iter::once(&self.0.iterations).chain(&variables);
        let gradients = distribute::sum_gradients(gradients, state)?;
        Replica::updating(|| {
            let Some(scale) = &self.0.options.loss_scale else {
                return self.steps(&gradients, &variables, location);
            };
            let gradients = scale.unscaled(&gradients)?;
            let finite = scale.update(&gradients)?;
            cond(&finite, || self.steps(&gradients, &variables, location), || Ok(()))
        })
    }

    fn steps(
        &self,
        gradients: &[TensorGradient],
        variables: &[Variable],
        location: &'static Location<'static>,
    ) -> Result<()> {
        let Inner { algorithm, options, iterations, .. } = &*self.0;
        let gradients = options.clip.apply(gradients)?;
        let made = iterations.read()?;
        let rate = options.learning_rate.at(&made)?;
        let number = (made + 1)?;
        for (gradient, variable) in gradients.iter().zip(variables) {
            let dtype = variable.dtype();
            let slots = self.slots_of(variable)?;
            let learning_rate = rate.cast(dtype)?;
            if options.weight_decay != 0.0 {
                let share = (&learning_rate * options.weight_decay)?;
                variable.assign_sub(&(variable.read()? * &share)?)?;
            }
            let gradient = gradient.map_values(|values| values.cast(dtype))?;
            let gradient = match options.lazy_rows || algorithm.rests_without_gradient() {
                true => gradient,
                false => TensorGradient::Dense(gradient.dense()?),
            };
            let number = number.cast(dtype)?;
            let step = Step { variable, slots: &slots, learning_rate, number, location };
            algorithm.step(&step, &gradient)?;
        }
        iterations.assign_add(1)
    }

    fn slots_of(&self, variable: &Variable) -> Result<Vec<Variable>> {
        let inner = &*self.0;
        let mut slots = inner.slots.lock();
        if let Some((_, found)) = slots.iter().find(|(seen, _)| seen.is(variable)) {
            return Ok(found.clone());
        }
        variable.owned()?;
        let shape = variable.shape().known().ok_or_else(|| Error::Conversion {
            expected: "a variable of known shape".into(),
            found: variable.spec().to_string(),
        })?;
        let path = variable.name().replace('/', "_");
        let make = |slot: super::Slot| {
            let name = format!("{}/{path}_{}", inner.options.name, slot.name);
            let zeros = Tensor::from(HostTensor::zeros(variable.dtype(), shape.clone())?);
            init_scope(|| {
                let initial: Tensor = slot.initial.into_operand(variable.dtype())?;
                let slot = state(&name, (zeros + initial)?)?;
                if let Some(home) = variable.owned()?.resident_device() {
                    slot.owned()?.live_on(home)?;
                }
                Ok(slot)
            })
        };
        let made: Vec<Variable> =
            inner.algorithm.slots().into_iter().map(make).collect::<Result<_>>()?;
        slots.push((variable.clone(), made.clone()));
        Ok(made)
    }
}

/// As Keras tracks it: the number of steps, the learning rate where it is a variable, and all state
/// as a list, so that it can be saved in models too. An optimizer of Keras has its learning rate in
/// that list, being a variable; it goes on with a checkpoint of one here whose rate is a variable.
///
/// With a loss scale it is a `LossScaleOptimizer` of Keras: `dynamic_scale`, `step_counter`, and the
/// above as its `inner_optimizer`.
impl Trackable for Optimizer {
    fn describe(&self, object: &mut Description<'_>) {
        match &self.0.options.loss_scale {
            None => self.describe_state(object),
            Some(scale) => {
                let [dynamic_scale, step_counter] = scale.variables();
                object.child("dynamic_scale", &dynamic_scale);
                object.child("step_counter", &step_counter);
                object.child("inner_optimizer", &InnerOptimizer(self));
            }
        }
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of_address(Arc::as_ptr(&self.0).cast::<()>() as usize))
    }
}

impl Optimizer {
    fn describe_state(&self, object: &mut Description<'_>) {
        let mut variables = self.variables();
        object.deferral(&self.0.deferral);
        object.child("_iterations", &self.0.iterations);
        if let LearningRate::Variable(rate) = &self.0.options.learning_rate {
            object.child("_learning_rate", rate);
            variables.insert(1, rate.clone());
        }
        object.child("_variables", &variables);
    }
}

/// The optimizer that one with a loss scale is around, in object graphs.
struct InnerOptimizer<'a>(&'a Optimizer);

impl Trackable for InnerOptimizer<'_> {
    fn describe(&self, object: &mut Description<'_>) {
        self.0.describe_state(object);
    }

    fn identity(&self) -> Option<Identity> {
        let Optimizer(inner) = self.0;
        Some(Identity::of_address(Arc::as_ptr(&inner.inner_identity) as usize))
    }
}

impl fmt::Debug for Optimizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OptimizerOptions { name, learning_rate, .. } = &self.0.options;
        write!(f, "<optimizer `{name}`, learning rate {learning_rate:?}>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::*;
    use ferroflow_ir::DType;
    use ferroflow_tracer::function;

    fn run(algorithm: impl Algorithm + 'static, lr: f64, steps: usize) -> Vec<f32> {
        let w = Variable::named("w", [1.0f32, -2.0]).unwrap();
        let optimizer = Optimizer::new(algorithm, lr).unwrap();
        for _ in 0..steps {
            let tape = GradientTape::new();
            let loss = w.read().unwrap().square().unwrap().sum_all().unwrap();
            optimizer.minimize(tape, &loss, std::slice::from_ref(&w)).unwrap();
        }
        w.read().unwrap().to_vec::<f32>().unwrap()
    }

    fn check(found: &[f32], expected: [f32; 2]) {
        let near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2e-5);
        assert!(near, "{found:?} instead of {expected:?}");
    }

    #[test]
    fn descent() {
        check(&run(Sgd::default(), 0.1, 2), [0.64, -1.28]);
        // v = -0.2, w = 0.8; v = 0.9·-0.2 - 0.16 = -0.34, w = 0.46
        check(&run(Sgd { momentum: 0.9, nesterov: false }, 0.1, 2), [0.46, -0.92]);
    }

    #[test]
    fn the_first_step_of_adam_is_the_learning_rate() {
        check(&run(Adam::default(), 0.1, 1), [0.9, -1.9]);
        check(&run(Adam { amsgrad: true, ..Adam::default() }, 0.1, 1), [0.9, -1.9]);
        check(&run(Adamax::default(), 0.1, 1), [0.9, -1.9]);
    }

    #[test]
    fn all_go_downhill() {
        let found = [
            run(Nadam::default(), 0.1, 50),
            run(RmsProp::default(), 0.1, 50),
            run(RmsProp { centered: true, momentum: 0.5, ..RmsProp::default() }, 0.05, 50),
            run(Adagrad::default(), 0.5, 50),
            run(Adadelta::default(), 20.0, 50),
            run(Ftrl::default(), 0.5, 50),
            run(Lamb::default(), 0.1, 50),
        ];
        for (index, w) in found.iter().enumerate() {
            assert!(w[0].abs() < 0.7 && w[1].abs() < 1.7, "{index}: {w:?}");
        }
    }

    // spec: 330
    #[test]
    fn slots_are_named_and_made_outside_traces() {
        let w = Variable::named("dense/kernel", [1.0f32]).unwrap();
        let optimizer = Optimizer::new(Adam::default(), 0.1).unwrap();
        let step = {
            let (w, optimizer) = (w.clone(), optimizer.clone());
            function(move || {
                let tape = GradientTape::new();
                let loss = w.read()?.square()?.sum_all()?;
                optimizer.minimize(tape, &loss, std::slice::from_ref(&w))
            })
        };
        step.call(()).unwrap();
        step.call(()).unwrap();
        assert_eq!(step.tracing_count(), 1);
        let slot = optimizer.slot(&w, "velocity").unwrap();
        assert_eq!(slot.name(), "adam/dense_kernel_velocity");
        assert!(!slot.is_trainable());
        assert_eq!(optimizer.iterations().read().unwrap().to_scalar::<i64>().unwrap(), 2);
        assert!((w.read().unwrap().to_vec::<f32>().unwrap()[0] - 0.8).abs() < 1e-3);
    }

    #[test]
    fn rows_are_stepped_alone() {
        let table = Variable::new([[1.0f32], [1.0], [1.0]]).unwrap();
        let optimizer = Optimizer::new(Adagrad::default(), 1.0).unwrap();
        let tape = GradientTape::new();
        let rows = table.read().unwrap().gather(&Tensor::from([2i32, 2])).unwrap();
        optimizer.minimize(tape, &rows.sum_all().unwrap(), std::slice::from_ref(&table)).unwrap();
        let accumulator = optimizer.slot(&table, "accumulator").unwrap();
        let sums = accumulator.read().unwrap().to_vec::<f32>().unwrap();
        check(&sums[1..], [0.1, 4.1]);
        let w = table.read().unwrap().to_vec::<f32>().unwrap();
        check(&w[1..], [1.0, 1.0 - 2.0 / 4.1f32.sqrt()]);
    }

    #[test]
    fn steps_that_are_not_finite_are_left_out() {
        let w = Variable::new(1.0f32).unwrap();
        let scale = LossScale::new(LossScaleOptions { initial: 8.0, growth_steps: 1 }).unwrap();
        let options = OptimizerOptions {
            learning_rate: 0.25.into(),
            loss_scale: Some(scale.clone()),
            ..OptimizerOptions::default()
        };
        let optimizer = Optimizer::with_options(Sgd::default(), options).unwrap();
        let step = {
            let (w, optimizer) = (w.clone(), optimizer.clone());
            function(move |x: Tensor| {
                let tape = GradientTape::new();
                let loss = (w.read()? * &x)?;
                optimizer.minimize(tape, &loss, std::slice::from_ref(&w))
            })
        };
        step.call((1.0f32,)).unwrap();
        assert_eq!(w.read().unwrap().to_scalar::<f32>().unwrap(), 0.75);
        assert_eq!(scale.value().unwrap().to_scalar::<f32>().unwrap(), 16.0);
        step.call((f32::NAN,)).unwrap();
        assert_eq!(w.read().unwrap().to_scalar::<f32>().unwrap(), 0.75);
        assert_eq!(scale.value().unwrap().to_scalar::<f32>().unwrap(), 8.0);
        assert_eq!(optimizer.iterations().read().unwrap().to_scalar::<i64>().unwrap(), 1);
    }

    #[test]
    fn rates_are_those_of_their_schedules() {
        let at = |schedule: LearningRateSchedule, step: f32| {
            schedule.at(&Tensor::from(step)).unwrap().to_scalar::<f32>().unwrap()
        };
        let decay = LearningRateSchedule::ExponentialDecay {
            initial: 1.0,
            steps: 2.0,
            rate: 0.5,
            staircase: false,
        };
        assert!((at(decay, 4.0) - 0.25).abs() < 1e-6);
        let pieces = LearningRateSchedule::PiecewiseConstant {
            boundaries: vec![1.0, 3.0],
            values: vec![3.0, 2.0, 1.0],
        };
        assert_eq!(
            [0.0, 1.0, 2.0, 3.0, 4.0].map(|s| at(pieces.clone(), s)),
            [3.0, 3.0, 2.0, 2.0, 1.0]
        );
        let cosine = LearningRateSchedule::CosineDecay {
            initial: 0.0,
            steps: 10.0,
            alpha: 0.0,
            warmup_target: 1.0,
            warmup_steps: 2.0,
        };
        assert!((at(cosine.clone(), 1.0) - 0.5).abs() < 1e-6);
        assert!((at(cosine, 7.0) - 0.5).abs() < 1e-6);
    }

    #[test]
    fn no_gradients_are_an_error() {
        let w = Variable::new(1.0f32).unwrap();
        let optimizer = Optimizer::new(Sgd::default(), 0.1).unwrap();
        let tape = GradientTape::new();
        let loss = Tensor::from(1.0f32);
        let error = optimizer.minimize(tape, &loss, &[w]).unwrap_err();
        assert!(matches!(error, Error::NoGradients), "{error}");
    }

    #[test]
    fn dtypes_of_state_are_those_of_variables() {
        let w = Variable::named("w", [1.0f64]).unwrap();
        let optimizer = Optimizer::new(Adam::default(), 0.1).unwrap();
        optimizer.build(std::slice::from_ref(&w)).unwrap();
        assert_eq!(optimizer.slot(&w, "momentum").unwrap().dtype(), DType::F64);
        assert!(optimizer.slot(&w, "norm").is_none());
    }
}
