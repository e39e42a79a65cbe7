//! Texts as sequences of indices, or as vectors.

use super::{LookupOptions, OutputMode, StringLookup};
use crate::layers::{
    Layer, Mode,
    shapes::{DimSize, unfit, with_sizes, wrong},
};
use ferroflow_ir::DType;
use ferroflow_tracer::{
    error::Result,
    ops::{self, IntoOperand},
    tensor::Tensor,
};
use ferroflow_tracer_macros::Trackable;
use std::borrow::Borrow;

/// Texts split into tokens, which are looked up: `[batch]` or `[batch, 1]` to `[batch, tokens]` of
/// `int64`, shorter texts being filled up with 0, or to vectors `[batch, depth]`. Index 1 is for
/// tokens that are not in the vocabulary.
///
/// ```
/// use ferroflow_nn::{Layer, Mode, TextOptions, TextVectorization};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let texts = Tensor::from(["To be, or not to be", "That is!"]);
/// let layer = TextVectorization::adapted([&texts], &TextOptions::default())?;
/// let indices = layer.call(&Tensor::from(["be to", "what is that"]), Mode::Inference)?;
/// assert_eq!(indices.to_vec::<i64>()?, [3, 2, 0, 1, 7, 4]);
/// # Ok(())
/// # }
/// ```
///
/// The lookup is saved as `_lookup_layer`.
#[derive(Trackable, Debug, Clone)]
pub struct TextVectorization {
    #[trackable(name = "_lookup_layer")]
    lookup: StringLookup,
    #[trackable(skip)]
    options: TextOptions,
}

/// The options of a [`TextVectorization`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextOptions {
    /// The form in which texts are put first.
    pub standardize: Standardize,
    /// The tokens of a text.
    pub split: TextSplit,
    /// The largest length of n-grams, which are tokens as well.
    pub ngrams: Option<u32>,
    /// The form of the result.
    pub output_mode: OutputMode,
    /// The number of indices of a text, where indices are returned.
    pub sequence_length: Option<usize>,
    /// The largest number of indices of the vocabulary.
    pub max_tokens: Option<usize>,
    /// Whether vectors have as many elements as there may be tokens.
    pub pad_to_max_tokens: bool,
}

/// The form in which texts are put before they are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standardize {
    /// Lower case, without punctuation.
    #[default]
    LowerAndStripPunctuation,
    /// Lower case; of ASCII letters only, as in Keras.
    Lower,
    /// Without punctuation.
    StripPunctuation,
    /// As they are.
    Keep,
}

/// The tokens of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextSplit {
    /// Parts between white space.
    #[default]
    Whitespace,
    /// Characters of UTF-8.
    Character,
}

/// The punctuation that Keras strips (`text_vectorization.py`).
const PUNCTUATION: &str = r##"[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']"##;

impl TextVectorization {
    /// A layer of this vocabulary.
    ///
    /// # Errors
    ///
    /// As [`Lookup::new`](super::Lookup::new); for a sequence length of vectors, and n-grams of none.
    pub fn new(
        vocabulary: impl IntoIterator<Item = String>,
        options: &TextOptions,
    ) -> Result<TextVectorization> {
        options.check()?;
        let lookup = StringLookup::new(vocabulary, &options.of_lookup())?;
        Ok(TextVectorization { lookup, options: options.clone() })
    }

    /// A layer of the tokens in batches of texts, the most frequent first.
    ///
    /// # Errors
    ///
    /// As [`Lookup::adapted`](super::Lookup::adapted); for a sequence length of vectors, and n-grams of
    /// none.
    pub fn adapted<B: IntoOperand>(
        batches: impl IntoIterator<Item = B>,
        options: &TextOptions,
    ) -> Result<TextVectorization> {
        options.check()?;
        let tokens = batches.into_iter().map(|batch| {
            let batch = batch.into_operand(DType::String)?;
            options.tokens(batch.borrow(), None)
        });
        let lookup = StringLookup::adapted(tokens, &options.of_lookup())?;
        Ok(TextVectorization { lookup, options: options.clone() })
    }

