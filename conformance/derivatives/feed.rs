//! Tensors from a line of text: `f[2,3] i:0,1`.

use crate::compare::{elements, with_elements};
use anyhow::{Context as _, Result, bail};
use ferroflow::ir::{DType, HostTensor, Shape};

/// Numbers that are the same each time.
pub(super) struct FeedRng(u64);

impl FeedRng {
    pub(super) fn new(seed: u64) -> FeedRng {
        FeedRng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// In [0, 1). G. Marsaglia, "Xorshift RNGs" (2003).
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Roughly normal.
    pub(super) fn normal(&mut self) -> f64 {
        (0..6).map(|_| self.uniform() - 0.5).sum::<f64>() * 1.4
    }
}

/// Floats that an op takes: their dtype, and the interval that its record draws them from.
#[derive(Clone, Copy)]
pub(super) struct Floats {
    pub(super) dtype: DType,
    pub(super) domain: (f64, f64),
}

/// The tensors that a line describes, one after the other. Floats of the dtype of the op are
/// `f[..]` of any size, `d[..]` of its domain, `p[..]` between 0.5 and 1.5, `b[..]` between 1.2 and 2.4, `u[..]` between
/// -0.9 and 0.9, `s[..]` symmetric matrices with positive eigenvalues, `f=1,2` as written;
/// `F[..]`, `P[..]` the same in `f32`, `c[..]` complex. Integers are `i:1,2`, a vector, `i[2,2]:1,2,3,4` of a shape
/// (`i[]:1` a scalar), `l` the same in `i64`, `t` truth values, `k` unsigned.
/// A `!` before one of them keeps it where it is.
pub(super) fn feed(line: &str, floats: Floats) -> Result<Vec<FeedInput>> {
    let mut rng = FeedRng::new(line.len() as u64);
    let input = |word: &str| {
        let moves = match (word.strip_prefix('!'), word.starts_with('s')) {
            (Some(_), _) => Moves::Not,
            (None, true) => Moves::Symmetrically,
            (None, false) => Moves::Freely,
        };
        let tensor = tensor(word.trim_start_matches('!'), floats, &mut rng)?;
        Ok(FeedInput { tensor, moves })
    };
    line.split_whitespace().map(input).collect()
}

/// Ways in which an input may change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Moves {
    Freely,
    /// Each matrix stays its own transpose.
    Symmetrically,
    Not,
}

/// A tensor that an op is fed.
pub(super) struct FeedInput {
    pub(super) tensor: HostTensor,
    pub(super) moves: Moves,
}

impl FeedInput {
    /// A random direction for it to move in.
    pub(super) fn direction(&self, rng: &mut FeedRng) -> Result<Option<HostTensor>> {
        let Some(values) = elements(&self.tensor).filter(|_| self.moves != Moves::Not) else {
            return Ok(None);
        };
        let mut values: Vec<f64> = values.iter().map(|_| rng.normal()).collect();
        if self.moves == Moves::Symmetrically {
            symmetric(&mut values, self.tensor.shape().last().copied().unwrap_or(1));
        }
        with_elements(&self.tensor, &values).map(Some)
    }
}

fn tensor(word: &str, floats: Floats, rng: &mut FeedRng) -> Result<HostTensor> {
    let (head, values) = match word.split_once([':', '=']) {
        Some((head, values)) => (head, Some(values)),
        None => (word, None),
    };
    let kind = head.chars().next().context("a kind")?;
    let dims = head[1..].strip_prefix('[').and_then(|dims| dims.strip_suffix(']'));
    let numbers = |text: &str| -> Result<Vec<f64>> {
        let parts = text.split(',').filter(|part| !part.is_empty());
        parts.map(|part| part.parse().with_context(|| format!("`{part}`"))).collect()
    };
    let values = values.map(numbers).transpose()?;
    let dims: Vec<usize> = match (dims, &values) {
        (Some(dims), _) => numbers(dims)?.into_iter().map(|size| size as usize).collect(),
        (None, Some(values)) => vec![values.len()],
        (None, None) => bail!("neither a shape nor values in `{word}`"),
    };
    let n: usize = dims.iter().product();
    let shape = Shape::new(dims.iter().copied())?;
    if "iltk".contains(kind) {
        let values = values.context("the values of integers")?;
        let dtype = match kind {
            'i' => DType::I32,
            'l' => DType::I64,
            'k' => DType::U64,
            _ => DType::Bool,
        };
        let size = dtype.size().unwrap_or(1);
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|&value| (value as i64).to_le_bytes()[..size].to_vec())
            .collect();
        return Ok(HostTensor::from_bytes(dtype, shape, &bytes)?);
    }
    let dtype = match kind {
        'c' => DType::C128,
        'F' | 'P' => DType::F32,
        _ => floats.dtype,
    };
    let n = if kind == 'c' { 2 * n } else { n };
    let mut values = match values {
        Some(values) => values,
        None => (0..n)
            .map(|_| match kind.to_ascii_lowercase() {
                'p' => 0.5 + rng.uniform(),
                'b' => 1.2 + 1.2 * rng.uniform(),
                'd' => floats.domain.0 + (floats.domain.1 - floats.domain.0) * rng.uniform(),
                'u' => 1.8 * rng.uniform() - 0.9,
                _ => rng.normal(),
            })
            .collect(),
    };
    if kind == 's' {
        positive(&mut values, dims.last().copied().unwrap_or(1));
    }
    let bytes: Vec<u8> = match dtype {
        DType::F32 => values.iter().flat_map(|&value| (value as f32).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    };
    Ok(HostTensor::from_bytes(dtype, shape, &bytes)?)
}

/// Makes square matrices symmetric.
fn symmetric(values: &mut [f64], n: usize) {
    for matrix in values.chunks_mut(n * n) {
        for row in 0..n {
            for column in 0..row {
                let mean = (matrix[row * n + column] + matrix[column * n + row]) / 2.0;
                matrix[row * n + column] = mean;
                matrix[column * n + row] = mean;
            }
        }
    }
}

/// Makes square matrices symmetric, with positive eigenvalues far from one another.
fn positive(values: &mut [f64], n: usize) {
    symmetric(values, n);
    for matrix in values.chunks_mut(n * n) {
        matrix.iter_mut().for_each(|element| *element *= 0.2);
        (0..n).for_each(|row| matrix[row * n + row] += 1.0 + row as f64);
    }
}
