//! Implementations of one interface: functions of a file of which TensorFlow runs one by the device.
//!
//! Functions that have the attribute `api_implements` in common compute the same thing, and their
//! callers name any of them. Where a call runs on the CPU, TensorFlow takes the one whose
//! `api_preferred_device` is `CPU` (`core/grappler/optimizers/implementation_selector.cc`). TensorFlow
//! Probability has such pairs for what it draws, and they draw different numbers.
//!
//! The choice is that of the CPU on all devices, so that the results of a model depend on none.

use super::definitions::signature_name;
use crate::proto::{self, attr_value::Value};
use std::collections::HashMap;

/// The function that runs, by the name of the function that callers name.
pub(super) type Implementations = HashMap<Box<str>, Box<str>>;

const INTERFACE: &str = "api_implements";
const PREFERRED_DEVICE: &str = "api_preferred_device";

/// The attributes of functions of a gradient: they run in pairs, of which neither is exchanged alone.
const OF_PAIRS: [&str; 2] = ["forward_function_name", "backward_function_name"];

/// Finds the implementations for the CPU.
pub(super) fn implementations(library: &proto::FunctionDefLibrary) -> Implementations {
    let mut on_cpu: HashMap<&[u8], &proto::FunctionDef> = HashMap::new();
    let members = || library.function.iter().filter_map(|f| Some((interface(f)?, f)));
    for (interface, function) in members() {
        if bytes(function, PREFERRED_DEVICE) == Some(b"CPU") {
            on_cpu.entry(interface).or_insert(function);
        }
    }
    let chosen = |(interface, function): (&[u8], &proto::FunctionDef)| {
        let chosen = on_cpu.get(interface).copied()?;
        let is_exchanged = bytes(function, PREFERRED_DEVICE) != Some(b"CPU");
        (is_exchanged && same_types(function, chosen))
            .then(|| (signature_name(function).into(), signature_name(chosen).into()))
    };
    members().filter_map(chosen).collect()
}

/// The interface that a function implements, alone or as one of a pair.
pub(super) fn implemented(function: &proto::FunctionDef) -> Option<&[u8]> {
    bytes(function, INTERFACE).filter(|name| !name.is_empty())
}

fn interface(function: &proto::FunctionDef) -> Option<&[u8]> {
    let is_of_pair = OF_PAIRS.iter().any(|name| function.attr.contains_key(*name));
    implemented(function).filter(|_| !is_of_pair)
}

fn bytes<'a>(function: &'a proto::FunctionDef, name: &str) -> Option<&'a [u8]> {
    match &function.attr.get(name)?.value {
        Some(Value::S(bytes)) => Some(bytes),
        _ => None,
    }
}

/// Whether two functions take and return the same types.
fn same_types(a: &proto::FunctionDef, b: &proto::FunctionDef) -> bool {
    let types = |args: &[proto::op_def::ArgDef]| args.iter().map(|arg| arg.r#type).collect();
    let of = |f: &proto::FunctionDef| -> Option<(Vec<i32>, Vec<i32>)> {
        let signature = f.signature.as_ref()?;
        Some((types(&signature.input_arg), types(&signature.output_arg)))
    };
    of(a) == of(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::{
        Definitions, function,
        testing::{self, FLOAT, node},
    };
    use ferroflow_ir::{Limits, OpRegistry};
    use std::sync::Arc;

    fn implementation(name: &str, device: &str, nodes: Vec<proto::NodeDef>) -> proto::FunctionDef {
        let mut function = testing::function(name, &["x"], nodes, &[("y", "x")]);
        for (attr, value) in [(INTERFACE, "drawn"), (PREFERRED_DEVICE, device)] {
            let value = Some(Value::S(value.as_bytes().to_vec().into()));
            function.attr.insert(attr.into(), proto::AttrValue { value });
        }
        function
    }

    fn call(of: &str) -> proto::NodeDef {
        let f = proto::NameAttrList { name: of.into(), ..proto::NameAttrList::default() };
        let types =
            Value::List(proto::attr_value::ListValue { r#type: vec![1], ..Default::default() });
        let attrs = [("f", Value::Func(f)), ("Tin", types.clone()), ("Tout", types), ("T", FLOAT)];
        node("call", "PartitionedCall", &["x"], &attrs)
    }

    /// The functions that a caller of `callee` calls.
    fn called(callee: &str, functions: Vec<proto::FunctionDef>) -> String {
        let library = proto::FunctionDefLibrary { function: functions, ..Default::default() };
        let registry = Arc::new(OpRegistry::default());
        let definitions = Definitions::new(library, registry, Limits::default()).unwrap();
        let caller = testing::function("caller", &["x"], vec![call(callee)], &[]);
        let caller = function(&caller, &definitions).unwrap().to_string();
        let names = ["general", "of_gpu", "of_cpu"];
        names.into_iter().filter(|name| caller.contains(name)).collect()
    }

    #[test]
    fn the_implementation_for_the_cpu_runs() {
        let general = || implementation("general", "", Vec::new());
        let of = |name, device| implementation(name, device, Vec::new());
        let all = || vec![general(), of("of_gpu", "GPU"), of("of_cpu", "CPU")];
        for callee in ["general", "of_gpu", "of_cpu"] {
            assert_eq!(called(callee, all()), "of_cpu");
        }
        assert_eq!(called("general", vec![general(), of("of_gpu", "GPU")]), "general");
    }

    #[test]
    fn functions_that_differ_are_not_exchanged() {
        let general = implementation("general", "", Vec::new());
        let mut other = implementation("of_cpu", "CPU", Vec::new());
        other.signature.as_mut().unwrap().input_arg[0].r#type = 2;
        assert_eq!(called("general", vec![general.clone(), other]), "general");
        let mut backward = implementation("of_cpu", "CPU", Vec::new());
        let name = proto::AttrValue { value: Some(Value::S(b"f".to_vec().into())) };
        backward.attr.insert(OF_PAIRS[0].into(), name);
        assert_eq!(called("general", vec![general, backward]), "general");
    }

    #[test]
    fn an_implementation_may_call_another() {
        let general = implementation("general", "", Vec::new());
        let of_cpu = implementation("of_cpu", "CPU", vec![call("general")]);
        assert_eq!(called("general", vec![general.clone(), of_cpu]), "general");
        // A function in the place of an op is called as well.
        let node = node("call", "general", &["x"], &[]);
        let of_cpu = implementation("of_cpu", "CPU", vec![node]);
        assert_eq!(called("general", vec![general, of_cpu]), "general");
    }

    #[test]
    fn bodies_of_loops_that_call_themselves_are_refused() {
        let body =
            Value::Func(proto::NameAttrList { name: "general".into(), ..Default::default() });
        let repeat = node("repeat", "While", &["x"], &[("body", body.clone()), ("cond", body)]);
        let outer = testing::function("outer", &["x"], vec![repeat], &[]);
        let general = implementation("general", "", vec![call("outer")]);
        let functions = vec![outer, general, implementation("of_cpu", "CPU", Vec::new())];
        let library = proto::FunctionDefLibrary { function: functions, ..Default::default() };
        let registry = Arc::new(OpRegistry::default());
        assert!(Definitions::new(library, registry, Limits::default()).is_err());
    }
}
