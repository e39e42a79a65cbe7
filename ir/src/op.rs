//! Op records: everything the system knows about an op type.
//!
//! A record is a plain `static` value in `ops/<family>.rs`. Names, arguments and attributes are
//! TensorFlow's (facts of `tensorflow/core/ops/*.cc`), because SavedModels hold them.

use crate::{
    attr::{AttrValue, Attrs},
    dtype::DType,
    emit::{Composite, Value},
    error::{Error, Result},
    expr::{Scalar, Scalars},
    gradient::Gradient,
    infer::OpContext,
    shape::PartialShape,
    view::StridedView,
};
use smallvec::SmallVec;

pub use crate::facts::{HostReason, OutsideAccess, ShardingRule};

/// Everything the system knows about an op type.
#[derive(Debug)]
pub struct OpDef {
    /// TensorFlow's name of the op, such as `MatMul`.
    pub name: &'static str,
    /// A sentence on the computation.
    pub summary: &'static str,
    /// The tensor arguments, in order.
    pub inputs: &'static [ArgDef],
    /// The results, in order.
    pub outputs: &'static [ArgDef],
    /// The attributes.
    pub attrs: &'static [AttrDef],
    /// Attributes that have as many entries as each other: lists, and counts of arguments.
    pub same_length: &'static [&'static [&'static str]],
    /// Checks the arguments and tells the result shapes.
    pub infer: Infer,
    /// Effects of the op besides its arguments and results.
    pub effect: Effect,
    /// Who implements it.
    pub lowering: Lowering,
    /// Gradient rule.
    pub gradient: Gradient,
    /// Use of the functions that its attributes name.
    pub call: CallKind,
    /// Whether it looks at the shapes of its inputs only, never at their elements.
    pub shape_only: bool,
    /// Whether it writes into a window of its result, which may turn out when it runs.
    pub writes_window: bool,
    /// The op that replaces it where its inputs are of dtype variant.
    pub on_variants: Option<&'static str>,
    /// The formula that replaces it in functions that XLA compiles.
    pub compiled: XlaFormula,
    /// Access to what is outside of the model.
    pub outside: Option<OutsideAccess>,
    /// The attributes that transpose the operands of a product of matrices.
    pub matmul: Option<[&'static str; 2]>,
    /// The multiplications with an addition each that a product makes.
    pub multiply_adds: Option<MultiplyAdds>,
    /// Rule by which split operands make split results, where the lowering does not say it.
    pub sharding: Option<ShardingRule>,
    /// Interval that test programs draw arguments from, where not every number will do.
    pub domain: Option<(f64, f64)>,
}

/// The formula that replaces an op in functions that XLA compiles.
#[derive(Debug, Clone, Copy)]
pub enum XlaFormula {
    /// Nothing: it returns what XLA returns.
    Same,
    /// A formula over known shapes.
    OfKnownShapes(Formula),
    /// A formula over shapes of known rank.
    Of(Formula),
}

/// The multiplications with an addition each of a call whose types have been inferred; `None` where sizes are
/// not known.
pub type MultiplyAdds = fn(&OpContext<'_>) -> Option<u64>;

/// A shape function: reads the arguments, sets the result shapes.
pub type Infer = fn(&mut OpContext<'_>) -> Result<()>;

impl OpDef {
    /// A pure op: the base of most records.
    pub const PURE: OpDef = OpDef {
        name: "",
        summary: "",
        inputs: &[],
        outputs: &[],
        attrs: &[],
        same_length: &[],
        infer: crate::infer::unknown,
        effect: Effect::Pure,
        lowering: Lowering::Interface,
        gradient: Gradient::Missing,
        call: CallKind::None,
        shape_only: false,
        writes_window: false,
        on_variants: None,
        compiled: XlaFormula::Same,
        outside: None,
        matmul: None,
        multiply_adds: None,
        sharding: None,
        domain: None,
    };

    /// An op that reads the state its resource inputs refer to.
    pub const READS: OpDef = OpDef { effect: Effect::Reads, ..OpDef::PURE };

    /// An op that changes the state its resource inputs refer to.
    pub const WRITES: OpDef = OpDef { effect: Effect::Writes, ..OpDef::PURE };

    /// An op with effects or sources of its own: it is never merged, folded or dropped.
    pub const STATEFUL: OpDef = OpDef { effect: Effect::Stateful, ..OpDef::PURE };

    /// The op that does this where the first input is of this dtype.
    ///
    /// # Panics
    ///
    /// When the record names an op that does not exist.
    pub fn for_dtype(&'static self, first: Option<DType>) -> &'static OpDef {
        match self.on_variants {
            Some(name) if first == Some(DType::Variant) => {
                crate::registry::find(name).expect("records name ops that exist")
            }
            _ => self,
        }
    }

    /// Whether it is a convolution of images that pads by itself, as its attributes say.
    pub(crate) fn is_convolution_of_images(&self) -> bool {
        let is_kernel = matches!(self.lowering, Lowering::Kernel);
        is_kernel && self.inputs.len() == 2 && self.attr("explicit_paddings").is_some()
    }

    /// The definition of an attribute.
    pub fn attr(&self, name: &str) -> Option<&'static AttrDef> {
        self.attrs.iter().find(|attr| attr.name == name)
    }

    /// Checks the attributes of a node against the record and fills in defaults.
    ///
    /// Attributes that the record does not name are annotations and pass unchecked.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for an attribute that is required and absent, of the wrong kind, or
    /// outside the allowed values, and for lists that do not have as many entries as they must.
    pub fn complete_attrs(&self, mut attrs: Attrs) -> Result<Attrs> {
        for def in self.attrs {
            match attrs.get(def.name) {
                None => {
                    let default = def.default.value().ok_or_else(|| {
                        Error::argument(
                            self.name,
                            def.name,
                            "given, as it has no default",
                            "nothing",
                        )
                    })?;
                    attrs.set(def.name, default);
                }
                Some(value) => def.check(self.name, value)?,
            }
        }
        self.same_length.iter().try_for_each(|group| self.check_lengths(group, &attrs))?;
        Ok(attrs)
    }

    /// Checks that attributes have as many entries as each other. Those that wait for a value of
    /// the function around the call have no number yet.
    fn check_lengths(&self, group: &[&'static str], attrs: &Attrs) -> Result<()> {
        let mut lengths = group.iter().filter_map(|&name| Some((name, attrs.get(name)?.length()?)));
        let Some((first, expected)) = lengths.next() else { return Ok(()) };
        match lengths.find(|&(_, length)| length != expected) {
            None => Ok(()),
            Some((name, found)) => {
                let expected = format!("of {expected} entries, as `{first}`");
                Err(Error::argument(self.name, name, expected, found))
            }
        }
    }

    /// Checks number and dtypes of the inputs of a call with complete attributes.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when they do not fit the record.
    pub fn check_dtypes(&self, attrs: &Attrs, dtypes: &[DType]) -> Result<()> {
        let expected = self.input_dtypes(attrs)?;
        if expected.len() != dtypes.len() {
            let expected = format!("{} tensors", expected.len());
            return Err(Error::argument(self.name, "inputs", expected, dtypes.len()));
        }
        match expected.iter().zip(dtypes).position(|(expected, found)| expected != found) {
            None => Ok(()),
            Some(at) => {
                let name = format!("input {at}");
                Err(Error::argument(self.name, name, expected[at].name(), dtypes[at]))
            }
        }
    }

    /// The dtypes of the inputs, flattened, under these attributes.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when an attribute that the argument types depend on is absent.
    pub fn input_dtypes(&self, attrs: &Attrs) -> Result<DTypes> {
        expand(self.inputs, attrs)
    }

    /// The dtypes of the outputs, flattened, under these attributes.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when an attribute that the result types depend on is absent.
    pub fn output_dtypes(&self, attrs: &Attrs) -> Result<DTypes> {
        expand(self.outputs, attrs)
    }

    /// For each flattened input, whether it must be in host memory.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when an attribute that the argument count depends on is absent.
    pub fn host_inputs(&self, attrs: &Attrs) -> Result<SmallVec<[bool; 6]>> {
        let mut flags = SmallVec::new();
        for arg in self.inputs {
            let count = arg.count(attrs)?;
            flags.extend(std::iter::repeat_n(arg.host, count));
        }
        Ok(flags)
    }

    /// The inputs that a call of a function hands on ([`CallKind::Inline`]): all but the single
    /// tensors before and after them, which tell where the function runs.
    pub fn handed_on<'a, T>(&self, inputs: &'a [T]) -> &'a [T] {
        let is_single = |arg: &&ArgDef| matches!(arg.kind, ArgKind::One(_));
        let before = self.inputs.iter().take_while(is_single).count();
        let lists = &self.inputs[before..];
        let after = lists.iter().rev().take_while(is_single).count();
        inputs.get(before..inputs.len().saturating_sub(after)).unwrap_or_default()
    }

    /// The flat position of output `index` of the output argument `name`, as function bodies
    /// refer to it (`node:name:index`).
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] when there is no such output.
    pub fn output_position(&self, attrs: &Attrs, name: &str, index: usize) -> Result<usize> {
        let mut position = 0;
        for arg in self.outputs {
            let count = arg.count(attrs)?;
            if arg.name == name && index < count {
                return Ok(position + index);
            }
            position += count;
        }
        let name = format!("{name}:{index} of {}", self.name);
        Err(Error::NotFound { kind: "output", name })
    }
}

/// Flattened argument dtypes.
pub type DTypes = SmallVec<[DType; 6]>;

fn expand(args: &[ArgDef], attrs: &Attrs) -> Result<DTypes> {
    let mut dtypes = DTypes::new();
    for arg in args {
        match arg.kind {
            ArgKind::One(of) => dtypes.push(of.resolve(attrs)?),
            ArgKind::Repeated { of, .. } => {
                let count = arg.count(attrs)?;
                dtypes.extend(std::iter::repeat_n(of.resolve(attrs)?, count));
            }
            ArgKind::Types(attr) => dtypes.extend_from_slice(attrs.types(attr)?),
        }
    }
    Ok(dtypes)
}

/// Effect of an op besides its arguments and results. Pruning, merging and automatic control
/// dependencies read nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: equal arguments return equal results, and no effect tells whether it runs.
    Pure,
    /// It reads the state its resource inputs refer to.
    Reads,
    /// It changes the state its resource inputs refer to.
    Writes,
    /// It has effects or sources of its own: printing, hidden random state, queues.
    Stateful,
    /// Whatever the functions it calls do.
    OfCallee,
}

/// Who implements an op.
#[derive(Debug, Clone, Copy)]
pub enum Lowering {
    /// A scalar formula: every device runs it, neighbours fuse.
    Elementwise(for<'s> fn(&'s Scalars<'s>) -> Scalar<'s>),
    /// The scalar expression that the node holds, as fusion made it.
    Fused,
    /// A reduction along the axes in input 1.
    Reduce(ReduceKind),
    /// Output 0 has the elements of input 0; no data moves.
    Alias(AliasKind),
    /// Each output is a strided window of input 0.
    View(fn(&OpContext<'_>) -> Result<Vec<StridedView>>),
    /// A formula over other ops, expanded before placement.
    Composite(Formula),
    /// A kernel written for each device.
    Kernel,
    /// A kernel of the host alone, and what keeps it there.
    HostKernel(HostReason),
    /// A body in the runtime: state, calls, input and output.
    Runtime,
    /// Known by its interface only, so that models holding it can be loaded and saved.
    Interface,
}

/// Relation of an alias's type to that of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AliasKind {
    /// Dtype and shape are those of input 0, whatever they turn out to be.
    Identity,
    /// The elements are read under the inferred dtype and shape, which may differ.
    Reinterpret,
}

/// The results of an op as a formula over other ops.
pub type Formula = for<'e> fn(&Composite<'e>) -> Vec<Value<'e>>;

/// Use that an op makes of the functions its attributes name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// It calls none.
    None,
    /// It calls one function with the inputs it hands on ([`OpDef::handed_on`]) and returns the
    /// function's results.
    Inline,
    /// It calls the function that an importer makes of the program its attributes hold
    /// ([`crate::modules`]).
    Module,
    /// It calls the first function with the other inputs if input 0 is true, else the second.
    If,
    /// It calls the function of number input 0 with the other inputs; the last one if there is no
    /// such number.
    Case,
    /// It calls the second function on its own results as long as the first returns true.
    While,
}

