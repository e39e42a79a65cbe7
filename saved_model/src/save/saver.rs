//! The functions by which session-style loaders save and restore a model.

use super::nodes::{FunctionWriter, call, plain_arg, variable_arg};
use crate::{error::Result, proto};
use ferroflow_ir::{Attrs, DType, HostTensor, Shape};

/// A variable that is saved.
pub(super) struct SavedValue {
    pub(super) key: String,
    /// The tensor of its handle in the main graph.
    pub(super) handle: String,
    pub(super) variable: proto::SavedVariable,
}

/// State that is no variable, restored by a function of its own.
pub(super) struct SavedState {
    /// The keys of its tensors, and their dtypes.
    pub(super) tensors: Vec<(String, DType)>,
    /// The function that takes them.
    pub(super) restore: proto::FunctionDef,
    /// Its captures, in the main graph.
    pub(super) captures: Vec<String>,
}

/// All that is saved of a model.
pub(super) struct Saved {
    pub(super) values: Vec<SavedValue>,
    pub(super) states: Vec<SavedState>,
    pub(super) object_graph: HostTensor,
    pub(super) object_graph_key: &'static str,
}

impl Saved {
    /// The function that saves: of the name of a checkpoint, which it gives again, and handles.
    pub(super) fn save_function(&self, name: &str) -> Result<proto::FunctionDef> {
        let mut f = FunctionWriter::new(name);
        let prefix = f.arg(plain_arg("file_prefix", DType::String.number()));
        let mut keys: Vec<&str> = Vec::new();
        let (mut dtypes, mut tensors) = (Vec::new(), Vec::new());
        for (index, value) in self.values.iter().enumerate() {
            let handle = f.arg(variable_arg(&format!("variable_{index}"), &value.variable));
            let dtype = DType::from_number(value.variable.dtype).unwrap_or(DType::F32);
            let read = format!("Read_{index}");
            f.add(&read, "ReadVariableOp", [handle], &Attrs::new().with("dtype", dtype))?;
            f.always(&read);
            keys.push(&value.key);
            dtypes.push(dtype);
            tensors.push(format!("{read}:value:0"));
        }
        keys.push(self.object_graph_key);
        dtypes.push(DType::String);
        tensors.push(f.constant("object_graph", &self.object_graph)?);
        let part = f.constant("part", &HostTensor::scalar_string("_temp/part"))?;
        f.add("StringJoin", "StringJoin", [prefix.clone(), part], &Attrs::new().with("N", 2i64))?;
        let shard = f.constant("shard", &HostTensor::scalar(0i32))?;
        let n_shards = f.constant("num_shards", &HostTensor::scalar(1i32))?;
        let joined = "StringJoin:output:0".to_string();
        f.add("ShardedFilename", "ShardedFilename", [joined, shard, n_shards], &Attrs::new())?;
        let file = "ShardedFilename:filename:0".to_string();
        let [names, slices] = names_and_slices(&mut f, &keys)?;
        let inputs = [file.clone(), names, slices].into_iter().chain(tensors);
        f.add("SaveV2", "SaveV2", inputs, &Attrs::new().with("dtypes", dtypes))?;
        f.always("SaveV2");
        let pack = Attrs::new().with("N", 1i64).with("T", DType::String);
        f.add("prefixes", "Pack", [file, "^SaveV2".into()], &pack)?;
        let merged = ["prefixes:output:0".to_string(), prefix.clone()];
        f.add("MergeV2Checkpoints", "MergeV2Checkpoints", merged, &Attrs::new())?;
        f.always("MergeV2Checkpoints");
        give_prefix(&mut f, prefix, "MergeV2Checkpoints")?;
        Ok(f.def)
    }

