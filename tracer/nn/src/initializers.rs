//! First values of weights.
//!
//! With a seed they are what TensorFlow's stateless random ops give for it, bit by bit.

use ferroflow_ir::{
    Attrs, DType,
    clock::{SystemTime, UNIX_EPOCH},
    ops::names,
};
use ferroflow_tracer::{
    error::{Error, Result},
    ops,
    tensor::Tensor,
};
use std::sync::atomic::{AtomicI64, Ordering};

/// Initial values of weights.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the fields are the parameters of the distributions")]
pub enum Initializer {
    /// Zeros.
    Zeros,
    /// Ones.
    Ones,
    /// The same number everywhere.
    Constant(f64),
    /// Evenly in a range.
    RandomUniform { low: f64, high: f64 },
    /// By a normal distribution.
    RandomNormal { mean: f64, deviation: f64 },
    /// By a normal distribution without what is further than two deviations from the mean.
    TruncatedNormal { mean: f64, deviation: f64 },
    /// By a variance of `scale` over the number of inputs or outputs of a weight.
    VarianceScaling { scale: f64, mode: Fan, distribution: Distribution },
    /// A random matrix with orthonormal rows or columns (Saxe et al. 2014).
    Orthogonal { gain: f64 },
    /// The identity matrix.
    Identity { gain: f64 },
}

/// Divisor of a variance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fan {
    /// The number of inputs.
    In,
    /// The number of outputs.
    Out,
    /// The mean of both.
    Average,
}

/// A distribution of a specified variance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// Normal, cut at two deviations and widened to keep the variance.
    TruncatedNormal,
    /// Normal.
    UntruncatedNormal,
    /// Uniform.
    Uniform,
}

/// The deviation of a standard normal distribution that is cut at ±2.
const CUT_DEVIATION: f64 = 0.879_625_661_034_239_8;

impl Initializer {
    /// Uniform, by the mean of inputs and outputs (Glorot and Bengio 2010): what Keras takes for
    /// kernels.
    pub const GLOROT_UNIFORM: Initializer = scaled(1.0, Fan::Average, Distribution::Uniform);
    /// Normal, by the mean of inputs and outputs (Glorot and Bengio 2010).
    pub const GLOROT_NORMAL: Initializer = scaled(1.0, Fan::Average, Distribution::TruncatedNormal);
    /// Uniform, by twice the inverse of the inputs (He et al. 2015).
    pub const HE_UNIFORM: Initializer = scaled(2.0, Fan::In, Distribution::Uniform);
    /// Normal, by twice the inverse of the inputs (He et al. 2015).
    pub const HE_NORMAL: Initializer = scaled(2.0, Fan::In, Distribution::TruncatedNormal);
    /// Uniform, by the inverse of the inputs (LeCun et al. 1998).
    pub const LECUN_UNIFORM: Initializer = scaled(1.0, Fan::In, Distribution::Uniform);
    /// Normal, by the inverse of the inputs (LeCun et al. 1998).
    pub const LECUN_NORMAL: Initializer = scaled(1.0, Fan::In, Distribution::TruncatedNormal);

