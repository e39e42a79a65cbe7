//! Code of an op as a function, or as two where it has attributes with defaults.

use super::{attr, doc, name};
use anyhow::{Result, ensure};
use ferroflow_ir::{
    OpDef,
    op::{ArgDef, ArgKind, ArgType, AttrDef, AttrDefault},
};
use std::collections::HashSet;

/// A function for an op.
pub(super) struct OpFunction<'a> {
    op: &'a OpDef,
    name: String,
    /// Attributes that do not follow from the inputs and have no default.
    required: Vec<&'a AttrDef>,
    /// Attributes that do not follow from the inputs and have a default.
    optional: Vec<&'a AttrDef>,
}

impl<'a> OpFunction<'a> {
    pub(super) fn new(op: &'a OpDef) -> Result<OpFunction<'a>> {
        let follows =
            |attr: &AttrDef| op.inputs.iter().any(|arg| attrs_of(arg).contains(&attr.name));
        let (required, optional) = op
            .attrs
            .iter()
            .filter(|attr| !follows(attr) && !attr.name.starts_with('_'))
            .partition(|attr| matches!(attr.default, AttrDefault::Required));
        let function = OpFunction { op, name: name::function(op.name), required, optional };
        let mut names = HashSet::from(["attrs".to_string()]);
        for (name, _) in function.parameters() {
            ensure!(names.insert(name.clone()), "{}: two parameters called `{name}`", op.name);
        }
        Ok(function)
    }

    /// The names it takes in the module of all functions.
    pub(super) fn items(&self) -> Vec<String> {
        let mut items = vec![self.name.clone()];
        if !self.optional.is_empty() {
            items.extend([self.name_with(), self.attrs_struct()]);
        }
        items
    }

    /// The number of parameters of its longest form.
    pub(super) fn n_parameters(&self) -> usize {
        self.parameters().len() + usize::from(!self.optional.is_empty())
    }

    pub(super) fn source(&self) -> String {
        let item = name::item(self.op.name);
        let mut source = format!("static {item}: NamedOp = NamedOp::new({:?});\n\n", self.op.name);
        if self.optional.is_empty() {
            return source + &self.plain("");
        }
        source += &self.structure();
        let note = format!(" [`{}`] sets attributes too.", self.name_with());
        source + &self.plain(&note) + "\n" + &self.with()
    }

    fn plain(&self, note: &str) -> String {
        let mut source = doc::comment("", self.op.summary);
        source += "///\n";
        source += &doc::comment("", &(doc::signature(self.op, &self.required) + note));
        let parameters: Vec<String> = self.typed_parameters();
        source + &self.body(&self.name, &parameters, &self.attrs())
    }

    fn with(&self) -> String {
        let mut source = doc::comment("", &format!("[`{}()`] with attributes.", self.name));
        let mut parameters = self.typed_parameters();
        parameters.push(format!("attrs: &{}", self.attrs_struct()));
        let mut attrs = self.attrs();
        for attr in &self.optional {
            attrs += &format!(".with({:?}, {})", attr.name, attr::field_value(attr));
        }
        source += &self.body(&self.name_with(), &parameters, &attrs);
        source
    }

    fn body(&self, name: &str, parameters: &[String], attrs: &str) -> String {
        let (result, call) = self.result();
        format!(
            "///\n/// # Errors\n///\n/// When the call does not fit the op, or cannot be run.\n\
             #[track_caller]\npub fn {name}({}) -> Result<{result}> {{\n\
             call::{call}(&{}, {attrs}, {})\n}}\n",
            parameters.join(", "),
            name::item(self.op.name),
            self.inputs()
        )
    }

    fn structure(&self) -> String {
        let name = self.attrs_struct();
        let derives_default = self.optional.iter().all(|attr| attr::is_type_default(attr.default));
        let derive = if derives_default { "Clone, Debug, Default" } else { "Clone, Debug" };
        let mut source =
            doc::comment("", &format!("The optional arguments of [`{}`].", self.name_with()));
        source += &format!("#[derive({derive})]\npub struct {name} {{\n");
        for attr in &self.optional {
            source += &doc::comment("    ", &doc::field(attr));
            let ty = attr::field_type(attr.kind);
            source += &format!("    pub {}: {ty},\n", name::parameter(attr.name));
        }
        source += "}\n\n";
        if !derives_default {
            source +=
                &format!("impl Default for {name} {{\nfn default() -> {name} {{\n{name} {{\n");
            for attr in &self.optional {
                let value = attr::default_value(attr.default);
                source += &format!("{}: {value},\n", name::parameter(attr.name));
            }
            source += "}\n}\n}\n\n";
        }
        source
    }

    fn name_with(&self) -> String {
        format!("{}_with", self.name.trim_end_matches('_'))
    }

    fn attrs_struct(&self) -> String {
        format!("{}Attrs", name::type_prefix(self.op.name))
    }

    fn typed_parameters(&self) -> Vec<String> {
        self.parameters().into_iter().map(|(name, ty)| format!("{name}: {ty}")).collect()
    }

    fn parameters(&self) -> Vec<(String, &'static str)> {
        let inputs = self.op.inputs.iter().map(|arg| {
            (name::parameter(arg.name), if is_list(arg) { "&[&Tensor]" } else { "&Tensor" })
        });
        let attrs = self
            .required
            .iter()
            .map(|attr| (name::parameter(attr.name), attr::parameter_type(attr.kind)));
        inputs.chain(attrs).collect()
    }

    /// The attributes as an expression; those that follow from the inputs are left out where one
    /// can tell which inputs belong to which argument.
    fn attrs(&self) -> String {
        let mut attrs = "Attrs::new()".to_string();
        if self.op.inputs.iter().filter(|arg| is_list(arg)).count() > 1 {
            attrs += &self.list_attrs();
        }
        for attr in &self.required {
            attrs += &format!(".with({:?}, {})", attr.name, attr::parameter_value(attr));
        }
        attrs
    }

    fn list_attrs(&self) -> String {
        let mut attrs = String::new();
        let mut counts: Vec<(&str, Vec<String>)> = Vec::new();
        for arg in self.op.inputs {
            let name = name::parameter(arg.name);
            match arg.kind {
                ArgKind::One(_) => {}
                ArgKind::Repeated { count, .. } => {
                    match counts.iter_mut().find(|(attr, _)| *attr == count) {
                        Some((_, lists)) => lists.push(name),
                        None => counts.push((count, vec![name])),
                    }
                }
                ArgKind::Types(types) => {
                    attrs += &format!(".with({types:?}, lists::dtypes({name}))");
                }
            }
        }
        for (count, lists) in counts {
            let lists = lists.join(", ");
            attrs += &format!(
                ".with({count:?}, lists::count({:?}, {count:?}, &[{lists}])?)",
                self.op.name
            );
        }
        attrs
    }

    /// The inputs as an expression.
    fn inputs(&self) -> String {
        let args = self.op.inputs;
        let names = args.iter().map(|arg| name::parameter(arg.name));
        match args {
            [arg] if is_list(arg) => name::parameter(arg.name),
            _ if args.iter().any(is_list) => {
                let mut parts: Vec<String> = Vec::new();
                for group in args.chunk_by(|a, b| !is_list(a) && !is_list(b)) {
                    let names: Vec<String> =
                        group.iter().map(|arg| name::parameter(arg.name)).collect();
                    let names = names.join(", ");
                    parts.push(if is_list(&group[0]) { names } else { format!("&[{names}][..]") });
                }
                format!("&[{}].concat()", parts.join(", "))
            }
            _ => format!("&[{}]", names.collect::<Vec<_>>().join(", ")),
        }
    }

    /// The type of the results, and the function that gives them.
    fn result(&self) -> (String, &'static str) {
        let outputs = self.op.outputs;
        match outputs.len() {
            _ if outputs.iter().any(is_list) => ("Outputs".into(), "many"),
            0 => ("()".into(), "none"),
            1 => ("Tensor".into(), "one"),
            n => (format!("[Tensor; {n}]"), "fixed"),
        }
    }
}

fn is_list(arg: &ArgDef) -> bool {
    !matches!(arg.kind, ArgKind::One(_))
}

/// The attributes that follow from an input.
fn attrs_of(arg: &ArgDef) -> Vec<&'static str> {
    let of_type = |of: ArgType| match of {
        ArgType::Attr(name) => Some(name),
        ArgType::Fixed(_) => None,
    };
    match arg.kind {
        ArgKind::One(of) => of_type(of).into_iter().collect(),
        ArgKind::Repeated { count, of } => [count].into_iter().chain(of_type(of)).collect(),
        ArgKind::Types(types) => vec![types],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(op: &str) -> String {
        let op = ferroflow_ir::registry::find(op).unwrap();
        OpFunction::new(op).unwrap().source()
    }

    /// Compares all but the documentation, word by word.
    fn check(op: &str, expected: &str) {
        let source = source(op);
        let code = source.lines().filter(|line| !line.trim_start().starts_with("///"));
        let code: Vec<&str> = code.flat_map(str::split_whitespace).collect();
        assert_eq!(code.join(" "), expected.split_whitespace().collect::<Vec<_>>().join(" "));
    }

    #[test]
    fn a_function_and_its_documentation() {
        let expected = r#"static DIAG: NamedOp = NamedOp::new("Diag");

/// Puts a tensor on the diagonal of one of twice the rank, among zeros.
///
/// `Diag`: `diagonal: T` → `output: T`, with `T` in floats, complex, int32, int64.
///
/// # Errors
///
/// When the call does not fit the op, or cannot be run.
#[track_caller]
pub fn diag(diagonal: &Tensor) -> Result<Tensor> {
call::one(&DIAG, Attrs::new(), &[diagonal])
}
"#;
        assert_eq!(source("Diag"), expected);
    }

    #[test]
    fn no_result() {
        check(
            "NoOp",
            r#"static NO_OP: NamedOp = NamedOp::new("NoOp");
            #[track_caller]
            pub fn no_op() -> Result<()> { call::none(&NO_OP, Attrs::new(), &[]) }"#,
        );
    }

    #[test]
    fn several_results() {
        check(
            "BroadcastGradientArgs",
            r#"static BROADCAST_GRADIENT_ARGS: NamedOp = NamedOp::new("BroadcastGradientArgs");
            #[track_caller]
            pub fn broadcast_gradient_args(s0: &Tensor, s1: &Tensor) -> Result<[Tensor; 2]> {
                call::fixed(&BROADCAST_GRADIENT_ARGS, Attrs::new(), &[s0, s1])
            }"#,
        );
    }

    #[test]
    fn a_list_of_results() {
        check(
            "Split",
            r#"static SPLIT: NamedOp = NamedOp::new("Split");
            #[track_caller]
            pub fn split(split_dim: &Tensor, value: &Tensor, num_split: i64) -> Result<Outputs> {
                call::many(&SPLIT, Attrs::new().with("num_split", num_split), &[split_dim, value])
            }"#,
        );
    }

    #[test]
    fn a_list_among_the_inputs() {
        check(
            "ConcatV2",
            r#"static CONCAT_V2: NamedOp = NamedOp::new("ConcatV2");
            #[track_caller]
            pub fn concat_v2(values: &[&Tensor], axis: &Tensor) -> Result<Tensor> {
                call::one(&CONCAT_V2, Attrs::new(), &[values, &[axis][..]].concat())
            }"#,
        );
    }

    #[test]
    fn lists_that_do_not_tell_their_lengths() {
        check(
            "DynamicStitch",
            r#"static DYNAMIC_STITCH: NamedOp = NamedOp::new("DynamicStitch");
            #[track_caller]
            pub fn dynamic_stitch(indices: &[&Tensor], data: &[&Tensor]) -> Result<Tensor> {
                call::one(&DYNAMIC_STITCH,
                    Attrs::new().with("N", lists::count("DynamicStitch", "N", &[indices, data])?),
                    &[indices, data].concat())
            }"#,
        );
    }

    #[test]
    fn attributes_with_and_without_defaults() {
        check(
            "Cast",
            r#"static CAST: NamedOp = NamedOp::new("Cast");
            #[derive(Clone, Debug, Default)]
            pub struct CastAttrs { pub truncate: bool, }
            #[track_caller]
            pub fn cast(x: &Tensor, dst_t: DType) -> Result<Tensor> {
                call::one(&CAST, Attrs::new().with("DstT", dst_t), &[x])
            }
            #[track_caller]
            pub fn cast_with(x: &Tensor, dst_t: DType, attrs: &CastAttrs) -> Result<Tensor> {
                call::one(&CAST,
                    Attrs::new().with("DstT", dst_t).with("Truncate", attrs.truncate), &[x])
            }"#,
        );
    }

    #[test]
    fn defaults_that_rust_does_not_have() {
        let source = source("LeakyRelu");
        assert!(source.contains("/// `alpha`: a float; `0.2` unless set.\n    pub alpha: f32,"));
        assert!(source.contains("LeakyReluAttrs {\nalpha: 0.2,\n}"));
    }
}
