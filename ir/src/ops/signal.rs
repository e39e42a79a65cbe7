//! Fourier transforms over the last dimensions.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    emit::{Composite, Value, call, call_with},
    error::Result,
    infer::{self, OpContext, normalize_axis},
    op::*,
    shape::{Dim, PartialShape},
};
use smallvec::SmallVec;

const COMPLEX_TO_COMPLEX: OpDef = OpDef {
    inputs: &[arg("input", "Tcomplex")],
    outputs: &[arg("output", "Tcomplex")],
    attrs: &[ty_or("Tcomplex", COMPLEX, DType::C64)],
    lowering: Lowering::HostKernel(HostReason::Complex),
    ..OpDef::PURE
};

const REAL_ATTRS: &[AttrDef] =
    &[ty_or("Treal", F32_F64, DType::F32), ty_or("Tcomplex", COMPLEX, DType::C64)];

const FROM_REAL: OpDef = OpDef {
    inputs: &[arg("input", "Treal"), arg_of("fft_length", DType::I32).host()],
    outputs: &[arg("output", "Tcomplex")],
    attrs: REAL_ATTRS,
    lowering: Lowering::HostKernel(HostReason::Complex),
    ..OpDef::PURE
};

const TO_REAL: OpDef = OpDef {
    inputs: &[arg("input", "Tcomplex"), arg_of("fft_length", DType::I32).host()],
    outputs: &[arg("output", "Treal")],
    ..FROM_REAL
};

/// A transform over several dimensions: those of `axes`, which are the last ones.
const OVER_AXES: OpDef = OpDef {
    inputs: &[
        arg("input", "Tcomplex"),
        arg_of("fft_length", DType::I32).host(),
        arg_of("axes", DType::I32).host(),
    ],
    outputs: &[arg("output", "Tcomplex")],
    attrs: &[ty_or("Tcomplex", COMPLEX, DType::C64)],
    ..OpDef::PURE
};

