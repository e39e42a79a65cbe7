//! Inputs and variables of random programs.

use super::super::{
    program::{FuzzProgram, ProgramBlock, VarDecl},
    rng::FuzzRng,
};
use super::{operands::tensor, profiles::GeneratorProfile};
use ferroflow::ir::{DType, HostTensor, Shape};

const WORDS: [&str; 7] = ["", "a", "b c", "7", "xy z", "abc", "-3"];

/// A program without statements.
pub(super) fn program(rng: &mut FuzzRng, profile: &GeneratorProfile) -> FuzzProgram {
    let n_inputs = if rng.chance(0.2) { 1 } else { 3 };
    let sizes = sizes(rng, n_inputs);
    let n_params = 1 + rng.below(4);
    let mut inputs = vec![Vec::new(); n_inputs];
    let mut last: Option<(DType, Vec<Dim>)> = None;
    for number in 0..n_params {
        let dtype = dtype(rng, profile, number);
        let (dtype, dims) = match &last {
            Some(last) if rng.chance(0.35) => last.clone(),
            _ => (dtype, dims(rng, profile)),
        };
        for (input, list) in inputs.iter_mut().enumerate() {
            let shape = dims.iter().map(|dim| match dim {
                Dim::Fixed(size) => *size,
                Dim::Symbol(symbol) => sizes[*symbol][input],
            });
            list.push(argument(rng, dtype, &shape.collect::<Vec<_>>()));
        }
        last = Some((dtype, dims));
    }
    let calls = if n_inputs == 1 { vec![0, 0] } else { vec![0, 0, 1, 2, 0] };
    let n_vars = if rng.chance(profile.variables) { 1 + rng.below(3) } else { 0 };
    let vars = (0..n_vars).map(|_| variable(rng, profile)).collect();
    let main = ProgramBlock { params: (0..n_params).collect(), ..ProgramBlock::default() };
    let has_outer_gradient = profile.has_outer_gradient;
    FuzzProgram { vars, funcs: Vec::new(), main, inputs, calls, has_outer_gradient }
}

#[derive(Clone)]
enum Dim {
    Fixed(usize),
    /// A size that each input has of its own.
    Symbol(usize),
}

fn sizes(rng: &mut FuzzRng, n: usize) -> Vec<Vec<usize>> {
    let is_static = rng.chance(0.15);
    let has_zero = rng.chance(0.25);
    let mut sizes = Vec::new();
    for symbol in 0..3 {
        let mut list: Vec<usize> = (0..n).map(|_| 1 + rng.below(4)).collect();
        if n > 1 && rng.chance(0.4) {
            list[1] = 1;
        }
        if n > 1 && symbol == 0 && has_zero {
            list[n - 1] = 0;
        }
        if is_static {
            list = vec![list[0]; n];
        }
        sizes.push(list);
    }
    sizes
}

fn dtype(rng: &mut FuzzRng, profile: &GeneratorProfile, number: usize) -> DType {
    if number == 0 && profile.has_strings {
        return DType::String;
    }
    if profile.has_outer_gradient || number == 0 {
        return DType::F32;
    }
    let all = [DType::F32, DType::I32, DType::F64, DType::I64, DType::Bool, DType::String];
    all[rng.weighted(&[5.0, 3.0, 0.7, 1.0, 1.0, 0.3])]
}

fn dims(rng: &mut FuzzRng, profile: &GeneratorProfile) -> Vec<Dim> {
    let rank = rng.weighted(if profile.is_deep {
        &[0.2, 1.0, 3.0, 2.0, 4.0]
    } else {
        &[1.0, 3.0, 4.0, 2.0, 0.5]
    });
    let dim = |rng: &mut FuzzRng| match rng.chance(0.6) {
        true => Dim::Symbol(rng.below(3)),
        false => Dim::Fixed(1 + rng.below(3)),
    };
    (0..rank).map(|_| dim(rng)).collect()
}

fn argument(rng: &mut FuzzRng, dtype: DType, dims: &[usize]) -> HostTensor {
    let shape = Shape::new(dims.iter().copied()).expect("small sizes");
    let n = shape.num_elements();
    if dtype == DType::String {
        let words = (0..n).map(|_| rng.pick(&WORDS).into()).collect();
        return HostTensor::from_strings(shape, words).expect("a word for each element");
    }
    let numbers: Vec<i64> = (0..n).map(|_| rng.within(-4, 6)).collect();
    tensor(dtype, shape, &numbers).expect("a dtype of arguments")
}

fn variable(rng: &mut FuzzRng, profile: &GeneratorProfile) -> VarDecl {
    let dtype = if rng.chance(0.75) { DType::F32 } else { DType::I32 };
    let shapes: [&[usize]; 7] = [&[], &[3], &[2], &[2, 3], &[1], &[2, 2], &[4]];
    let initial = argument(rng, dtype, rng.clone().pick(&shapes));
    let is_flexible = initial.shape().rank() > 0 && rng.chance(0.3);
    let is_inexact = dtype == DType::F32 && rng.chance(0.3);
    let device = rng.chance(profile.devices).then(|| rng.below(6));
    VarDecl { initial, is_flexible, is_inexact, device }
}
