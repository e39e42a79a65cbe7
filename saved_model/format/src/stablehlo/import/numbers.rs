//! Dimension numbers as attributes hold them, to be written.

use ferroflow_ir::{AttrValue, xla::scatter::ScatterAxes};

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn repeated(field: u64, axes: &[usize], out: &mut Vec<u8>) {
    for &axis in axes {
        varint(field << 3, out);
        varint(axis as u64, out);
    }
}

/// `ScatterDimensionNumbers`.
pub(super) fn scatter(axes: &ScatterAxes) -> AttrValue {
    let mut out = Vec::new();
    repeated(1, &axes.window, &mut out);
    repeated(2, &axes.inserted, &mut out);
    repeated(3, &axes.start_map, &mut out);
    repeated(4, &[axes.index_vector], &mut out);
    repeated(5, &axes.operand_batch, &mut out);
    repeated(6, &axes.indices_batch, &mut out);
    AttrValue::String(out.into())
}
