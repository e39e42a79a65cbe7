//! Tokens as indices of a vocabulary, and back.

use super::{OutputMode, Token, vocabulary::Counts};
use crate::layers::{Layer, Mode, shapes::wrong};
use ferroflow_ir::DType;
use ferroflow_runtime::trackable::{Description, Trackable};
use ferroflow_tracer::{
    error::Result,
    lookup::{StaticHashTable, TableInitializer},
    ops::{self, IntoOperand},
    tensor::Tensor,
};
use ferroflow_tracer_macros::Trackable;
use std::{collections::BTreeSet, sync::Arc};

/// Tokens as their indices in a vocabulary: `int64` of the shape of the input, or vectors. Before the
/// tokens come an index for a mask, where there is one and indices are returned, and the indices for
/// tokens that are not in the vocabulary.
///
/// ```
/// use ferroflow_nn::{Layer, LookupOptions, Mode, StringLookup};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let layer = StringLookup::new(["a", "b"].map(String::from), &LookupOptions::default())?;
/// let words = Tensor::from(["b", "x", "a"]);
/// let indices = layer.call(&words, Mode::Inference)?;
/// assert_eq!(indices.to_vec::<i64>()?, [2, 0, 1]);
/// let again = layer.inverse()?.call(&indices, Mode::Inference)?;
/// assert_eq!(again.host()?.strings()?, [&b"b"[..], b"[UNK]", b"a"]);
/// # Ok(())
/// # }
/// ```
///
/// The table is saved as `lookup_table`.
#[derive(Debug, Clone)]
pub struct Lookup<T: Token> {
    lookup_table: StaticHashTable,
    vocabulary: Arc<Vocabulary<T>>,
}

/// Strings as indices.
pub type StringLookup = Lookup<String>;
/// Integers as indices.
pub type IntegerLookup = Lookup<i64>;

/// The options of a [`Lookup`].
#[derive(Debug, Clone, PartialEq)]
pub struct LookupOptions<T> {
    /// The number of indices for tokens that are not in the vocabulary: without any they are an
    /// error, several are shared by hash, or of integers by remainder.
    pub oov_indices: usize,
    /// The token that stands for others.
    pub oov_token: T,
    /// The token that has index 0, or is left out of vectors.
    pub mask_token: Option<T>,
    /// The form of the indices.
    pub output_mode: OutputMode,
    /// The largest number of indices.
    pub max_tokens: Option<usize>,
    /// Whether vectors have as many elements as there may be indices, even where there are fewer.
    pub pad_to_max_tokens: bool,
    /// Numbers that the hashes of tokens depend on.
    pub salt: Option<[i64; 2]>,
}

impl<T: Token> Default for LookupOptions<T> {
    fn default() -> LookupOptions<T> {
        LookupOptions {
            oov_indices: 1,
            oov_token: T::unknown(),
            mask_token: None,
            output_mode: OutputMode::Int,
            max_tokens: None,
            pad_to_max_tokens: false,
            salt: None,
        }
    }
}

#[derive(Debug)]
struct Vocabulary<T> {
    tokens: Vec<T>,
    weights: Option<Tensor>,
    options: LookupOptions<T>,
}

impl<T: Token> Lookup<T> {
    /// A layer of this vocabulary, which may begin with the tokens for the mask and for others.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for [`OutputMode::TfIdf`], which
    /// needs weights, for repeated tokens, a mask among them, and more than fit.
    pub fn new(
        vocabulary: impl IntoIterator<Item = T>,
        options: &LookupOptions<T>,
    ) -> Result<Lookup<T>> {
        options.output_mode.check_unweighted()?;
        Lookup::of(vocabulary.into_iter().collect(), None, options)
    }

