//! Calls that move elements: shifts, mirrors, diagonals; and integers divided by anything.

use super::cases::{Case, ints, numbers, shape};
use ferroflow_ir::{Attrs, DType, HostTensor};

/// The case of an op without attributes that are not told by its inputs.
fn case(op: &'static str, attrs: Attrs, inputs: Vec<HostTensor>) -> Case {
    Case { op, attrs, inputs }
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = quotients();
    for dtype in [DType::F32, DType::I32, DType::Bool, DType::I64] {
        let x = |dims: &[usize]| numbers(dtype, dims);
        let none = Attrs::new;
        cases.push(case("Roll", none(), vec![x(&[3, 4, 5]), ints(&[-1, 7, 2]), ints(&[0, -1, 0])]));
        let longs = |values: &[i64]| HostTensor::vector(values).unwrap();
        cases.push(case("Roll", none(), vec![x(&[6]), longs(&[-13]), longs(&[0])]));
        for (batch, sequence) in [(0i64, 1i64), (2, 0)] {
            let attrs = none().with("batch_dim", batch).with("seq_dim", sequence);
            let lengths = if batch == 0 { longs(&[3, 0, 4]) } else { longs(&[1, 3, 2, 0, 3]) };
            cases.push(case("ReverseSequence", attrs, vec![x(&[3, 4, 5]), lengths]));
        }
        for mode in ["REFLECT", "SYMMETRIC"] {
            let pads = HostTensor::from_slice(shape(&[3, 2]), &[2i32, 1, 0, 0, 0, 3]).unwrap();
            let attrs = || none().with("mode", mode);
            cases.push(case("MirrorPad", attrs(), vec![x(&[3, 2, 4]), pads.clone()]));
            cases.push(case("MirrorPadGrad", attrs(), vec![x(&[6, 2, 7]), pads]));
        }
        cases.extend(diagonals(dtype));
    }
    for dtype in [DType::F32, DType::F16] {
        for (exclusive, reverse) in [(false, false), (true, false), (true, true)] {
            let attrs = Attrs::new().with("exclusive", exclusive).with("reverse", reverse);
            let inputs = vec![numbers(dtype, &[3, 4, 2]), HostTensor::scalar(1i32)];
            cases.push(case("CumulativeLogsumexp", attrs, inputs));
        }
    }
    cases
}

fn diagonals(dtype: DType) -> Vec<Case> {
    let x = |dims: &[usize]| numbers(dtype, dims);
    let mut cases = vec![
        case("Diag", Attrs::new(), vec![x(&[2, 3])]),
        case("DiagPart", Attrs::new(), vec![x(&[2, 3, 2, 3])]),
        case("MatrixDiag", Attrs::new(), vec![x(&[2, 3])]),
        case("MatrixDiagPart", Attrs::new(), vec![x(&[2, 3, 4])]),
        case("MatrixSetDiag", Attrs::new(), vec![x(&[2, 3, 4]), x(&[2, 3])]),
    ];
    for align in ["LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT"] {
        let attrs = || Attrs::new().with("align", align);
        for (lower, upper) in [(-1, 2), (1, 1), (-2, -1)] {
            let k = || ints(&[lower, upper]);
            let part = case("MatrixDiagPartV3", attrs(), vec![x(&[2, 3, 4]), k(), x(&[])]);
            let Some(compact) = super::cases::on_cpu(&part) else { continue };
            cases.push(part);
            let compact = &compact[0];
            let set = vec![x(&[2, 3, 4]), compact.clone(), k()];
            cases.push(case("MatrixSetDiagV3", attrs(), set));
            let size = |n: i32| HostTensor::scalar(n);
            let inputs = vec![compact.clone(), k(), size(3), size(4), x(&[])];
            cases.push(case("MatrixDiagV3", attrs(), inputs));
        }
    }
    cases
}

/// Divisors of both signs; zero is an error on the CPU and is looked at elsewhere.
fn quotients() -> Vec<Case> {
    let mut cases = Vec::new();
    let types = [
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
    ];
    for dtype in types {
        let of = |values: &[i64]| super::cases::cast(&HostTensor::vector(values).unwrap(), dtype);
        let (x, y) =
            (of(&[7, -7, 7, -7, 0, 100, -128, i64::MIN]), of(&[2, 2, -2, -2, 5, 7, -1, -1]));
        for op in ["FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Mod", "Div"] {
            cases.push(case(op, Attrs::new(), vec![x.clone(), y.clone()]));
        }
        let (x, y) = (of(&[3, -2, 1, -1, 0, 7, 2]), of(&[4, 5, 100, 63, 0, 1, 31]));
        cases.push(case("Pow", Attrs::new(), vec![x, y]));
        cases.push(case("PopulationCount", Attrs::new(), vec![of(&[0, 1, -1, 255, i64::MIN])]));
    }
    for to in [DType::U32, DType::U64, DType::I64, DType::I32] {
        let values = [0.0f32, 1.5, -1.5, 3e9, -3e9, 5e9, 1.5e19, -1e30, f32::NAN, f32::INFINITY];
        let inputs = vec![HostTensor::vector(&values).unwrap()];
        cases.push(case("Cast", Attrs::new().with("DstT", to), inputs));
    }
    let angles = [1e5f32, -3.3e7, 1e20, 3.4e38, -1.7e38, 32768.0, 2.5e5, 1e-40, 6.2831855e10];
    for op in ["Sin", "Cos", "Tan", "Sign"] {
        cases.push(case(op, Attrs::new(), vec![HostTensor::vector(&angles).unwrap()]));
    }
    cases
}
