//! The interface of every op that TensorFlow 2.21 and tensorflow_text 2.21 have, and of those that
//! TensorFlow Decision Forests 1.12 has for inference, as text.
//!
//! `interfaces.txt`, `interfaces_text.txt` and `interfaces_forest.txt` hold one line per op, sorted by
//! name: arguments, results, attributes with allowed values, minimum and default. With it a model can be
//! loaded, shown and saved whether or not its ops can run here, and records can be checked against the
//! definitions of these libraries.
//!
//! ```text
//! LeakyRelu(features: T) -> (activations: T) [alpha: float = 0.2, T: type{float16,…} = float32]
//! ```
//!
//! An argument's type is an attribute name, a dtype, `N*type` for a list of one dtype, `[types]`
//! for a list of several, with `&` before a reference to a 1.x variable. Behind it are flags: `stateful`,
//! and what the op does outside of the model ([`OutsideAccess`]).

use crate::{
    dtype::DType,
    op::{
        Allowed, ArgDef, ArgKind, ArgType, AttrDef, AttrDefault, AttrKind, Effect, OpDef,
        OutsideAccess,
    },
};
use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock, PoisonError},
};

/// The lines of a library's ops, split when they are first asked for.
struct Library(OnceLock<Vec<&'static str>>, &'static str);

impl Library {
    const fn new(text: &'static str) -> Library {
        Library(OnceLock::new(), text)
    }

    fn lines(&self) -> &[&'static str] {
        self.0.get_or_init(|| self.1.lines().collect())
    }

    fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.lines().iter().map(|line| op_name(line))
    }

    fn find(&self, name: &str) -> Option<&'static str> {
        let lines = self.lines();
        let index = lines.binary_search_by_key(&name, |line| op_name(line)).ok()?;
        Some(lines[index])
    }
}

static TENSORFLOW: Library = Library::new(include_str!("interfaces.txt"));

static TEXT: Library = Library::new(include_str!("interfaces_text.txt"));

static FORESTS: Library = Library::new(include_str!("interfaces_forest.txt"));

/// The interface of an op as a record without meaning; made on first use and kept.
pub(crate) fn find(name: &str) -> Option<&'static OpDef> {
    static PARSED: Mutex<Option<HashMap<&'static str, &'static OpDef>>> = Mutex::new(None);
    let mut parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    let parsed = parsed.get_or_insert_default();
    if let Some(op) = parsed.get(name) {
        return Some(op);
    }
    let line = [&TENSORFLOW, &TEXT, &FORESTS].into_iter().find_map(|library| library.find(name))?;
    let op: &'static OpDef = Box::leak(Box::new(parse(line)?));
    parsed.insert(op.name, op);
    Some(op)
}

/// The names of all ops TensorFlow has, sorted.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TENSORFLOW.names()
}

/// The names of all ops tensorflow_text adds, sorted.
pub(crate) fn text_names() -> impl Iterator<Item = &'static str> {
    TEXT.names()
}

/// The names of the ops TensorFlow Decision Forests adds for inference, sorted.
pub(crate) fn forest_names() -> impl Iterator<Item = &'static str> {
    FORESTS.names()
}

fn op_name(line: &'static str) -> &'static str {
    line.split('(').next().unwrap_or(line)
}

fn parse(line: &'static str) -> Option<OpDef> {
    let mut cursor = Cursor(line);
    let name = cursor.until("(")?;
    let inputs = parse_args(&mut cursor)?;
    cursor.expect(" -> (")?;
    let outputs = parse_args(&mut cursor)?;
    let mut attrs = Vec::new();
    if cursor.accept(" [") {
        loop {
            attrs.push(parse_attr(&mut cursor)?);
            if cursor.accept("]") {
                break;
            }
            cursor.expect(", ")?;
        }
    }
    let flags: Vec<&str> = cursor.0.split_whitespace().collect();
    // What changes a reference has an effect too, though TensorFlow flags only ops with resources.
    let stateful = flags.contains(&"stateful") || inputs.iter().any(|input| input.is_ref);
    let outside = OutsideAccess::FLAGS.iter().find(|(flag, _)| flags.contains(flag));
    Some(OpDef {
        name,
        inputs: inputs.leak(),
        outputs: outputs.leak(),
        attrs: attrs.leak(),
        effect: if stateful { Effect::Stateful } else { Effect::Pure },
        outside: outside.map(|(_, access)| *access),
        ..OpDef::PURE
    })
}

fn parse_args(cursor: &mut Cursor) -> Option<Vec<ArgDef>> {
    let mut args = Vec::new();
    if cursor.accept(")") {
        return Some(args);
    }
    loop {
        let name = cursor.until(": ")?;
        let is_ref = cursor.accept("&");
        let kind = if cursor.accept("[") {
            ArgKind::Types(cursor.until("]")?)
        } else {
            let end = cursor.0.find([',', ')'])?;
            let text = cursor.take(end);
            let of = |text: &'static str| match text.parse::<DType>() {
                Ok(dtype) => ArgType::Fixed(dtype),
                Err(_) => ArgType::Attr(text),
            };
            match text.split_once('*') {
                Some((count, text)) => ArgKind::Repeated { count, of: of(text) },
                None => ArgKind::One(of(text)),
            }
        };
        args.push(ArgDef { name, kind, host: false, is_ref });
        if cursor.accept(")") {
            return Some(args);
        }
        cursor.expect(", ")?;
    }
}

