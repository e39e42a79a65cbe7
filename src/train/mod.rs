//! Training by a loop that is written already: [`Trainer`], and callbacks that write files.
//!
//! ```
//! use ferroflow::{
//!     Checkpoint, CheckpointManager, ManagerOptions, Tensor,
//!     data::{Arrays, BatchOptions},
//!     nn::{
//!         Dense, Sequential, Weights,
//!         losses::{Prediction, sparse_categorical_cross_entropy},
//!         metrics::sparse_categorical_accuracy,
//!         optimizers::{Adam, Optimizer},
//!     },
//!     train::{Checkpoints, CsvLog, FitOptions, TensorBoard, Trainer},
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let network = Sequential::new().then(Dense::new(&mut Weights::seeded(1), 2, 2)?);
//! let loss = |y: &Tensor, x: &Tensor| sparse_categorical_cross_entropy(y, x, Prediction::Logits);
//! let trainer = Trainer::new(network, Optimizer::new(Adam::default(), 0.1)?, loss)?
//!     .metric(sparse_categorical_accuracy()?.named("accuracy"));
//!
//! let x = Tensor::from([[0.0f32, 1.0], [1.0, 0.0], [0.2, 0.9], [0.8, 0.1]]);
//! let y = Tensor::from([0i32, 1, 0, 1]);
//! let examples = Arrays::new([x.host()?.clone(), y.host()?.clone()])?;
//! let options = BatchOptions { size: 2, shuffle: Some(1), ..BatchOptions::default() };
//! let examples = examples.epochs(&options);
//!
//! // A training that was interrupted goes on after its last checkpoint.
//! let mut manager =
//!     CheckpointManager::new(Checkpoint::of(&trainer), folder.join("state"), ManagerOptions::default())?;
//! manager.restore_or_initialize(|| Ok(()))?;
//! let (mut csv, mut board) = (CsvLog::new(folder.join("log.csv"))?, TensorBoard::new(folder)?);
//! let mut checkpoints = Checkpoints::new(&mut manager);
//! let callbacks = FitOptions::default()
//!     .validation(&examples)
//!     .callback(&mut csv)
//!     .callback(&mut board)
//!     .callback(&mut checkpoints);
//! let history = trainer.fit(&examples, 20, callbacks)?;
//! assert_eq!(history.last("val_accuracy"), Some(1.0));
//! # Ok(())
//! # }
//! ```

mod checkpoints;
mod csv_log;
#[cfg(feature = "progress")]
mod progress;
mod tensor_board;

pub use checkpoints::Checkpoints;
pub use csv_log::CsvLog;
pub use ferroflow_nn::train::*;
#[cfg(feature = "progress")]
pub use progress::ProgressBar;
pub use tensor_board::TensorBoard;