    /// A layer of this vocabulary, each token with its weight, which vectors of counts are
    /// multiplied by. Tokens that are not in the vocabulary have the mean weight.
    ///
    /// # Errors
    ///
    /// As [`new`](Lookup::new), and for another output mode than [`OutputMode::TfIdf`].
    pub fn weighted(
        vocabulary: impl IntoIterator<Item = (T, f32)>,
        options: &LookupOptions<T>,
    ) -> Result<Lookup<T>> {
        if options.output_mode != OutputMode::TfIdf {
            return Err(wrong("the output mode TfIdf", format!("{:?}", options.output_mode)));
        }
        let (tokens, weights): (Vec<T>, Vec<f32>) = vocabulary.into_iter().unzip();
        Lookup::of(tokens, Some(weights), options)
    }

    /// A layer of the tokens in batches of data `[batch, n]`, the most frequent first, as many as
    /// fit; weights are the logarithms of inverse document frequencies.
    ///
    /// # Errors
    ///
    /// As [`new`](Lookup::new); those of the batches.
    pub fn adapted<B: IntoOperand>(
        batches: impl IntoIterator<Item = B>,
        options: &LookupOptions<T>,
    ) -> Result<Lookup<T>> {
        let counts = Counts::of(batches)?;
        let special: Vec<T> =
            options.mask_token.iter().chain([&options.oov_token]).cloned().collect();
        let most = options.max_tokens.map(|most| most.saturating_sub(options.start()));
        let (tokens, weights) = counts.most_frequent(most, &special);
        let weights = (options.output_mode == OutputMode::TfIdf).then_some(weights);
        Lookup::of(tokens, weights, options)
    }

    fn of(
        tokens: Vec<T>,
        weights: Option<Vec<f32>>,
        options: &LookupOptions<T>,
    ) -> Result<Lookup<T>> {
        let vocabulary = Vocabulary::new(tokens, weights, options)?;
        let indices = vocabulary.indices();
        let keys = T::vector(&vocabulary.tokens)?;
        let initializer = TableInitializer::of_tensors(keys, indices)?;
        let default = if options.oov_indices == 1 { options.oov_start() as i64 } else { -1 };
        let lookup_table = StaticHashTable::new(initializer, default)?;
        Ok(Lookup { lookup_table, vocabulary: Arc::new(vocabulary) })
    }

    /// The tokens by index, with those for the mask and for others.
    pub fn vocabulary(&self) -> Vec<T> {
        let special = self.vocabulary.options.special();
        special.into_iter().chain(self.vocabulary.tokens.iter().cloned()).collect()
    }

    /// The layer from indices to tokens.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the layer does not return
    /// indices.
    pub fn inverse(&self) -> Result<InverseLookup> {
        let Vocabulary { tokens, options, .. } = &*self.vocabulary;
        if options.output_mode != OutputMode::Int {
            return Err(wrong(
                "a layer that returns indices",
                format!("{:?}", options.output_mode),
            ));
        }
        let (indices, tokens) = (self.vocabulary.indices(), T::vector(tokens)?);
        let initializer = TableInitializer::of_tensors(indices, tokens)?;
        let scalar = |token: &T| T::vector(std::slice::from_ref(token))?.reshape(&[]);
        let lookup_table = StaticHashTable::new(initializer, scalar(&options.oov_token)?)?;
        let mask = options.mask_token.as_ref().map(scalar).transpose()?;
        Ok(InverseLookup { lookup_table, mask })
    }

    /// The indices of tokens.
    fn indices(&self, x: &Tensor) -> Result<Tensor> {
        let options = &self.vocabulary.options;
        let mut indices = self.lookup_table.lookup(x)?;
        if let Some(mask) = &options.mask_token {
            // In vectors a mask is an index that is too large.
            let index = if options.output_mode == OutputMode::Int { 0 } else { i64::MAX };
            let mask = T::vector(std::slice::from_ref(mask))?.reshape(&[])?;
            indices = x.equal(&mask)?.select(Tensor::from(index), &indices)?;
        }
        match options.oov_indices {
            1 => Ok(indices),
            0 => {
                let is_known = indices.not_equal(-1i64)?.all_true()?;
                ops::assert(&is_known, &[&Tensor::from("tokens that are not in the vocabulary")])?;
                Ok(indices)
            }
            n => {
                let buckets = T::buckets(x, n as i64, options.salt)?;
                let buckets = (buckets + options.oov_start() as i64)?;
                indices.equal(-1i64)?.select(buckets, &indices)
            }
        }
    }
}