    /// The tokens by index.
    pub fn vocabulary(&self) -> Vec<String> {
        self.lookup.vocabulary()
    }
}

impl Layer for TextVectorization {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let tokens = self.options.tokens(x, self.options.sequence_length)?;
        self.lookup.call(&tokens, mode)
    }
}

impl TextOptions {
    fn check(&self) -> Result<()> {
        if self.ngrams == Some(0) {
            return Err(wrong("n-grams of a token at least", "0"));
        }
        match (self.sequence_length, self.output_mode) {
            (Some(_), mode) if mode != OutputMode::Int => {
                Err(wrong("no sequence length of vectors", format!("{mode:?}")))
            }
            _ => Ok(()),
        }
    }

    /// The options of the lookup: missing tokens are empty.
    fn of_lookup(&self) -> LookupOptions<String> {
        LookupOptions {
            mask_token: Some(String::new()),
            output_mode: self.output_mode,
            max_tokens: self.max_tokens,
            pad_to_max_tokens: self.pad_to_max_tokens,
            ..LookupOptions::default()
        }
    }

    /// The tokens of texts `[batch]`, short ones filled up with empty tokens: `[batch, length]`.
    fn tokens(&self, x: &Tensor, length: Option<usize>) -> Result<Tensor> {
        let x = match x.shape().dims() {
            Some([_]) => x.clone(),
            Some([_, Some(1)]) => x.reshape(&[-1])?,
            _ => return Err(unfit("a vector of texts", x)),
        };
        let x = self.standardize.apply(&x)?;
        let (mut tokens, mut splits) = self.split.apply(&x)?;
        if let Some(n) = self.ngrams {
            let widths: Vec<i64> = (1..=i64::from(n)).collect();
            let (none, short) = ("", false);
            [tokens, splits] =
                ops::string_n_grams(&tokens, &splits, " ", &widths, none, none, 0, short)?;
        }
        let shape = Tensor::from([-1, length.map_or(-1, |length| length as i64)]);
        let none = Tensor::from("");
        let y = ops::ragged_tensor_to_tensor(&shape, &tokens, &none, &[&splits], &["ROW_SPLITS"])?;
        match length {
            Some(length) => with_sizes(y, &[DimSize::of(&x, 0)?, DimSize::Known(length)]),
            None => Ok(y),
        }
    }
}

impl Standardize {
    fn apply(self, x: &Tensor) -> Result<Tensor> {
        let stripped = |x: &Tensor| ops::static_regex_replace(x, PUNCTUATION, "");
        match self {
            Standardize::LowerAndStripPunctuation => stripped(&ops::string_lower(x)?),
            Standardize::Lower => ops::string_lower(x),
            Standardize::StripPunctuation => stripped(x),
            Standardize::Keep => Ok(x.clone()),
        }
    }
}

impl TextSplit {
    /// The tokens of all texts, and where those of each begin, and end.
    fn apply(self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        match self {
            TextSplit::Whitespace => {
                let [indices, tokens, shape] = ops::string_split_v2(x, &Tensor::from(""))?;
                let texts = ops::slice(&indices, &Tensor::from([0, 0]), &Tensor::from([-1, 1]))?;
                let count = shape.gather(&Tensor::from(0))?;
                let none = Tensor::from(Vec::<i64>::new());
                let counts = ops::dense_bincount(&texts.reshape(&[-1])?, &count, &none)?;
                let ends = ops::cumsum(&counts, &Tensor::from(0))?;
                let splits = ops::concat_v2(&[&Tensor::from([0i64]), &ends], &Tensor::from(0))?;
                Ok((tokens, splits))
            }
            TextSplit::Character => {
                let [splits, characters] = ops::unicode_decode(x, "UTF-8")?;
                let n =
                    (characters.shape_tensor()?.gather(&Tensor::from(0))?.cast(DType::I64)? + 1)?;
                let each = ops::range(&Tensor::from(0i64), &n, &Tensor::from(1i64))?;
                Ok((ops::unicode_encode(&characters, &each, "UTF-8")?, splits))
            }
        }
    }
}
