//! Portable artifacts: MLIR bytecode, version 6, of operations of `vhlo` as StableHLO 1.0.0 has them.
//!
//! The format is told by the reader (`stablehlo/artifact.rs`), whose tables of codes and of properties
//! this uses. Strings, types, attributes and properties are stored once each.

use super::super::{
    entries::plain_element,
    module::{Attr, HloElement, HloModule, HloOp, HloRegion, TensorType, Type, ValueNumber},
    signatures,
};
use ferroflow_ir::DType;
use std::collections::HashMap;

const VERSION: u64 = 6;
const PRODUCER: &[u8] = b"StableHLO_v1.0.0";

/// Identifiers of sections.
mod section {
    pub(super) const STRINGS: u8 = 0;
    pub(super) const DIALECTS: u8 = 1;
    pub(super) const ENTRIES: u8 = 2;
    pub(super) const OFFSETS: u8 = 3;
    pub(super) const IR: u8 = 4;
    pub(super) const PROPERTIES: u8 = 8;
}

/// The parts of operations, as bits of a mask.
mod mask {
    pub(super) const ATTRS: u8 = 1;
    pub(super) const RESULTS: u8 = 2;
    pub(super) const OPERANDS: u8 = 4;
    pub(super) const REGIONS: u8 = 16;
    pub(super) const PROPERTIES: u8 = 64;
}

/// Attributes of the dialect `builtin`, which come before those of `vhlo`.
mod builtin {
    /// The location of everything: unknown.
    pub(super) const LOCATION: usize = 0;
    /// The attributes of calls of functions that XLA knows by name.
    pub(super) const CALL: usize = 3;
    pub(super) const COUNT: usize = 4;
}

/// Attributes that operations have besides their properties.
pub(super) const CALL_ATTRIBUTES: [&str; 2] = ["mhlo.attributes", "mhlo.version"];

/// The bytes of a module.
pub(super) fn module(module: &HloModule) -> Vec<u8> {
    let mut writer = Writer::default();
    let [builtin, vhlo] = ["builtin", "vhlo"].map(|name| writer.strings.index(name.into()));
    writer.ops.index("module".into());
    writer.properties.index(vec![1, 1]); // A module without a name.
    let calls = writer.call_attributes();
    let mut functions = HloRegion::default();
    let mut names: Vec<_> = module.functions.keys().collect();
    names.sort();
    let mut body = Vec::new();
    for name in names {
        let function = &module.functions[name];
        functions.ops.push(HloOp {
            name: "func".into(),
            attrs: function_attrs(name, &function.body, &function.results),
            operands: Vec::new(),
            results: Vec::new(),
            regions: Vec::new(),
        });
        body.push(&function.body);
    }
    let mut inner = Vec::new();
    varint(&mut inner, 1);
    varint(&mut inner, 0);
    varint(&mut inner, flagged(functions.ops.len(), false));
    for (op, body) in functions.ops.iter().zip(body) {
        writer.head(&mut inner, op, &HashMap::new(), 1);
        varint(&mut inner, flagged(1, true));
        let mut region = Vec::new();
        writer.region(&mut region, body, &mut HashMap::new(), 0);
        section(&mut inner, section::IR, &region);
    }
    let mut ir = Vec::new();
    varint(&mut ir, flagged(1, false));
    varint(&mut ir, 0);
    ir.push(mask::REGIONS | mask::PROPERTIES);
    varint(&mut ir, builtin::LOCATION as u64);
    varint(&mut ir, 0);
    varint(&mut ir, flagged(1, true));
    section(&mut ir, section::IR, &inner);
    writer.file(&ir, [builtin, vhlo], &calls)
}

fn function_attrs(name: &str, body: &HloRegion, results: &[Type]) -> super::block::HloAttrs {
    let args = body.args.iter().map(|(_, ty)| ty.clone()).collect();
    let empty = || Attr::Array(Vec::new());
    let text = |text: &str| Attr::String(bytes::Bytes::copy_from_slice(text.as_bytes()));
    super::block::attrs([
        ("arg_attrs", empty()),
        ("function_type", Attr::Type(Type::Function(args, results.to_vec()))),
        ("res_attrs", empty()),
        ("sym_name", text(name)),
        ("sym_visibility", text("public")),
    ])
}