/// A transform of single precision of programs from before `FFT` took stacks.
const BATCH: OpDef = OpDef {
    inputs: &[arg_of("input", DType::C64)],
    outputs: &[arg_of("output", DType::C64)],
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "AudioSpectrogram",
        summary: "Computes the magnitudes of the frequencies of sound in windows.",
        inputs: &[arg_of("input", DType::F32)],
        outputs: &[arg_of("spectrogram", DType::F32)],
        attrs: &[int("window_size"), int("stride"), flag("magnitude_squared", false)],
        infer: spectrogram,
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..OpDef::PURE
    },
    OpDef {
        name: "BatchFFT",
        summary: "As `FFT`.",
        infer: unchanged::<1>,
        lowering: Lowering::Composite(|c| c.renamed("FFT")),
        ..BATCH
    },
    OpDef {
        name: "BatchFFT2D",
        summary: "As `FFT2D`.",
        infer: unchanged::<2>,
        lowering: Lowering::Composite(|c| c.renamed("FFT2D")),
        ..BATCH
    },
    OpDef {
        name: "BatchFFT3D",
        summary: "As `FFT3D`.",
        infer: unchanged::<3>,
        lowering: Lowering::Composite(|c| c.renamed("FFT3D")),
        ..BATCH
    },
    OpDef {
        name: "BatchIFFT",
        summary: "As `IFFT`.",
        infer: unchanged::<1>,
        lowering: Lowering::Composite(|c| c.renamed("IFFT")),
        ..BATCH
    },
    OpDef {
        name: "BatchIFFT2D",
        summary: "As `IFFT2D`.",
        infer: unchanged::<2>,
        lowering: Lowering::Composite(|c| c.renamed("IFFT2D")),
        ..BATCH
    },
    OpDef {
        name: "BatchIFFT3D",
        summary: "As `IFFT3D`.",
        infer: unchanged::<3>,
        lowering: Lowering::Composite(|c| c.renamed("IFFT3D")),
        ..BATCH
    },
    OpDef {
        name: "FFT",
        summary: "Computes the discrete Fourier transform of the last dimension.",
        infer: unchanged::<1>,
        gradient: Gradient::Rule(gradient::signal::fft),
        ..COMPLEX_TO_COMPLEX
    },
    OpDef {
        name: "FFT2D",
        summary: "Computes the discrete Fourier transform of the last two dimensions.",
        infer: unchanged::<2>,
        gradient: Gradient::Rule(gradient::signal::fft2d),
        ..COMPLEX_TO_COMPLEX
    },
    OpDef {
        name: "FFT3D",
        summary: "Computes the discrete Fourier transform of the last three dimensions.",
        infer: unchanged::<3>,
        gradient: Gradient::Rule(gradient::signal::fft3d),
        ..COMPLEX_TO_COMPLEX
    },
    OpDef {
        name: "FFTND",
        summary: "Computes the discrete Fourier transform of the last dimensions, cut or filled up with zeros.",
        infer: |context| over_axes(context, |length| length),
        lowering: Lowering::Composite(|c| {
            vec![several(c, "FFT", resized_input(c, |length| length))]
        }),
        ..OVER_AXES
    },
    OpDef {
        name: "IFFT",
        summary: "Computes the inverse of `FFT`.",
        infer: unchanged::<1>,
        gradient: Gradient::Rule(gradient::signal::ifft),
        ..COMPLEX_TO_COMPLEX
    },
    OpDef {
        name: "IFFT2D",
        summary: "Computes the inverse of `FFT2D`.",
        infer: unchanged::<2>,
        gradient: Gradient::Rule(gradient::signal::ifft2d),
        ..COMPLEX_TO_COMPLEX
    },
    OpDef {
        name: "IFFT3D",
        summary: "Computes the inverse of `FFT3D`.",
        infer: unchanged::<3>,
        gradient: Gradient::Rule(gradient::signal::ifft3d),
        ..COMPLEX_TO_COMPLEX
    },
    OpDef {
        name: "IFFTND",
        summary: "Computes the inverse of `FFTND`.",
        infer: |context| over_axes(context, |length| length),
        lowering: Lowering::Composite(|c| {
            vec![several(c, "IFFT", resized_input(c, |length| length))]
        }),
        ..OVER_AXES
    },
    OpDef {
        name: "IRFFT",
        summary: "Computes the inverse of `RFFT`.",
        infer: to_real::<1>,
        gradient: Gradient::Rule(gradient::signal::irfft),
        ..TO_REAL
    },
    OpDef {
        name: "IRFFT2D",
        summary: "Computes the inverse of `RFFT2D`.",
        infer: to_real::<2>,
        gradient: Gradient::Rule(gradient::signal::irfft2d),
        ..TO_REAL
    },
    OpDef {
        name: "IRFFT3D",
        summary: "Computes the inverse of `RFFT3D`.",
        infer: to_real::<3>,
        ..TO_REAL
    },
    OpDef {
        name: "IRFFTND",
        summary: "Computes the inverse of `RFFTND`.",
        outputs: &[arg("output", "Treal")],
        attrs: REAL_ATTRS,
        infer: |context| over_axes(context, |length| length),
        lowering: Lowering::Composite(|c| {
            let x = resized_input(c, |length| length / 2 + 1);
            vec![last(c, "IRFFT", outer(c, "IFFT", x))]
        }),
        ..OVER_AXES
    },
    OpDef {
        name: "Mfcc",
        summary: "Computes the mel-frequency cepstral coefficients of spectrograms.",
        inputs: &[arg_of("spectrogram", DType::F32), arg_of("sample_rate", DType::I32)],
        outputs: &[arg_of("output", DType::F32)],
        attrs: &[
            float_or("upper_frequency_limit", 4000.0),
            float_or("lower_frequency_limit", 20.0),
            int_or("filterbank_channel_count", 40),
            int_or("dct_coefficient_count", 13),
        ],
        infer: mfcc,
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..OpDef::PURE
    },
    OpDef {
        name: "RFFT",
        summary: "Computes the half of `FFT` that real elements determine.",
        infer: from_real::<1>,
        gradient: Gradient::Rule(gradient::signal::rfft),
        ..FROM_REAL
    },
    OpDef {
        name: "RFFT2D",
        summary: "Computes the half of `FFT2D` that real elements determine.",
        infer: from_real::<2>,
        gradient: Gradient::Rule(gradient::signal::rfft2d),
        ..FROM_REAL
    },
    OpDef {
        name: "RFFT3D",
        summary: "Computes the half of `FFT3D` that real elements determine.",
        infer: from_real::<3>,
        ..FROM_REAL
    },
    OpDef {
        name: "RFFTND",
        summary: "Computes the half of `FFTND` that real elements determine.",
        inputs: &[
            arg("input", "Treal"),
            arg_of("fft_length", DType::I32).host(),
            arg_of("axes", DType::I32).host(),
        ],
        attrs: REAL_ATTRS,
        infer: |context| over_axes(context, half),
        lowering: Lowering::Composite(|c| {
            let x = resized_input(c, |length| length);
            vec![outer(c, "FFT", last(c, "RFFT", x))]
        }),
        ..OVER_AXES
    },
];

