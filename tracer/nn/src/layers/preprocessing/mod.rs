//! Preprocessing: categories, words, numbers and images as inputs of networks.

mod augment;
mod category;
mod crossing;
mod discretization;
mod image;
mod lookup;
mod output_mode;
mod text;
mod vocabulary;
mod warp;

pub use augment::{FlipMode, RandomBrightness, RandomContrast, RandomCrop, RandomFlip};
pub use category::{CategoryEncoding, Hashing};
pub use crossing::HashedCrossing;
pub use discretization::Discretization;
pub use image::{CenterCrop, Rescaling, ResizeFit, Resizing};
pub use lookup::{IntegerLookup, InverseLookup, Lookup, LookupOptions, StringLookup};
pub use output_mode::OutputMode;
pub use text::{Standardize, TextOptions, TextSplit, TextVectorization};
pub use vocabulary::Token;
pub use warp::{FillMode, RandomRotation, RandomTranslation, RandomZoom};