/// Things with the numbers that they have in an artifact.
#[derive(Debug)]
struct Table<T> {
    list: Vec<T>,
    numbers: HashMap<T, usize>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { list: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Table<T> {
    fn index(&mut self, thing: T) -> usize {
        if let Some(&index) = self.numbers.get(&thing) {
            return index;
        }
        self.list.push(thing.clone());
        self.numbers.insert(thing, self.list.len() - 1);
        self.list.len() - 1
    }
}

#[derive(Default)]
struct Writer {
    strings: Table<Vec<u8>>,
    types: Table<Vec<u8>>,
    /// Those of `vhlo`.
    attrs: Table<Vec<u8>>,
    properties: Table<Vec<u8>>,
    ops: Table<String>,
}

impl Writer {
    /// The encoded attributes of `builtin`.
    fn call_attributes(&mut self) -> [Vec<u8>; builtin::COUNT] {
        let names = CALL_ATTRIBUTES.map(|name| {
            let mut entry = Vec::new();
            varint(&mut entry, 2);
            varint(&mut entry, self.strings.index(name.into()) as u64);
            entry
        });
        let values = [Attr::Dict(Vec::new()), Attr::Int(1)].map(|value| self.attr(&value, 0));
        let mut call = Vec::new();
        varint(&mut call, 1);
        varint(&mut call, 2);
        for (number, value) in values.into_iter().enumerate() {
            varint(&mut call, 1 + number as u64);
            varint(&mut call, value as u64);
        }
        let mut location = Vec::new();
        varint(&mut location, 15);
        let [first, second] = names;
        [location, first, second, call]
    }

    /// An operation but for its regions.
    fn head(
        &mut self,
        out: &mut Vec<u8>,
        op: &HloOp,
        scope: &HashMap<ValueNumber, usize>,
        regions: usize,
    ) {
        let full = format!("{}_v1", op.name);
        let names = signatures::attributes(&full);
        let has_call = op.attrs.iter().any(|(name, _)| CALL_ATTRIBUTES.contains(&&**name));
        let bit = |is_there: bool, bit: u8| if is_there { bit } else { 0 };
        varint(out, self.ops.index(full) as u64);
        out.push(
            bit(has_call, mask::ATTRS)
                | bit(!op.results.is_empty(), mask::RESULTS)
                | bit(!op.operands.is_empty(), mask::OPERANDS)
                | bit(regions > 0, mask::REGIONS)
                | bit(!names.is_empty(), mask::PROPERTIES),
        );
        varint(out, builtin::LOCATION as u64);
        if has_call {
            varint(out, builtin::CALL as u64);
        }
        if !names.is_empty() {
            let mut properties = Vec::new();
            for name in names {
                let attr = op.attr(name).expect("operations are made with all their attributes");
                let index = self.attr(attr, code_of_case(name));
                varint(&mut properties, index as u64);
            }
            varint(out, self.properties.index(properties) as u64);
        }
        if !op.results.is_empty() {
            varint(out, op.results.len() as u64);
            for (_, ty) in &op.results {
                varint(out, self.ty(ty) as u64);
            }
        }
        if !op.operands.is_empty() {
            varint(out, op.operands.len() as u64);
            for operand in &op.operands {
                varint(out, scope[operand] as u64);
            }
        }
    }

    /// A region, `base` values being around it.
    fn region(
        &mut self,
        out: &mut Vec<u8>,
        region: &HloRegion,
        scope: &mut HashMap<ValueNumber, usize>,
        base: usize,
    ) {
        let n_results: usize = region.ops.iter().map(|op| op.results.len()).sum();
        let inner = base + region.args.len() + n_results;
        varint(out, 1);
        varint(out, (inner - base) as u64);
        varint(out, flagged(region.ops.len(), !region.args.is_empty()));
        let mut next = base..;
        if !region.args.is_empty() {
            varint(out, region.args.len() as u64);
            for (number, ty) in &region.args {
                varint(out, flagged(self.ty(ty), false));
                scope.insert(*number, next.next().expect("there are more numbers"));
            }
            out.push(0); // No order of uses.
        }
        for op in &region.ops {
            self.head(out, op, scope, op.regions.len());
            if !op.regions.is_empty() {
                varint(out, flagged(op.regions.len(), false));
            }
            for (number, _) in &op.results {
                scope.insert(*number, next.next().expect("there are more numbers"));
            }
            for region in &op.regions {
                self.region(out, region, scope, inner);
            }
        }
    }

    /// The number of an attribute; cases of enumerations have the code of their enumeration.
    fn attr(&mut self, attr: &Attr, code: u64) -> usize {
        let mut entry = Vec::new();
        match attr {
            Attr::Array(list) => {
                varint(&mut entry, 1);
                varint(&mut entry, list.len() as u64);
                for one in list {
                    let index = self.attr(one, code);
                    varint(&mut entry, index as u64);
                }
            }
            Attr::Bool(value) => entry.extend([byte(2), byte(u8::from(*value))]),
            Attr::Case(value) => {
                varint(&mut entry, code);
                varint(&mut entry, *value);
            }
            Attr::Int(value) => {
                varint(&mut entry, 9);
                let ty = self.element(HloElement::Of(DType::I64));
                varint(&mut entry, ty as u64);
                signed(&mut entry, *value);
            }
            Attr::String(text) => {
                varint(&mut entry, 14);
                varint(&mut entry, self.strings.index(text.to_vec()) as u64);
            }
            Attr::Tensor(ty, data) => {
                varint(&mut entry, 15);
                varint(&mut entry, self.tensor(ty) as u64);
                let data = stored(ty, data);
                varint(&mut entry, data.len() as u64);
                entry.extend(data);
            }
            Attr::Type(ty) => {
                varint(&mut entry, 17);
                varint(&mut entry, self.ty(ty) as u64);
            }
            Attr::Dict(_) | Attr::Float(_) | Attr::Other => {
                varint(&mut entry, 6);
                varint(&mut entry, 0);
            }
        }
        builtin::COUNT + self.attrs.index(entry)
    }

    fn ty(&mut self, ty: &Type) -> usize {
        match ty {
            Type::Tensor(ty) => self.tensor(ty),
            Type::Element(element) => self.element(*element),
            Type::Function(args, results) => {
                let mut entry = Vec::new();
                varint(&mut entry, 8);
                for list in [args, results] {
                    varint(&mut entry, list.len() as u64);
                    for ty in list {
                        varint(&mut entry, self.ty(ty) as u64);
                    }
                }
                self.types.index(entry)
            }
            Type::Token | Type::Tuple(_) | Type::Other(_) => {
                unreachable!("modules that are made here have tensors only")
            }
        }
    }

    fn tensor(&mut self, ty: &TensorType) -> usize {
        let element = self.element(ty.element);
        let mut entry = Vec::new();
        varint(&mut entry, 20);
        varint(&mut entry, ty.dims.len() as u64);
        ty.dims.iter().for_each(|dim| signed(&mut entry, dim.map_or(i64::MIN, |dim| dim as i64)));
        varint(&mut entry, element as u64);
        self.types.index(entry)
    }

    fn element(&mut self, element: HloElement) -> usize {
        let part = match element {
            HloElement::Of(DType::C64) => Some(DType::F32),
            HloElement::Of(DType::C128) => Some(DType::F64),
            HloElement::Of(_) | HloElement::Unsupported(_) => None,
        };
        let mut entry = Vec::new();
        match part {
            Some(part) => {
                let part = self.element(HloElement::Of(part));
                varint(&mut entry, 1);
                varint(&mut entry, part as u64);
            }
            None => {
                // Of the two codes of 64-bit integers the greater is theirs, the other that of indices.
                let code = (0..64).rev().find(|&code| plain_element(code) == Some(element));
                varint(&mut entry, code.expect("elements that are made here have a code"));
            }
        }
        self.types.index(entry)
    }

    fn file(mut self, ir: &[u8], dialects: [usize; 2], builtin: &[Vec<u8>]) -> Vec<u8> {
        let mut names = Vec::new();
        varint(&mut names, 2);
        for dialect in dialects {
            varint(&mut names, flagged(dialect, false));
        }
        varint(&mut names, self.ops.list.len() as u64);
        let ops = std::mem::take(&mut self.ops.list);
        for (dialect, ops) in [&ops[..1], &ops[1..]].into_iter().enumerate() {
            varint(&mut names, dialect as u64);
            varint(&mut names, ops.len() as u64);
            for op in ops {
                varint(&mut names, flagged(self.strings.index(op.clone().into_bytes()), true));
            }
        }
        let (mut entries, mut offsets) = (Vec::new(), Vec::new());
        varint(&mut offsets, (builtin.len() + self.attrs.list.len()) as u64);
        varint(&mut offsets, self.types.list.len() as u64);
        for (dialect, group) in [(0, builtin), (1, &self.attrs.list), (1, &self.types.list)] {
            varint(&mut offsets, dialect);
            varint(&mut offsets, group.len() as u64);
            for entry in group {
                varint(&mut offsets, flagged(entry.len(), true));
                entries.extend(entry);
            }
        }
        let mut strings = Vec::new();
        varint(&mut strings, self.strings.list.len() as u64);
        self.strings.list.iter().rev().for_each(|text| varint(&mut strings, text.len() as u64 + 1));
        for text in &self.strings.list {
            strings.extend(text);
            strings.push(0);
        }
        let mut properties = Vec::new();
        varint(&mut properties, self.properties.list.len() as u64);
        for own in &self.properties.list {
            varint(&mut properties, own.len() as u64);
            properties.extend(own);
        }
        let mut out = b"ML\xefR".to_vec();
        varint(&mut out, VERSION);
        out.extend(PRODUCER);
        out.push(0);
        for (id, data) in [
            (section::DIALECTS, &names[..]),
            (section::OFFSETS, &offsets),
            (section::ENTRIES, &entries),
            (section::IR, ir),
            (section::STRINGS, &strings),
            (section::PROPERTIES, &properties),
        ] {
            section(&mut out, id, data);
        }
        out
    }
}

/// The code of the enumeration that an attribute has a case of.
fn code_of_case(attr: &str) -> u64 {
    match attr {
        "comparison_direction" => 3,
        "compare_type" => 4,
        "api_version" => 5,
        _ => 11, // Precisions.
    }
}

/// The elements of a constant as artifacts have them: bools as bits, or one byte if they are equal.
fn stored(ty: &TensorType, data: &[u8]) -> Vec<u8> {
    if ty.element != HloElement::Of(DType::Bool) {
        return data.to_vec();
    }
    let is_equal = data.iter().all(|byte| byte == &data[0]);
    if !data.is_empty() && is_equal {
        return vec![if data[0] == 0 { 0 } else { 0xff }];
    }
    let bits =
        |chunk: &[u8]| chunk.iter().rev().fold(0, |bits, &bit| bits << 1 | u8::from(bit != 0));
    data.chunks(8).map(bits).collect()
}

/// A count with a flag below it.
fn flagged(count: usize, flag: bool) -> u64 {
    (count as u64) << 1 | u64::from(flag)
}

/// A small number in one byte.
fn byte(value: u8) -> u8 {
    value << 1 | 1
}

/// An unsigned integer: as many zeros below the lowest set bit of the first byte as bytes that come after.
fn varint(out: &mut Vec<u8>, value: u64) {
    for extra in 0..8u32 {
        if value >> (7 * (extra + 1)) == 0 {
            let bits = (value << (extra + 1) | 1 << extra).to_le_bytes();
            out.extend(&bits[..=extra as usize]);
            return;
        }
    }
    out.push(0);
    out.extend(value.to_le_bytes());
}

fn signed(out: &mut Vec<u8>, value: i64) {
    varint(out, (value << 1 ^ value >> 63) as u64);
}

fn section(out: &mut Vec<u8>, id: u8, data: &[u8]) {
    out.push(id);
    varint(out, data.len() as u64);
    out.extend(data);
}
