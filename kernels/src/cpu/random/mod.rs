//! Random numbers from a key and a counter. Number `n` depends on the key, the counter and `n`
//! alone, so that any thread can make it.

mod binomial;
mod gamma;
pub(super) mod index_shuffle;
mod multinomial;
mod parameters;
mod poisson;
pub(super) mod sobol;
mod stack;
mod truncated;
mod variate;

use super::{Build, cell::Cell, dispatch::with_cell};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    philox::{BLOCKS_PER_NUMBER, Philox, Words},
    simd::{Vectorized, vectorize},
};
use bytemuck::Pod;
use ferroflow_ir::{Code, DType, Error, HostTensor, workspace};
use half::{bf16, f16};
use std::sync::Arc;
use variate::{RandomBits, Variate};

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("StatelessRandomGammaV3", gamma::gamma),
    ("StatelessRandomGetKeyCounter", key_counter),
    ("StatelessRandomNormalV2", normal),
    ("StatelessRandomUniformFullIntV2", full_int),
    ("StatelessRandomUniformIntV2", uniform_int),
    ("StatelessRandomUniformV2", uniform),
    ("StatelessShuffle", shuffle),
    ("StatelessTruncatedNormalV2", truncated_normal),
    ("_StatelessMultinomialV2", multinomial::multinomial),
    ("_StatelessParameterizedTruncatedNormalV2", truncated::parameterized),
    ("_StatelessRandomBinomialV2", binomial::binomial),
    ("_StatelessRandomPoissonV2", poisson::poisson),
];

/// Numbers per piece of work: whole blocks.
const PIECE: usize = 1 << 14;

/// Attempts of a rejection method after which its parameters are taken for impossible.
const MAX_ATTEMPTS: usize = 100_000;

/// An error about data.
fn fails(op: &'static str, code: Code, detail: impl Into<String>) -> crate::Error {
    Error::Status { code, op: op.into(), detail: detail.into() }.into()
}

/// The generator at the key in input `index`, the counter and the algorithm after it.
pub(in crate::cpu) fn generator(io: &Io<'_>, op: &'static str, index: usize) -> Result<Philox> {
    /// Philox, and whichever the system likes best.
    const KNOWN: [i32; 2] = [1, 3];
    let (key, counter) = (io.scalar::<u64>(index), io.input::<u64>(index + 1));
    let algorithm = io.scalar::<i32>(index + 2);
    if !KNOWN.contains(&algorithm) {
        let detail = format!("the random algorithm {algorithm} is not supported");
        return Err(fails(op, Code::InvalidArgument, detail));
    }
    if counter.len() < 2 {
        let detail = "the counter of Philox has two words";
        return Err(fails(op, Code::InvalidArgument, detail));
    }
    Ok(Philox::new(key, u128::from(counter[0]) | u128::from(counter[1]) << 64))
}

/// Blocks that are made together.
const TOGETHER: usize = 16;

/// Fills a result with the numbers that blocks return, `N` each.
fn fill<T: Pod + Send, const N: usize>(
    io: &Io<'_>,
    out: &mut [T],
    generator: Philox,
    numbers: impl Fn([u32; 4]) -> [T; 4] + Sync,
) {
    io.threads().for_each_piece(out, PIECE, |start, out| {
        let generator = generator.skipped((start / N) as u128);
        vectorize(Filling::<_, _, N> { out, generator, numbers: &numbers });
    });
}

/// A piece of a result to be filled.
struct Filling<'a, T, F, const N: usize> {
    out: &'a mut [T],
    generator: Philox,
    numbers: &'a F,
}

impl<T: Pod, F: Fn([u32; 4]) -> [T; 4], const N: usize> Vectorized for Filling<'_, T, F, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Filling { out, mut generator, numbers } = self;
        let mut made = [[T::zeroed(); N]; TOGETHER];
        for out in out.chunks_mut(TOGETHER * N) {
            let [first, second, third, fourth] = generator.next_blocks::<TOGETHER>();
            for (block, made) in made.iter_mut().enumerate() {
                let words = [first[block], second[block], third[block], fourth[block]];
                made.copy_from_slice(&numbers(words)[..N]);
            }
            out.copy_from_slice(&made.as_flattened()[..out.len()]);
        }
    }
}

/// A kernel without parameters: key, counter and algorithm are inputs 1 to 3.
fn plain<T: Pod + Send, const N: usize>(
    op: &'static str,
    numbers: impl Fn([u32; 4]) -> [T; 4] + Send + Sync + 'static,
) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let generator = generator(io, op, 1)?;
        let out = io.output::<T>(0);
        fill::<T, N>(io, out, generator, &numbers);
        Ok(())
    })
}

fn uniform(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let op = call.op.name;
    Ok(match call.outputs[0].dtype {
        DType::F16 => Some(plain::<_, { f16::PER_BLOCK }>(op, f16::uniform)),
        DType::BF16 => Some(plain::<_, { bf16::PER_BLOCK }>(op, bf16::uniform)),
        DType::F32 => Some(plain::<_, { f32::PER_BLOCK }>(op, f32::uniform)),
        DType::F64 => Some(plain::<_, { f64::PER_BLOCK }>(op, f64::uniform)),
        _ => None,
    })
}

