//! Portable artifacts of StableHLO: MLIR bytecode with operations of the dialect `vhlo`.
//!
//! The format is that of MLIR's `docs/BytecodeFormat.md`, in its versions 0 to 6: a magic number,
//! a version, the name of the producer, and sections for strings, dialects with the names of
//! operations, attributes and types, properties, and the operations. A section with operations of
//! a function stands for itself: values are numbered from its start.

use super::{
    cursor::{Cursor, Section},
    entries::{BytecodeDialect, BytecodeEntries},
    module::{Attr, HloFunction, HloModule, HloOp, HloRegion, Type, ValueNumber},
    signatures,
};
use ferroflow_ir::{Error, Result};
use std::sync::Arc;

const MAGIC: &[u8] = b"ML\xefR";

/// The newest version of the format that is known here.
const NEWEST: u64 = 6;

/// Greatest depth of regions.
const DEPTH: usize = 100;

/// The parts of operations, as bits of a mask.
mod mask {
    pub(super) const ATTRS: u8 = 1;
    pub(super) const RESULTS: u8 = 2;
    pub(super) const OPERANDS: u8 = 4;
    pub(super) const SUCCESSORS: u8 = 8;
    pub(super) const REGIONS: u8 = 16;
    pub(super) const USE_ORDERS: u8 = 32;
    pub(super) const PROPERTIES: u8 = 64;
}

/// Reads a portable artifact.
///
/// # Errors
///
/// [`Error::Malformed`] with the byte, for anything that is not such an artifact;
/// [`Error::Limit`] for what nests too deep.
pub(super) fn read(bytes: &[u8]) -> Result<HloModule> {
    let mut cursor = Cursor::new(bytes);
    if cursor.take(MAGIC.len())? != MAGIC {
        return Err(Cursor::new(bytes).damaged("it begins with the magic number of MLIR"));
    }
    let version = cursor.varint()?;
    if version > NEWEST {
        let what = format!("version {version} of MLIR bytecode").into();
        return Err(Error::Unsupported { op: "XlaCallModule".into(), what });
    }
    cursor.terminated()?;
    let sections = Sections::read(cursor)?;
    let strings = strings(sections.get(0)?)?;
    let (dialects, op_names) = dialects(sections.get(1)?, &strings, version)?;
    let entries = BytecodeEntries::read(&strings, &dialects, sections.get(2)?, sections.get(3)?)?;
    let properties = match sections.find(8) {
        Some(section) => properties(section)?,
        None => Vec::new(),
    };
    let file = File { version, op_names, entries, properties };
    Reader { file: &file, module: HloModule::default(), scopes: Vec::new() }
        .module(sections.get(4)?)
}

/// The sections of an artifact, by number.
struct Sections<'a>(Vec<Section<'a>>);

impl<'a> Sections<'a> {
    fn read(mut cursor: Cursor<'a>) -> Result<Sections<'a>> {
        let mut sections: Vec<Section<'a>> = Vec::new();
        while !cursor.is_empty() {
            let section = cursor.section()?;
            if sections.iter().any(|other| other.id == section.id) {
                return Err(cursor.damaged("each section occurs once"));
            }
            sections.push(section);
        }
        Ok(Sections(sections))
    }

    fn find(&self, id: u8) -> Option<Cursor<'a>> {
        self.0.iter().find(|section| section.id == id).map(|section| section.data.clone())
    }

    fn get(&self, id: u8) -> Result<Cursor<'a>> {
        self.find(id).ok_or_else(|| Cursor::new(&[]).damaged(format!("it has a section {id}")))
    }
}

/// The strings: their lengths, last one first, then their bytes, each with a zero at its end.
fn strings(mut cursor: Cursor<'_>) -> Result<Vec<&[u8]>> {
    let count = cursor.count()?;
    let lengths: Vec<u64> = (0..count).map(|_| cursor.varint()).collect::<Result<_>>()?;
    lengths
        .iter()
        .rev()
        .map(|&length| {
            let length = cursor.check_count(length)?;
            Ok(cursor.take(length)?.strip_suffix(&[0]).unwrap_or_default())
        })
        .collect()
}

/// The name of an operation, with the version as vhlo has it.
#[derive(Debug, Clone)]
struct OpName {
    full: Arc<str>,
    /// Without the version, for operations of vhlo.
    plain: Option<Arc<str>>,
    dialect: BytecodeDialect,
}

