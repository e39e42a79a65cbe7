//! The parameters of a Python function: which argument goes where.

use crate::{
    convert,
    error::{Error, Result},
    proto,
    structured_value::StructuredValue,
    value::{PythonValue, TensorLeaf, host_value},
};
use ferroflow_ir::Limits;
use std::collections::BTreeMap;

/// Names and defaults of parameters, as Python's `inspect.FullArgSpec` has them.
#[derive(Debug, Clone)]
pub(crate) struct ArgSpecParameters {
    /// The names of positional parameters, with defaults where there are any.
    positional: Vec<(String, Option<PythonValue>)>,
    /// Whether there may be more positional arguments.
    more_positional: bool,
    /// Parameters represented by name only.
    by_name: Vec<(String, Option<PythonValue>)>,
    /// Whether there may be more arguments by name.
    more_by_name: bool,
    /// Input signature of the positional arguments, where that is the same for all traces.
    input_signature: Option<Vec<StructuredValue>>,
}

impl ArgSpecParameters {
    /// Any arguments.
    pub(crate) fn any() -> ArgSpecParameters {
        ArgSpecParameters {
            positional: Vec::new(),
            more_positional: true,
            by_name: Vec::new(),
            more_by_name: true,
            input_signature: None,
        }
    }

    pub(crate) fn new(spec: &proto::FunctionSpec, limits: &Limits) -> Result<ArgSpecParameters> {
        let absent = || malformed("fullargspec", "given", "nothing");
        let fields = spec.fullargspec.as_ref().ok_or_else(absent)?;
        let StructuredValue::NamedTuple { fields, .. } = convert::structured_value(fields, limits)?
        else {
            return Err(malformed("fullargspec", "a named tuple", "another kind of value"));
        };
        let field = |name: &'static str| {
            let found = fields.iter().find(|(key, _)| key == name).map(|(_, value)| value);
            found.ok_or_else(|| malformed(name, "given", "nothing"))
        };
        let mut names = strings("args", field("args")?)?;
        if spec.is_method && names.first().is_some_and(|name| name == "self") {
            names.remove(0);
        }
        let defaults = match field("defaults")? {
            StructuredValue::Tuple(values) | StructuredValue::List(values) => &values[..],
            _ => &[],
        };
        if defaults.len() > names.len() {
            let expected = format!("{} at most", names.len());
            return Err(malformed("defaults", expected, defaults.len()));
        }
        let n_required = names.len() - defaults.len();
        let defaults = defaults.iter().map(|value| Some(host_value(value)));
        let defaults = std::iter::repeat_n(None, n_required).chain(defaults);
        let keyword_defaults = match field("kwonlydefaults")? {
            StructuredValue::Dict(fields) => fields.clone(),
            _ => BTreeMap::new(),
        };
        let by_name = strings("kwonlyargs", field("kwonlyargs")?)?.into_iter().map(|name| {
            let default = keyword_defaults.get(&name).map(host_value);
            (name, default)
        });
        Ok(ArgSpecParameters {
            by_name: by_name.collect(),
            more_positional: !matches!(field("varargs")?, StructuredValue::None),
            more_by_name: !matches!(field("varkw")?, StructuredValue::None),
            positional: names.into_iter().zip(defaults).collect(),
            input_signature: input_signature(spec, limits)?,
        })
    }

    /// The names of positional parameters.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.positional.iter().map(|(name, _)| name.as_str())
    }

    /// Input signature of the positional arguments, where that is the same for all traces.
    pub(crate) fn input_signature(&self) -> Option<&[StructuredValue]> {
        self.input_signature.as_deref()
    }

    /// The arguments in the form traces describe them: a tuple of the positional ones and a
    /// dictionary of the others, with defaults filled in.
    pub(crate) fn bind<T: TensorLeaf>(
        &self,
        args: &[PythonValue<T>],
        kwargs: &BTreeMap<String, PythonValue<T>>,
    ) -> Result<PythonValue<T>> {
        let default = |default: &Option<PythonValue>| {
            default.as_ref()?.try_map(&|tensor| Some(T::from(tensor.clone())))
        };
        let wrong = |rule: String| Error::Arguments { rule };
        if args.len() > self.positional.len() && !self.more_positional {
            let (most, found) = (self.positional.len(), args.len());
            return Err(wrong(format!("at most {most} positional arguments, found {found}")));
        }
        let mut rest = kwargs.clone();
        let mut positional = Vec::with_capacity(self.positional.len().max(args.len()));
        for (index, (name, set)) in self.positional.iter().enumerate() {
            let by_name = rest.remove(name);
            let value = match (args.get(index), by_name) {
                (Some(_), Some(_)) => return Err(wrong(format!("`{name}` is given twice"))),
                (Some(value), None) => Some(value.clone()),
                (None, by_name) => by_name.or_else(|| default(set)),
            };
            positional.push(value.ok_or_else(|| wrong(format!("`{name}` is missing")))?);
        }
        positional.extend(args.iter().skip(self.positional.len()).cloned());
        let mut named = BTreeMap::new();
        for (name, set) in &self.by_name {
            let value = rest.remove(name).or_else(|| default(set));
            named.insert(name.clone(), value.ok_or_else(|| wrong(format!("`{name}` is missing")))?);
        }
        if let Some(name) = rest.keys().next().filter(|_| !self.more_by_name) {
            return Err(wrong(format!("there is no parameter `{name}`")));
        }
        named.extend(rest);
        Ok(PythonValue::Tuple(vec![PythonValue::Tuple(positional), PythonValue::Dict(named)]))
    }
}