fn normal(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let op = call.op.name;
    Ok(match call.outputs[0].dtype {
        DType::F16 => Some(plain::<_, { f16::PER_BLOCK }>(op, f16::normal)),
        DType::BF16 => Some(plain::<_, { bf16::PER_BLOCK }>(op, bf16::normal)),
        DType::F32 => Some(plain::<_, { f32::PER_BLOCK }>(op, f32::normal)),
        DType::F64 => Some(plain::<_, { f64::PER_BLOCK }>(op, f64::normal)),
        _ => None,
    })
}

fn full_int(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let op = call.op.name;
    Ok(match call.outputs[0].dtype {
        DType::I32 => Some(plain::<_, { i32::PER_BLOCK }>(op, i32::bits)),
        DType::I64 => Some(plain::<_, { i64::PER_BLOCK }>(op, i64::bits)),
        DType::U32 => Some(plain::<_, { u32::PER_BLOCK }>(op, u32::bits)),
        DType::U64 => Some(plain::<_, { u64::PER_BLOCK }>(op, u64::bits)),
        _ => None,
    })
}

fn uniform_int(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn between<T: RandomBits, const N: usize>(op: &'static str) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let generator = generator(io, op, 1)?;
            let (low, high) = (io.scalar::<T>(4), io.scalar::<T>(5));
            let out = io.output::<T>(0);
            if out.is_empty() {
                return Ok(());
            }
            if low >= high {
                let detail = "the smallest integer must be below the limit";
                return Err(fails(op, Code::InvalidArgument, detail));
            }
            let numbers = |block| T::bits(block).map(|bits| T::between(bits, low, high));
            fill::<T, N>(io, out, generator, numbers);
            Ok(())
        })
    }
    let op = call.op.name;
    Ok(match call.outputs[0].dtype {
        DType::I32 => Some(between::<i32, { i32::PER_BLOCK }>(op)),
        DType::I64 => Some(between::<i64, { i64::PER_BLOCK }>(op)),
        DType::U32 => Some(between::<u32, { u32::PER_BLOCK }>(op)),
        DType::U64 => Some(between::<u64, { u64::PER_BLOCK }>(op)),
        _ => None,
    })
}

fn truncated_normal(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    /// Each group of numbers has words of its own, more than it can use up.
    fn truncated<T: Variate>(op: &'static str) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let generator = generator(io, op, 1)?;
            let blocks_per_group = T::PER_BLOCK as u128 * u128::from(BLOCKS_PER_NUMBER) / 4;
            let out = io.output::<T>(0);
            io.threads().for_each_piece(out, PIECE, |start, out| {
                let first = start / T::PER_BLOCK;
                for (index, out) in out.chunks_mut(T::PER_BLOCK).enumerate() {
                    let stream = generator.skipped((first + index) as u128 * blocks_per_group);
                    let numbers = T::truncated(&mut Words::new(stream));
                    out.copy_from_slice(&numbers[..out.len()]);
                }
            });
            Ok(())
        })
    }
    let op = call.op.name;
    Ok(match call.outputs[0].dtype {
        DType::F16 => Some(truncated::<f16>(op)),
        DType::BF16 => Some(truncated::<bf16>(op)),
        DType::F32 => Some(truncated::<f32>(op)),
        DType::F64 => Some(truncated::<f64>(op)),
        _ => None,
    })
}

fn key_counter(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let is_wide = call.dtype(0) == DType::I64;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let seed: Vec<i64> = match is_wide {
            true => io.input::<i64>(0).to_vec(),
            false => io.input::<i32>(0).iter().map(|&part| i64::from(part)).collect(),
        };
        let stream = Philox::from_seed([seed[0] as u64, seed[1] as u64]);
        io.put(0, HostTensor::vector(&[stream.key()])?)?;
        io.put(1, HostTensor::vector(&stream.counter())?)
    })))
}

fn shuffle(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn shuffling<T: Cell>(
        op: &'static str,
        dtype: DType,
        shape: ferroflow_ir::Shape,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let mut words = Words::new(generator(io, op, 1)?);
            let source = T::read(io, 0)?;
            let n_rows = shape.first().copied().unwrap_or(1);
            let row = source.len() / n_rows.max(1);
            let mut order: Vec<usize> = workspace::collected(0..n_rows)?;
            for index in 0..n_rows.saturating_sub(1) {
                let rest = (n_rows - index) as u32;
                order.swap(index, index + (words.next_word() % rest) as usize);
            }
            T::write(io, 0, dtype, &shape, |out| {
                for (out, &from) in out.chunks_mut(row.max(1)).zip(&order) {
                    out.clone_from_slice(&source[from * row..][..row]);
                }
                Ok(())
            })
        })
    }
    let (op, dtype, shape) = (call.op.name, call.dtype(0), call.output_shape(0)?);
    Ok(with_cell!(dtype, T => shuffling::<T>(op, dtype, shape)))
}