fn dialects(
    mut cursor: Cursor<'_>,
    strings: &[&[u8]],
    version: u64,
) -> Result<(Vec<BytecodeDialect>, Vec<OpName>)> {
    let count = cursor.count()?;
    let mut dialects = Vec::with_capacity(count);
    for _ in 0..count {
        let (name, versioned) = match version {
            0 => (cursor.varint()?, false),
            _ => cursor.flagged()?,
        };
        if versioned {
            cursor.section()?;
        }
        let name = cursor.check_index(name, strings.len())?;
        dialects.push(match strings[name] {
            b"builtin" => BytecodeDialect::Builtin,
            b"vhlo" => BytecodeDialect::Vhlo,
            b"sdy" => BytecodeDialect::Sharding,
            _ => BytecodeDialect::Other,
        });
    }
    let mut names = Vec::new();
    if version >= 4 {
        cursor.varint()?;
    }
    while !cursor.is_empty() {
        let dialect = dialects[cursor.index(dialects.len())?];
        for _ in 0..cursor.count()? {
            let name = if version >= 5 { cursor.flagged()?.0 } else { cursor.varint()? };
            let name = cursor.check_index(name, strings.len())?;
            names.push(op_name(dialect, strings[name]));
        }
    }
    Ok((dialects, names))
}

fn op_name(dialect: BytecodeDialect, name: &[u8]) -> OpName {
    let full: Arc<str> = String::from_utf8_lossy(name).into();
    let is_version = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let plain = match full.rsplit_once("_v") {
        Some((plain, version)) if is_version(version) => plain.into(),
        _ => full.clone(),
    };
    OpName { full, plain: (dialect == BytecodeDialect::Vhlo).then_some(plain), dialect }
}

/// The properties: a count, then the bytes of each with their length before them.
fn properties(mut cursor: Cursor<'_>) -> Result<Vec<Cursor<'_>>> {
    let count = cursor.count()?;
    (0..count)
        .map(|_| {
            let length = cursor.count()?;
            cursor.part(length)
        })
        .collect()
}

/// Tables that operations refer to.
struct File<'a> {
    version: u64,
    op_names: Vec<OpName>,
    entries: BytecodeEntries<'a>,
    properties: Vec<Cursor<'a>>,
}

/// The values of an isolated region: their numbers, `None` before they are defined.
type Scope = Vec<Option<ValueNumber>>;

struct Reader<'f, 'a> {
    file: &'f File<'a>,
    module: HloModule,
    scopes: Vec<Scope>,
}

/// An operation with the parts that come after it.
struct Head<'a> {
    op: HloOp,
    full_name: Arc<str>,
    dialect: BytecodeDialect,
    /// Number of regions, and whether they are in a section of their own.
    regions: usize,
    isolated: bool,
    properties: Option<Cursor<'a>>,
}

/// Where the values of a region are numbered from on.
struct Numbering {
    next: usize,
    end: usize,
}

