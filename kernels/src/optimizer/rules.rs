//! The formulas: how one element of a variable and its slots changes.
//!
//! Source: `training_ops.cc` of TensorFlow, also for the order of operations: every one rounds to
//! the dtype of the variable, which 16-bit floats show. The state is in the order of the op's
//! arguments, the variable first.

use super::{
    Parameters,
    field::{ArithmeticField, RealField, proximal, shrunk, sign},
};
use crate::error::Result;

/// A formula over the numbers `A`, for a variable with `N - 1` slots.
pub(super) trait OptimizerRule<A, const N: usize> {
    /// The formula with the parameters of a call: from state and gradient to the new state.
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; N], A) -> [A; N] + Sync>;
}

pub(super) struct GradientDescent;

impl<A: ArithmeticField> OptimizerRule<A, 1> for GradientDescent {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 1], A) -> [A; 1] + Sync> {
        let alpha = p.get("alpha")?;
        Ok(move |[var]: [A; 1], grad| [var - grad * alpha])
    }
}

pub(super) struct ProximalGradientDescent;

impl<A: RealField> OptimizerRule<A, 1> for ProximalGradientDescent {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 1], A) -> [A; 1] + Sync> {
        let (alpha, l1, l2) = (p.get("alpha")?, p.get("l1")?, p.get("l2")?);
        Ok(move |[var]: [A; 1], grad| [proximal(var - grad * alpha, alpha, l1, l2)])
    }
}

pub(super) struct Momentum;

impl<A: ArithmeticField> OptimizerRule<A, 2> for Momentum {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 2], A) -> [A; 2] + Sync> {
        let (lr, momentum, nesterov) = (p.get("lr")?, p.get("momentum")?, p.flag("use_nesterov"));
        Ok(move |[var, accum]: [A; 2], grad| {
            let accum = accum * momentum + grad;
            let step = if nesterov { grad * lr + accum * momentum * lr } else { accum * lr };
            [var - step, accum]
        })
    }
}

pub(super) struct KerasMomentum;

impl<A: ArithmeticField> OptimizerRule<A, 2> for KerasMomentum {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 2], A) -> [A; 2] + Sync> {
        let (lr, momentum, nesterov) = (p.get("lr")?, p.get("momentum")?, p.flag("use_nesterov"));
        Ok(move |[var, accum]: [A; 2], grad| {
            let accum = accum * momentum - grad * lr;
            let step = if nesterov { accum * momentum - grad * lr } else { accum };
            [var + step, accum]
        })
    }
}

/// Duchi, Hazan and Singer, "Adaptive subgradient methods", 2011.
pub(super) struct AdagradRule;

impl<A: ArithmeticField> OptimizerRule<A, 2> for AdagradRule {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 2], A) -> [A; 2] + Sync> {
        let (lr, update) = (p.get("lr")?, p.flag("update_slots"));
        Ok(move |[var, accum]: [A; 2], grad: A| {
            let accum = if update { accum + grad * grad } else { accum };
            [var - grad * lr * accum.reciprocal_root(), accum]
        })
    }
}

/// Adagrad with `epsilon` added to the root.
pub(super) struct AdagradV2;

impl<A: ArithmeticField> OptimizerRule<A, 2> for AdagradV2 {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 2], A) -> [A; 2] + Sync> {
        let (lr, epsilon, update) = (p.get("lr")?, p.get("epsilon")?, p.flag("update_slots"));
        Ok(move |[var, accum]: [A; 2], grad: A| {
            let accum = if update { accum + grad * grad } else { accum };
            [var - grad * lr / (accum.root() + epsilon), accum]
        })
    }
}

/// Adagrad by dual averaging: the variable is a function of all gradients so far.
pub(super) struct AdagradDa;

impl<A: RealField> OptimizerRule<A, 3> for AdagradDa {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 3], A) -> [A; 3] + Sync> {
        let (lr, l1, l2, steps) = (p.get("lr")?, p.get("l1")?, p.get("l2")?, p.get("global_step")?);
        Ok(move |[_, sum, squares]: [A; 3], grad| {
            let (sum, squares) = (sum + grad, squares + grad * grad);
            let x = if l1 > A::zero() { shrunk(sum, l1 * steps) } else { sum };
            [-(lr * x) / (l2 * steps * lr + squares.root()), sum, squares]
        })
    }
}

pub(super) struct ProximalAdagrad;

