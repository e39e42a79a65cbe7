//! Training by a loop that is written already: [`Trainer`] fits, evaluates and predicts.
//!
//! ```
//! use ferroflow_nn::{
//!     Dense, Weights,
//!     losses::mean_squared_error,
//!     metrics,
//!     optimizers::{Optimizer, Sgd},
//!     train::{EarlyStopping, FitOptions, Trainer},
//! };
//! use ferroflow_tracer::Tensor;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let network = Dense::new(&mut Weights::seeded(1), 1, 1)?;
//! let trainer = Trainer::new(network, Optimizer::new(Sgd::default(), 0.1)?, mean_squared_error)?
//!     .metric(metrics::mean_absolute_error()?);
//! let x = Tensor::from([[0.0f32], [1.0], [2.0], [3.0]]);
//! let y = ((&x * 2.0)? + 1.0)?;
//! let batches = vec![vec![x.clone(), y.clone()]];
//! let mut stop = EarlyStopping::on("loss").patience(5).min_delta(1e-6);
//! let history = trainer.fit(&batches, 200, FitOptions::default().callback(&mut stop))?;
//! assert!(history.last("loss").is_some_and(|loss| loss < 1e-2));
//! assert!(trainer.evaluate(&batches)?.get("mean_absolute_error").is_some_and(|e| e < 0.1));
//! assert!((trainer.predict(&Tensor::from([[10.0f32]]))?.to_vec::<f32>()?[0] - 21.0).abs() < 0.5);
//! # Ok(())
//! # }
//! ```
//!
//! A step, the loss and the updates of metrics are one function, which is traced once for batches of
//! any size. The numbers of finished epochs and batches, the sums of metrics and the counts of random
//! layers are variables of the trainer: one that is restored from a checkpoint goes on where it was, with
//! the data that come next.
//!
//! - `trainer.rs`: the loop; `step.rs`: what is traced; `examples.rs`: where batches come from; `logs.rs`: figures of epochs;
//! - `training.rs`: what is trained; `callback.rs`: code that is called on the way, `monitor.rs`, `early_stopping.rs`, `plateau.rs`:
//!   some of it.

mod callback;
mod early_stopping;
mod error;
mod examples;
mod logs;
mod monitor;
mod plateau;
mod step;
mod trainer;
mod training;

pub use callback::{Callback, CallbackResult, EpochEnd, RateSchedule, StopOnNan};
pub use early_stopping::EarlyStopping;
pub use error::TrainError;
pub use examples::{ExampleBatches, Examples};
pub use logs::{FitHistory, Logs};
pub use monitor::{Direction, Monitor};
pub use plateau::ReduceOnPlateau;
pub use trainer::{FitOptions, Trainer};
pub use training::Training;
