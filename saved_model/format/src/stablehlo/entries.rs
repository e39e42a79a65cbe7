//! Attributes and types of an artifact, decoded when they are asked for.
//!
//! The codes are those of `stablehlo/dialect/VhloBytecode.cpp` (dialect `vhlo`) and of
//! `mlir/include/mlir/IR/BuiltinDialectBytecode.td` (dialect `builtin`). Attributes and types
//! refer to one another by number; a chain of them that is longer than [`DEPTH`] is refused, and
//! with it every cycle.

use super::{
    cursor::Cursor,
    module::{Attr, HloElement, TensorType, Type},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error, Result};
use std::{cell::RefCell, collections::HashMap, sync::Arc};

/// Greatest length of a chain of attributes and types.
const DEPTH: usize = 64;

/// The dialects whose encodings are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BytecodeDialect {
    Builtin,
    Vhlo,
    /// `sdy`: annotations for programs on several devices.
    Sharding,
    Other,
}

/// An attribute or type as it is stored.
#[derive(Debug)]
struct Stored<'a> {
    dialect: BytecodeDialect,
    /// Whether the dialect's own encoding is used, rather than text.
    own_encoding: bool,
    data: Cursor<'a>,
}

/// The attributes and types of an artifact.
#[derive(Debug)]
pub(super) struct BytecodeEntries<'a> {
    strings: &'a [&'a [u8]],
    attrs: Vec<Stored<'a>>,
    types: Vec<Stored<'a>>,
    found_attrs: RefCell<HashMap<usize, Arc<Attr>>>,
    found_types: RefCell<HashMap<usize, Type>>,
}