fn strings(what: &'static str, value: &StructuredValue) -> Result<Vec<String>> {
    let wrong = || malformed(what, "a list of names", value);
    let (StructuredValue::List(values) | StructuredValue::Tuple(values)) = value else {
        return Err(wrong());
    };
    let each = values.iter().map(|value| match value {
        StructuredValue::String(name) => Ok(name.clone()),
        _ => Err(wrong()),
    });
    each.collect()
}

fn input_signature(
    spec: &proto::FunctionSpec,
    limits: &Limits,
) -> Result<Option<Vec<StructuredValue>>> {
    let Some(signature) = &spec.input_signature else { return Ok(None) };
    match convert::structured_value(signature, limits)? {
        StructuredValue::None => Ok(None),
        StructuredValue::Tuple(values) | StructuredValue::List(values) => Ok(Some(values)),
        other => Err(malformed("input_signature", "a tuple or nothing", other)),
    }
}

fn malformed(part: &'static str, expected: impl ToString, found: impl ToString) -> Error {
    ferroflow_ir::Error::argument("function spec", part, expected.to_string(), found.to_string())
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `def f(x, y=1, *, training=False)`
    fn parameters() -> ArgSpecParameters {
        ArgSpecParameters {
            positional: vec![("x".into(), None), ("y".into(), Some(PythonValue::Int(1)))],
            more_positional: false,
            by_name: vec![("training".into(), Some(PythonValue::Bool(false)))],
            more_by_name: false,
            input_signature: None,
        }
    }

    fn bound(args: &[i64], kwargs: &[(&str, i64)]) -> String {
        let args: Vec<PythonValue> = args.iter().map(|&value| PythonValue::Int(value)).collect();
        let kwargs =
            kwargs.iter().map(|&(name, value)| (name.into(), PythonValue::Int(value))).collect();
        match parameters().bind(&args, &kwargs) {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn arguments_are_bound_as_in_python() {
        assert_eq!(bound(&[7], &[]), r#"((7, 1), {"training": False})"#);
        assert_eq!(bound(&[], &[("y", 2), ("x", 7)]), r#"((7, 2), {"training": False})"#);
        assert_eq!(bound(&[7, 8], &[("training", 1)]), r#"((7, 8), {"training": 1})"#);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        assert_eq!(bound(&[], &[]), "wrong arguments: `x` is missing");
        assert_eq!(bound(&[1], &[("x", 2)]), "wrong arguments: `x` is given twice");
        assert_eq!(bound(&[1], &[("z", 2)]), "wrong arguments: there is no parameter `z`");
        assert_eq!(
            bound(&[1, 2, 3], &[]),
            "wrong arguments: at most 2 positional arguments, found 3"
        );
    }
}
