//! Figures of epochs.

use std::fmt;

/// The figures of one epoch or one evaluation, in the order of the metrics; those of validation have
/// names with `val_` before them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Logs(Vec<(String, f64)>);

impl Logs {
    /// Adds a figure.
    pub fn push(&mut self, name: impl Into<String>, figure: f64) {
        self.0.push((name.into(), figure));
    }

    /// The figure of this name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, figure)| *figure)
    }

    /// All figures with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, figure)| (&name[..], *figure))
    }

    /// The names, divided by commas.
    pub(super) fn names(&self) -> String {
        self.0.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    }

    /// All figures of a validation as well.
    pub(super) fn extend_validation(&mut self, validation: Logs) {
        let named = validation.0.into_iter().map(|(name, figure)| (format!("val_{name}"), figure));
        self.0.extend(named);
    }
}

impl fmt::Display for Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, figure)) in self.iter().enumerate() {
            let gap = if index == 0 { "" } else { ", " };
            write!(f, "{gap}{name} {figure:.4}")?;
        }
        Ok(())
    }
}

/// The figures of all epochs of a training.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FitHistory {
    /// The number of the first epoch: not 0 where a training was resumed.
    pub first_epoch: u64,
    /// The figures of each epoch.
    pub epochs: Vec<Logs>,
}

impl FitHistory {
    /// A figure of all epochs.
    pub fn all(&self, name: &str) -> Vec<f64> {
        self.epochs.iter().filter_map(|logs| logs.get(name)).collect()
    }

    /// A figure of the last epoch.
    pub fn last(&self, name: &str) -> Option<f64> {
        self.epochs.last()?.get(name)
    }
}