    /// The function that restores: of the name of a checkpoint, which it gives again, and handles.
    pub(super) fn restore_function(&self, name: &str) -> Result<proto::FunctionDef> {
        let mut f = FunctionWriter::new(name);
        let prefix = f.arg(plain_arg("file_prefix", DType::String.number()));
        let mut keys: Vec<&str> = Vec::new();
        let mut dtypes = Vec::new();
        let mut handles = Vec::new();
        for (index, value) in self.values.iter().enumerate() {
            handles.push(f.arg(variable_arg(&format!("variable_{index}"), &value.variable)));
            keys.push(&value.key);
            dtypes.push(DType::from_number(value.variable.dtype).unwrap_or(DType::F32));
        }
        for (key, dtype) in self.states.iter().flat_map(|state| &state.tensors) {
            keys.push(key);
            dtypes.push(*dtype);
        }
        // A model without state restores something all the same: the op takes no empty list.
        keys.push(self.object_graph_key);
        dtypes.push(DType::String);
        let [names, slices] = names_and_slices(&mut f, &keys)?;
        let attrs = Attrs::new().with("dtypes", dtypes.clone());
        f.add("RestoreV2", "RestoreV2", [prefix.clone(), names, slices], &attrs)?;
        let mut last = "RestoreV2".to_string();
        for (index, handle) in handles.into_iter().enumerate() {
            let name = format!("AssignVariableOp_{index}");
            let value = format!("RestoreV2:tensors:{index}");
            let attrs = Attrs::new().with("dtype", dtypes[index]);
            f.add(&name, "AssignVariableOp", [handle, value], &attrs)?;
            f.always(&name);
            last = name;
        }
        let mut position = self.values.len();
        for (index, state) in self.states.iter().enumerate() {
            let tensors = (position..position + state.tensors.len())
                .map(|position| format!("RestoreV2:tensors:{position}"));
            let mut inputs: Vec<String> = tensors.collect();
            position += state.tensors.len();
            let signature = state.restore.signature.clone().unwrap_or_default();
            for (number, arg) in signature.input_arg.iter().skip(state.tensors.len()).enumerate() {
                let name = format!("state_{index}_{number}");
                let arg = proto::op_def::ArgDef { name, ..arg.clone() };
                inputs.push(f.arg(arg));
            }
            let (op, attrs) = call(&state.restore);
            let name = format!("restore_{index}");
            f.add(&name, op, inputs, &attrs)?;
            f.always(&name);
            last = name;
        }
        give_prefix(&mut f, prefix, &last)?;
        Ok(f.def)
    }

    /// Inputs of the function that saves, besides the name.
    pub(super) fn save_inputs(&self) -> Vec<String> {
        self.values.iter().map(|value| value.handle.clone()).collect()
    }

    /// Inputs of the function that restores, besides the name.
    pub(super) fn restore_inputs(&self) -> Vec<String> {
        let captures = self.states.iter().flat_map(|state| state.captures.iter().cloned());
        self.save_inputs().into_iter().chain(captures).collect()
    }
}

fn names_and_slices(f: &mut FunctionWriter, keys: &[&str]) -> Result<[String; 2]> {
    let shape = Shape::new([keys.len()])?;
    let texts = |texts: Vec<&str>| {
        let texts = texts.into_iter().map(|text| text.to_string().into()).collect();
        HostTensor::from_strings(shape.clone(), texts)
    };
    let names = f.constant("tensor_names", &texts(keys.to_vec())?)?;
    let slices = f.constant("shape_and_slices", &texts(vec![""; keys.len()])?)?;
    Ok([names, slices])
}

/// Gives the name of the checkpoint once the node has run.
fn give_prefix(f: &mut FunctionWriter, prefix: String, after: &str) -> Result<()> {
    let controls = f.def.signature.as_ref().map_or_else(Vec::new, |s| s.control_output.clone());
    let mut inputs = vec![prefix];
    inputs.extend(controls.iter().map(|name| format!("^{name}")));
    if !controls.iter().any(|name| name == after) {
        inputs.push(format!("^{after}"));
    }
    f.add("Identity", "Identity", inputs, &Attrs::new().with("T", DType::String))?;
    f.result("identity", DType::String.number(), "Identity:output:0".into());
    Ok(())
}