fn parse_attr(cursor: &mut Cursor) -> Option<AttrDef> {
    let name = cursor.until(": ")?;
    let end = cursor.0.find([',', ' ', '{', ']'])?;
    let kind = match cursor.take(end) {
        "string" => AttrKind::String,
        "int" => AttrKind::Int,
        "float" => AttrKind::Float,
        "bool" => AttrKind::Bool,
        "type" => AttrKind::Type,
        "shape" => AttrKind::Shape,
        "tensor" => AttrKind::Tensor,
        "func" => AttrKind::Func,
        "list(string)" => AttrKind::Strings,
        "list(int)" => AttrKind::Ints,
        "list(float)" => AttrKind::Floats,
        "list(bool)" => AttrKind::Bools,
        "list(type)" => AttrKind::Types,
        "list(shape)" => AttrKind::Shapes,
        "list(tensor)" => AttrKind::Tensors,
        "list(func)" => AttrKind::Funcs,
        _ => return None,
    };
    let allowed = if cursor.accept("{") {
        if cursor.0.starts_with('"') {
            Allowed::Strings(parse_list(cursor, '}', Cursor::quoted)?.leak())
        } else {
            Allowed::Types(parse_list(cursor, '}', Cursor::dtype)?.leak())
        }
    } else {
        Allowed::Any
    };
    let minimum = if cursor.accept(" >= ") { cursor.number()? } else { i64::MIN };
    let default =
        if cursor.accept(" = ") { parse_default(cursor, kind)? } else { AttrDefault::Required };
    Some(AttrDef { name, kind, default, minimum, allowed })
}

fn parse_default(cursor: &mut Cursor, kind: AttrKind) -> Option<AttrDefault> {
    let list = |cursor: &mut Cursor| cursor.expect("[");
    Some(match kind {
        AttrKind::String => AttrDefault::String(cursor.quoted()?),
        AttrKind::Int => AttrDefault::Int(cursor.number()?),
        AttrKind::Float => AttrDefault::Float(cursor.number()?),
        AttrKind::Bool => AttrDefault::Bool(cursor.number()?),
        AttrKind::Type => AttrDefault::Type(cursor.dtype()?),
        AttrKind::Shape if cursor.accept("?") => AttrDefault::UnknownShape,
        AttrKind::Shape | AttrKind::Ints => {
            list(cursor)?;
            let ints = parse_list(cursor, ']', Cursor::number)?.leak();
            if kind == AttrKind::Ints { AttrDefault::Ints(ints) } else { AttrDefault::Shape(ints) }
        }
        AttrKind::Floats => {
            list(cursor)?;
            AttrDefault::Floats(parse_list(cursor, ']', Cursor::number)?.leak())
        }
        AttrKind::Bools => {
            list(cursor)?;
            AttrDefault::Bools(parse_list(cursor, ']', Cursor::number)?.leak())
        }
        AttrKind::Types => {
            list(cursor)?;
            AttrDefault::Types(parse_list(cursor, ']', Cursor::dtype)?.leak())
        }
        AttrKind::Strings => {
            list(cursor)?;
            AttrDefault::Strings(parse_list(cursor, ']', Cursor::quoted)?.leak())
        }
        AttrKind::Shapes => cursor.expect("[]").map(|()| AttrDefault::Shapes)?,
        AttrKind::Funcs => cursor.expect("[]").map(|()| AttrDefault::Funcs)?,
        AttrKind::Func => cursor.quoted().map(|_| AttrDefault::Func)?,
        AttrKind::Tensor | AttrKind::Tensors => return None,
    })
}