/// The reductions every device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceKind {
    /// Sum; 0 when empty.
    Sum,
    /// Arithmetic mean; integers truncate towards zero; NaN (0 for integers) when empty.
    Mean,
    /// Product; 1 when empty.
    Prod,
    /// Largest element; the lowest value when empty; NaN if any is.
    Max,
    /// Smallest element; the highest value when empty; NaN if any is.
    Min,
    /// Logical and; true when empty.
    All,
    /// Logical or; false when empty.
    Any,
    /// Square root of the sum of squared magnitudes.
    EuclideanNorm,
}

/// A tensor argument or result of an op.
#[derive(Debug, Clone, Copy)]
pub struct ArgDef {
    /// Its name.
    pub name: &'static str,
    /// Number and dtypes of the tensors it stands for.
    pub kind: ArgKind,
    /// Whether it is a shape operand: it stays in host memory, and shape inference may read its
    /// value.
    pub host: bool,
    /// Whether it is a reference to a 1.x variable.
    pub is_ref: bool,
}

impl ArgDef {
    /// The same argument, kept in host memory.
    #[must_use]
    pub const fn host(self) -> ArgDef {
        ArgDef { host: true, ..self }
    }

    /// The same argument as a reference to a 1.x variable.
    #[must_use]
    pub const fn reference(self) -> ArgDef {
        ArgDef { is_ref: true, ..self }
    }