impl<'a> Reader<'_, 'a> {
    /// The block around all: one operation, the module.
    fn module(mut self, mut cursor: Cursor<'a>) -> Result<HloModule> {
        self.scopes.push(Scope::new());
        let mut numbering = Numbering { next: 0, end: 0 };
        let (n_ops, has_args) = cursor.flagged()?;
        if n_ops != 1 || has_args {
            return Err(cursor.damaged("a module is all that it holds"));
        }
        let head = self.head(&mut cursor, &mut numbering)?;
        if head.dialect == BytecodeDialect::Vhlo || &*head.full_name != "module" {
            return Err(cursor.damaged("it holds a module"));
        }
        let regions = self.regions(&mut cursor, head.regions, head.isolated, DEPTH)?;
        let mut regions = regions.into_iter();
        let (Some(body), None) = (regions.next(), regions.next()) else {
            return Err(cursor.damaged("a module has one region"));
        };
        for function in body.ops {
            self.function(function, &cursor)?;
        }
        Ok(self.module)
    }

    fn function(&mut self, mut op: HloOp, cursor: &Cursor<'_>) -> Result<()> {
        if &*op.name != "func" {
            return Err(cursor.damaged("a module has functions"));
        }
        let name = op.attr("sym_name").and_then(Attr::text);
        let name: Arc<str> = name.ok_or_else(|| cursor.damaged("a function has a name"))?.into();
        let Some(Attr::Type(Type::Function(args, results))) = op.attr("function_type") else {
            return Err(cursor.damaged("a function has a type"));
        };
        let (args, results) = (args.clone(), results.clone());
        let Some(body) = op.regions.pop().filter(|_| op.regions.is_empty()) else {
            return Err(cursor.damaged("a function has one region"));
        };
        if !body.args.iter().map(|(_, ty)| ty).eq(&args) {
            return Err(cursor.damaged("a function has the arguments that its type says"));
        }
        let replaced = self.module.functions.insert(name, HloFunction { body, results });
        match replaced {
            None => Ok(()),
            Some(_) => Err(cursor.damaged("functions have names of their own")),
        }
    }

    fn head(&mut self, cursor: &mut Cursor<'a>, numbering: &mut Numbering) -> Result<Head<'a>> {
        let file = self.file;
        let name = file.op_names[cursor.index(file.op_names.len())?].clone();
        let parts = cursor.byte()?;
        file.entries.skip_attr(cursor)?;
        let mut attrs = Vec::new();
        if parts & mask::ATTRS != 0 {
            attrs = named(&*file.entries.next_attr(cursor)?);
        }
        let mut properties = None;
        if parts & mask::PROPERTIES != 0 {
            let index = cursor.index(file.properties.len())?;
            properties = Some(file.properties[index].clone());
        }
        let results = match parts & mask::RESULTS {
            0 => Vec::new(),
            _ => {
                let count = cursor.count()?;
                let types = (0..count).map(|_| file.entries.next_type(cursor));
                types.collect::<Result<Vec<Type>>>()?
            }
        };
        let mut operands = Vec::new();
        if parts & mask::OPERANDS != 0 {
            let count = cursor.count()?;
            operands = (0..count).map(|_| self.used(cursor)).collect::<Result<_>>()?;
        }
        if parts & mask::SUCCESSORS != 0 {
            return Err(cursor.damaged("an operation of StableHLO has no successors"));
        }
        if parts & mask::USE_ORDERS != 0 {
            skip_use_orders(cursor, results.len())?;
        }
        let (regions, isolated) = match parts & mask::REGIONS {
            0 => (0, false),
            _ => cursor.flagged()?,
        };
        let regions = cursor.check_count(regions)?;
        let results = results
            .into_iter()
            .map(|ty| Ok((self.define(cursor, numbering)?, ty)))
            .collect::<Result<_>>()?;
        let op = HloOp {
            name: name.plain.unwrap_or_else(|| name.full.clone()),
            attrs,
            operands,
            results,
            regions: Vec::new(),
        };
        Ok(Head { op, full_name: name.full, dialect: name.dialect, regions, isolated, properties })
    }

    /// A value that is used.
    fn used(&self, cursor: &mut Cursor<'_>) -> Result<ValueNumber> {
        let scope = self.scopes.last().expect("operations are in a scope");
        let index = cursor.index(scope.len())?;
        scope[index].ok_or_else(|| cursor.damaged("a value is defined before it is used"))
    }

    /// The next value of a region.
    fn define(&mut self, cursor: &Cursor<'_>, numbering: &mut Numbering) -> Result<ValueNumber> {
        if numbering.next == numbering.end {
            return Err(cursor.damaged("a region has as many values as it counts"));
        }
        let number = u32::try_from(self.module.n_values).map(ValueNumber);
        let number = number.map_err(|_| cursor.damaged("there are no more than 2^32 values"))?;
        self.module.n_values += 1;
        let scope = self.scopes.last_mut().expect("operations are in a scope");
        scope[numbering.next] = Some(number);
        numbering.next += 1;
        Ok(number)
    }

    fn regions(
        &mut self,
        cursor: &mut Cursor<'a>,
        count: usize,
        isolated: bool,
        depth: usize,
    ) -> Result<Vec<HloRegion>> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Error::Limit {
                what: "the nesting of regions in a StableHLO artifact".into(),
                needed: "more levels".into(),
                limit: DEPTH as u64,
            });
        };
        if !isolated {
            return (0..count).map(|_| self.region(cursor, depth)).collect();
        }
        self.scopes.push(Scope::new());
        let regions = if self.file.version >= 2 {
            let mut data = cursor.section()?.data;
            (0..count).map(|_| self.region(&mut data, depth)).collect()
        } else {
            (0..count).map(|_| self.region(cursor, depth)).collect()
        };
        self.scopes.pop();
        regions
    }

    /// A region of one block.
    fn region(&mut self, cursor: &mut Cursor<'a>, depth: usize) -> Result<HloRegion> {
        match cursor.varint()? {
            0 => return Ok(HloRegion::default()),
            1 => {}
            _ => return Err(cursor.damaged("a region of StableHLO has one block")),
        }
        let n_values = cursor.count()?;
        let scope = self.scopes.last_mut().expect("operations are in a scope");
        let start = scope.len();
        scope.resize(start + n_values, None);
        let mut numbering = Numbering { next: start, end: start + n_values };
        let block = self.block(cursor, &mut numbering, depth)?;
        self.scopes.last_mut().expect("operations are in a scope").truncate(start);
        Ok(block)
    }

    fn block(
        &mut self,
        cursor: &mut Cursor<'a>,
        numbering: &mut Numbering,
        depth: usize,
    ) -> Result<HloRegion> {
        let (n_ops, has_args) = cursor.flagged()?;
        let args = if has_args { self.block_args(cursor, numbering)? } else { Vec::new() };
        let n_ops = cursor.check_count(n_ops)?;
        let mut ops = Vec::with_capacity(n_ops);
        for _ in 0..n_ops {
            let mut head = self.head(cursor, numbering)?;
            match (head.dialect, &*head.full_name) {
                _ if head.regions > 0 => {}
                (BytecodeDialect::Sharding, "mesh") => continue,
                // On one device these are their operands.
                (
                    BytecodeDialect::Sharding,
                    "sharding_constraint" | "reshard" | "propagation_barrier",
                )
                | (BytecodeDialect::Builtin, "unrealized_conversion_cast") => {
                    head.op.name = "optimization_barrier".into();
                    head.op.attrs.clear();
                    ops.push(head.op);
                    continue;
                }
                _ => {}
            }
            if head.dialect != BytecodeDialect::Vhlo {
                let what = format!("the operation `{}` of another dialect", head.full_name).into();
                return Err(Error::Unsupported { op: "XlaCallModule".into(), what });
            }
            let mut op = head.op;
            if let Some(properties) = head.properties {
                op.attrs.extend(self.properties(&head.full_name, properties)?);
            }
            op.regions = self.regions(cursor, head.regions, head.isolated, depth)?;
            ops.push(op);
        }
        Ok(HloRegion { args, ops })
    }

    fn block_args(
        &mut self,
        cursor: &mut Cursor<'a>,
        numbering: &mut Numbering,
    ) -> Result<Vec<(ValueNumber, Type)>> {
        let entries = &self.file.entries;
        let count = cursor.count()?;
        let mut args = Vec::with_capacity(count);
        for _ in 0..count {
            let (ty, has_location) = match self.file.version {
                ..=3 => (cursor.varint()?, true),
                _ => cursor.flagged()?,
            };
            let ty = entries.type_at(cursor.check_index(ty, entries.n_types())?)?;
            if has_location {
                entries.skip_attr(cursor)?;
            }
            args.push((self.define(cursor, numbering)?, ty));
        }
        if self.file.version >= 3 && cursor.byte()? != 0 {
            skip_use_orders(cursor, args.len())?;
        }
        Ok(args)
    }

    /// The attributes that properties hold.
    fn properties(&self, op: &str, mut cursor: Cursor<'a>) -> Result<Vec<(Arc<str>, Arc<Attr>)>> {
        let names = signatures::attributes(op).iter();
        let attrs = names
            .map(|&name| Ok((name.into(), self.file.entries.next_attr(&mut cursor)?)))
            .collect::<Result<_>>()?;
        match cursor.is_empty() {
            true => Ok(attrs),
            false => Err(cursor.damaged(format!("{op} has no more properties"))),
        }
    }
}

/// The entries of a dictionary by name.
fn named(attr: &Attr) -> Vec<(Arc<str>, Arc<Attr>)> {
    let Attr::Dict(pairs) = attr else { return Vec::new() };
    let named = pairs.iter().filter_map(|(name, value)| Some((name.text()?.into(), value.clone())));
    named.collect()
}

/// Passes the order in which results are used, which has no meaning.
fn skip_use_orders(cursor: &mut Cursor<'_>, n_values: usize) -> Result<()> {
    let count = if n_values > 1 { cursor.count()? } else { 1 };
    for _ in 0..count {
        if n_values > 1 {
            cursor.varint()?;
        }
        let (n_indices, _) = cursor.flagged()?;
        for _ in 0..cursor.check_count(n_indices)? {
            cursor.varint()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
