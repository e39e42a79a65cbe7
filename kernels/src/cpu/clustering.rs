//! First centers of clusters, by chance: `KmeansPlusPlusInitialization` and `KMC2ChainInitialization`.
//!
//! Source: Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", 2007; Bachem et
//! al., "Approximate K-means++ in sublinear time", 2016; TensorFlow's `clustering_ops.cc` for the
//! order of the random numbers.

use super::Build;
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    philox::{Philox, Words},
};
use ferroflow_ir::{Code, Error as IrError, budget, workspace};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] =
    &[("KMC2ChainInitialization", chain), ("KmeansPlusPlusInitialization", plus_plus)];

/// The last state of a Markov chain over the points, each of which is taken with the probability of
/// its distance divided by that of the state.
fn chain(_: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(Some(Arc::new(|io: &mut Io<'_>| {
        let (distances, seed): (&[f32], i64) = (io.input(0), io.scalar(1));
        let mut words = Words::new(Philox::new(seed as u64, 0));
        let mut state = 0;
        for at in 1..distances.len() {
            if distances[at] > words.next_f32() * distances[state] {
                state = at;
            }
        }
        io.output::<i64>(0)[0] = state as i64;
        Ok(())
    })))
}

/// Points `[n, dims]`, drawn by the squares of their distances from those drawn before.
struct Drawing<'a> {
    op: &'static str,
    points: &'a [f32],
    dims: usize,
    words: Words,
    /// Half the square of the length of each point.
    norms: Vec<f32>,
    /// Half the square of the distance of each point from the nearest center.
    nearest: Vec<f32>,
    sums: Vec<f32>,
    is_center: Vec<bool>,
    n_centers: usize,
}

/// Draws of points that are centers already, for each point, before a kernel ends with an error.
const DRAWS: usize = 64;

impl Drawing<'_> {
    fn row(&self, at: usize) -> &[f32] {
        &self.points[at * self.dims..][..self.dims]
    }

    /// The number of a point that is no center.
    fn draw(&mut self) -> Result<usize> {
        let n = self.nearest.len();
        if self.n_centers == 0 {
            return Ok(self.words.below_u64(n as u64) as usize);
        }
        let total = self.sums[n - 1];
        for _ in 0..n.saturating_add(DRAWS).saturating_mul(DRAWS) {
            let at = if total > 0.0 {
                let value = self.words.next_f32() * total;
                self.sums.partition_point(|&sum| sum <= value).min(n - 1)
            } else {
                self.words.below_u64(n as u64) as usize
            };
            if !self.is_center[at] {
                return Ok(at);
            }
        }
        let detail = "the points that are no centers are too near to some".to_string();
        let (code, op) = (Code::ResourceExhausted, self.op.into());
        Err(IrError::Status { code, op, detail }.into())
    }

    /// The distances if point `at` is one more center.
    fn nearest_with(&self, at: usize) -> Vec<f32> {
        let center = self.row(at);
        let distance = |(index, norm): (usize, &f32)| {
            let product: f32 = self.row(index).iter().zip(center).map(|(x, y)| x * y).sum();
            (norm - product) + self.norms[at]
        };
        let distances = self.norms.iter().enumerate().map(distance);
        self.nearest
            .iter()
            .zip(distances)
            .map(|(old, new)| if new < *old { new } else { *old })
            .collect()
    }

    /// The best of some points that are drawn: the one that leaves the smallest sum of distances.
    fn center(&mut self, retries: i64) -> Result<usize> {
        let mut sum = 0.0;
        for (to, distance) in self.sums.iter_mut().zip(&self.nearest) {
            sum += distance;
            *to = sum;
        }
        let mut best = (0, f32::INFINITY, None);
        for _ in 0..retries.saturating_add(1) {
            budget::tick();
            let at = self.draw()?;
            let nearest = self.nearest_with(at);
            if retries == 0 {
                best = (at, 0.0, Some(nearest));
                break;
            }
            let potential = nearest.iter().sum::<f32>();
            if potential < best.1 {
                best = (at, potential, Some(nearest));
            }
        }
        let (at, _, nearest) = best;
        if let Some(nearest) = nearest {
            self.nearest = nearest;
        }
        self.n_centers += 1;
        self.is_center[at] = true;
        Ok(at)
    }
}

fn plus_plus(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (op, points) = (call.op.name, call.shape(0).clone());
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (n, dims) = (points[0], points[1]);
        let (x, seed, retries): (&[f32], i64, i64) = (io.input(0), io.scalar(2), io.scalar(3));
        let wanted: i64 = io.scalar(1);
        let retries = match retries {
            negative if negative < 0 => 2 + (wanted as f64).ln() as i64,
            retries => retries,
        };
        let norm = |at: usize| 0.5 * x[at * dims..][..dims].iter().map(|x| x * x).sum::<f32>();
        let mut drawing = Drawing {
            op,
            points: x,
            dims,
            words: Words::new(Philox::new(seed as u64, 0)),
            norms: workspace::collected((0..n).map(norm))?,
            nearest: workspace::filled(f32::INFINITY, n)?,
            sums: workspace::filled(0.0, n)?,
            is_center: workspace::filled(false, n)?,
            n_centers: 0,
        };
        let out: &mut [f32] = io.output(0);
        for to in 0..wanted as usize {
            let at = drawing.center(retries)?;
            out[to * dims..][..dims].copy_from_slice(drawing.row(at));
        }
        Ok(())
    })))
}