impl<A: RealField> OptimizerRule<A, 2> for ProximalAdagrad {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 2], A) -> [A; 2] + Sync> {
        let (lr, l1, l2) = (p.get("lr")?, p.get("l1")?, p.get("l2")?);
        Ok(move |[var, accum]: [A; 2], grad| {
            let accum = accum + grad * grad;
            let rate = lr * accum.reciprocal_root();
            [proximal(var - grad * rate, rate, l1, l2), accum]
        })
    }
}

/// Zeiler, "ADADELTA: an adaptive learning rate method", 2012.
pub(super) struct AdadeltaRule;

impl<A: ArithmeticField> OptimizerRule<A, 3> for AdadeltaRule {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 3], A) -> [A; 3] + Sync> {
        let (lr, rho, epsilon) = (p.get("lr")?, p.get("rho")?, p.get("epsilon")?);
        let rest = A::of(1.0) - rho;
        Ok(move |[var, accum, accum_update]: [A; 3], grad| {
            let accum = accum * rho + grad * grad * rest;
            let update =
                (accum_update + epsilon).root() * (accum + epsilon).reciprocal_root() * grad;
            [var - update * lr, accum, accum_update * rho + update * update * rest]
        })
    }
}

/// Kingma and Ba, "Adam: a method for stochastic optimization", 2015, algorithm 1 in the form of
/// section 2.
pub(super) struct AdamRule;

impl<A: ArithmeticField> OptimizerRule<A, 3> for AdamRule {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 3], A) -> [A; 3] + Sync> {
        let moments = Moments::read(p)?;
        let (beta1, epsilon, nesterov) =
            (p.get("beta1")?, p.get("epsilon")?, p.flag("use_nesterov"));
        Ok(move |[var, m, v]: [A; 3], grad| {
            let [m, v] = moments.step(m, v, grad);
            let step = if nesterov { m * beta1 + moments.rest1 * grad } else { m };
            [var - step * moments.rate / (v.root() + epsilon), m, v]
        })
    }
}

/// Adam with the largest second moment so far (Reddi and others, "On the convergence of Adam and
/// beyond", 2018).
pub(super) struct AdamWithAmsgrad;

impl<A: RealField> OptimizerRule<A, 4> for AdamWithAmsgrad {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 4], A) -> [A; 4] + Sync> {
        let (moments, epsilon) = (Moments::read(p)?, p.get("epsilon")?);
        Ok(move |[var, m, v, vhat]: [A; 4], grad| {
            let [m, v] = moments.step(m, v, grad);
            let vhat = if v > vhat { v } else { vhat };
            [var - m * moments.rate / (vhat.root() + epsilon), m, v, vhat]
        })
    }
}

/// The moving averages of Adam, and its rate without their bias.
struct Moments<A> {
    rest1: A,
    rest2: A,
    rate: A,
}

impl<A: ArithmeticField> Moments<A> {
    fn read(p: &Parameters<'_, A>) -> Result<Moments<A>> {
        let one = A::of(1.0);
        let rate = p.get("lr")? * (one - p.get("beta2_power")?).root();
        Ok(Moments {
            rest1: one - p.get("beta1")?,
            rest2: one - p.get("beta2")?,
            rate: rate / (one - p.get("beta1_power")?),
        })
    }

    #[inline(always)]
    fn step(&self, m: A, v: A, grad: A) -> [A; 2] {
        [m + (grad - m) * self.rest1, v + (grad * grad - v) * self.rest2]
    }
}

/// Kingma and Ba, algorithm 2.
pub(super) struct AdaMax;

impl<A: RealField> OptimizerRule<A, 3> for AdaMax {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 3], A) -> [A; 3] + Sync> {
        let (beta1, beta2, epsilon) = (p.get("beta1")?, p.get("beta2")?, p.get("epsilon")?);
        let rate = p.get("lr")? / (A::one() - p.get("beta1_power")?);
        Ok(move |[var, m, v]: [A; 3], grad: A| {
            let m = m + (grad - m) * (A::one() - beta1);
            let v = (beta2 * v).max(grad.abs());
            [var - rate * (m / (v + epsilon)), m, v]
        })
    }
}

/// Hinton's RMSprop with momentum.
pub(super) struct RmsPropRule;