    /// Values of this dtype and shape, drawn by a seed.
    ///
    /// ```
    /// use ferroflow_nn::initializers::Initializer;
    /// # fn main() -> ferroflow_tracer::Result<()> {
    /// let init = Initializer::GLOROT_UNIFORM;
    /// let w = init.seeded(ferroflow_ir::DType::F32, &[3, 5], [1, 2])?;
    /// let again = init.seeded(ferroflow_ir::DType::F32, &[3, 5], [1, 2])?;
    /// assert_eq!(w.to_vec::<f32>()?, again.to_vec::<f32>()?);
    /// let limit = (6.0f32 / 8.0).sqrt();
    /// assert!(w.to_vec::<f32>()?.iter().all(|w| w.abs() <= limit));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When there are no such values of the dtype; [`Error::Conversion`] for a matrix that is none.
    #[track_caller]
    pub fn seeded(&self, dtype: DType, shape: &[usize], seed: [i64; 2]) -> Result<Tensor> {
        let dims: Vec<i64> = shape.iter().map(|&dim| dim as i64).collect();
        let constant = |value: f64| -> Result<Tensor> {
            let value = ops::IntoOperand::into_operand(value, dtype)?;
            ops::fill(&Tensor::from(&dims[..]), &value)
        };
        match *self {
            Initializer::Zeros => constant(0.0),
            Initializer::Ones => constant(1.0),
            Initializer::Constant(value) => constant(value),
            Initializer::RandomUniform { low, high } => {
                let unit = draw(names::STATELESS_RANDOM_UNIFORM_V2, dtype, &dims, seed)?;
                (unit * (high - low))? + low
            }
            Initializer::RandomNormal { mean, deviation } => {
                let unit = draw(names::STATELESS_RANDOM_NORMAL_V2, dtype, &dims, seed)?;
                (unit * deviation)? + mean
            }
            Initializer::TruncatedNormal { mean, deviation } => {
                let unit = draw(names::STATELESS_TRUNCATED_NORMAL_V2, dtype, &dims, seed)?;
                (unit * deviation)? + mean
            }
            Initializer::VarianceScaling { scale, mode, distribution } => {
                let variance = scale / fan(shape, mode);
                let drawn = match distribution {
                    Distribution::Uniform => {
                        let limit = (3.0 * variance).sqrt();
                        Initializer::RandomUniform { low: -limit, high: limit }
                    }
                    Distribution::TruncatedNormal => {
                        let deviation = variance.sqrt() / CUT_DEVIATION;
                        Initializer::TruncatedNormal { mean: 0.0, deviation }
                    }
                    Distribution::UntruncatedNormal => {
                        Initializer::RandomNormal { mean: 0.0, deviation: variance.sqrt() }
                    }
                };
                drawn.seeded(dtype, shape, seed)
            }
            Initializer::Orthogonal { gain } => orthogonal(dtype, shape, gain, seed),
            Initializer::Identity { gain } => {
                let [rows, columns] = shape[..] else { return Err(not_a_matrix(shape)) };
                let ones = Initializer::Constant(gain).seeded(dtype, &[rows.min(columns)], seed)?;
                ops::matrix_set_diag(&constant(0.0)?, &ones)
            }
        }
    }

    /// Values of this dtype and shape, others in each call.
    ///
    /// # Errors
    ///
    /// As [`seeded`](Initializer::seeded).
    #[track_caller]
    pub fn make(&self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        static NEXT: AtomicI64 = AtomicI64::new(0);
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        let first = time.map_or(0, |time| time.as_nanos() as i64);
        self.seeded(dtype, shape, [first, NEXT.fetch_add(1, Ordering::Relaxed)])
    }
}

const fn scaled(scale: f64, mode: Fan, distribution: Distribution) -> Initializer {
    Initializer::VarianceScaling { scale, mode, distribution }
}

fn not_a_matrix(shape: &[usize]) -> Error {
    Error::Conversion { expected: "the shape of a matrix".into(), found: format!("{shape:?}") }
}

/// The number of inputs or outputs of a kernel: of a convolution's, the size of the window counts.
fn fan(shape: &[usize], mode: Fan) -> f64 {
    let (fan_in, fan_out) = match *shape {
        [] => (1, 1),
        [n] => (n, n),
        [ref window @ .., inputs, outputs] => {
            let size: usize = window.iter().product();
            (size * inputs, size * outputs)
        }
    };
    let (fan_in, fan_out) = (fan_in as f64, fan_out as f64);
    let fan = match mode {
        Fan::In => fan_in,
        Fan::Out => fan_out,
        Fan::Average => (fan_in + fan_out) / 2.0,
    };
    fan.max(1.0)
}

#[track_caller]
fn draw(op: &'static str, dtype: DType, dims: &[i64], seed: [i64; 2]) -> Result<Tensor> {
    let [key, counter, algorithm] = ops::stateless_random_get_key_counter_alg(&Tensor::from(seed))?;
    let op = ferroflow_ir::registry::find(op).expect("a built-in record");
    let attrs = Attrs::new().with("dtype", dtype);
    let inputs = [&Tensor::from(dims), &key, &counter, &algorithm];
    Ok(ops::raw(op, attrs, &inputs)?.remove(0))
}

