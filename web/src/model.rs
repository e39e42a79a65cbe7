//! A model, and what a run of it returns.

#![cfg_attr(
    feature = "webgpu",
    allow(deprecated, reason = "wasm-bindgen marks suspension as experimental by this")
)]

use crate::{
    error::{WebError, set},
    limits::{WebLimits, addressable, whole},
    tensor::WebTensor,
};
use ferroflow_ir::{Limits, PartialShape, device_name::DeviceName};
use ferroflow_runtime::{
    Context, ContextOptions, EagerTensor, RunMetadata, RunOptions, TraceLevel, files::MemoryFolder,
};
use ferroflow_saved_model::{LoadOptions, SavedModel, load};
use js_sys::{Array, Object, Uint8Array};
use serde_json::{Value, json};
use std::{collections::BTreeMap, panic::AssertUnwindSafe};
use wasm_bindgen::prelude::wasm_bindgen;

/// A loaded model, with its variables. After a panic in a call it is as usable as before: the
/// runtime makes an error of it and throws the frame away.
#[wasm_bindgen]
#[derive(Debug)]
pub struct WebModel(AssertUnwindSafe<LoadedFiles>);

#[derive(Debug)]
struct LoadedFiles {
    context: Context,
    model: SavedModel,
    /// Ops may read assets whenever they run.
    _folder: MemoryFolder,
}

/// Loads a SavedModel from its files: paths from the model's folder, and contents. All calls of the model
/// together may hold `memory` bytes. Without a device that is named it computes on the CPU.
///
/// # Errors
///
/// When files are missing or damaged, no MetaGraph has the tags, there is no such device, or a bound is reached.
#[cfg_attr(feature = "webgpu", wasm_bindgen(js_name = loadModel, jspi))]
#[cfg_attr(not(feature = "webgpu"), wasm_bindgen(js_name = loadModel))]
pub fn load_model(
    names: Vec<String>,
    contents: Vec<Uint8Array>,
    tags: Option<Vec<String>>,
    memory: Option<f64>,
    device: Option<String>,
    limits: &WebLimits,
) -> Result<WebModel, WebError> {
    let contents = contents.into_iter().map(|content| content.to_vec());
    let folder = MemoryFolder::new(names.iter().zip(contents))?;
    let context = context(memory, device)?;
    let options = LoadOptions { tags, only: None };
    let call = limits.start()?;
    let model = context.within(&call, || load(&context, folder.path(), &options))?;
    // The values are in variables now.
    folder.remove(|path| path.starts_with("variables"));
    Ok(WebModel(AssertUnwindSafe(LoadedFiles { context, model, _folder: folder })))
}

/// Calls a signature with tensors of these names. With `steps` it notes what each op took.
///
/// # Errors
///
/// When the inputs are not those of the signature, a bound is reached, or an op fails.
#[cfg_attr(feature = "webgpu", wasm_bindgen(js_name = runModel, jspi))]
#[cfg_attr(not(feature = "webgpu"), wasm_bindgen(js_name = runModel))]
pub fn run_model(
    model: &WebModel,
    signature: &str,
    names: Vec<String>,
    tensors: Vec<WebTensor>,
    limits: &WebLimits,
    steps: bool,
) -> Result<WebRun, WebError> {
    if names.len() != tensors.len() {
        return Err(WebError::Inputs { names: names.len(), tensors: tensors.len() });
    }
    let tensors = tensors.into_iter().map(|tensor| EagerTensor::from(tensor.into_host()));
    let inputs: BTreeMap<String, EagerTensor> = names.into_iter().zip(tensors).collect();
    let options = limits.start()?;
    model.0.context.within(&options, || model.0.call(signature, &inputs, steps))
}

#[wasm_bindgen]
impl WebModel {
    /// The signatures as JSON: a list of `{name, inputs, outputs}`, each of those a list of
    /// `{name, dtype, shape}`. A shape is `null` if its rank is not known, and so is a size.
    ///
    /// # Errors
    ///
    /// When a signature contradicts its function.
    pub fn signatures(&self) -> Result<String, WebError> {
        let all = self.0.model.signatures().into_iter().map(|name| self.0.signature(&name));
        Ok(Value::Array(all.collect::<Result<_, _>>()?).to_string())
    }