impl<A: ArithmeticField> OptimizerRule<A, 3> for RmsPropRule {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 3], A) -> [A; 3] + Sync> {
        let (lr, momentum, epsilon) = (p.get("lr")?, p.get("momentum")?, p.get("epsilon")?);
        let rest = A::of(1.0) - p.get("rho")?;
        Ok(move |[var, ms, mom]: [A; 3], grad| {
            let ms = ms + (grad * grad - ms) * rest;
            let mom = mom * momentum + grad * lr / (ms + epsilon).root();
            [var - mom, ms, mom]
        })
    }
}

/// RMSprop by the variance of gradients.
pub(super) struct CenteredRmsProp;

impl<A: ArithmeticField> OptimizerRule<A, 4> for CenteredRmsProp {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 4], A) -> [A; 4] + Sync> {
        let (lr, momentum, epsilon) = (p.get("lr")?, p.get("momentum")?, p.get("epsilon")?);
        let rest = A::of(1.0) - p.get("rho")?;
        Ok(move |[var, mg, ms, mom]: [A; 4], grad| {
            let ms = ms + (grad * grad - ms) * rest;
            let mg = mg + (grad - mg) * rest;
            let mom = mom * momentum + grad * lr / (ms - mg * mg + epsilon).root();
            [var - mom, mg, ms, mom]
        })
    }
}

/// Bello and others, "Neural optimizer search with reinforcement learning", 2017.
pub(super) struct AddSign;

impl<A: RealField> OptimizerRule<A, 2> for AddSign {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 2], A) -> [A; 2] + Sync> {
        let (lr, alpha) = (p.get("lr")?, p.get("alpha")?);
        let (decay, beta) = (p.get("sign_decay")?, p.get("beta")?);
        Ok(move |[var, m]: [A; 2], grad| {
            let m = m * beta + grad * (A::one() - beta);
            let agreement = sign(grad) * sign(m);
            [var - lr * (alpha + decay * agreement) * grad, m]
        })
    }
}

/// As [`AddSign`], with the agreement of signs in the exponent.
pub(super) struct PowerSign;

impl<A: RealField> OptimizerRule<A, 2> for PowerSign {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 2], A) -> [A; 2] + Sync> {
        let (lr, beta) = (p.get("lr")?, p.get("beta")?);
        let exponent = p.get("logbase")? * p.get("sign_decay")?;
        Ok(move |[var, m]: [A; 2], grad| {
            let m = m * beta + grad * (A::one() - beta);
            let agreement = sign(grad) * sign(m);
            [var - lr * (exponent * agreement).exp() * grad, m]
        })
    }
}

/// McMahan and others, "Ad click prediction: a view from the trenches", 2013.
pub(super) struct FtrlRule;

impl<A: RealField> OptimizerRule<A, 3> for FtrlRule {
    fn step(p: &Parameters<'_, A>) -> Result<impl Fn([A; 3], A) -> [A; 3] + Sync> {
        let (lr, l1, l2, power) = (p.get("lr")?, p.get("l1")?, p.get("l2")?, p.get("lr_power")?);
        let shrinkage = p.find("l2_shrinkage").unwrap_or(A::zero());
        let by_rate = p.flag("multiply_linear_by_lr");
        let valid_rate = if by_rate { lr >= A::zero() } else { lr > A::zero() };
        if !valid_rate {
            return Err(p.wrong("lr", "positive"));
        }
        for (name, value) in [("l1", l1), ("l2", l2), ("l2_shrinkage", shrinkage)] {
            if !(value >= A::zero()) {
                return Err(p.wrong(name, "0 or more"));
            }
        }
        if !(power <= A::zero()) {
            return Err(p.wrong("lr_power", "0 or less"));
        }
        // One form for both: with the flag, the linear term and the limits are multiplied by the
        // rate, instead of the quadratic term being divided by it.
        let (scale, divisor) = if by_rate { (lr, A::one()) } else { (A::one(), lr) };
        let is_root = power == A::of(-0.5);
        let powered = move |x: A| if is_root { x.root() } else { x.powf(-power) };
        Ok(move |[var, accum, linear]: [A; 3], grad: A| {
            let sum = accum + grad * grad;
            let shrunk_grad = grad + A::of(2.0) * shrinkage * var;
            let linear =
                linear + shrunk_grad * scale - (powered(sum) - powered(accum)) / divisor * var;
            let quadratic = powered(sum) / divisor + A::of(2.0) * l2 * scale;
            let limit = l1 * scale;
            let var = if linear.abs() > limit {
                (limit * sign(linear) - linear) / quadratic
            } else {
                A::zero()
            };
            [var, sum, linear]
        })
    }
}
