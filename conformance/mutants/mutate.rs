//! Mutations of calls.

use super::{
    base::{CallInput, HostileCall, element, of_shape, some_shape},
    rng::FuzzRng,
};
use bytes::Bytes;
use ferroflow::ir::{
    AttrValue, DType, HostTensor, PartialShape, Shape,
    op::{Allowed, AttrDef},
};

/// Integers at the ends of types and of what fits memory.
const INTS: [i64; 22] = [
    -1,
    0,
    1,
    2,
    3,
    7,
    -2,
    255,
    256,
    65_535,
    65_536,
    1 << 20,
    i32::MAX as i64,
    1 << 31,
    1 << 33,
    1 << 36,
    1 << 62,
    (1 << 62) + 1,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    i32::MIN as i64,
];

const FLOATS: [f32; 9] =
    [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, 0.0, 1e30, -1e30, 1e-40, 0.5];

const DTYPES: [DType; 12] = [
    DType::F32,
    DType::F64,
    DType::F16,
    DType::I32,
    DType::I64,
    DType::I8,
    DType::U8,
    DType::U64,
    DType::Bool,
    DType::C64,
    DType::String,
    DType::Variant,
];

const TEXTS: [&str; 12] = [
    "",
    "x",
    "%",
    "%99999999999d",
    "VALID",
    "NCHW",
    "NHWC",
    "(",
    "[^",
    "\u{fffd}\0",
    "EXPLICIT",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

/// Changes a call in one respect.
pub(super) fn mutate(call: &mut HostileCall, rng: &mut FuzzRng) {
    let of_attrs = if call.op.attrs.is_empty() { 0.0 } else { 4.0 };
    let of_inputs = if call.inputs.is_empty() { 0.0 } else { 1.0 };
    match rng.weighted(&[of_attrs, 4.0 * of_inputs, 3.0 * of_inputs, of_inputs, 0.6]) {
        0 => {
            let def = &call.op.attrs[rng.below(call.op.attrs.len())];
            let old = call.attrs.get(def.name).cloned().or_else(|| def.default.value());
            match old {
                Some(_) if rng.chance(0.04) => drop(call.attrs.remove(def.name)),
                Some(old) => call.attrs.set(def.name, attr(old, def, rng)),
                None => {}
            }
        }
        1 => of_input(call, rng, reshaped),
        2 => of_input(call, rng, revalued),
        3 => of_input(call, rng, |tensor, rng| {
            of_shape(rng.pick(&DTYPES), tensor.shape().clone(), &[0, 1, 2])
        }),
        _ => recounted(call, rng),
    }
}

fn of_input(
    call: &mut HostileCall,
    rng: &mut FuzzRng,
    change: fn(&HostTensor, &mut FuzzRng) -> HostTensor,
) {
    let at = rng.below(call.inputs.len());
    if let CallInput::Tensor(tensor) = &call.inputs[at] {
        call.inputs[at] = CallInput::Tensor(change(tensor, rng));
    }
}

/// More inputs, fewer, or the same in another order.
fn recounted(call: &mut HostileCall, rng: &mut FuzzRng) {
    let n = call.inputs.len();
    match rng.below(4) {
        0 => drop(call.inputs.pop()),
        1 if n > 0 => drop(call.inputs.remove(rng.below(n))),
        2 if n > 1 => call.inputs.swap(rng.below(n), rng.below(n)),
        _ if n > 0 => call.inputs.push(call.inputs[rng.below(n)].clone()),
        _ => call.inputs.push(CallInput::Tensor(HostTensor::scalar(1i32))),
    }
}

fn attr(old: AttrValue, def: &AttrDef, rng: &mut FuzzRng) -> AttrValue {
    fn list<T: Clone>(
        mut old: Vec<T>,
        rng: &mut FuzzRng,
        other: impl Fn(&mut FuzzRng) -> T,
    ) -> Vec<T> {
        match rng.below(5) {
            0 => drop(old.pop()),
            1 => old.push(other(rng)),
            2 if !old.is_empty() => old.push(old[0].clone()),
            3 if rng.chance(0.1) => old.clear(),
            _ if !old.is_empty() => {
                let at = rng.below(old.len());
                old[at] = other(rng);
            }
            _ => {}
        }
        old
    }
    let text = |rng: &mut FuzzRng| match def.allowed {
        Allowed::Strings(allowed) => Bytes::from(rng.pick(allowed)),
        Allowed::Any | Allowed::Types(_) => Bytes::from(rng.pick(&TEXTS)),
    };
    let dtype = |rng: &mut FuzzRng| match def.allowed {
        Allowed::Types(types) if rng.chance(0.7) => rng.pick(types),
        _ => rng.pick(&DTYPES),
    };
    match old {
        AttrValue::Int(old) => AttrValue::Int(int(old, rng)),
        AttrValue::Float(_) => AttrValue::Float(rng.pick(&FLOATS)),
        AttrValue::Bool(old) => AttrValue::Bool(!old),
        AttrValue::String(_) => AttrValue::String(text(rng)),
        AttrValue::Type(_) => AttrValue::Type(dtype(rng)),
        AttrValue::Shape(old) => AttrValue::Shape(partial(&old, rng)),
        AttrValue::Tensor(old) => AttrValue::Tensor(reshaped(&old, rng)),
        AttrValue::Strings(old) => AttrValue::Strings(list(old, rng, text)),
        AttrValue::Ints(old) => AttrValue::Ints(list(old, rng, |rng| int(1, rng))),
        AttrValue::Floats(old) => AttrValue::Floats(list(old, rng, |rng| rng.pick(&FLOATS))),
        AttrValue::Bools(old) => AttrValue::Bools(list(old, rng, |rng| rng.chance(0.5))),
        AttrValue::Types(old) => AttrValue::Types(list(old, rng, dtype)),
        AttrValue::Shapes(old) => {
            let like = old.first().cloned().unwrap_or_default();
            AttrValue::Shapes(list(old, rng, |rng| partial(&like, rng)))
        }
        AttrValue::Tensors(old) => {
            AttrValue::Tensors(list(old, rng, |_| HostTensor::scalar(1.0f32)))
        }
        AttrValue::Func(_) | AttrValue::Funcs(_) | AttrValue::Placeholder(_) => old,
    }
}

fn int(old: i64, rng: &mut FuzzRng) -> i64 {
    match rng.below(4) {
        0 => old.wrapping_add(rng.pick(&[-1, 1])),
        1 => rng.pick(&[old.wrapping_neg(), old.wrapping_mul(2)]),
        _ => rng.pick(&INTS),
    }
}

fn partial(old: &PartialShape, rng: &mut FuzzRng) -> PartialShape {
    let Some(dims) = old.dims().filter(|_| rng.chance(0.9)) else {
        return PartialShape::ranked([Some(rng.below(3)), Some(2)]);
    };
    let mut dims = dims.to_vec();
    match rng.below(4) {
        0 => dims.push(Some(rng.pick(&[0, 1, 2, 1 << 36]))),
        1 => drop(dims.pop()),
        2 if !dims.is_empty() => {
            let at = rng.below(dims.len());
            dims[at] = rng.pick(&[None, Some(0), Some(1), Some(1 << 31), Some(1 << 36)]);
        }
        _ => return PartialShape::Unknown,
    }
    PartialShape::ranked(dims)
}

/// The same elements, more or less, in another shape: of another rank, empty, or empty and huge.
fn reshaped(tensor: &HostTensor, rng: &mut FuzzRng) -> HostTensor {
    let mut dims: Vec<usize> = tensor.shape().to_vec();
    let at = |rng: &mut FuzzRng, dims: &[usize]| rng.below(dims.len().max(1));
    match rng.below(11) {
        0 => dims.clear(),
        1 => dims.insert(rng.below(dims.len() + 1), 1),
        2 => dims.insert(rng.below(dims.len() + 1), 0),
        3 if !dims.is_empty() => drop(dims.remove(at(rng, &dims))),
        4 | 5 if !dims.is_empty() => {
            let at = at(rng, &dims);
            dims[at] = 0;
        }
        6 if !dims.is_empty() => {
            let at = at(rng, &dims);
            dims[at] += 1;
        }
        7 if !dims.is_empty() => {
            let at = at(rng, &dims);
            dims[at] = 1;
        }
        8 if dims.len() > 1 => {
            let (zero, huge) = (at(rng, &dims), at(rng, &dims));
            dims[huge] = rng.pick(&[1 << 20, 1 << 24, 1 << 28]);
            dims[zero] = 0;
        }
        9 if dims.len() > 1 => dims.swap(0, 1),
        _ => dims = some_shape(rng).to_vec(),
    }
    let Ok(shape) = Shape::new(dims) else { return tensor.clone() };
    refilled(tensor, shape)
}

/// The elements of a tensor again and again, until a shape is full.
fn refilled(tensor: &HostTensor, shape: Shape) -> HostTensor {
    let n = shape.num_elements();
    if n > 1 << 16 {
        return tensor.clone();
    }
    let other = match (tensor.strings(), tensor.dtype().size()) {
        (Ok([]), _) => return of_shape(DType::String, shape, &[1, 0]),
        (Ok(texts), _) => {
            HostTensor::from_strings(shape, texts.iter().cycle().take(n).cloned().collect())
        }
        (Err(_), Some(size)) if !tensor.is_empty() && tensor.is_plain() => {
            let bytes: Vec<u8> = tensor.bytes().iter().copied().cycle().take(n * size).collect();
            HostTensor::from_bytes(tensor.dtype(), shape, &bytes)
        }
        (Err(_), Some(_)) => return of_shape(tensor.dtype(), shape, &[1, 0, 2]),
        (Err(_), None) => return tensor.clone(),
    };
    other.unwrap_or_else(|_| tensor.clone())
}

/// The sizes of a shape that costs nothing and is large: one element is huge, another 0.
fn huge_and_empty(tensor: &HostTensor, rng: &mut FuzzRng) -> HostTensor {
    let (dtype, size) = (tensor.dtype(), tensor.dtype().size().unwrap_or(1));
    let (huge, zero) = (rng.below(tensor.len()), rng.below(tensor.len()));
    let number = rng.pick(&[1i128 << 20, 1 << 24, (1 << 24) + 1, 1 << 28, 1 << 30, 1 << 36]);
    let mut other = tensor.clone();
    for (at, number) in [(huge, number), (zero, 0)] {
        other.bytes_mut()[at * size..][..size].copy_from_slice(&element(dtype, number));
    }
    other
}

/// A tensor with another value in a single element, or in all.
fn revalued(tensor: &HostTensor, rng: &mut FuzzRng) -> HostTensor {
    let n = tensor.len();
    if n == 0 || n > 1 << 16 {
        return tensor.clone();
    }
    if tensor.dtype().is_integer() && n >= 2 && rng.chance(0.2) {
        return huge_and_empty(tensor, rng);
    }
    let at = rng.below(n);
    let is_hit = |index: usize, all: bool| all || index == at;
    let all = rng.chance(0.2);
    if let Ok(texts) = tensor.strings() {
        let text = Bytes::from(rng.pick(&TEXTS));
        let other = texts.iter().enumerate();
        let other = other.map(|(i, old)| if is_hit(i, all) { text.clone() } else { old.clone() });
        return HostTensor::from_strings(tensor.shape().clone(), other.collect())
            .unwrap_or_else(|_| tensor.clone());
    }
    let Some(size) = tensor.dtype().size().filter(|_| tensor.is_plain()) else {
        return tensor.clone();
    };
    let bytes = match tensor.dtype() {
        DType::F32 => rng.pick(&FLOATS).to_le_bytes().to_vec(),
        DType::F64 => f64::from(rng.pick(&FLOATS)).to_le_bytes().to_vec(),
        dtype => element(dtype, i128::from(rng.pick(&INTS))),
    };
    let mut other = tensor.clone();
    for (index, element) in other.bytes_mut().chunks_exact_mut(size).enumerate() {
        if is_hit(index, all) {
            element.copy_from_slice(&bytes);
        }
    }
    other
}