impl<T: Token> Trackable for Lookup<T> {
    fn describe(&self, object: &mut Description<'_>) {
        object.child("lookup_table", &self.lookup_table);
    }
}

impl<T: Token> Layer for Lookup<T> {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let Vocabulary { options, weights, .. } = &*self.vocabulary;
        let indices = self.indices(&T::cast(x)?)?;
        let vectors = options.output_mode.of(&indices, self.vocabulary.depth(), DType::I64)?;
        match weights {
            Some(weights) => vectors.cast(weights.dtype())? * weights,
            None => Ok(vectors),
        }
    }
}

impl<T: Token> LookupOptions<T> {
    /// The first index for tokens that are not in the vocabulary.
    fn oov_start(&self) -> usize {
        usize::from(self.mask_token.is_some() && self.output_mode == OutputMode::Int)
    }

    /// The index of the first token.
    fn start(&self) -> usize {
        self.oov_start() + self.oov_indices
    }

    /// The size of vectors, where it does not follow from the vocabulary.
    fn padded(&self) -> Option<usize> {
        self.max_tokens.filter(|_| self.pad_to_max_tokens)
    }

    /// The tokens before the vocabulary.
    fn special(&self) -> Vec<T> {
        let mask = self.mask_token.iter().take(self.oov_start());
        mask.chain(std::iter::repeat_n(&self.oov_token, self.oov_indices)).cloned().collect()
    }
}

impl<T: Token> Vocabulary<T> {
    fn new(
        mut tokens: Vec<T>,
        weights: Option<Vec<f32>>,
        options: &LookupOptions<T>,
    ) -> Result<Vocabulary<T>> {
        let special = options.special();
        let begins_with_special = !special.is_empty() && tokens.starts_with(&special);
        if begins_with_special {
            tokens.drain(..special.len());
        }
        let depth = special.len() + tokens.len();
        let expected = |expected: &str, found: String| Err(wrong(expected, found));
        if tokens.iter().collect::<BTreeSet<_>>().len() < tokens.len() {
            return expected("tokens that differ", format!("{} tokens", tokens.len()));
        }
        if let Some(mask) = options.mask_token.as_ref().filter(|mask| tokens.contains(mask)) {
            return expected("tokens behind the mask", format!("the mask {mask:?} among them"));
        }
        if let Some(most) = options.max_tokens.filter(|&most| depth > most) {
            return expected(&format!("{most} tokens at most"), format!("{depth} tokens"));
        }
        let weights = weights.map(|weights| {
            let mean = weights.iter().sum::<f32>() / weights.len().max(1) as f32;
            let before = if begins_with_special { 0 } else { special.len() };
            let mut all = vec![mean; before];
            all.extend(weights);
            all.resize(options.padded().unwrap_or(depth), 0.0);
            Tensor::from(all)
        });
        Ok(Vocabulary { tokens, weights, options: options.clone() })
    }

    /// The indices of the tokens.
    fn indices(&self) -> Vec<i64> {
        let start = self.options.start() as i64;
        (start..start + self.tokens.len() as i64).collect()
    }

    /// The size of vectors.
    fn depth(&self) -> usize {
        self.options.padded().unwrap_or(self.options.start() + self.tokens.len())
    }
}

/// Indices as the tokens of a vocabulary: of the shape of the input. Indices without a token have
/// that for others.
///
/// The table is saved as `lookup_table`.
#[derive(Trackable, Debug, Clone)]
pub struct InverseLookup {
    lookup_table: StaticHashTable,
    #[trackable(skip)]
    mask: Option<Tensor>,
}

impl Layer for InverseLookup {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = x.cast(DType::I64)?;
        let tokens = self.lookup_table.lookup(&x)?;
        match &self.mask {
            Some(mask) => x.equal(0i64)?.select(mask, tokens),
            None => Ok(tokens),
        }
    }
}
