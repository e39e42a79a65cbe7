//! Preprocessing: categories, words, numbers and images as inputs of networks.

mod augment;
mod category;
mod color;
mod crossing;
mod discretization;
mod filter;
mod image;
mod in_training;
mod lookup;
mod mix;
mod output_mode;
mod perspective;
mod sample_window;
mod spectrogram;
mod stft;
mod text;
mod tone;
mod vocabulary;
mod warp;

pub use augment::{FlipMode, RandomBrightness, RandomContrast, RandomCrop, RandomFlip};
pub use category::{CategoryEncoding, Hashing};
pub use color::{
    ColorJitterOptions, RandomColorDegeneration, RandomColorJitter, RandomGrayscale, RandomHue,
    RandomInvert, RandomSaturation,
};
pub use crossing::HashedCrossing;
pub use discretization::Discretization;
pub use filter::{BlurOptions, RandomGaussianBlur, RandomSharpness};
pub use image::{CenterCrop, Rescaling, ResizeFit, Resizing};
pub use lookup::{IntegerLookup, InverseLookup, Lookup, LookupOptions, StringLookup};
pub use mix::{CutMix, EraseOptions, MixUp, RandomErasing};
pub use output_mode::OutputMode;
pub use perspective::RandomPerspective;
pub use sample_window::SampleWindow;
pub use spectrogram::{DecibelOptions, MelOptions, MelSpectrogram};
pub use stft::{SpectrumMode, SpectrumScaling, StftOptions, StftSpectrogram};
pub use text::{Standardize, TextOptions, TextSplit, TextVectorization};
pub use tone::{AutoContrast, Equalization, RandomPosterization, Solarization};
pub use vocabulary::Token;
pub use warp::{FillMode, RandomRotation, RandomShear, RandomTranslation, RandomZoom};