fn unchanged<const RANK: usize>(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, RANK)?;
    infer::unchanged(context)
}

/// The elements of a spectrum of this length that real numbers determine; none of none
/// (`fft_ops.cc`).
fn half(length: usize) -> usize {
    if length == 0 { 0 } else { length / 2 + 1 }
}

fn from_real<const RANK: usize>(context: &mut OpContext<'_>) -> Result<()> {
    resized::<RANK>(context, |length| length, half)
}

fn to_real<const RANK: usize>(context: &mut OpContext<'_>) -> Result<()> {
    resized::<RANK>(context, half, |length| length)
}

/// The last dimensions become those in input 1. Of the last length, `needed` elements are read and
/// `given` are the result; larger inputs are cut.
fn resized<const RANK: usize>(
    context: &mut OpContext<'_>,
    needed: fn(usize) -> usize,
    given: fn(usize) -> usize,
) -> Result<()> {
    context.check_rank_at_least(0, RANK)?;
    let [count] = context.dims::<1>(1)?;
    context.same("the number of lengths", count, Some(RANK))?;
    let Some(dims) = context.shape(0).dims() else { return Ok(()) };
    let (outer, inner) = dims.split_at(dims.len() - RANK);
    let mut sizes: Vec<Dim> = vec![None; RANK];
    if let Some(lengths) = context.ints(1)? {
        for (index, &length) in lengths.iter().enumerate() {
            let wrong = || context.wrong(1, "not negative", length);
            let length = usize::try_from(length).map_err(|_| wrong())?;
            let (read, written) = match index + 1 == RANK {
                true => (needed(length), given(length)),
                false => (length, length),
            };
            if inner[index].is_some_and(|size| size != 0 && size < read) {
                let expected = format!("at least {read} long in dimension {index} of the last");
                return Err(context.wrong(0, expected, context.shape(0)));
            }
            sizes[index] = Some(written);
        }
    }
    let shape = PartialShape::ranked(outer.iter().copied().chain(sizes));
    context.set(0, shape);
    Ok(())
}

/// As [`resized`], for the dimensions in input 2; inputs that are too short are filled up.
fn over_axes(context: &mut OpContext<'_>, given: fn(usize) -> usize) -> Result<()> {
    let ([count], [axes]) = (context.dims::<1>(1)?, context.dims::<1>(2)?);
    let count = context.same("the number of lengths and axes", count, axes)?;
    let Some(dims) = context.shape(0).dims() else { return Ok(()) };
    let mut sizes: SmallVec<[Dim; 6]> = dims.into();
    let Some(count) = count else { return Ok(()) };
    if count == 0 || count > sizes.len() {
        let expected = format!("one to {} dimensions", sizes.len());
        return Err(context.wrong(2, expected, format!("{count}")));
    }
    let first = sizes.len() - count;
    if let Some(axes) = context.ints(2)? {
        let found: Result<Vec<usize>> =
            axes.iter().map(|&axis| normalize_axis(axis, sizes.len())).collect();
        if found?.into_iter().ne(first..sizes.len()) {
            return Err(context.wrong(2, "the last dimensions, in order", format!("{axes:?}")));
        }
    }
    let lengths = context.ints(1)?;
    for (index, size) in sizes[first..].iter_mut().enumerate() {
        *size = match &lengths {
            None => None,
            Some(lengths) => {
                let wrong = || context.wrong(1, "not negative", lengths[index]);
                let length = usize::try_from(lengths[index]).map_err(|_| wrong())?;
                Some(if index + 1 == count { given(length) } else { length })
            }
        };
    }
    context.set(0, PartialShape::Ranked(sizes));
    Ok(())
}