fn parse_list<T>(
    cursor: &mut Cursor,
    end: char,
    element: impl Fn(&mut Cursor) -> Option<T>,
) -> Option<Vec<T>> {
    let mut list = Vec::new();
    while !cursor.0.starts_with(end) {
        list.push(element(cursor)?);
        cursor.accept(",");
    }
    cursor.0 = &cursor.0[end.len_utf8()..];
    Some(list)
}

/// Rest of a line.
struct Cursor(&'static str);

impl Cursor {
    fn take(&mut self, len: usize) -> &'static str {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn accept(&mut self, text: &str) -> bool {
        let rest = self.0.strip_prefix(text);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, text: &str) -> Option<()> {
        self.accept(text).then_some(())
    }

    fn until(&mut self, text: &str) -> Option<&'static str> {
        let (taken, rest) = self.0.split_once(text)?;
        self.0 = rest;
        Some(taken)
    }

    /// The text between quotes. The only escapes in the table are those of tab and line feed.
    fn quoted(&mut self) -> Option<&'static str> {
        self.expect("\"")?;
        let text = self.until("\"")?;
        Some(match text {
            "\\t" => "\t",
            "\\n" => "\n",
            text => text,
        })
    }

    fn dtype(&mut self) -> Option<DType> {
        let end = self.0.find([',', ' ', '}', ']']).unwrap_or(self.0.len());
        self.take(end).parse().ok()
    }

    fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        let end = self.0.find([',', ' ', '}', ']']).unwrap_or(self.0.len());
        self.take(end).parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Lowering;

    #[test]
    fn every_line_parses_and_names_are_sorted() {
        for lines in [&TENSORFLOW, &TEXT, &FORESTS].map(Library::lines) {
            for line in lines {
                assert!(parse(line).is_some(), "{line}");
            }
            assert!(lines.is_sorted_by_key(|line| op_name(line)));
        }
    }

    #[test]
    fn defaults_and_sets_are_read() {
        let op = find("LeakyRelu").unwrap();
        assert!(matches!(op.attr("alpha").unwrap().default, AttrDefault::Float(0.2)));
        assert!(matches!(op.attr("T").unwrap().allowed, Allowed::Types(types) if types.len() == 4));
        assert!(matches!(op.lowering, Lowering::Interface));
        assert!(find("NoSuchOp").is_none());
    }

    #[test]
    fn ops_on_references_have_effects() {
        for name in ["Assign", "AssignAdd", "ScatterAdd", "CountUpTo", "VariableV2"] {
            assert_eq!(find(name).unwrap().effect, Effect::Stateful, "{name}");
        }
        assert_eq!(find("LeakyRelu").unwrap().effect, Effect::Pure);
    }

    /// A record says what TensorFlow says: anything else would misread real models.
    #[test]
    fn records_agree_with_tensorflow() {
        let mut differing = Vec::new();
        for record in crate::ops::all() {
            let Some(tensorflow) = find(record.name) else {
                assert!(record.name.starts_with('_'), "TensorFlow has no op {}", record.name);
                continue;
            };
            let (ours, theirs) = (describe(record), describe(tensorflow));
            if ours != theirs {
                differing.push(format!("ours:   {ours}\ntheirs: {theirs}"));
            }
        }
        assert!(differing.is_empty(), "{}", differing.join("\n"));
    }

    fn describe(op: &OpDef) -> String {
        let args = |args: &[ArgDef]| {
            let texts: Vec<String> = args
                .iter()
                .map(|arg| format!("{}: {:?} {}", arg.name, arg.kind, arg.is_ref))
                .collect();
            texts.join(", ")
        };
        let mut attrs: Vec<String> = op.attrs.iter().map(describe_attr).collect();
        attrs.sort();
        let attrs = attrs.join(", ");
        format!("{}({}) -> ({}) [{attrs}]", op.name, args(op.inputs), args(op.outputs))
    }

    fn describe_attr(attr: &AttrDef) -> String {
        let allowed = match attr.allowed {
            Allowed::Any => String::new(),
            Allowed::Types(types) => {
                let mut types = types.to_vec();
                types.sort();
                types.dedup();
                format!("{types:?}")
            }
            Allowed::Strings(strings) => format!("{strings:?}"),
        };
        let AttrDef { name, kind, minimum, default, .. } = attr;
        format!("{name}: {kind:?}{allowed} {minimum} {default:?}")
    }
}
