//! Learning rates, and how they change.

use ferroflow_tracer::{error::Result, tensor::Tensor, variable::Variable};
use std::{fmt, sync::Arc};

/// The learning rate of an optimizer.
#[derive(Clone)]
pub enum LearningRate {
    /// A number.
    Constant(f64),
    /// A variable, read in each step: to be changed from outside.
    Variable(Variable),
    /// A function of the number of steps made.
    Schedule(LearningRateSchedule),
    /// Any function of the number of steps made, a scalar of `f32`.
    Function(Arc<RateFunction>),
}

/// A learning rate as a function of the number of steps made, a scalar of `f32`.
pub type RateFunction = dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync;

impl From<f64> for LearningRate {
    fn from(rate: f64) -> LearningRate {
        LearningRate::Constant(rate)
    }
}

impl From<LearningRateSchedule> for LearningRate {
    fn from(schedule: LearningRateSchedule) -> LearningRate {
        LearningRate::Schedule(schedule)
    }
}

impl From<&Variable> for LearningRate {
    fn from(variable: &Variable) -> LearningRate {
        LearningRate::Variable(variable.clone())
    }
}

impl fmt::Debug for LearningRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LearningRate::Constant(rate) => write!(f, "{rate}"),
            LearningRate::Variable(variable) => write!(f, "{variable:?}"),
            LearningRate::Schedule(schedule) => write!(f, "{schedule:?}"),
            LearningRate::Function(_) => f.write_str("<function of the step>"),
        }
    }
}

impl LearningRate {
    /// The rate after so many steps, a scalar of `f32` or of the dtype of the variable.
    ///
    /// # Errors
    ///
    /// Those of a function.
    pub fn at(&self, iterations: &Tensor) -> Result<Tensor> {
        match self {
            LearningRate::Constant(rate) => Ok(Tensor::from(*rate as f32)),
            LearningRate::Variable(variable) => variable.read(),
            LearningRate::Schedule(schedule) => {
                schedule.at(&iterations.cast(ferroflow_ir::DType::F32)?)
            }
            LearningRate::Function(function) => {
                function(&iterations.cast(ferroflow_ir::DType::F32)?)
            }
        }
    }
}

/// Learning rate as a function of the number of steps made (`keras/src/optimizers/schedules`).
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are the letters of the formulas")]
pub enum LearningRateSchedule {
    /// `initial · rate^(step / steps)`; in whole powers if `staircase`.
    ExponentialDecay { initial: f64, steps: f64, rate: f64, staircase: bool },
    /// `initial / (1 + rate · step / steps)`; in whole quotients if `staircase`.
    InverseTimeDecay { initial: f64, steps: f64, rate: f64, staircase: bool },
    /// From `initial` to `end` in `steps` steps, by a power; then it stays, or begins anew with
    /// ever more steps if `cycle`.
    PolynomialDecay { initial: f64, steps: f64, end: f64, power: f64, cycle: bool },
    /// `values[i]` up to step `boundaries[i]`, the last value after the last boundary.
    PiecewiseConstant { boundaries: Vec<f64>, values: Vec<f64> },
    /// Half a cosine from `initial` to `alpha · initial` in `steps` steps; before, linear from
    /// `initial` to `warmup_target` in `warmup_steps` steps if there are any.
    CosineDecay { initial: f64, steps: f64, alpha: f64, warmup_target: f64, warmup_steps: f64 },
    /// Cosines that begin anew: each `t_mul` times as long, from `m_mul` times as high.
    CosineDecayRestarts { initial: f64, first_steps: f64, t_mul: f64, m_mul: f64, alpha: f64 },
}

impl LearningRateSchedule {
    /// The rate after so many steps, a scalar of `f32`.
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn at(&self, step: &Tensor) -> Result<Tensor> {
        match *self {
            LearningRateSchedule::ExponentialDecay { initial, steps, rate, staircase } => {
                let power = whole((step / steps)?, staircase)?;
                (power.zeros_like()? + rate)?.pow(&power)? * initial
            }
            LearningRateSchedule::InverseTimeDecay { initial, steps, rate, staircase } => {
                let quotient = whole((step / steps)?, staircase)?;
                initial / ((quotient * rate)? + 1.0)?
            }
            LearningRateSchedule::PolynomialDecay { initial, steps, end, power, cycle } => {
                let (step, steps) = if cycle {
                    let rounds = (step / steps)?.ceil()?.maximum(1.0)?;
                    (step.clone(), (rounds * steps)?)
                } else {
                    (step.minimum(steps)?, (step.zeros_like()? + steps)?)
                };
                let left = (1.0 - (step / steps)?)?;
                (left.pow(power)? * (initial - end))? + end
            }
            LearningRateSchedule::PiecewiseConstant { ref boundaries, ref values } => {
                let mut rate = (step.zeros_like()? + values.last().copied().unwrap_or(0.0))?;
                for (&boundary, &value) in boundaries.iter().zip(values).rev() {
                    rate =
                        step.less_equal(boundary)?.select(&(step.zeros_like()? + value)?, &rate)?;
                }
                Ok(rate)
            }
            LearningRateSchedule::CosineDecay {
                initial,
                steps,
                alpha,
                warmup_target,
                warmup_steps,
            } => {
                if warmup_steps == 0.0 {
                    return cosine(&(step / steps)?.minimum(1.0)?, initial, alpha);
                }
                let warming = ((step * ((warmup_target - initial) / warmup_steps))? + initial)?;
                let done = ((step - warmup_steps)? / steps)?.minimum(1.0)?.maximum(0.0)?;
                let decayed = cosine(&done, warmup_target, alpha)?;
                step.less(warmup_steps)?.select(&warming, &decayed)
            }
            LearningRateSchedule::CosineDecayRestarts {
                initial,
                first_steps,
                t_mul,
                m_mul,
                alpha,
            } => {
                let done = (step / first_steps)?;
                let (round, part) = if t_mul == 1.0 {
                    let round = done.floor()?;
                    let part = (done - &round)?;
                    (round, part)
                } else {
                    let inner = (1.0 - (&done * (1.0 - t_mul))?)?;
                    let round = (inner.log()? / t_mul.ln())?.floor()?;
                    let power = (round.zeros_like()? + t_mul)?.pow(&round)?;
                    let before = ((1.0 - &power)? / (1.0 - t_mul))?;
                    let part = ((done - before)? / power)?;
                    (round, part)
                };
                let height = (round.zeros_like()? + m_mul)?.pow(&round)?;
                let wave = (((part * std::f64::consts::PI)?.cos()? + 1.0)? * 0.5)?;
                let wave = ((wave * height)? * (1.0 - alpha))?;
                (wave + alpha)? * initial
            }
        }
    }
}

fn whole(x: Tensor, staircase: bool) -> Result<Tensor> {
    if staircase { x.floor() } else { Ok(x) }
}

fn cosine(done: &Tensor, initial: f64, alpha: f64) -> Result<Tensor> {
    let wave = (((done * std::f64::consts::PI)?.cos()? + 1.0)? * 0.5)?;
    ((wave * (1.0 - alpha))? + alpha)? * initial
}
