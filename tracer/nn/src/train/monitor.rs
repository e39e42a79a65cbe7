//! Watch over a figure for a better value.

use super::{Logs, TrainError};

/// Direction in which a figure becomes better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The smaller one, as of losses.
    Down,
    /// The larger one, as of accuracies.
    Up,
}

/// Remembers the best value of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Monitor {
    name: String,
    direction: Direction,
    min_delta: f64,
    best: Option<f64>,
}

impl Monitor {
    /// A figure by its name in the logs: `loss`, `val_accuracy`. Names with `acc`, `auc`,
    /// `precision`, `recall`, `io_u`, `score` or `correlation` in them are better when they are
    /// larger.
    pub fn new(name: impl Into<String>) -> Monitor {
        let name = name.into();
        let of_up = ["acc", "auc", "precision", "recall", "io_u", "score", "correlation"];
        let is_up = of_up.iter().any(|part| name.contains(part));
        let direction = if is_up { Direction::Up } else { Direction::Down };
        Monitor { name, direction, min_delta: 0.0, best: None }
    }

    /// The same figure, better in this direction.
    #[must_use]
    pub fn direction(self, direction: Direction) -> Monitor {
        Monitor { direction, ..self }
    }

    /// The same figure, better by at least this.
    #[must_use]
    pub fn min_delta(self, min_delta: f64) -> Monitor {
        Monitor { min_delta, ..self }
    }

    /// The name in the logs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The best value so far.
    pub fn best(&self) -> Option<f64> {
        self.best
    }

    /// Sets the best value so far, as where a training is resumed.
    pub fn set_best(&mut self, best: Option<f64>) {
        self.best = best;
    }

    /// Forgets the best value.
    pub fn reset(&mut self) {
        self.best = None;
    }

    /// The figure of an epoch.
    ///
    /// # Errors
    ///
    /// [`TrainError::Monitor`] when it is not logged.
    pub fn read(&self, logs: &Logs) -> Result<f64, TrainError> {
        logs.get(&self.name)
            .ok_or_else(|| TrainError::Monitor { name: self.name.clone(), known: logs.names() })
    }

    /// Whether the figure of an epoch is the best so far, which it becomes. NaN never is.
    ///
    /// # Errors
    ///
    /// As [`read`](Monitor::read).
    pub fn is_best(&mut self, logs: &Logs) -> Result<bool, TrainError> {
        let figure = self.read(logs)?;
        let is_better = self.best.is_none_or(|best| match self.direction {
            Direction::Down => figure < best - self.min_delta,
            Direction::Up => figure > best + self.min_delta,
        });
        let is_best = is_better && !figure.is_nan();
        if is_best {
            self.best = Some(figure);
        }
        Ok(is_best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(name: &str, figure: f64) -> Logs {
        let mut logs = Logs::default();
        logs.push(name, figure);
        logs
    }

    #[test]
    fn directions_depend_on_names() {
        let mut loss = Monitor::new("val_loss");
        let best: Vec<bool> =
            [f64::NAN, 2.0, 2.0, 1.0].map(|f| loss.is_best(&logs("val_loss", f)).unwrap()).into();
        assert_eq!(best, [false, true, false, true]);
        let mut accuracy = Monitor::new("accuracy").min_delta(0.1);
        let best: Vec<bool> =
            [0.5, 0.55, 0.7].map(|f| accuracy.is_best(&logs("accuracy", f)).unwrap()).into();
        assert_eq!(best, [true, false, true]);
    }

    #[test]
    fn figures_that_are_not_logged_are_errors() {
        let error = Monitor::new("val_loss").is_best(&logs("loss", 1.0)).unwrap_err().to_string();
        assert_eq!(error, "no figure `val_loss` is logged; there are `loss`");
    }
}