    /// Number of tensors that the argument stands for under these attributes.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when the attribute that says so is absent or out of range.
    pub fn count(&self, attrs: &Attrs) -> Result<usize> {
        match self.kind {
            ArgKind::One(_) => Ok(1),
            ArgKind::Repeated { count, .. } => {
                let n = attrs.int(count)?;
                match usize::try_from(n) {
                    Ok(n) if n <= MAX_ARGS => Ok(n),
                    _ => Err(Error::argument("attribute", count, "a count of tensors", n)),
                }
            }
            ArgKind::Types(attr) => Ok(attrs.types(attr)?.len()),
        }
    }
}

/// No op takes or returns more tensors than this; a file that says so is damaged.
const MAX_ARGS: usize = 1 << 20;

/// Number and dtypes of the tensors that an argument stands for.
#[derive(Debug, Clone, Copy)]
pub enum ArgKind {
    /// A single tensor.
    One(ArgType),
    /// As many tensors of one dtype as attribute `count` says.
    Repeated {
        /// The attribute with the number of tensors.
        count: &'static str,
        /// Their dtype.
        of: ArgType,
    },
    /// A tensor per dtype in the list attribute.
    Types(&'static str),
}

/// The dtype of an argument.
#[derive(Debug, Clone, Copy)]
pub enum ArgType {
    /// Always the same.
    Fixed(DType),
    /// The value of an attribute.
    Attr(&'static str),
}

impl ArgType {
    fn resolve(self, attrs: &Attrs) -> Result<DType> {
        match self {
            ArgType::Fixed(dtype) => Ok(dtype),
            ArgType::Attr(name) => attrs.dtype(name),
        }
    }
}

/// A single tensor whose dtype is the attribute `dtype`.
pub const fn arg(name: &'static str, dtype: &'static str) -> ArgDef {
    ArgDef { name, kind: ArgKind::One(ArgType::Attr(dtype)), host: false, is_ref: false }
}

/// A single tensor of a fixed dtype.
pub const fn arg_of(name: &'static str, dtype: DType) -> ArgDef {
    ArgDef { name, kind: ArgKind::One(ArgType::Fixed(dtype)), host: false, is_ref: false }
}

/// `count` tensors of the dtype in attribute `dtype`.
pub const fn args(name: &'static str, count: &'static str, dtype: &'static str) -> ArgDef {
    let kind = ArgKind::Repeated { count, of: ArgType::Attr(dtype) };
    ArgDef { name, kind, host: false, is_ref: false }
}

/// `count` tensors of a fixed dtype.
pub const fn args_of(name: &'static str, count: &'static str, dtype: DType) -> ArgDef {
    let kind = ArgKind::Repeated { count, of: ArgType::Fixed(dtype) };
    ArgDef { name, kind, host: false, is_ref: false }
}

/// A tensor per dtype in attribute `types`.
pub const fn args_list(name: &'static str, types: &'static str) -> ArgDef {
    ArgDef { name, kind: ArgKind::Types(types), host: false, is_ref: false }
}

/// The kinds of attribute values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are named as those of `AttrValue`")]
pub enum AttrKind {
    String,
    Int,
    Float,
    Bool,
    Type,
    Shape,
    Tensor,
    Func,
    Strings,
    Ints,
    Floats,
    Bools,
    Types,
    Shapes,
    Tensors,
    Funcs,
}

/// An attribute of an op.
#[derive(Debug, Clone, Copy)]
pub struct AttrDef {
    /// Its name.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: AttrKind,
    /// The value it takes when a node does not set it.
    pub default: AttrDefault,
    /// The smallest integer, or the shortest list, allowed.
    pub minimum: i64,
    /// The values allowed.
    pub allowed: Allowed,
}

/// The values an attribute may have.
#[derive(Debug, Clone, Copy)]
pub enum Allowed {
    /// Any of its kind.
    Any,
    /// These dtypes.
    Types(&'static [DType]),
    /// These strings.
    Strings(&'static [&'static str]),
}

/// The default of an attribute, in a form that fits a `static`.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the variants are named as those of `AttrValue`")]
pub enum AttrDefault {
    /// The attribute must be set.
    Required,
    String(&'static str),
    Int(i64),
    Float(f32),
    Bool(bool),
    Type(DType),
    /// Sizes, `-1` for unknown.
    Shape(&'static [i64]),
    UnknownShape,
    Ints(&'static [i64]),
    Floats(&'static [f32]),
    Bools(&'static [bool]),
    Types(&'static [DType]),
    Strings(&'static [&'static str]),
    /// A list of shapes without elements.
    Shapes,
    /// A list of functions without elements.
    Funcs,
    /// A function without a name.
    Func,
}

impl AttrDefault {
    /// The default as a value, `None` when the attribute must be set.
    pub fn value(&self) -> Option<AttrValue> {
        Some(match *self {
            AttrDefault::Required => return None,
            AttrDefault::String(text) => AttrValue::from(text),
            AttrDefault::Int(value) => AttrValue::Int(value),
            AttrDefault::Float(value) => AttrValue::Float(value),
            AttrDefault::Bool(value) => AttrValue::Bool(value),
            AttrDefault::Type(dtype) => AttrValue::Type(dtype),
            AttrDefault::Shape(dims) => {
                AttrValue::Shape(PartialShape::from_i64(dims).unwrap_or_default())
            }
            AttrDefault::UnknownShape => AttrValue::Shape(PartialShape::Unknown),
            AttrDefault::Ints(list) => AttrValue::Ints(list.to_vec()),
            AttrDefault::Floats(list) => AttrValue::Floats(list.to_vec()),
            AttrDefault::Bools(list) => AttrValue::Bools(list.to_vec()),
            AttrDefault::Types(list) => AttrValue::Types(list.to_vec()),
            AttrDefault::Strings(list) => AttrValue::Strings(
                list.iter().map(|text| bytes::Bytes::from_static(text.as_bytes())).collect(),
            ),
            AttrDefault::Shapes => AttrValue::Shapes(Vec::new()),
            AttrDefault::Funcs => AttrValue::Funcs(Vec::new()),
            AttrDefault::Func => AttrValue::Func(crate::attr::NameAttrList::new("")),
        })
    }
}

impl AttrDef {
    const fn new(name: &'static str, kind: AttrKind) -> AttrDef {
        let (default, allowed) = (AttrDefault::Required, Allowed::Any);
        AttrDef { name, kind, default, minimum: i64::MIN, allowed }
    }

    /// The same attribute with a default.
    #[must_use]
    pub const fn or(self, default: AttrDefault) -> AttrDef {
        AttrDef { default, ..self }
    }

    /// The same attribute with a smallest value, or a shortest list.
    #[must_use]
    pub const fn at_least(self, minimum: i64) -> AttrDef {
        AttrDef { minimum, ..self }
    }

    /// Checks a value against kind, allowed values and minimum.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] naming the op, the attribute and the value.
    pub fn check(&self, op: &'static str, value: &AttrValue) -> Result<()> {
        let wrong = |expected: String| Error::argument(op, self.name, expected, value);
        let Some(kind) = value.kind() else { return Ok(()) };
        if kind != self.kind && !(value.is_empty_list() && self.is_list()) {
            return Err(wrong(format!("of kind {:?}", self.kind)));
        }
        match self.allowed {
            Allowed::Any => {}
            Allowed::Types(types) => {
                let fits = match value {
                    AttrValue::Type(dtype) => types.contains(dtype),
                    AttrValue::Types(list) => list.iter().all(|dtype| types.contains(dtype)),
                    _ => true,
                };
                if !fits {
                    return Err(wrong(format!("one of {}", AttrValue::Types(types.to_vec()))));
                }
            }
            Allowed::Strings(strings) => {
                let allowed = |text: &[u8]| strings.iter().any(|s| s.as_bytes() == text);
                let fits = match value {
                    AttrValue::String(text) => allowed(text),
                    AttrValue::Strings(list) => list.iter().all(|text| allowed(text)),
                    _ => true,
                };
                if !fits {
                    return Err(wrong(format!("one of {strings:?}")));
                }
            }
        }
        let size = match value {
            AttrValue::Int(value) => *value,
            AttrValue::Strings(list) => list.len() as i64,
            AttrValue::Ints(list) => list.len() as i64,
            AttrValue::Floats(list) => list.len() as i64,
            AttrValue::Bools(list) => list.len() as i64,
            AttrValue::Types(list) => list.len() as i64,
            AttrValue::Shapes(list) => list.len() as i64,
            AttrValue::Tensors(list) => list.len() as i64,
            AttrValue::Funcs(list) => list.len() as i64,
            _ => return Ok(()),
        };
        if size < self.minimum {
            return Err(wrong(format!("at least {}", self.minimum)));
        }
        Ok(())
    }

    fn is_list(&self) -> bool {
        matches!(
            self.kind,
            AttrKind::Strings
                | AttrKind::Ints
                | AttrKind::Floats
                | AttrKind::Bools
                | AttrKind::Types
                | AttrKind::Shapes
                | AttrKind::Tensors
                | AttrKind::Funcs
        )
    }
}

/// A dtype out of a set.
pub const fn ty(name: &'static str, allowed: &'static [DType]) -> AttrDef {
    AttrDef { allowed: Allowed::Types(allowed), ..AttrDef::new(name, AttrKind::Type) }
}

/// A dtype out of a set, with a default.
pub const fn ty_or(name: &'static str, allowed: &'static [DType], default: DType) -> AttrDef {
    ty(name, allowed).or(AttrDefault::Type(default))
}

/// Any dtype.
pub const fn any_ty(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Type)
}

/// A list of dtypes.
pub const fn types(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Types)
}

/// A list of dtypes out of a set.
pub const fn types_in(name: &'static str, allowed: &'static [DType]) -> AttrDef {
    AttrDef { allowed: Allowed::Types(allowed), ..types(name) }
}

/// A flag with a default.
pub const fn flag(name: &'static str, default: bool) -> AttrDef {
    AttrDef::new(name, AttrKind::Bool).or(AttrDefault::Bool(default))
}

/// A flag that must be set.
pub const fn required_flag(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Bool)
}

/// An integer that must be set.
pub const fn int(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Int)
}

/// An integer with a default.
pub const fn int_or(name: &'static str, default: i64) -> AttrDef {
    int(name).or(AttrDefault::Int(default))
}

/// A float that must be set.
pub const fn float(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Float)
}

/// A float with a default.
pub const fn float_or(name: &'static str, default: f32) -> AttrDef {
    float(name).or(AttrDefault::Float(default))
}

/// A string that must be set.
pub const fn string(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::String)
}

/// A string with a default.
pub const fn string_or(name: &'static str, default: &'static str) -> AttrDef {
    string(name).or(AttrDefault::String(default))
}

/// A string out of a set.
pub const fn one_of(name: &'static str, allowed: &'static [&'static str]) -> AttrDef {
    AttrDef { allowed: Allowed::Strings(allowed), ..string(name) }
}

/// A list of integers that must be set.
pub const fn ints(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Ints)
}

/// A list of integers with a default.
pub const fn ints_or(name: &'static str, default: &'static [i64]) -> AttrDef {
    ints(name).or(AttrDefault::Ints(default))
}

/// A list of floats that must be set.
pub const fn floats(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Floats)
}

/// A list of flags that must be set.
pub const fn bools(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Bools)
}

/// A list of strings that must be set.
pub const fn strings(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Strings)
}

/// A shape that must be set.
pub const fn shape(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Shape)
}

/// A list of shapes that must be set.
pub const fn shapes(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Shapes)
}

/// A tensor that must be set.
pub const fn tensor(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Tensor)
}

/// A function that must be set.
pub const fn func(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Func)
}

/// A list of functions that must be set.
pub const fn funcs(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Funcs)
}

/// A list of tensors that must be set.
pub const fn tensors(name: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Tensors)
}
