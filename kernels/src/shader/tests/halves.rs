//! Conversions of 16-bit floats: each of them, and what rounds to them from both sides.

use super::cases::{Case, shape};
use ferroflow_ir::{Attrs, DType, HostTensor};

/// The lower bits of floats around which 16-bit floats change.
const ENDS: [u32; 8] = [0x0fff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001, 0x1_8000];

pub(super) fn cases() -> Vec<Case> {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
    let between = (0..4096).map(|i: u32| f32::from_bits(i << 20 | ENDS[i as usize % 8]));
    let between = HostTensor::vector(&between.collect::<Vec<_>>()).unwrap();
    let cast = |to| Attrs::new().with("DstT", to);
    let of_kind = |half: DType| {
        let every = HostTensor::from_bytes(half, shape(&[1 << 16]), &all).unwrap();
        let widened = Case { op: "Cast", attrs: cast(DType::F32), inputs: vec![every] };
        let narrowed = Case { op: "Cast", attrs: cast(half), inputs: vec![between.clone()] };
        [widened, narrowed]
    };
    [DType::F16, DType::BF16].into_iter().flat_map(of_kind).collect()
}
