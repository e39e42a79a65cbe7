//! Windows of samples.

use std::f64::consts::TAU;

/// The weights of the samples of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleWindow {
    /// `0.5 - 0.5·cos`.
    #[default]
    Hann,
    /// `0.54 - 0.46·cos`.
    Hamming,
    /// 1.
    Rectangular,
}

impl SampleWindow {
    /// The weights of a window of this length, of cosines with this period.
    pub(super) fn weights(self, length: usize, period: usize) -> Vec<f32> {
        let cosine = |n: usize| (TAU * n as f64 / period as f64).cos();
        let weight = |n: usize| match self {
            SampleWindow::Rectangular => 1.0,
            _ if length == 1 => 1.0,
            SampleWindow::Hann => 0.5 - 0.5 * cosine(n),
            SampleWindow::Hamming => 0.54 - 0.46 * cosine(n),
        };
        (0..length).map(|n| weight(n) as f32).collect()
    }
}
