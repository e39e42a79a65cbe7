//! Comparison of results with a number computed on the host: three numbers that say enough.

use crate::inputs;
use anyhow::Result;
use ferroflow::{ir::DType, runtime::EagerTensor};
use serde_json::{Value, json};

/// The seed of the numbers that elements are weighed with.
const SEED: u64 = 999;

/// The sum of magnitudes; the root of the sum of squares; and the sum of all elements, each weighed
/// with a number between -1 and 1 that depends on its position, so that signs and positions count.
#[derive(Default)]
pub(super) struct Checksum {
    mass: f64,
    squares: f64,
    probe: f64,
    n: u64,
}

impl Checksum {
    /// Goes on with the elements of a tensor.
    pub(super) fn add(&mut self, tensor: &EagerTensor) -> Result<()> {
        let tensor = tensor.host()?;
        let wide;
        let elements = match tensor.dtype() {
            DType::F32 => tensor.as_slice::<f32>()?,
            DType::BF16 => {
                let narrow = tensor.as_slice::<half::bf16>()?;
                wide = narrow.iter().map(|x| x.to_f32()).collect::<Vec<f32>>();
                &wide
            }
            other => anyhow::bail!("results of {other} are not compared"),
        };
        for &x in elements {
            let x = f64::from(x);
            self.mass += x.abs();
            self.squares += x * x;
            self.probe += x * (2.0 * inputs::unit(SEED, self.n) - 1.0);
            self.n += 1;
        }
        Ok(())
    }

    pub(super) fn json(&self) -> Value {
        json!({ "mass": self.mass, "norm": self.squares.sqrt(), "probe": self.probe, "n": self.n })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow::ir::HostTensor;

    impl Checksum {
        fn of(elements: &[f32]) -> Checksum {
            let mut check = Checksum::default();
            check.add(&HostTensor::vector(elements).unwrap().into()).unwrap();
            check
        }
    }

    #[test]
    fn signs_and_positions_count() {
        let [one, turned, swapped] = [[1.0, 2.0, 3.0], [1.0, -2.0, 3.0], [2.0, 1.0, 3.0]];
        let [one, turned, swapped] = [one, turned, swapped].map(|x| Checksum::of(&x));
        assert_eq!((one.mass, one.squares, one.n), (6.0, 14.0, 3));
        for other in [turned, swapped] {
            assert_eq!((other.mass, other.squares), (one.mass, one.squares));
            assert!((other.probe - one.probe).abs() > 0.1);
        }
    }

    #[test]
    fn parts_count_as_the_whole() {
        let mut parts = Checksum::default();
        for part in [[1.0f32, -2.0], [3.0, 4.0]] {
            parts.add(&HostTensor::vector(&part).unwrap().into()).unwrap();
        }
        assert_eq!(parts.json(), Checksum::of(&[1.0, -2.0, 3.0, 4.0]).json());
    }

    /// The peer makes the same numbers: these are what its formula gives.
    #[test]
    fn numbers_of_seeds_are_known() {
        let found: Vec<u64> =
            (0..2).map(|i| (inputs::unit(7, i) * f64::from(1 << 24)) as u64).collect();
        assert_eq!(found, KNOWN);
    }

    const KNOWN: [u64; 2] = [3_613_714, 14_152_447];
}