impl<'a> BytecodeEntries<'a> {
    /// Reads the section of offsets, which cuts `data` into entries.
    pub(super) fn read(
        strings: &'a [&'a [u8]],
        dialects: &[BytecodeDialect],
        mut data: Cursor<'a>,
        mut offsets: Cursor<'a>,
    ) -> Result<BytecodeEntries<'a>> {
        let (n_attrs, n_types) = (offsets.count()?, offsets.count()?);
        let mut attrs = Vec::with_capacity(n_attrs);
        let mut types = Vec::with_capacity(n_types);
        for (list, count) in [(&mut attrs, n_attrs), (&mut types, n_types)] {
            while list.len() < count {
                let dialect = dialects[offsets.index(dialects.len())?];
                let size = offsets.count()?;
                if size == 0 || size > count - list.len() {
                    return Err(offsets.damaged("groups of attributes have as many as are counted"));
                }
                for _ in 0..size {
                    let (length, own_encoding) = offsets.flagged()?;
                    let length = data.check_count(length)?;
                    list.push(Stored { dialect, own_encoding, data: data.part(length)? });
                }
            }
        }
        let (found_attrs, found_types) = Default::default();
        Ok(BytecodeEntries { strings, attrs, types, found_attrs, found_types })
    }

    /// The attribute whose number comes next.
    pub(super) fn next_attr(&self, cursor: &mut Cursor<'_>) -> Result<Arc<Attr>> {
        self.attr_below(cursor, DEPTH)
    }

    /// The type whose number comes next.
    pub(super) fn next_type(&self, cursor: &mut Cursor<'_>) -> Result<Type> {
        self.type_below(cursor, DEPTH)
    }

    /// The type of a number.
    pub(super) fn type_at(&self, index: usize) -> Result<Type> {
        self.resolve_type(index, DEPTH)
    }

    /// The number of types.
    pub(super) fn n_types(&self) -> usize {
        self.types.len()
    }

    /// Passes the number of an attribute.
    pub(super) fn skip_attr(&self, cursor: &mut Cursor<'_>) -> Result<()> {
        cursor.index(self.attrs.len()).map(drop)
    }

    fn attr_below(&self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Arc<Attr>> {
        let index = cursor.index(self.attrs.len())?;
        if let Some(found) = self.found_attrs.borrow().get(&index) {
            return Ok(found.clone());
        }
        let stored = &self.attrs[index];
        let attr = Decoder { entries: self, cursor: stored.data.clone(), depth: deeper(depth)? };
        let attr = Arc::new(match (stored.own_encoding, stored.dialect) {
            (true, BytecodeDialect::Vhlo) => attr.vhlo_attr()?,
            (true, BytecodeDialect::Builtin) => attr.builtin_attr()?,
            _ => Attr::Other,
        });
        self.found_attrs.borrow_mut().insert(index, attr.clone());
        Ok(attr)
    }

    fn type_below(&self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Type> {
        let index = cursor.index(self.types.len())?;
        self.resolve_type(index, depth)
    }

    fn resolve_type(&self, index: usize, depth: usize) -> Result<Type> {
        if let Some(found) = self.found_types.borrow().get(&index) {
            return Ok(found.clone());
        }
        let stored = &self.types[index];
        let decoder = Decoder { entries: self, cursor: stored.data.clone(), depth: deeper(depth)? };
        let found = match (stored.own_encoding, stored.dialect) {
            (true, BytecodeDialect::Vhlo) => decoder.vhlo_type()?,
            _ => Type::Other("a type of another dialect"),
        };
        self.found_types.borrow_mut().insert(index, found.clone());
        Ok(found)
    }
}

fn deeper(depth: usize) -> Result<usize> {
    depth.checked_sub(1).ok_or_else(|| Error::Limit {
        what: "the nesting of attributes in a StableHLO artifact".into(),
        needed: "more levels".into(),
        limit: DEPTH as u64,
    })
}

/// Decoder of an entry.
struct Decoder<'e, 'a> {
    entries: &'e BytecodeEntries<'a>,
    cursor: Cursor<'a>,
    depth: usize,
}

impl Decoder<'_, '_> {
    fn attr(&mut self) -> Result<Arc<Attr>> {
        self.entries.attr_below(&mut self.cursor, self.depth)
    }

    fn ty(&mut self) -> Result<Type> {
        self.entries.type_below(&mut self.cursor, self.depth)
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = self.cursor.count()?;
        (0..count).map(|_| one(self)).collect()
    }

    fn string(&mut self) -> Result<Bytes> {
        let index = self.cursor.index(self.entries.strings.len())?;
        Ok(Bytes::copy_from_slice(self.entries.strings[index]))
    }

    /// The entries of a dictionary.
    fn pairs(&mut self) -> Result<Attr> {
        let pairs = self.list(|decoder| Ok((decoder.attr()?, decoder.attr()?)))?;
        Ok(Attr::Dict(pairs))
    }

    fn builtin_attr(mut self) -> Result<Attr> {
        Ok(match self.cursor.varint()? {
            0 => Attr::Array(self.list(Decoder::attr)?),
            1 => self.pairs()?,
            2 | 3 => Attr::String(self.string()?),
            _ => Attr::Other,
        })
    }

    fn vhlo_attr(mut self) -> Result<Attr> {
        Ok(match self.cursor.varint()? {
            1 => Attr::Array(self.list(Decoder::attr)?),
            2 => Attr::Bool(match self.cursor.varint()? {
                0 => false,
                1 => true,
                _ => return Err(self.cursor.damaged("a flag is 0 or 1")),
            }),
            3 | 4 | 5 | 7 | 11 | 12 | 13 | 16 | 19 => Attr::Case(self.cursor.varint()?),
            6 => self.pairs()?,
            8 => self.float()?,
            9 => self.integer()?,
            14 => Attr::String(self.string()?),
            15 => self.tensor()?,
            17 => Attr::Type(self.ty()?),
            18 => {
                self.list(|decoder| decoder.cursor.signed())?;
                Attr::Other
            }
            10 | 20..=25 => Attr::Other,
            code => {
                let rule = format!("attributes of the dialect vhlo have no code {code}");
                return Err(self.cursor.damaged(rule));
            }
        })
    }

    fn float(&mut self) -> Result<Attr> {
        let Type::Element(element) = self.ty()? else {
            return Err(self.cursor.damaged("a number is of the type of an element"));
        };
        let HloElement::Of(dtype) = element else { return Ok(Attr::Other) };
        let bits = match dtype.size() {
            Some(1) => i64::from(self.cursor.byte()?),
            _ => self.cursor.signed()?,
        };
        Ok(match dtype {
            DType::F64 => Attr::Float(f64::from_bits(bits as u64)),
            DType::F32 => Attr::Float(f64::from(f32::from_bits(bits as u32))),
            _ => Attr::Other,
        })
    }

    fn integer(&mut self) -> Result<Attr> {
        let (bits, signed) = match self.ty()? {
            Type::Element(HloElement::Of(dtype)) if dtype.is_integer() => {
                let whole = || dtype.size().unwrap_or(8) as u32 * 8;
                (dtype.narrow_bits().unwrap_or_else(whole), dtype.is_signed_integer())
            }
            Type::Element(HloElement::Of(DType::Bool)) => (1, false),
            _ => return Err(self.cursor.damaged("an integer is of an integer type")),
        };
        let value = match bits {
            ..=8 => i64::from(self.cursor.byte()?),
            _ => self.cursor.signed()?,
        };
        let shift = 64 - bits;
        let value = match signed {
            true => value << shift >> shift,
            false => ((value as u64) << shift >> shift) as i64,
        };
        Ok(Attr::Int(value))
    }

    fn tensor(&mut self) -> Result<Attr> {
        let Type::Tensor(ty) = self.ty()? else {
            return Err(self.cursor.damaged("a tensor is of the type of one"));
        };
        let length = self.cursor.count()?;
        Ok(Attr::Tensor(ty, Bytes::copy_from_slice(self.cursor.take(length)?)))
    }

    fn vhlo_type(mut self) -> Result<Type> {
        let code = self.cursor.varint()?;
        if let Some(element) = plain_element(code) {
            return Ok(Type::Element(element));
        }
        Ok(match code {
            1 => Type::Element(match self.ty()? {
                Type::Element(HloElement::Of(DType::F32)) => HloElement::Of(DType::C64),
                Type::Element(HloElement::Of(DType::F64)) => HloElement::Of(DType::C128),
                _ => HloElement::Unsupported("complex numbers of this type"),
            }),
            8 => {
                let inputs = self.list(Decoder::ty)?;
                Type::Function(inputs, self.list(Decoder::ty)?)
            }
            20 => self.ranked()?,
            21 => {
                self.attr()?;
                self.ranked()?
            }
            22 => Type::Token,
            23 => Type::Tuple(self.list(Decoder::ty)?),
            24 | 30 => Type::Element(HloElement::Unsupported("quantized")),
            25 => Type::Other("tensors of unknown rank"),
            26 => Type::Other("witnesses"),
            33 => Type::Other("none"),
            41 => Type::Other("buffers"),
            42 => Type::Other("futures"),
            _ => {
                let rule = format!("types of the dialect vhlo have no code {code}");
                return Err(self.cursor.damaged(rule));
            }
        })
    }

    fn ranked(&mut self) -> Result<Type> {
        let dims = self.list(|decoder| {
            let size = decoder.cursor.signed()?;
            match usize::try_from(size) {
                Ok(size) => Ok(Some(size)),
                Err(_) if size == i64::MIN || size == -1 => Ok(None),
                Err(_) => Err(decoder.cursor.damaged("a size is not negative")),
            }
        })?;
        if dims.len() > MAX_RANK {
            return Err(self.cursor.damaged("a tensor has no more than 254 dimensions"));
        }
        match self.ty()? {
            Type::Element(element) => Ok(Type::Tensor(TensorType { dims, element })),
            _ => Err(self.cursor.damaged("a tensor has elements")),
        }
    }
}

/// As many dimensions as TensorFlow's shapes have.
const MAX_RANK: usize = 254;

/// The type of an element whose encoding is its code.
pub(super) fn plain_element(code: u64) -> Option<HloElement> {
    Some(HloElement::Of(match code {
        0 => DType::Bool,
        2 => DType::BF16,
        3 => DType::F16,
        4 => DType::F32,
        5 => DType::F64,
        6 => DType::F8E4M3FN,
        7 => DType::F8E5M2,
        9 => DType::I64, // The type `index`.
        10 => DType::I4,
        11 => DType::I8,
        12 => DType::I16,
        13 => DType::I32,
        14 => DType::I64,
        15 => DType::U4,
        16 => DType::U8,
        17 => DType::U16,
        18 => DType::U32,
        19 => DType::U64,
        27 => DType::F8E4M3FNUZ,
        28 => DType::F8E5M2FNUZ,
        29 => DType::F8E4M3B11FNUZ,
        31 => DType::I2,
        32 => DType::U2,
        37 => DType::F4E2M1FN,
        34 => return Some(HloElement::Unsupported("tf32")),
        35 => return Some(HloElement::Unsupported("f8E4M3")),
        36 => return Some(HloElement::Unsupported("f8E3M4")),
        38 => return Some(HloElement::Unsupported("f6E2M3FN")),
        39 => return Some(HloElement::Unsupported("f6E3M2FN")),
        40 => return Some(HloElement::Unsupported("f8E8M0FNU")),
        _ => return None,
    }))
}
