//! Cases of models written here: what is called, and what Rust returns.

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ferroflow::{
    Tensor, Trackable, Variable,
    ir::{DType, HostTensor},
    npy,
    runtime::Context,
    save,
    saved_model::{FrozenGraph, LoadOptions, SaveOptions, freeze, load_session, write_message},
};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// A case in the making: a model that is saved, and calls with the answers of eager code.
pub(crate) struct Recorder {
    folder: PathBuf,
    model: PathBuf,
    json: Value,
    n_arrays: usize,
}

/// Tensors by name.
pub(crate) type Named<'a> = &'a [(&'a str, &'a Tensor)];

impl Recorder {
    /// A case of this name in a folder of cases, whose model goes to another of models.
    pub(crate) fn new(name: &str, cases: &Path, models: &Path) -> Result<Recorder> {
        let (folder, model) = (cases.join(name), models.join(name));
        std::fs::create_dir_all(folder.join("io"))?;
        let json = json!({
            "name": name,
            "kind": "saved_model",
            "source": "written in Rust",
            "tags": ["serve"],
            "calls": [],
            "also": [],
        });
        Ok(Recorder { folder, model, json, n_arrays: 0 })
    }

    /// A folder for the files that the model needs.
    pub(crate) fn files(&self) -> PathBuf {
        self.folder.join("io")
    }

    /// Saves the model.
    pub(crate) fn save(&self, root: &dyn Trackable, options: &SaveOptions) -> Result<()> {
        save(root, &self.model, options)?;
        Ok(())
    }

    /// Notes the graph of a signature of the model that was saved, variables being constants.
    pub(crate) fn frozen(&mut self, key: &str) -> Result<()> {
        let session = load_session(&Context::new(), &self.model, &LoadOptions::default())?;
        let FrozenGraph { graph_def, inputs, outputs } = freeze(&session, key)?;
        write_message(&self.files().join("frozen.pb"), &graph_def)?;
        self.note("frozen", json!({ "key": key, "inputs": inputs, "outputs": outputs }));
        Ok(())
    }

    /// Prefix of a checkpoint's name.
    pub(crate) fn prefix(&self) -> PathBuf {
        self.model.join("ckpt")
    }

    /// The case is about a checkpoint of these objects.
    pub(crate) fn checkpoint(&mut self, prefix: &Path, tree: Value) -> Result<()> {
        let name = prefix.file_name().context("a checkpoint has a name")?;
        self.note("kind", json!("object_checkpoint"));
        self.note("prefix", json!(name.to_string_lossy()));
        self.note("tree", tree);
        Ok(())
    }

    /// Something more that the case says.
    pub(crate) fn note(&mut self, key: &str, value: Value) {
        self.json[key] = value;
    }

    /// Further work of TensorFlow with the model.
    pub(crate) fn also(&mut self, what: &[&str]) {
        self.json["also"] = json!(what);
    }

    pub(crate) fn tensor(&mut self, tensor: &Tensor) -> Result<Value> {
        let host = tensor.host()?;
        let (dtype, shape) = (host.dtype().name(), host.shape().dims());
        if host.dtype() == DType::String {
            let texts: Vec<String> =
                host.strings()?.iter().map(|text| STANDARD.encode(text)).collect();
            return Ok(json!({ "dtype": dtype, "shape": shape, "values": texts }));
        }
        let name = format!("io/{}.npy", self.n_arrays);
        self.n_arrays += 1;
        npy::write(self.folder.join(&name), &HostTensor::clone(host))?;
        Ok(json!({ "npy": name, "dtype": dtype, "shape": shape }))
    }

    fn named(&mut self, tensors: Named<'_>) -> Result<Value> {
        let mut fields = Map::new();
        for (name, tensor) in tensors {
            fields.insert(name.to_string(), self.tensor(tensor)?);
        }
        Ok(Value::Object(fields))
    }

    fn call(&mut self, call: Value) -> Result<()> {
        self.json["calls"].as_array_mut().context("calls are a list")?.push(call);
        Ok(())
    }

    /// A signature returns these outputs.
    pub(crate) fn signature(
        &mut self,
        key: &str,
        inputs: Named<'_>,
        outputs: Named<'_>,
    ) -> Result<()> {
        let (kwargs, dict) = (self.named(inputs)?, self.named(outputs)?);
        self.call(json!({
            "kind": "signature", "path": key, "kwargs": kwargs, "expect": { "dict": dict },
        }))
    }

    /// A function of tensors returns this tensor.
    pub(crate) fn function(&mut self, path: &str, args: &[&Tensor], result: &Tensor) -> Result<()> {
        let args: Result<Vec<Value>> = args.iter().map(|arg| self.tensor(arg)).collect();
        let expect = self.tensor(result)?;
        self.function_of(path, args?, json!({}), expect)
    }

    /// A function of any arguments returns this.
    pub(crate) fn function_of(
        &mut self,
        path: &str,
        args: Vec<Value>,
        kwargs: Value,
        expect: Value,
    ) -> Result<()> {
        let kind = "function";
        self.call(json!({
            "kind": kind, "path": path, "args": args, "kwargs": kwargs, "expect": expect,
        }))
    }

    /// A call of a function fails.
    pub(crate) fn fails(&mut self, path: &str, args: &[&Tensor]) -> Result<()> {
        let args: Result<Vec<Value>> = args.iter().map(|arg| self.tensor(arg)).collect();
        self.function_of(path, args?, json!({}), json!({ "error": true }))
    }

    /// A variable has its value of now.
    pub(crate) fn variable(&mut self, path: &str, variable: &Variable) -> Result<()> {
        let expect = self.tensor(&variable.read()?)?;
        self.call(json!({ "kind": "variable", "path": path, "expect": expect }))
    }

    /// A variable gets another value.
    pub(crate) fn assign(&mut self, path: &str, value: &Tensor) -> Result<()> {
        let value = self.tensor(value)?;
        self.call(json!({ "kind": "assign", "path": path, "args": [value] }))
    }

    /// Writes down the case.
    pub(crate) fn finish(self) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.json)?;
        Ok(std::fs::write(self.folder.join("case.json"), text)?)
    }
}