    /// The bytes that calls and variables hold, if a bound was set on them.
    #[wasm_bindgen(getter, js_name = memoryInUse)]
    pub fn memory_in_use(&self) -> Option<f64> {
        self.0.context.memory_in_use().map(|bytes| bytes as f64)
    }
}

fn context(memory: Option<f64>, device: Option<String>) -> Result<Context, WebError> {
    let mut limits = Limits::default();
    if let Some(bytes) = memory {
        limits.memory_bytes = addressable(whole("the bytes of memory", bytes)?);
    }
    let device: Option<DeviceName> = device.as_deref().map(str::parse).transpose()?;
    let options = ContextOptions { limits, device: device.clone(), ..ContextOptions::default() };
    let context = Context::with_options(options);
    context.set_printer(log);
    if let Some(device) = device {
        context.device(&device)?;
    }
    Ok(context)
}

#[wasm_bindgen]
extern "C" {
    /// The console of the page.
    #[wasm_bindgen(js_namespace = console)]
    fn log(text: &str);
}

impl LoadedFiles {
    fn signature(&self, name: &str) -> Result<Value, WebError> {
        let inputs = self.model.signature_inputs(name)?;
        let inputs =
            inputs.iter().map(|(name, spec)| described(name, spec.dtype.name(), &spec.shape));
        let inputs: Vec<Value> = inputs.collect();
        let outputs = self.model.signature_outputs(name)?;
        let outputs = outputs.iter().map(|(name, ty)| match ty {
            Some(ty) => described(name, ty.dtype.name(), &ty.shape),
            None => json!({ "name": name, "dtype": null, "shape": null }),
        });
        let outputs: Vec<Value> = outputs.collect();
        Ok(json!({ "name": name, "inputs": inputs, "outputs": outputs }))
    }

    fn call(
        &self,
        signature: &str,
        inputs: &BTreeMap<String, EagerTensor>,
        steps: bool,
    ) -> Result<WebRun, WebError> {
        let (outputs, metadata) = match steps {
            true => {
                let options = RunOptions { trace_level: TraceLevel::Ops };
                let called = self.model.call_signature_with(signature, inputs, &options)?;
                (called.0, Some(called.1))
            }
            false => (self.model.call_signature(signature, inputs)?, None),
        };
        let host = |(name, tensor): (String, EagerTensor)| {
            Ok((name, WebTensor::from(tensor.into_host()?)))
        };
        let outputs = outputs.into_iter().map(host).collect::<Result<_, WebError>>()?;
        Ok(WebRun { outputs, metadata })
    }
}

fn described(name: &str, dtype: &str, shape: &PartialShape) -> Value {
    json!({ "name": name, "dtype": dtype, "shape": shape.dims() })
}

/// The results of a run.
#[wasm_bindgen]
#[derive(Debug)]
pub struct WebRun {
    outputs: Vec<(String, WebTensor)>,
    metadata: Option<RunMetadata>,
}

#[wasm_bindgen]
impl WebRun {
    /// The names of the results.
    pub fn names(&self) -> Vec<String> {
        self.outputs.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The results, in the order of their names.
    pub fn tensors(&self) -> Vec<WebTensor> {
        self.outputs.iter().map(|(_, tensor)| tensor.clone()).collect()
    }

    /// The ops that ran, in order, if they were noted: objects with `node`, `op`, `device`, and `start` and
    /// `elapsed` in milliseconds.
    pub fn steps(&self) -> Option<Array> {
        let metadata = self.metadata.as_ref()?;
        let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1e3;
        let steps = metadata.ops.iter().map(|op| {
            let step = Object::new();
            set(&step, "node", op.node.as_str());
            set(&step, "op", op.op.as_str());
            set(&step, "device", op.device.as_str());
            set(&step, "start", milliseconds(op.start));
            set(&step, "elapsed", milliseconds(op.elapsed));
            step
        });
        Some(steps.collect())
    }
}
