//! Diagonals of matrices: `MatrixDiag…`, `MatrixDiagPart…`, `MatrixSetDiag…`, `Diag`, `DiagPart`.
//!
//! Where the diagonals of a band lie is told by [`Band`]; each element of a result looks for its
//! own.

use super::{
    Shader,
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    scalar_type::{Caps, ScalarType},
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::diagonal::Band;

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("Diag", diag),
    ("DiagPart", diag_part),
    ("MatrixDiag", matrix_diag),
    ("MatrixDiagPart", matrix_diag_part),
    ("MatrixDiagPartV2", matrix_diag_part),
    ("MatrixDiagPartV3", matrix_diag_part),
    ("MatrixDiagV2", matrix_diag),
    ("MatrixDiagV3", matrix_diag),
    ("MatrixSetDiag", matrix_set_diag),
    ("MatrixSetDiagV2", matrix_set_diag),
    ("MatrixSetDiagV3", matrix_set_diag),
];

fn diag(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let n = call.shape(0).num_elements();
    put(call, caps, &Band::main(n, n), None, None)
}

fn diag_part(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let n = call.output_shape(0)?.num_elements();
    take(call, caps, &Band::main(n, n), None)
}

fn matrix_diag(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let diagonal = call.shape(0);
    let (band, _) = call.with_context(|context| Band::of_diagonals(context, diagonal))?;
    put(call, caps, &band, None, (call.inputs.len() > 4).then_some(4))
}

fn matrix_set_diag(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let matrix = call.shape(0);
    let band = call.with_context(|context| Band::of_matrix(context, matrix, 2))?;
    put(call, caps, &band, Some(0), None)
}

fn matrix_diag_part(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let matrix = call.shape(0);
    let band = call.with_context(|context| Band::of_matrix(context, matrix, 1))?;
    take(call, caps, &band, (call.inputs.len() > 2).then_some(2))
}

/// A diagonal: where its first element is, how many elements it has, and where they begin in the
/// compact form.
struct DiagonalPosition<'k> {
    row: KernelValue<'k>,
    column: KernelValue<'k>,
    length: KernelValue<'k>,
    start: KernelValue<'k>,
}

impl<'k> DiagonalPosition<'k> {
    /// The diagonal of this number, above the main one or below it.
    fn new(k: &'k KernelBuilder, band: &Band, number: KernelValue<'k>) -> DiagonalPosition<'k> {
        let unsigned = |value: KernelValue<'k>| value.max(0).to(ScalarType::U32);
        let (row, column) =
            (k.bind("first_row", unsigned(-number)), k.bind("first_column", unsigned(number)));
        let int = |value: KernelValue<'k>| value.to(ScalarType::I32);
        let [rows, columns] = [band.rows, band.columns].map(|size| int(k.index(size)));
        let length = (rows - int(row)).min(columns - int(column)).clamp(0, band.longest);
        let length = k.bind("length", length.to(ScalarType::U32));
        let side = |sign: i64| match band.begins_left(sign) {
            true => k.index(0),
            false => band.longest - length,
        };
        let start = k.bind("start", number.gt(0).select(side(1), side(-1)));
        DiagonalPosition { row, column, length, start }
    }
}

fn take(
    call: &OpCall<'_>,
    caps: Caps,
    band: &Band,
    padding: Option<usize>,
) -> Result<Option<Shader>> {
    let (longest, count) = (band.longest.max(1), band.count().max(1));
    let k = KernelBuilder::new(caps);
    let ([matrices], out, n) = (k.inputs(call, [0]), k.result(call), k.element());
    let outside = other(&k, call, out, padding);
    let number =
        k.number(ScalarType::I32, band.upper as i32) - (n / longest % count).to(ScalarType::I32);
    let diagonal = DiagonalPosition::new(&k, band, k.bind("diagonal", number));
    let at = k.bind("at", n % longest - diagonal.start);
    let first = n / (longest * count) * (band.rows * band.columns);
    let (row, column) = (diagonal.row + at, diagonal.column + at);
    k.when_else(
        at.lt(diagonal.length),
        || out.set(n, matrices.at(first + row * band.columns + column)),
        || out.set(n, outside),
    );
    k.finish(call.output_shape(0)?.num_elements())
}

/// Puts diagonals into the matrices of input `before`, or among what is in input `padding`.
fn put(
    call: &OpCall<'_>,
    caps: Caps,
    band: &Band,
    before: Option<usize>,
    padding: Option<usize>,
) -> Result<Option<Shader>> {
    let (rows, columns) = (band.rows.max(1), band.columns.max(1));
    let k = KernelBuilder::new(caps);
    let n = k.element();
    let diagonals = k.input(usize::from(before.is_some()), call.dtype(0));
    let out = k.result(call);
    let outside = match before {
        Some(before) => k.input(before, call.dtype(0)).at(n),
        None => other(&k, call, out, padding),
    };
    let (row, column) = (k.bind("row", n / columns % rows), k.bind("column", n % columns));
    let number = k.bind("diagonal", column.to(ScalarType::I32) - row.to(ScalarType::I32));
    let diagonal = DiagonalPosition::new(&k, band, number);
    let at = k.bind("at", row.min(column));
    let (lower, upper) = (band.lower as i32, band.upper as i32);
    let inside = number.ge(lower).and(number.le(upper)).and(at.lt(diagonal.length));
    let line = (k.number(ScalarType::I32, upper) - number).to(ScalarType::U32);
    let first = n / (rows * columns) * band.count() + line;
    k.when_else(
        inside,
        || out.set(n, diagonals.at(first * band.longest + diagonal.start + at)),
        || out.set(n, outside),
    );
    k.finish(call.output_shape(0)?.num_elements())
}

/// Value outside the diagonals: the only element of an input, or zero.
fn other<'k>(
    k: &'k KernelBuilder,
    call: &OpCall<'_>,
    out: KernelBuffer<'k>,
    padding: Option<usize>,
) -> KernelValue<'k> {
    match padding {
        Some(padding) => k.input(padding, call.dtype(padding)).at(0),
        None => out.zero(),
    }
}