/// The input with the lengths that the transform asks for, cut or filled up with zeros. Of the last
/// length it needs `needed` elements.
fn resized_input<'e>(c: &Composite<'e>, needed: fn(i64) -> i64) -> Value<'e> {
    let (x, lengths) = (c.x(0), c.ints(1));
    let from = x.shape().to_i64();
    let mut to = from.clone();
    for (index, &length) in lengths.iter().enumerate() {
        let size = if index + 1 == lengths.len() { needed(length) } else { length };
        to[from.len() - lengths.len() + index] = size;
    }
    gradient::signal::resized(x, &from, &to)
}

/// The transform of the last dimensions by that of single ones.
fn several<'e>(c: &Composite<'e>, op: &str, x: Value<'e>) -> Value<'e> {
    outer(c, op, call(op, [x]))
}

/// The transform of the last dimension from or to real numbers.
fn last<'e>(c: &Composite<'e>, op: &str, x: Value<'e>) -> Value<'e> {
    let Some(&length) = c.ints(1).last() else { return x };
    call_with(op, c.attrs.clone(), [x, x.int32_vector(&[length])])
}

/// The transform of all of the last dimensions but the last one.
fn outer<'e>(c: &Composite<'e>, op: &str, x: Value<'e>) -> Value<'e> {
    let (rank, n) = (x.shape().rank() as i64, c.ints(1).len() as i64);
    (rank - n..rank - 1).fold(x, |x, axis| {
        let order: Vec<i64> =
            (0..rank).filter(|&at| at != axis).chain(std::iter::once(axis)).collect();
        let mut back = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &from)| back[from as usize] = at as i64);
        call(op, [x.transpose(&order)]).transpose(&back)
    })
}

fn spectrogram(context: &mut OpContext<'_>) -> Result<()> {
    let [samples, channels] = context.dims::<2>(0)?;
    let size = |name: &'static str, least: usize| {
        let value = context.attrs.int(name)?;
        let size = usize::try_from(value).ok().filter(|&size| size >= least && size < 1 << 24);
        size.ok_or_else(|| context.wrong_attr(name, "a size of some samples", value))
    };
    let (window, stride) = (size("window_size", 2)?, size("stride", 1)?);
    let slices = samples.map(|samples| match samples.checked_sub(window) {
        Some(rest) => 1 + rest / stride,
        None => 0,
    });
    let frequencies = 1 + window.next_power_of_two() / 2;
    context.set(0, PartialShape::ranked([channels, slices, Some(frequencies)]));
    Ok(())
}

fn mfcc(context: &mut OpContext<'_>) -> Result<()> {
    let [channels, slices, _] = context.dims::<3>(0)?;
    context.check_rank(1, 0)?;
    let bands = context.attrs.int("filterbank_channel_count")?;
    if !(1..1 << 16).contains(&bands) {
        return Err(context.wrong_attr("filterbank_channel_count", "at least 1", bands));
    }
    let coefficients = context.attrs.int("dct_coefficient_count")?;
    if !(1..=bands).contains(&coefficients) {
        let expected = format!("from 1 to {bands}");
        return Err(context.wrong_attr("dct_coefficient_count", expected, coefficients));
    }
    let low = context.attrs.float("lower_frequency_limit")?;
    let high = context.attrs.float("upper_frequency_limit")?;
    if !(low >= 0.0 && high > low && high.is_finite()) {
        return Err(context.wrong_attr("upper_frequency_limit", format!("above {low}"), high));
    }
    let coefficients = usize::try_from(coefficients).ok();
    context.set(0, PartialShape::ranked([channels, slices, coefficients]));
    Ok(())
}