/// The orthonormal factor of a random matrix, its columns turned such that it is evenly
/// distributed.
#[track_caller]
fn orthogonal(dtype: DType, shape: &[usize], gain: f64, seed: [i64; 2]) -> Result<Tensor> {
    let Some((&columns, window)) = shape.split_last().filter(|(_, rest)| !rest.is_empty()) else {
        return Err(not_a_matrix(shape));
    };
    let rows: usize = window.iter().product();
    let (long, short) = (rows.max(columns), rows.min(columns));
    let dims = [long as i64, short as i64];
    let random = draw(names::STATELESS_RANDOM_NORMAL_V2, dtype, &dims, seed)?;
    let [q, r] = ops::qr(&random)?;
    let turned = (q * ops::matrix_diag_part(&r)?.sign()?)?;
    let turned = if rows < columns { turned.transpose(&[1, 0])? } else { turned };
    let dims: Vec<i64> = shape.iter().map(|&dim| dim as i64).collect();
    turned.reshape(&dims)? * gain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of Keras 3.15 with `seed=7`.
    #[test]
    fn seeds_reproduce_the_values_of_keras() {
        let check = |init: Initializer, expected: [f32; 6]| {
            let found = init.seeded(DType::F32, &[3, 2], [7, 0]).unwrap().to_vec::<f32>().unwrap();
            let near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-6 * b.abs());
            assert!(near, "{init:?}: {found:?} instead of {expected:?}");
        };
        let uniform = [0.5413225, 0.3772279, -0.9688565, 0.3159553, -0.9414068, 0.3684088];
        check(Initializer::GLOROT_UNIFORM, uniform);
        let normal = [-0.4847338, -0.2579019, -1.351429, -1.059018, -0.5214547, 0.5467014];
        check(Initializer::GLOROT_NORMAL, normal);
        let uniform = [0.6988443, 0.486999, -1.250788, 0.4078965, -1.215351, 0.4756137];
        check(Initializer::HE_UNIFORM, uniform);
        let normal = [-0.6257886, -0.3329499, -1.744688, -1.367186, -0.6731951, 0.7057885];
        check(Initializer::HE_NORMAL, normal);
        let uniform = [0.4941576, 0.3443604, -0.8844409, 0.2884264, -0.8593829, 0.3363097];
        check(Initializer::LECUN_UNIFORM, uniform);
        let normal = [-0.4424994, -0.2354311, -1.23368, -0.9667467, -0.4760208, 0.4990678];
        check(Initializer::LECUN_NORMAL, normal);
        let (mean, deviation) = (0.5, 2.0);
        let normal = [-0.8483455, -0.2173851, -3.259163, -2.445786, -3.512507, -1.766865];
        check(Initializer::RandomNormal { mean, deviation }, normal);
        let normal = [-0.8483455, -0.2173851, -3.259163, -2.445786, -0.950489, 2.020716];
        check(Initializer::TruncatedNormal { mean, deviation }, normal);
        let uniform = [1.988315, 1.688721, -0.7688818, 1.576853, -0.7187657, 1.672619];
        check(Initializer::RandomUniform { low: -1.0, high: 3.0 }, uniform);
        let columns = [-0.4763434, 0.5495275, -1.328037, -1.492049, -1.417538, 1.213182];
        check(Initializer::Orthogonal { gain: 2.0 }, columns);
    }

    #[test]
    fn orthogonal_matrices_are() {
        let init = Initializer::Orthogonal { gain: 1.0 };
        for shape in [[4usize, 3], [3, 4]] {
            let w = init.seeded(DType::F64, &shape, [3, 4]).unwrap();
            let turned = w.transpose(&[1, 0]).unwrap();
            let product = if shape[0] > shape[1] { turned.matmul(&w) } else { w.matmul(&turned) };
            let found = product.unwrap().to_vec::<f64>().unwrap();
            let identity = Initializer::Identity { gain: 1.0 };
            let expected = identity.seeded(DType::F64, &[3, 3], [0, 0]).unwrap();
            let expected = expected.to_vec::<f64>().unwrap();
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        }
    }

    #[test]
    fn variances_depend_on_the_fans() {
        let variance = |init: Initializer| {
            let w = init.seeded(DType::F64, &[3, 3, 16, 32], [5, 6]).unwrap();
            let w = w.to_vec::<f64>().unwrap();
            w.iter().map(|w| w * w).sum::<f64>() / w.len() as f64
        };
        let (fan_in, fan_out) = (9.0 * 16.0, 9.0 * 32.0);
        for (init, expected) in [
            (Initializer::HE_NORMAL, 2.0 / fan_in),
            (Initializer::LECUN_UNIFORM, 1.0 / fan_in),
            (Initializer::GLOROT_NORMAL, 2.0 / (fan_in + fan_out)),
        ] {
            let found = variance(init);
            assert!((found / expected - 1.0).abs() < 0.05, "{found} instead of {expected}");
        }
    }

    #[test]
    fn what_is_no_matrix_is_said() {
        let error = Initializer::Identity { gain: 1.0 }.seeded(DType::F32, &[3], [0, 0]);
        assert!(error.unwrap_err().to_string().contains("[3]"));
    }
}
